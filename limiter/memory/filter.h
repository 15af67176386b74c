/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter: whether a key may be among those that were added to it.
 *
 * A segment has one over the buckets that it has evicted, so that a new key does
 * not have to be looked for in the store. Bloom filters of one cache line's block
 * a key, each as large as all before it: what was added is not kept, so it cannot
 * be made over. About ten bits a key, and three of a hundred other keys are
 * taken for one of them.
 */
#ifndef LIMITER_FILTER_H
#define LIMITER_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter_part;

struct filter {
	struct filter_part *parts; /* the newest first */
	uint32_t count;            /* keys that were added */
};

/** @param expected  keys that will be added: with the right number there is one part */
void filter_init(struct filter *filter, uint32_t expected);
void filter_deinit(struct filter *filter);

/** @param hash  64 evenly spread bits of the key */
void filter_add(struct filter *filter, uint64_t hash);
bool filter_has(const struct filter *filter, uint64_t hash);

size_t filter_bytes(const struct filter *filter);

#endif
