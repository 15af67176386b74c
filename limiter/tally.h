/*
 * What a partition's verdicts add up to: passes, blocks and late events of each
 * zone, and the keys that were blocked most.
 *
 * Kept by partition and saved with its checkpoint, so that a summary covers a
 * whole run, however often it was cut, and is the same for any number of
 * threads. Owned by the shard's worker; the zones' counters may be read by any
 * thread (each is written by one and read whole).
 */
#ifndef LIMITER_TALLY_H
#define LIMITER_TALLY_H

#include "common/policy.h"
#include "common/text.h"
#include "limiter/shard.h"

#include <stdatomic.h>

enum { TALLY_TOP_KEYS = 256 }; /* counted a partition: up to so many blocked keys the counts are exact */

struct tally_zone {
	uint32_t zone_id;
	_Atomic uint64_t passed, blocked, late, decisions;
};

/* One of the most blocked keys. By the Space-Saving rule: true count lies in [count - error, count]. */
struct tally_key {
	uint32_t zone_id; /* 0: nobody's, of one that was forgotten */
	uint32_t key_length;
	uint64_t count, error;
	char key[WEIR_KEY_MAX_BYTES];
};

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally);

/** Adds a judged frame. */
void tally_frame(struct tally *tally, const struct weir_frame *frame, const struct shard_result *result);

/** Takes a key out of those that were blocked most: its bucket starts afresh. The zones' counters stay. */
void tally_forget(struct tally *tally, uint32_t zone_id, struct weir_span key);

/** Counters of one zone, NULL if none was ever judged. @thread any */
const struct tally_zone *tally_zone(const struct tally *tally, uint32_t zone_id);

/** The blocked keys, in no order; valid until the next tally_frame. */
size_t tally_keys(const struct tally *tally, const struct tally_key *const **keys);

/** Adds the zones' counters of one tally to another, or takes them off: sums that go on when a partition does not. */
void tally_fold(struct tally *into, const struct tally *of, bool subtract);

/** Appends the tally as bytes, and reads it back (WEIR_INVALID: they are damaged; the tally is then empty). */
void tally_export(const struct tally *tally, struct weir_text *bytes);
WEIR_MUST_USE enum weir_status tally_import(struct tally *tally, struct weir_span bytes, struct weir_error *error);

#endif
