/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles policies into what a shard works by: goes through their history once
 * and numbers the layouts as they come. A zone is looked up once for each zone
 * set of a frame, so a sorted array serves.
 */
#include "limiter/bucket/rules.h"

#include "common/base/alloc.h"
#include "limiter/bucket/bucket_layout.h"
#include "limiter/bucket/scaled_layouts.h"

#include <assert.h>
#include <stdlib.h>

struct rules {
	uint64_t version;
	struct zone_rules *zones; /* in the policy's order */
	struct zone_rules **by_id;
	uint32_t zone_count;
	struct layout **layouts; /* by id - 1 */
	uint32_t layout_count, layout_room;
	struct scaled_layouts *scaled;
};

static struct layout *add_layout(struct rules *rules, uint64_t version, const struct weir_zone *zone,
                                 const struct layout *previous)
{
	if (rules->layout_count == rules->layout_room) {
		rules->layout_room = rules->layout_room == 0 ? 16 : rules->layout_room * 2;
		rules->layouts = weir_realloc(rules->layouts, rules->layout_room, sizeof(struct layout *));
	}
	struct layout *layout = weir_alloc(1, sizeof *layout);
	assert(rules->layout_count < LAYOUT_ID_MAX);
	rules->layouts[rules->layout_count++] = layout;
	layout_init(layout, rules->layout_count, version, zone, previous);
	return layout;
}

/* One more policy of the history: the layouts in force before and after it, by zone id. */
static void take_policy(struct rules *rules, const struct weir_policy *policy, struct layout **in_force)
{
	uint8_t *kept = weir_alloc(WEIR_ZONE_ID_MAX + 1, 1);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		struct layout *current = in_force[zone->id];
		kept[zone->id] = 1;
		if (current != NULL && layout_serves(current, zone)) {
			current->shadow = zone->mode == WEIR_SHADOW;
			continue;
		}
		in_force[zone->id] = add_layout(rules, policy->version, zone, current);
		if (current == NULL)
			continue;
		current->next = in_force[zone->id];
		current->ended_version = policy->version;
	}
	for (uint32_t id = 0; id <= WEIR_ZONE_ID_MAX; id++) {
		if (in_force[id] == NULL || kept[id])
			continue;
		in_force[id]->ended_version = policy->version;
		in_force[id] = NULL;
	}
	free(kept);
}

static int compare_ids(const void *a, const void *b)
{
	const struct zone_rules *const *left = a, *const *right = b;
	return (*left)->zone->id < (*right)->zone->id ? -1 : (*left)->zone->id > (*right)->zone->id;
}

struct rules *rules_new(const struct weir_policy *const *policies, size_t count)
{
	assert(count > 0);
	const struct weir_policy *newest = policies[count - 1];
	struct rules *rules = weir_alloc(1, sizeof *rules);
	struct layout **in_force = weir_alloc(WEIR_ZONE_ID_MAX + 1, sizeof(struct layout *));
	for (size_t i = 0; i < count; i++)
		take_policy(rules, policies[i], in_force);
	rules->scaled = scaled_layouts_new();
	rules->version = newest->version;
	rules->zone_count = newest->zone_count;
	rules->zones = weir_alloc(newest->zone_count, sizeof *rules->zones);
	rules->by_id = weir_alloc(newest->zone_count, sizeof(struct zone_rules *));
	for (uint32_t i = 0; i < newest->zone_count; i++) {
		const struct weir_zone *zone = &newest->zones[i];
		rules->zones[i] = (struct zone_rules){.zone = zone, .order = i, .layout = in_force[zone->id]};
		rules->by_id[i] = &rules->zones[i];
	}
	qsort(rules->by_id, rules->zone_count, sizeof(struct zone_rules *), compare_ids);
	free(in_force);
	return rules;
}

void rules_free(struct rules *rules)
{
	if (rules == NULL)
		return;
	for (uint32_t i = 0; i < rules->layout_count; i++)
		free(rules->layouts[i]);
	scaled_layouts_free(rules->scaled);
	free(rules->layouts);
	free(rules->zones);
	free(rules->by_id);
	free(rules);
}

uint64_t rules_version(const struct rules *rules)
{
	return rules->version;
}

uint32_t rules_zone_count(const struct rules *rules)
{
	return rules->zone_count;
}

const struct zone_rules *rules_zone_at(const struct rules *rules, uint32_t order)
{
	return &rules->zones[order];
}

const struct zone_rules *rules_zone(const struct rules *rules, uint32_t id)
{
	uint32_t low = 0, high = rules->zone_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t found = rules->by_id[middle]->zone->id;
		if (found == id)
			return rules->by_id[middle];
		if (found < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct layout *rules_layout(const struct rules *rules, uint32_t number, uint32_t scale)
{
	uint32_t id = number & LAYOUT_ID_MAX;
	bool is_scaled = (number & LAYOUT_SCALED) != 0;
	if (id < 1 || id > rules->layout_count || scale < 1 || scale > SCALE_MAX || is_scaled == (scale == SCALE_ONE))
		return NULL;
	return is_scaled ? scaled_layouts_get(rules->scaled, rules->layouts, rules->layout_count, id, scale)
	                 : rules->layouts[id - 1];
}
