/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key's bits are in one block of 512 bits, so a query is one memory access per
 * part.
 */
#include "limiter/memory/filter.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { BLOCK_WORDS = 8, BLOCK_BITS = 512, BLOCK_KEYS = 48, BITS_A_KEY = 5, LEAST_BLOCKS = 1 };

struct filter_part {
	struct filter_part *next;
	uint32_t block_count;
	uint32_t spare; /* how many more keys it takes */
	uint64_t words[];
};

static void add_part(struct filter *filter, uint32_t keys)
{
	uint32_t blocks = keys / BLOCK_KEYS + LEAST_BLOCKS;
	struct filter_part *part = weir_alloc(1, sizeof *part + (size_t)blocks * BLOCK_WORDS * sizeof(uint64_t));
	part->block_count = blocks;
	part->spare = blocks * BLOCK_KEYS;
	part->next = filter->parts;
	filter->parts = part;
}

void filter_init(struct filter *filter, uint32_t expected)
{
	*filter = (struct filter){0};
	if (expected > 0)
		add_part(filter, expected);
}

void filter_deinit(struct filter *filter)
{
	while (filter->parts != NULL) {
		struct filter_part *part = filter->parts;
		filter->parts = part->next;
		free(part);
	}
	filter->count = 0;
}

static size_t block_of(const struct filter_part *part, uint64_t hash)
{
	return (size_t)(((hash >> 32) * part->block_count) >> 32) * BLOCK_WORDS;
}

/* The i-th bit of a key in its block: nine bits of a product, so that it does not depend on which block that is. */
static unsigned bit_of(uint64_t hash, unsigned i)
{
	return (unsigned)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (9 * i + 10)) % BLOCK_BITS;
}

void filter_add(struct filter *filter, uint64_t hash)
{
	if (filter->parts == NULL || filter->parts->spare == 0)
		add_part(filter, filter->count);
	struct filter_part *part = filter->parts;
	uint64_t *block = &part->words[block_of(part, hash)];
	for (unsigned i = 0; i < BITS_A_KEY; i++)
		block[bit_of(hash, i) / 64] |= UINT64_C(1) << (bit_of(hash, i) % 64);
	part->spare--;
	filter->count++;
}

static bool part_has(const struct filter_part *part, uint64_t hash)
{
	const uint64_t *block = &part->words[block_of(part, hash)];
	for (unsigned i = 0; i < BITS_A_KEY; i++)
		if (!(block[bit_of(hash, i) / 64] >> (bit_of(hash, i) % 64) & 1))
			return false;
	return true;
}

bool filter_has(const struct filter *filter, uint64_t hash)
{
	for (const struct filter_part *part = filter->parts; part != NULL; part = part->next)
		if (part_has(part, hash))
			return true;
	return false;
}

size_t filter_bytes(const struct filter *filter)
{
	size_t bytes = 0;
	for (const struct filter_part *part = filter->parts; part != NULL; part = part->next)
		bytes += sizeof *part + (size_t)part->block_count * BLOCK_WORDS * sizeof(uint64_t);
	return bytes;
}
