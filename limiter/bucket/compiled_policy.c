/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles policies into what a shard works by: goes through their history once
 * and numbers the layouts as they come. A zone is looked up once for each zone
 * set of a frame, so a sorted array serves.
 */
#include "limiter/bucket/compiled_policy.h"

#include "common/base/alloc.h"
#include "limiter/bucket/bucket_layout.h"
#include "limiter/bucket/scaled_layouts.h"

#include <assert.h>
#include <stdlib.h>

struct compiled_policy {
	uint64_t version;
	struct compiled_zone *zones; /* in the policy's order */
	struct compiled_zone **by_id, **by_name;
	uint32_t zone_count;
	struct layout **layouts; /* by id - 1 */
	uint32_t layout_count, layout_room;
	struct scaled_layouts *scaled;
};

static struct layout *add_layout(struct compiled_policy *compiled, uint64_t version, const struct weir_zone *zone,
                                 const struct layout *previous)
{
	if (compiled->layout_count == compiled->layout_room) {
		compiled->layout_room = compiled->layout_room == 0 ? 16 : compiled->layout_room * 2;
		compiled->layouts = weir_realloc(compiled->layouts, compiled->layout_room, sizeof(struct layout *));
	}
	struct layout *layout = weir_alloc(1, sizeof *layout);
	assert(compiled->layout_count < LAYOUT_ID_MAX);
	compiled->layouts[compiled->layout_count++] = layout;
	layout_init(layout, compiled->layout_count, version, zone, previous);
	return layout;
}

/* One more policy of the history: the layouts in force before and after it, by zone id. */
static void take_policy(struct compiled_policy *compiled, const struct weir_policy *policy, struct layout **in_force)
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
		in_force[zone->id] = add_layout(compiled, policy->version, zone, current);
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
	const struct compiled_zone *const *left = a, *const *right = b;
	return (*left)->zone->id < (*right)->zone->id ? -1 : (*left)->zone->id > (*right)->zone->id;
}

static int compare_names(const void *a, const void *b)
{
	const struct compiled_zone *const *left = a, *const *right = b;
	return strcmp((*left)->zone->name, (*right)->zone->name);
}

struct compiled_policy *compiled_policy_new(const struct weir_policy *const *policies, size_t count)
{
	assert(count > 0);
	const struct weir_policy *newest = policies[count - 1];
	struct compiled_policy *compiled = weir_alloc(1, sizeof *compiled);
	struct layout **in_force = weir_alloc(WEIR_ZONE_ID_MAX + 1, sizeof(struct layout *));
	for (size_t i = 0; i < count; i++)
		take_policy(compiled, policies[i], in_force);
	compiled->scaled = scaled_layouts_new();
	compiled->version = newest->version;
	compiled->zone_count = newest->zone_count;
	compiled->zones = weir_alloc(newest->zone_count, sizeof *compiled->zones);
	compiled->by_id = weir_alloc(newest->zone_count, sizeof(struct compiled_zone *));
	compiled->by_name = weir_alloc(newest->zone_count, sizeof(struct compiled_zone *));
	for (uint32_t i = 0; i < newest->zone_count; i++) {
		const struct weir_zone *zone = &newest->zones[i];
		compiled->zones[i] = (struct compiled_zone){.zone = zone, .order = i, .layout = in_force[zone->id]};
		compiled->by_id[i] = compiled->by_name[i] = &compiled->zones[i];
	}
	qsort(compiled->by_id, compiled->zone_count, sizeof(struct compiled_zone *), compare_ids);
	qsort(compiled->by_name, compiled->zone_count, sizeof(struct compiled_zone *), compare_names);
	free(in_force);
	return compiled;
}

void compiled_policy_free(struct compiled_policy *compiled)
{
	if (compiled == NULL)
		return;
	for (uint32_t i = 0; i < compiled->layout_count; i++)
		free(compiled->layouts[i]);
	scaled_layouts_free(compiled->scaled);
	free(compiled->layouts);
	free(compiled->zones);
	free(compiled->by_id);
	free(compiled->by_name);
	free(compiled);
}

uint64_t compiled_policy_version(const struct compiled_policy *compiled)
{
	return compiled->version;
}

uint32_t compiled_policy_zone_count(const struct compiled_policy *compiled)
{
	return compiled->zone_count;
}

const struct compiled_zone *compiled_policy_zone_at(const struct compiled_policy *compiled, uint32_t order)
{
	return &compiled->zones[order];
}

const struct compiled_zone *compiled_policy_zone(const struct compiled_policy *compiled, uint32_t id)
{
	uint32_t low = 0, high = compiled->zone_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t found = compiled->by_id[middle]->zone->id;
		if (found == id)
			return compiled->by_id[middle];
		if (found < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct compiled_zone *compiled_policy_zone_named(const struct compiled_policy *compiled, struct weir_span name)
{
	uint32_t low = 0, high = compiled->zone_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const char *found = compiled->by_name[middle]->zone->name;
		int order = strncmp(found, name.at, name.length);
		if (order == 0 && found[name.length] == '\0')
			return compiled->by_name[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct layout *compiled_policy_layout(const struct compiled_policy *compiled, uint32_t number, uint32_t scale)
{
	uint32_t id = number & LAYOUT_ID_MAX;
	bool is_scaled = (number & LAYOUT_SCALED) != 0;
	if (id < 1 || id > compiled->layout_count || scale < 1 || scale > SCALE_MAX || is_scaled == (scale == SCALE_ONE))
		return NULL;
	return is_scaled ? scaled_layouts_get(compiled->scaled, compiled->layouts, compiled->layout_count, id, scale)
	                 : compiled->layouts[id - 1];
}
