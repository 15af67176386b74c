/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two networks are disjoint or one holds the other, so without those that lie
 * within others they are sorted ranges, and one binary search finds the only one
 * that can hold an address. IPv4 has ranges of its own, of plain numbers: it is
 * what nearly every line has.
 */
#include "collector/record/network_set.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { V4_PREFIX = 96 };

struct network_range4 {
	uint32_t first, last;
};

struct network_range6 {
	uint8_t first[16], last[16];
};

static uint32_t number4(const uint8_t bytes[16])
{
	return (uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15];
}

static int compare4(const void *a, const void *b)
{
	const struct network_range4 *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->last < y->last) - (x->last > y->last); /* the larger first: it holds the other */
}

static int compare6(const void *a, const void *b)
{
	const struct network_range6 *x = a, *y = b;
	int order = memcmp(x->first, y->first, sizeof x->first);
	return order != 0 ? order : memcmp(y->last, x->last, sizeof x->last);
}

static struct network_range6 range_of(const struct weir_network *network)
{
	struct network_range6 range;
	memcpy(range.first, network->base.bytes, sizeof range.first);
	for (unsigned i = 0; i < 16; i++) {
		unsigned before = i * 8;
		unsigned host = network->prefix <= before      ? 0xff
		                : network->prefix < before + 8 ? 0xffu >> (network->prefix - before)
		                                               : 0;
		range.last[i] = (uint8_t)(range.first[i] | host);
	}
	return range;
}

void network_set_init(struct network_set *set, const struct weir_network *networks, uint32_t count)
{
	*set = (struct network_set){.ranges4 = weir_alloc(count, sizeof *set->ranges4),
	                            .ranges6 = weir_alloc(count, sizeof *set->ranges6)};
	for (uint32_t i = 0; i < count; i++) {
		struct network_range6 range = range_of(&networks[i]);
		if (networks[i].prefix >= V4_PREFIX && weir_address_is_v4(&networks[i].base))
			set->ranges4[set->count4++] =
				(struct network_range4){.first = number4(range.first), .last = number4(range.last)};
		else
			set->ranges6[set->count6++] = range;
	}
	qsort(set->ranges4, set->count4, sizeof *set->ranges4, compare4);
	qsort(set->ranges6, set->count6, sizeof *set->ranges6, compare6);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < set->count4; i++)
		if (kept == 0 || set->ranges4[i].last > set->ranges4[kept - 1].last)
			set->ranges4[kept++] = set->ranges4[i];
	set->count4 = kept;
	kept = 0;
	for (uint32_t i = 0; i < set->count6; i++)
		if (kept == 0 || memcmp(set->ranges6[i].last, set->ranges6[kept - 1].last, 16) > 0)
			set->ranges6[kept++] = set->ranges6[i];
	set->count6 = kept;
}

void network_set_deinit(struct network_set *set)
{
	free(set->ranges4);
	free(set->ranges6);
	*set = (struct network_set){0};
}

bool network_set_has(const struct network_set *set, const struct weir_address *address)
{
	uint32_t low = 0; /* ranges below it begin at or before the address */
	if (weir_address_is_v4(address)) {
		uint32_t number = number4(address->bytes);
		for (uint32_t high = set->count4; low < high;) {
			uint32_t middle = low + (high - low) / 2;
			if (set->ranges4[middle].first <= number)
				low = middle + 1;
			else
				high = middle;
		}
		return low > 0 && number <= set->ranges4[low - 1].last;
	}
	for (uint32_t high = set->count6; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (memcmp(set->ranges6[middle].first, address->bytes, 16) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && memcmp(address->bytes, set->ranges6[low - 1].last, 16) <= 0;
}
