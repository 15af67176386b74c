/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging record by record in one process, as `weir run --once` does, from an empty state: a record's events are framed
 * and go through the limiter's lanes, and whoever asks sees each result. What is decided can be records again, where
 * zones count decisions.
 *
 * One thread uses it. Nothing is forgotten or evicted, and no clock is read.
 */
#ifndef DEPLOY_WEIR_JUDGING_H
#define DEPLOY_WEIR_JUDGING_H

#include "common/config/config.h"
#include "common/matcher/matcher.h"
#include "limiter/lane/lane.h"
#include "limiter/overrides/override_command.h"

struct judging;

struct judging_options {
	const struct weir_config *config; /* borrowed, as all that follows: its sources */
	struct policy_registry *registry;
	uint64_t version; /* of the policy */
	uint32_t partitions;
	struct weir_matcher *matcher; /* of that policy and so many partitions */
	const struct weir_field_table *fields;
	/** Called with the result of each message; NULL: nobody asks */
	void (*each)(void *context, struct lane *lane, const struct lane_result *result);
	void *context;
};

WEIR_MUST_USE enum weir_status judging_new(const struct judging_options *options, struct judging **judging,
                                           struct weir_error *error);
void judging_free(struct judging *judging);

/** Whether some zone counts decisions: then whoever takes a record takes those of judging_next_decision() behind it. */
bool judging_follows_decisions(const struct judging *judging);

/** Judges a record that was matched. @return WEIR_OK; WEIR_INVALID */
WEIR_MUST_USE enum weir_status judging_take(struct judging *judging, const struct weir_matched *matched,
                                            const struct weir_record *record, struct weir_error *error);

/** What was decided of the records taken, as the next record, valid until the next call. @return false: there is none */
bool judging_next_decision(struct judging *judging, struct weir_record *record);

/**
 * Carries out an operator's command, at once in every partition that it is of.
 *
 * @param at_ms  when it was given
 * @return WEIR_OK; WEIR_INVALID: it cannot be carried out, the words say why
 */
WEIR_MUST_USE enum weir_status judging_command(struct judging *judging, const struct override_command *command,
                                               int64_t at_ms, struct weir_error *error);

/** The lane of a partition, made when it is first asked for. */
struct lane *judging_lane(struct judging *judging, uint32_t partition);

#endif
