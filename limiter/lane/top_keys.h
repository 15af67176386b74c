/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most blocked keys, by Space-Saving (Metwally, Agrawal, El Abbadi
 * 2005): of so many keys as there are places the counts are exact; then a new key
 * takes the place of the least one and inherits its count as its error, so a key
 * that was blocked often is never missed.
 *
 * A key is counted in some tens of nanoseconds, known or new, however many are counted. Owned
 * by the shard's worker.
 */
#ifndef LIMITER_TOP_KEYS_H
#define LIMITER_TOP_KEYS_H

#include "common/base/span.h"
#include "common/policy/policy.h"

enum { TOP_KEYS = 256 };

/** One of them: its true count lies in [count - error, count]. */
struct top_key {
	uint32_t zone_id; /* 0: nobody's, of one that was forgotten */
	uint32_t key_length;
	uint64_t count, error;
	char key[WEIR_KEY_MAX_BYTES];
};

struct top_keys;

/** Where a key was counted last, so that it need not be looked for; zero-initialised: nowhere. Good until one is forgotten. */
struct top_mark {
	struct top_entry *entry;
	uint32_t names;
};

struct top_keys *top_keys_new(void);
void top_keys_free(struct top_keys *top);

/**
 * Counts one block more of a key; one that is longer than WEIR_KEY_MAX_BYTES is skipped.
 *
 * @param mark  of this key alone; is set anew
 */
void top_keys_count(struct top_keys *top, uint32_t zone_id, struct weir_span key, struct top_mark *mark);

/**
 * Takes a key out. While there is room the counts are exact, and its place is given up. Once there is none, a key that
 * comes is counted from the least count on, which it may have reached before: a place that is nobody's stands for that.
 */
void top_keys_forget(struct top_keys *top, uint32_t zone_id, struct weir_span key);

/** Adds a key as it was counted elsewhere; false: there is no room, or the key is too long. */
bool top_keys_add(struct top_keys *top, uint32_t zone_id, struct weir_span key, uint64_t count, uint64_t error);

/** The keys, most often blocked first; valid until one is counted. @return how many */
size_t top_keys_list(const struct top_keys *top, const struct top_key *const **keys);

#endif
