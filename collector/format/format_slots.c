/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers the names of a format's options into slots.
 *
 * There are a handful, so a name of the line is compared with each that has its length; most lengths fit none.
 */
#include "collector/format/format_slots.h"

static uint8_t slot_of(struct format_slots *slots, const char *name)
{
	struct weir_span span = weir_span_of(name);
	int found = format_slots_find(slots, span.at, span.length);
	if (found >= 0)
		return (uint8_t)found;
	slots->lengths |= format_slots_length_bit(span.length);
	slots->names[slots->count] = span;
	return (uint8_t)slots->count++;
}

void format_slots_init(struct format_slots *slots, const struct format_options *options)
{
	*slots = (struct format_slots){0};
	slot_of(slots, options->time_name);
	if (options->time_second != NULL)
		slots->time_second = slot_of(slots, options->time_second);
	for (uint32_t i = 0; i < options->fields.count; i++) {
		if (!format_wants(options, i))
			continue;
		slots->moves[slots->move_count].slot = slot_of(slots, options->sources[i]);
		slots->moves[slots->move_count++].field = (uint8_t)i;
	}
}

int format_slots_add(struct format_slots *slots, const char *name)
{
	return slot_of(slots, name);
}

int format_slots_find_among(const struct format_slots *slots, struct weir_span name)
{
	for (uint32_t i = 0; i < slots->count; i++) {
		if (weir_span_equal(slots->names[i], name))
			return (int)i;
	}
	return -1;
}

int format_slots_of_field(const struct format_slots *slots, uint32_t field)
{
	for (uint32_t i = 0; i < slots->move_count; i++)
		if (slots->moves[i].field == field)
			return slots->moves[i].slot;
	return -1;
}

enum format_reason format_slots_finish(const struct format_slots *slots, struct format_options *options,
                                       const struct weir_span *values, struct weir_record *record)
{
	for (uint32_t i = 0; i < slots->move_count; i++) {
		struct weir_span value = values[slots->moves[i].slot];
		record->fields[slots->moves[i].field] = format_value(value.at, value.length);
	}
	struct weir_span time = values[FORMAT_SLOT_TIME];
	if (slots->time_second != 0)
		time = format_join_time(options, time, values[slots->time_second]);
	return format_finish(options, time, record);
}
