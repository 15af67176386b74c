/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are added and never taken out, so that a page may be read meanwhile. */
#include "limiter/check/check_counts.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 2 * CHECK_COUNTED_ZONES };

_Static_assert((SLOTS & (SLOTS - 1)) == 0, "a slot is the lowest bits of a hash");

struct zone_counts {
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1];
	struct weir_counter answers[CHECK_COUNTED_MAX];
};

struct check_counts {
	struct zone_counts *_Atomic zones[CHECK_COUNTED_ZONES + 1]; /* by number; the last for all others */
	uint32_t count;
	uint16_t slots[SLOTS]; /* number + 1 by the name's hash, linear probing; 0: free */
};

struct check_counts *check_counts_new(void)
{
	return weir_alloc(1, sizeof(struct check_counts));
}

void check_counts_free(struct check_counts *counts)
{
	for (uint32_t i = 0; counts != NULL && i <= CHECK_COUNTED_ZONES; i++)
		free(atomic_load_explicit(&counts->zones[i], memory_order_relaxed));
	free(counts);
}

static struct zone_counts *at(const struct check_counts *counts, uint32_t number)
{
	return atomic_load_explicit(&((struct check_counts *)(uintptr_t)counts)->zones[number], memory_order_acquire);
}

static void add_zone(struct check_counts *counts, uint32_t number, const char *name)
{
	struct zone_counts *made = weir_alloc(1, sizeof *made);
	snprintf(made->name, sizeof made->name, "%s", name);
	atomic_store_explicit(&counts->zones[number], made, memory_order_release);
}

uint32_t check_counts_named(struct check_counts *counts, const char *name)
{
	uint32_t slot = (uint32_t)weir_hash64(name, strlen(name)) & (SLOTS - 1);
	for (; counts->slots[slot] != 0; slot = (slot + 1) & (SLOTS - 1))
		if (strcmp(at(counts, counts->slots[slot] - 1u)->name, name) == 0)
			return counts->slots[slot] - 1u;
	if (counts->count == CHECK_COUNTED_ZONES) {
		if (at(counts, CHECK_COUNTED_OTHER) == NULL)
			add_zone(counts, CHECK_COUNTED_OTHER, "(other)");
		return CHECK_COUNTED_OTHER;
	}
	add_zone(counts, counts->count, name);
	counts->slots[slot] = (uint16_t)(counts->count + 1);
	return counts->count++;
}

void check_counts_add(struct check_counts *counts, uint32_t number, enum check_outcome outcome)
{
	static const enum check_counted counted[] = {
		[CHECK_PASSED] = CHECK_COUNTED_PASSED,           [CHECK_BLOCKED] = CHECK_COUNTED_BLOCKED,
		[CHECK_UNAVAILABLE] = CHECK_COUNTED_UNAVAILABLE, [CHECK_NO_ZONE] = CHECK_COUNTED_REFUSED,
		[CHECK_SETTLED] = CHECK_COUNTED_SETTLED,         [CHECK_NO_RESERVATION] = CHECK_COUNTED_REFUSED,
		[CHECK_LATER] = CHECK_COUNTED_UNAVAILABLE,
	};
	weir_counter_add(&at(counts, number)->answers[counted[outcome]], 1);
}

const char *check_counted_name(enum check_counted counted)
{
	static const char *const names[] = {
		[CHECK_COUNTED_PASSED] = "passed",   [CHECK_COUNTED_BLOCKED] = "blocked",
		[CHECK_COUNTED_SETTLED] = "settled", [CHECK_COUNTED_UNAVAILABLE] = "unavailable",
		[CHECK_COUNTED_REFUSED] = "refused",
	};
	return names[counted];
}

bool check_counts_read(const struct check_counts *counts, uint32_t number, const char **name,
                       uint64_t answers[CHECK_COUNTED_MAX])
{
	const struct zone_counts *zone = at(counts, number);
	if (zone == NULL)
		return false;
	*name = zone->name;
	for (int i = 0; i < CHECK_COUNTED_MAX; i++)
		answers[i] = weir_counter_read(&zone->answers[i]);
	return true;
}
