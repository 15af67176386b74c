/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions as events within one process, without a log between: what a record makes zones decide is read as records of
 * the source `decisions`, directly behind it, first in the order of the policy and then in that in which it was decided.
 *
 * One thread uses it.
 */
#ifndef DEPLOY_WEIR_DECISION_EVENTS_H
#define DEPLOY_WEIR_DECISION_EVENTS_H

#include "common/config/config.h"
#include "common/record/record.h"
#include "limiter/shard/shard.h"

struct decision_events;

/**
 * @param config  borrowed: its sources
 * @param policy  borrowed: whose zones count them
 * @param fields  of the matcher that is to match the records
 * @param events  returned: decision_events_free(); NULL: no zone counts decisions, or no source gives them
 */
WEIR_MUST_USE enum weir_status decision_events_new(const struct weir_config *config, const struct weir_policy *policy,
                                                   const struct weir_field_table *fields,
                                                   struct decision_events **events, struct weir_error *error);
void decision_events_free(struct decision_events *events);

/** Adds what was decided of the record that is judged. */
void decision_events_add(struct decision_events *events, uint32_t partition, const struct shard_decision *decision);

/** The next record, once all of the one before is judged. It is valid until the next call. @return false: there is none */
bool decision_events_next(struct decision_events *events, struct weir_record *record);

#endif
