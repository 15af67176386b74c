/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two hashes that place a key.
 *
 * The slot (CRC16, as Redis Cluster) says which partition a key belongs to and
 * never changes. The fingerprint (XXH3 with a secret seed, 76 bits of its 128)
 * stands for the key in a limiter's memory; the seed keeps anyone who picks keys
 * from aiming them at one place of the table, or at another's bucket.
 *
 * Among ten million buckets of a partition two have the same fingerprint in one
 * of 1.5 billion cases; in a hundred such partitions, of a billion buckets, in one
 * of 15 million. Memory that turns a bit by itself is far more likely.
 *
 * XXH3 is compiled into its callers: for keys of some ten bytes the call would
 * cost as much as the hash.
 */
#ifndef WEIR_COMMON_HASH_H
#define WEIR_COMMON_HASH_H

#include "common/base/span.h"

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
/* gcc warns of lengths that it cannot bound where XXH3 is inlined over a small buffer. */
#pragma GCC diagnostic ignored "-Warray-bounds"
#include <xxhash.h>
#pragma GCC diagnostic pop

enum { WEIR_SLOTS = 16384 };

/** CRC16/XMODEM of the key, or of what its first {…} holds (unless that is empty), mod 16384. */
uint32_t weir_slot(struct weir_span key);

/** CRC16/XMODEM: polynomial 0x1021, from 0, not reflected. */
uint16_t weir_crc16(const char *bytes, size_t length);

static inline uint32_t weir_partition(uint32_t slot, uint32_t partitions)
{
	return (uint32_t)(((uint64_t)slot * partitions) >> 14);
}

enum {
	WEIR_FINGERPRINT_HIGH_BITS = 12,
	WEIR_FINGERPRINT_HIGH_MASK = (1 << WEIR_FINGERPRINT_HIGH_BITS) - 1,
	WEIR_FINGERPRINT_DIGITS = 19, /* of it in hexadecimal, `high` first */
};

struct weir_fingerprint {
	uint64_t low;
	uint32_t high; /* WEIR_FINGERPRINT_HIGH_BITS */
};

/** Of the upper half of the hash, what a fingerprint has. */
static inline uint32_t weir_fingerprint_high(uint64_t high64)
{
	return (uint32_t)(high64 >> (64 - WEIR_FINGERPRINT_HIGH_BITS));
}

/** Of a joined key in a zone. */
static inline __attribute__((always_inline)) struct weir_fingerprint weir_fingerprint(uint64_t seed, uint32_t zone_id,
                                                                                      struct weir_span key)
{
	/* An odd factor spreads the zone over the seed's bits: no two zones of a policy get the same one. */
	uint64_t zone_seed = seed ^ (zone_id * UINT64_C(0x9e3779b97f4a7c15));
	XXH128_hash_t hash = XXH3_128bits_withSeed(key.length > 0 ? key.at : "", key.length, zone_seed);
	return (struct weir_fingerprint){.low = hash.low64, .high = weir_fingerprint_high(hash.high64)};
}

/** For qsort() and bsearch(), of fingerprints: in the order of their digits. */
int weir_fingerprint_compare(const void *a, const void *b);

/** Its digits, for people. @return `words` */
const char *weir_fingerprint_words(struct weir_fingerprint print, char words[WEIR_FINGERPRINT_DIGITS + 1]);

/** 64-bit XXH3 for everything that needs a checksum or an identity: not secret, stable across versions. */
static inline uint64_t weir_hash64(const void *bytes, size_t length)
{
	return XXH3_64bits(length > 0 ? bytes : "", length);
}

/** 128 bits of the same, high half first (XXH128's canonical form). */
static inline void weir_hash128(const void *bytes, size_t length, uint8_t out[16])
{
	XXH128_canonical_t canonical;
	XXH128_canonicalFromHash(&canonical, XXH3_128bits(length > 0 ? bytes : "", length));
	memcpy(out, canonical.digest, sizeof canonical.digest);
}

#endif
