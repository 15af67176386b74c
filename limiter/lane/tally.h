/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The totals of a partition's verdicts: passes, blocks and late events of each
 * zone, and the most blocked keys.
 *
 * Kept by partition and saved with its checkpoint, so that a summary covers a
 * whole run, however often it was cut, and is the same for any number of
 * threads. Owned by the shard's worker; the zones' counters may be read by any
 * thread (each is written by one and read whole).
 */
#ifndef LIMITER_TALLY_H
#define LIMITER_TALLY_H

#include "common/base/text.h"
#include "common/policy/policy.h"
#include "limiter/lane/top_keys.h"
#include "limiter/shard/shard.h"

#include <stdatomic.h>

struct tally_zone {
	_Atomic uint32_t zone_id; /* 0: the place is free */
	_Atomic uint64_t passed, blocked, late, decisions;
};

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally);

/** Adds a judged frame. */
void tally_frame(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result);

/** Counters of one zone, NULL if none was ever judged. @thread any */
const struct tally_zone *tally_zone(const struct tally *tally, uint32_t zone_id);

/** The keys that were blocked most: the tally's own. */
struct top_keys *tally_keys(const struct tally *tally);

/**
 * Gives up the counters of zones that a policy does not have: their ids never come back, and others need the room. Who
 * reads such a zone's counters at that very moment may find another's in them.
 */
void tally_keep_zones(struct tally *tally, const struct weir_policy *policy);

/**
 * Adds the counters of one tally to another, or takes them off: sums that continue when a partition does not.
 *
 * @param policy  the newest: of its zones; those of others are given up
 */
void tally_fold(struct tally *into, const struct tally *of, bool subtract, const struct weir_policy *policy);

/** Appends the tally as bytes, and reads it back (WEIR_INVALID: they are damaged; the tally is then empty). */
void tally_export(const struct tally *tally, struct weir_text *bytes);
WEIR_MUST_USE enum weir_status tally_import(struct tally *tally, struct weir_span bytes, struct weir_error *error);

#endif
