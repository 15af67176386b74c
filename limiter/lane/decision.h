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

/**
 * Appends {"id":…,"zone":…,…} without a newline. A decision that a done record made has "freed":true: a lift, or a block that
 * ends sooner than was published.
 */
void decision_json(struct weir_text *text, uint32_t partition, const struct shard_decision *decision);

/**
 * Appends a lift of every bucket of a zone in one partition: "key":null, until = at.
 *
 * @param offset, index  the policy record's offset, and the lift's index in what it publishes
 */
void decision_lift_json(struct weir_text *text, uint32_t partition, uint64_t offset, uint32_t index,
                        const struct weir_zone *zone, int64_t at_ms);

/**
 * Appends the decision of an operator's command. It has "by" and "reason" instead of "limit" and "count". A block
 * without end has the end of the calendar, the year 10000, as its "until", which to readers is a time like any other.
 *
 * @param offset, index  the command's offset, and 0; or as for a lift, if a policy publishes it
 */
void decision_override_json(struct weir_text *text, uint32_t partition, uint64_t offset, uint32_t index,
                            const struct shard_override_decision *decision);

/** Appends the message key: the zone's name, '|', the joined key. */
void decision_message_key(struct weir_text *text, const struct weir_zone *zone, struct weir_span key);

/** Appends a joined key as a JSON array of its values. */
void decision_key_json(struct weir_text *text, const struct weir_zone *zone, struct weir_span key);

#endif
