/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Bloom filter: whether a key may be among those that were added to it.
 *
 * A segment has one over its evicted buckets, so that a new key need not be looked
 * up in the store. It is blocked: all bits of a key are in one cache line. The
 * keys are not stored, so a filter cannot be rebuilt when it is full; instead it
 * grows by another part, as large as all before it. It takes about ten bits per
 * key, and has about three percent of false positives.
 */
#ifndef LIMITER_FILTER_H
#define LIMITER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter_part;

struct filter {
	struct filter_part *parts; /* newest first */
	uint32_t count;            /* keys that were added */
};

/** @param expected  how many keys will be added; if it is right, the filter stays in one part */
void filter_init(struct filter *filter, uint32_t expected);
void filter_deinit(struct filter *filter);

/** @param hash  64 evenly spread bits of the key */
void filter_add(struct filter *filter, uint64_t hash);
bool filter_has(const struct filter *filter, uint64_t hash);

size_t filter_bytes(const struct filter *filter);

#endif
