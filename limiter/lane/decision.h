/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decision in its published form: one line of JSON, and the message key that
 * names its bucket.
 */
#ifndef LIMITER_DECISION_H
#define LIMITER_DECISION_H

#include "common/base/text.h"
#include "common/policy/policy.h"
#include "limiter/shard/shard.h"

/** Appends {"id":…,"zone":…,…} without a newline. */
void decision_json(struct weir_text *text, uint32_t partition, const struct shard_decision *decision);

/**
 * Appends a lift of every bucket of a zone in one partition: "key":null, until = at.
 *
 * @param offset, index  of the policy record, and the lift's place in what it publishes
 */
void decision_lift_json(struct weir_text *text, uint32_t partition, uint64_t offset, uint32_t index,
                        const struct weir_zone *zone, int64_t at_ms);

/**
 * Appends what an operator's command came to: "by" and "reason" where a decision of the limits has "limit" and "count".
 * A block without end has the end of the calendar, the year 10000, as its "until": for readers a time like any other.
 *
 * @param offset, index  of the command, and 0; or as of a lift, where a policy publishes it
 */
void decision_override_json(struct weir_text *text, uint32_t partition, uint64_t offset, uint32_t index,
                            const struct shard_override_decision *decision);

/** Appends the message key: the zone's name, '|', the joined key. */
void decision_message_key(struct weir_text *text, const struct weir_zone *zone, struct weir_span key);

/** Appends a joined key as a JSON array of its values. */
void decision_key_json(struct weir_text *text, const struct weir_zone *zone, struct weir_span key);

#endif
