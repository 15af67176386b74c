/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a partition's `extra`, all little-endian: the length 8 and a
 * version, each where earlier programs look for the shard's part and its version,
 * so that they say that a newer one wrote it; then the numbers. The shard's part
 * was never so short.
 */
#include "limiter/lane/lane_place.h"

enum {
	VERSION = 3,
	VERSION_BYTES = 8,
	SIGN_BYTES = 4 + VERSION_BYTES,
	NUMBERS = 4,
	PLACE_BYTES = SIGN_BYTES + 8 * NUMBERS
};

static const char sign[4] = {VERSION_BYTES};

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
	const uint64_t numbers[NUMBERS] = {place->base, place->last.offset, (uint64_t)place->last.appended_ms,
	                                   place->last.hash};
	weir_text_append(extra, sign, sizeof sign);
	append_u64(extra, VERSION);
	for (int i = 0; i < NUMBERS; i++)
		append_u64(extra, numbers[i]);
}

enum weir_status lane_place_read(struct weir_span *extra, struct lane_place *place, struct weir_error *error)
{
	*place = (struct lane_place){0};
	if (extra->length < SIGN_BYTES || memcmp(extra->at, sign, sizeof sign) != 0)
		return WEIR_OK;
	uint64_t version = read_u64(extra->at + sizeof sign);
	if (version > VERSION)
		return weir_fail(error, WEIR_NEWER, "the state was saved by a newer version of weir");
	if (version != VERSION || extra->length < PLACE_BYTES)
		return weir_fail(error, WEIR_INVALID, "the saved state is damaged");
	const char *numbers = extra->at + SIGN_BYTES;
	place->base = read_u64(numbers);
	place->last = (struct weir_mark){.offset = read_u64(numbers + 8),
	                                 .appended_ms = (int64_t)read_u64(numbers + 16),
	                                 .hash = read_u64(numbers + 24)};
	extra->at += PLACE_BYTES;
	extra->length -= PLACE_BYTES;
	return WEIR_OK;
}
