/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables of networks, each with the length of its prefix: an address is looked up once for each length that
 * occurs, the longest first, cut to that length. IPv4 has a table of its own, of plain numbers: it is what nearly every
 * line has.
 */
#include "common/match/network_set.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { V4_PREFIX = 96, FIRST_SLOTS = 8 };

/* A network of IPv6; length is that of the prefix + 1, 0 in a free slot. */
struct network_slot6 {
	uint64_t high, low;
	uint64_t length;
};

static uint64_t number8(const uint8_t bytes[8])
{
	uint64_t number = 0;
	for (int i = 0; i < 8; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* The upper bits of a number, of which there are 0..64. */
static uint64_t upper_bits(uint64_t number, uint32_t bits)
{
	return bits == 0 ? 0 : number & (UINT64_MAX << (64 - bits));
}

/* What a slot holds of an IPv4 network; never 0. */
static uint64_t slot4_of(uint32_t address, uint32_t prefix)
{
	return upper_bits((uint64_t)address << 32, prefix) | (prefix + 1);
}

static struct network_slot6 slot6_of(uint64_t high, uint64_t low, uint32_t prefix)
{
	return (struct network_slot6){.high = upper_bits(high, prefix < 64 ? prefix : 64),
	                              .low = upper_bits(low, prefix > 64 ? prefix - 64 : 0),
	                              .length = prefix + 1};
}

/*
 * A bit of a product depends on those below it alone, and the upper bits of an address are what tells networks apart: so
 * they are folded down before it and after it.
 */
static uint64_t mix(uint64_t number)
{
	number = (number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return number ^ number >> 32;
}

/* The slot that holds it, or the free one where it belongs. */
static uint64_t *find4(const struct weir_network_set *set, uint64_t network)
{
	uint32_t mask = set->slot_count4 - 1, at = (uint32_t)mix(network) & mask;
	while (set->slots4[at] != 0 && set->slots4[at] != network)
		at = (at + 1) & mask;
	return &set->slots4[at];
}

static bool is_free_or_equal(const struct network_slot6 *slot, const struct network_slot6 *network)
{
	return slot->length == 0 ||
	       (slot->low == network->low && slot->high == network->high && slot->length == network->length);
}

static struct network_slot6 *find6(const struct weir_network_set *set, const struct network_slot6 *network)
{
	uint64_t hash = mix(mix(network->high) ^ network->low ^ network->length);
	uint32_t mask = set->slot_count6 - 1, at = (uint32_t)hash & mask;
	while (!is_free_or_equal(&set->slots6[at], network))
		at = (at + 1) & mask;
	return &set->slots6[at];
}

/* Whether one network more would fill more than three quarters of the slots. */
static bool is_full(uint32_t count, uint32_t slot_count)
{
	return (uint64_t)count * 4 >= (uint64_t)slot_count * 3;
}

static void grow4(struct weir_network_set *set)
{
	uint64_t *before = set->slots4;
	uint32_t count = set->slot_count4;
	set->slot_count4 = count == 0 ? FIRST_SLOTS : 2 * count;
	set->slots4 = weir_alloc(set->slot_count4, sizeof *set->slots4);
	for (uint32_t i = 0; i < count; i++)
		if (before[i] != 0)
			*find4(set, before[i]) = before[i];
	free(before);
}

static void grow6(struct weir_network_set *set)
{
	struct network_slot6 *before = set->slots6;
	uint32_t count = set->slot_count6;
	set->slot_count6 = count == 0 ? FIRST_SLOTS : 2 * count;
	set->slots6 = weir_alloc(set->slot_count6, sizeof *set->slots6);
	for (uint32_t i = 0; i < count; i++)
		if (before[i].length != 0)
			*find6(set, &before[i]) = before[i];
	free(before);
}

static void add4(struct weir_network_set *set, uint32_t address, uint32_t prefix)
{
	if (is_full(set->count4, set->slot_count4))
		grow4(set);
	uint64_t network = slot4_of(address, prefix), *slot = find4(set, network);
	set->count4 += *slot == 0;
	*slot = network;
	set->prefixes4 |= UINT64_C(1) << prefix;
}

static void add6(struct weir_network_set *set, const uint8_t bytes[16], uint32_t prefix)
{
	if (is_full(set->count6, set->slot_count6))
		grow6(set);
	struct network_slot6 network = slot6_of(number8(bytes), number8(bytes + 8), prefix), *slot = find6(set, &network);
	set->count6 += slot->length == 0;
	*slot = network;
	set->prefixes6[prefix / 64] |= UINT64_C(1) << prefix % 64;
}

void weir_network_set_add(struct weir_network_set *set, const struct weir_network *network)
{
	if (network->prefix >= V4_PREFIX && weir_address_is_v4(&network->base))
		add4(set, (uint32_t)number8(network->base.bytes + 8), network->prefix - V4_PREFIX);
	else
		add6(set, network->base.bytes, network->prefix);
}

void weir_network_set_init(struct weir_network_set *set, const struct weir_network *networks, uint32_t count)
{
	*set = (struct weir_network_set){0};
	for (uint32_t i = 0; i < count; i++)
		weir_network_set_add(set, &networks[i]);
}

void weir_network_set_deinit(struct weir_network_set *set)
{
	free(set->slots4);
	free(set->slots6);
	*set = (struct weir_network_set){0};
}

/* The longest first: its bit is the highest. */
static bool has4(const struct weir_network_set *set, uint32_t address)
{
	for (uint64_t left = set->prefixes4; left != 0;) {
		uint32_t prefix = 63 - (uint32_t)__builtin_clzll(left);
		left ^= UINT64_C(1) << prefix;
		if (*find4(set, slot4_of(address, prefix)) != 0)
			return true;
	}
	return false;
}

static bool has6(const struct weir_network_set *set, const uint8_t bytes[16])
{
	uint64_t high = number8(bytes), low = number8(bytes + 8);
	for (int word = 2; word >= 0; word--) {
		for (uint64_t left = set->prefixes6[word]; left != 0;) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(left);
			left ^= UINT64_C(1) << bit;
			struct network_slot6 network = slot6_of(high, low, (uint32_t)word * 64 + bit);
			if (find6(set, &network)->length != 0)
				return true;
		}
	}
	return false;
}

bool weir_network_set_has(const struct weir_network_set *set, const struct weir_address *address)
{
	if (weir_address_is_v4(address))
		return has4(set, (uint32_t)number8(address->bytes + 8));
	return has6(set, address->bytes);
}
