/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The totals of a partition's verdicts: passes, blocks, late events and decisions of
 * each zone, and the most blocked keys.
 *
 * There is one per partition, saved with its checkpoint. So a summary covers a
 * whole run, however often it was interrupted, and is the same for any number of
 * threads. The shard's worker owns it. Any thread may read the zones' counters, as
 * each is written by one thread and read atomically.
 */
#ifndef LIMITER_TALLY_H
#define LIMITER_TALLY_H

#include "common/base/text.h"
#include "common/policy/policy.h"
#include "limiter/lane/top_keys.h"
#include "limiter/shard/shard.h"

#include <stdatomic.h>

struct tally_zone {
	_Atomic uint32_t zone_id; /* 0: this entry is free */
	_Atomic uint64_t passed, blocked, late, decisions;
};

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally);

/** Adds a judged frame. */
void tally_frame(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result);

/** The counters of one zone; NULL if nothing was ever judged in it. @thread any */
const struct tally_zone *tally_zone(const struct tally *tally, uint32_t zone_id);

/** The keys that were blocked most. The tally owns them. */
struct top_keys *tally_keys(const struct tally *tally);

/**
 * Frees the counters of zones that a policy does not have: their ids never come back, and others need the room. A
 * thread that reads such a zone's counters at that very moment may read another zone's.
 */
void tally_keep_zones(struct tally *tally, const struct weir_policy *policy);

/**
 * Adds the counters of one tally to another, or subtracts them: for sums that continue when a partition leaves.
 *
 * @param policy  the newest one: only its zones are counted, and the counters of others are freed
 */
void tally_fold(struct tally *into, const struct tally *of, bool subtract, const struct weir_policy *policy);

/** Append the tally as bytes, and read it back (WEIR_INVALID: they are damaged, and the tally is then empty). */
void tally_export(const struct tally *tally, struct weir_text *bytes);
WEIR_MUST_USE enum weir_status tally_import(struct tally *tally, struct weir_span bytes, struct weir_error *error);

#endif
