/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts are a function of a zone's history alone. A limit whose counts may
 * exceed its rate (count "all", now or once) keeps the room for them for as
 * long as it stays the same limit.
 */
#include "limiter/bucket/bucket_layout.h"

/* The place of an equal limit in the previous layout that no limit before this one has taken. */
static int8_t find_before(const struct layout *layout, uint32_t filled, const struct weir_limit *limit,
                          const struct layout *previous)
{
	if (previous == NULL)
		return -1;
	for (uint32_t i = 0; i < previous->limit_count; i++) {
		bool taken = false;
		for (uint32_t j = 0; j < filled; j++)
			taken |= layout->before[j] == (int8_t)i;
		if (!taken && weir_limit_equal(limit, &previous->limits[i].limit))
			return (int8_t)i;
	}
	return -1;
}

/* What limits mean to all buckets of a layout, and where their parts lie; `before` and the rest is the caller's. */
static void fill(struct layout *layout, uint32_t i, const struct weir_limit *limit, bool counts_past)
{
	struct weir_limit_shape *shape = &layout->limits[i];
	*shape = weir_limit_shape_of(limit, counts_past);
	layout->times_count += shape->has_times;
	layout->times_mask |= (unsigned)shape->has_times << i;
	layout->has_queue |= shape->ops->leave != NULL;
	layout->is_charged |= shape->ops->charged_by_all;
	int64_t memory_ms = weir_limit_memory_ms(limit);
	layout->memory_ms = memory_ms > layout->memory_ms ? memory_ms : layout->memory_ms;
	uint32_t bytes[] = {shape->fixed_bytes[0], shape->fixed_bytes[1], shape->fixed_bytes[1] + shape->apart_bytes};
	for (int form = 0; form < 3; form++) {
		layout->at[form][i] = layout->fixed_bytes[form];
		layout->fixed_bytes[form] += bytes[form];
	}
}

/* A sliding window whose ring is counted in single bytes, and two fixed ones behind it, all counts in eight bytes. */
static bool is_three(const struct layout *layout)
{
	return layout->limit_count == 3 && layout->times_mask == 1 && layout->limits[0].lateness_ms == 0 &&
	       layout->limits[0].times.count_bytes == 1 && layout->fixed_bytes[0] - layout->at[0][1] <= sizeof(uint64_t);
}

static bool is_one(const struct layout *layout)
{
	return layout->limit_count == 1 && layout->times_mask == 1 && layout->limits[0].lateness_ms == 0;
}

static void find_counts(struct layout *layout)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i + 1];
		uint32_t behind = layout->fixed_bytes[0] - layout->at[0][i + 1];
		unsigned shift = 64 - 8 * behind, bits = 8u * shape->value_bytes;
		uint64_t both = shape->value_mask << bits | shape->value_mask;
		layout->counts[i] = (struct layout_counts){.shift = shift,
		                                           .bits = bits,
		                                           .mask = shape->value_mask,
		                                           .rate = (uint64_t)shape->limit.rate,
		                                           .one = UINT64_C(1) << shift,
		                                           .both = both << shift};
	}
}

void layout_init(struct layout *layout, uint32_t id, uint64_t version, const struct weir_zone *zone,
                 const struct layout *previous)
{
	*layout = (struct layout){
		.id = id, .scale = SCALE_ONE, .zone_id = zone->id, .version = version, .limit_count = zone->limit_count};
	layout->shadow = zone->mode == WEIR_SHADOW;
	layout->forgive_ms = zone->forgive_after_ms;
	layout->ends_shadow = previous != NULL && previous->shadow && !layout->shadow;
	bool all_fast = true;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		int8_t before = find_before(layout, i, &zone->limits[i], previous);
		bool counts_past = zone->count_all || (previous != NULL && before >= 0 && previous->limits[before].counts_past);
		layout->before[i] = before;
		fill(layout, i, &zone->limits[i], counts_past);
		all_fast &= layout->limits[i].is_plain;
	}
	if (all_fast)
		layout->fast = is_one(layout) ? LAYOUT_ONE : is_three(layout) ? LAYOUT_THREE : LAYOUT_FAST;
	if (layout->fast == LAYOUT_THREE)
		find_counts(layout);
}

void layout_init_scaled(struct layout *layout, const struct layout *base, uint32_t thousandths)
{
	*layout = (struct layout){.id = base->id | LAYOUT_SCALED,
	                          .scale = thousandths,
	                          .zone_id = base->zone_id,
	                          .version = base->version,
	                          .limit_count = base->limit_count,
	                          .shadow = base->shadow,
	                          .ends_shadow = base->ends_shadow,
	                          .forgive_ms = base->forgive_ms,
	                          .ended_version = base->ended_version};
	memcpy(layout->before, base->before, sizeof layout->before);
	for (uint32_t i = 0; i < base->limit_count; i++) {
		struct weir_limit limit = weir_limit_scaled(&base->limits[i].limit, thousandths);
		fill(layout, i, &limit, base->limits[i].counts_past);
	}
}

/* Whether the zone of a later policy limits as a layout does, whatever its mode. */
static bool has_limits_of(const struct layout *layout, const struct weir_zone *zone)
{
	if (layout->limit_count != zone->limit_count)
		return false;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (!weir_limit_equal(&shape->limit, &zone->limits[i]) || (zone->count_all && !shape->counts_past))
			return false;
	}
	return true;
}

bool layout_serves(const struct layout *layout, const struct weir_zone *zone)
{
	bool ends_shadow = layout->shadow && zone->mode != WEIR_SHADOW;
	return !ends_shadow && layout->forgive_ms == zone->forgive_after_ms && has_limits_of(layout, zone);
}
