/*
 * Layouts are a function of a zone's history alone. A limit whose counts may
 * exceed its rate (count "all", now or once) keeps the room for them for as
 * long as it stays the same limit.
 */
#include "limiter/bucket_layout.h"

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

/* Whether the short way serves a limit: its numbers fit into the words that it works by. */
static bool is_fast(const struct limit_shape *shape)
{
	if (shape->ops == &limit_fixed_window)
		return shape->value_bytes <= 4;
	return shape->ops == &limit_sliding_window && !shape->runs_only;
}

void layout_init(struct layout *layout, uint32_t id, uint64_t version, const struct weir_zone *zone,
                 const struct layout *previous)
{
	*layout = (struct layout){.id = id, .zone_id = zone->id, .version = version, .limit_count = zone->limit_count};
	bool all_fast = true;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		int8_t before = find_before(layout, i, &zone->limits[i], previous);
		bool counts_past = zone->count_all || (before >= 0 && previous->limits[before].counts_past);
		struct limit_shape *shape = &layout->limits[i];
		*shape = limit_shape_of(&zone->limits[i], counts_past);
		layout->before[i] = before;
		layout->times_count += shape->has_times;
		layout->times_mask |= (unsigned)shape->has_times << i;
		layout->has_queue |= shape->ops->leave != NULL;
		layout->is_charged |= shape->ops->charged_by_all;
		all_fast &= is_fast(shape);
		int64_t memory_ms = weir_limit_memory_ms(&zone->limits[i]);
		layout->memory_ms = memory_ms > layout->memory_ms ? memory_ms : layout->memory_ms;
		for (int runs = 0; runs < 2; runs++) {
			layout->at[runs][i] = layout->fixed_bytes[runs];
			layout->fixed_bytes[runs] += shape->fixed_bytes[runs];
		}
	}
	if (all_fast)
		layout->fast = layout->limit_count == 3 && layout->times_mask == 1 ? LAYOUT_THREE : LAYOUT_FAST;
}

bool layout_serves(const struct layout *layout, const struct weir_zone *zone)
{
	if (layout->limit_count != zone->limit_count)
		return false;
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		const struct limit_shape *shape = &layout->limits[i];
		if (!weir_limit_equal(&shape->limit, &zone->limits[i]) || (zone->count_all && !shape->counts_past))
			return false;
	}
	return true;
}
