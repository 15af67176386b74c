/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a format looks for in a line, each once, with a slot for its value: the time's is slot 0.
 *
 * Several fields may share a name ("fields": {"ip": "client", "user": "client"}), so values are gathered by slot and
 * handed to the fields at the end.
 */
#ifndef COLLECTOR_FORMAT_SLOTS_H
#define COLLECTOR_FORMAT_SLOTS_H

#include "collector/format/format_options.h"

enum { FORMAT_SLOT_TIME = 0, FORMAT_SLOTS_MAX = WEIR_FIELD_MAX + 3 };

struct format_slots {
	uint32_t count;
	uint64_t lengths;                         /* bit n: some name has n bytes (63: or more) */
	struct weir_span names[FORMAT_SLOTS_MAX]; /* borrowed from the options */
	uint32_t time_second;                     /* the slot of the time's second part; 0: it has none */
	uint32_t move_count;
	struct {
		uint8_t slot, field;
	} moves[WEIR_FIELD_MAX]; /* where each wanted field's value is */
};

/** @param options  must outlive the slots */
void format_slots_init(struct format_slots *slots, const struct format_options *options);

/** A further slot, for what a format itself looks for, or the one of that name. @param name  outlives the slots */
int format_slots_add(struct format_slots *slots, const char *name);

/** The slot of a name, or -1. */
int format_slots_find_among(const struct format_slots *slots, struct weir_span name);

static inline uint64_t format_slots_length_bit(uint32_t length)
{
	return UINT64_C(1) << (length < 63 ? length : 63);
}

static inline int format_slots_find(const struct format_slots *slots, const char *at, uint32_t length)
{
	if ((slots->lengths & format_slots_length_bit(length)) == 0)
		return -1;
	return format_slots_find_among(slots, (struct weir_span){.at = at, .length = length});
}

/** The slot that a wanted field is filled from, or -1. */
int format_slots_of_field(const struct format_slots *slots, uint32_t field);

/** Fills the record from the values by slot (empty ones are absent) and reads its time and cost. */
enum format_reason format_slots_finish(const struct format_slots *slots, struct format_options *options,
                                       const struct weir_span *values, struct weir_record *record);

#endif
