/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a partition's `extra`: the base (common/store/record_base.h), then the numbers of the mark. */
#include "limiter/lane/lane_place.h"

#include "common/store/record_base.h"

enum { NUMBERS = 3, MARK_BYTES = 8 * NUMBERS };

#define STEP UINT64_C(10000000000)

uint64_t lane_place_next_base(uint64_t number)
{
	return (number + STEP / 2 + STEP - 1) / STEP * STEP;
}

static void append_u64(struct weir_text *text, uint64_t number)
{
	for (int shift = 0; shift < 64; shift += 8)
		weir_text_append(text, &(char){(char)(number >> shift)}, 1);
}

static uint64_t read_u64(const char *at)
{
	uint64_t number = 0;
	for (int i = 7; i >= 0; i--)
		number = number << 8 | (uint8_t)at[i];
	return number;
}

void lane_place_write(const struct lane_place *place, struct weir_text *extra)
{
	const uint64_t numbers[NUMBERS] = {place->last.offset, (uint64_t)place->last.appended_ms, place->last.hash};
	weir_record_base_write(place->base, extra);
	for (int i = 0; i < NUMBERS; i++)
		append_u64(extra, numbers[i]);
}

enum weir_status lane_place_read(struct weir_span *extra, struct lane_place *place, struct weir_error *error)
{
	const char *begins = extra->at;
	*place = (struct lane_place){0};
	enum weir_status status = weir_record_base_read(extra, &place->base, error);
	if (status != WEIR_OK || extra->at == begins)
		return status;
	if (extra->length < MARK_BYTES)
		return weir_fail(error, WEIR_INVALID, "the saved state is damaged");
	place->last = (struct weir_mark){.offset = read_u64(extra->at),
	                                 .appended_ms = (int64_t)read_u64(extra->at + 8),
	                                 .hash = read_u64(extra->at + 16)};
	extra->at += MARK_BYTES;
	extra->length -= MARK_BYTES;
	return WEIR_OK;
}
