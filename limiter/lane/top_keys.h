/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most blocked keys, by Space-Saving (Metwally, Agrawal, El Abbadi 2005). Up to
 * TOP_KEYS keys, the counts are exact. Then a new key replaces the one with the
 * least count and inherits that count as its error, so a key that was blocked
 * often is never missed.
 *
 * Counting a key takes some tens of nanoseconds, whether it is known or new, and
 * however many are counted. The shard's worker owns it.
 */
#ifndef LIMITER_TOP_KEYS_H
#define LIMITER_TOP_KEYS_H

#include "common/base/span.h"
#include "common/policy/policy.h"

enum { TOP_KEYS = 256 };

/** One of the keys. Its true count is in [count - error, count]. */
struct top_key {
	uint32_t zone_id; /* 0: no key's; it stands for one that was forgotten */
	uint32_t key_length;
	uint64_t count, error;
	char key[WEIR_KEY_MAX_BYTES];
};

struct top_keys;

/** Caches where a key was last counted. Zero-initialised: nowhere. Valid until a key is forgotten. */
struct top_mark {
	struct top_entry *entry;
	uint32_t names;
};

struct top_keys *top_keys_new(void);
void top_keys_free(struct top_keys *top);

/**
 * Counts one more block of a key. Skips a key longer than WEIR_KEY_MAX_BYTES.
 *
 * @param mark  of this key alone; updated
 */
void top_keys_count(struct top_keys *top, uint32_t zone_id, struct weir_span key, struct top_mark *mark);

/**
 * Removes a key. While there is room, counts are exact, and its entry is freed. Once all entries are used, a new key is
 * counted from the least count on, which it may have reached before; so the entry is kept without a key (zone_id 0), to
 * keep that count.
 */
void top_keys_forget(struct top_keys *top, uint32_t zone_id, struct weir_span key);

/** Adds a key with its count and error from elsewhere. @return false: there is no room, or the key is too long */
bool top_keys_add(struct top_keys *top, uint32_t zone_id, struct weir_span key, uint64_t count, uint64_t error);

/** Lists the keys, most often blocked first; valid until one is counted. @return how many */
size_t top_keys_list(const struct top_keys *top, const struct top_key *const **keys);

#endif
