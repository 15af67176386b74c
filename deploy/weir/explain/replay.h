/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging again: the events of the keys that are asked about, through a limiter's own lane, and beside it a list for
 * each limit of the events that it counts.
 *
 * Buckets do not touch one another, so one key's events, with the policies and commands between them, give that key's
 * verdicts. What depends on other keys is followed here: the clock, which positions of a source were taken before, and
 * the numbers of pairs, which are part of a decision's id.
 *
 * One replay is of one partition.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_REPLAY_H
#define DEPLOY_WEIR_EXPLAIN_REPLAY_H

#include "common/bus/bus.h"
#include "deploy/weir/explain/question.h"
#include "limiter/lane/policy_registry.h"

struct replay;

struct replay_options {
	struct policy_registry *registry; /* borrowed, with every policy */
	uint64_t version;                 /* in force at first */
	uint32_t partition, partitions;   /* which of how many */
	int64_t lateness_ms;              /* limiter.lateness; < 0: nothing is forgotten */
	bool whole;                       /* nothing was before what is judged */
	struct question *questions; /* borrowed: those of this partition get their answers, the others are left alone */
	size_t question_count;
};

struct replay *replay_new(const struct replay_options *options);
void replay_free(struct replay *replay);

/** Whether a key is asked about. @param hash  weir_hash64() of it */
bool replay_wants(const struct replay *replay, struct weir_span key, uint64_t hash);

/* An event with its place. */
struct replay_event {
	struct weir_span key; /* one that is wanted */
	int64_t time_ms, cost;
	const struct weir_frame_zone *zones;
	uint32_t zone_count;
	const uint8_t *source;
	uint64_t position;
	uint64_t policy_version;
	int64_t sent_ms, appended_ms;
	struct weir_span fields; /* that the frame has of its record; at NULL: none */
	uint64_t id_offset;      /* of its decisions' ids */
	uint32_t id_index;       /* that of its first zone */
	const uint8_t *answers; /* of a check: what its frame says was answered, of its first zone at id_index; else NULL */
	const struct weir_frame_reservation *reservation; /* of a check: that it opens or settles; NULL: none */
};

/** Judges an event. @return WEIR_OK; WEIR_INVALID, WEIR_NEWER: it cannot be judged, the words say why */
WEIR_MUST_USE enum weir_status replay_event(struct replay *replay, const struct replay_event *event,
                                            struct weir_error *error);

/** Takes the partition's next message of the log: of a frame, the events that are wanted. @return as replay_event() */
WEIR_MUST_USE enum weir_status replay_message(struct replay *replay, const struct weir_message *message,
                                              struct weir_error *error);

#endif
