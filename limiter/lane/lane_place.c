/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a partition's `extra`: a word that no earlier version wrote
 * there (it was the length of what follows, and never so large), a version, the
 * numbers. All little-endian. An older program refuses it, rather than judge
 * without the base.
 */
#include "limiter/lane/lane_place.h"

enum { VERSION = 1, SIGN_BYTES = 4, NUMBERS = 4, PLACE_BYTES = SIGN_BYTES + 1 + 8 * NUMBERS };

static const char sign[SIGN_BYTES] = {'\xff', '\xff', '\xff', '\xff'};

#define STEP UINT64_C(10000000000)

uint64_t lane_place_next_base(uint64_t number)
{
	return (number + STEP / 2 + STEP - 1) / STEP * STEP;
}

void lane_place_write(const struct lane_place *place, struct weir_text *extra)
{
	const uint64_t numbers[NUMBERS] = {place->base, place->last.offset, (uint64_t)place->last.appended_ms,
	                                   place->last.hash};
	weir_text_append(extra, sign, sizeof sign);
	weir_text_append(extra, &(char){VERSION}, 1);
	for (int i = 0; i < NUMBERS; i++)
		for (int shift = 0; shift < 64; shift += 8)
			weir_text_append(extra, &(char){(char)(numbers[i] >> shift)}, 1);
}

enum weir_status lane_place_read(struct weir_span *extra, struct lane_place *place, struct weir_error *error)
{
	uint64_t numbers[NUMBERS] = {0};
	*place = (struct lane_place){0};
	if (extra->length < SIGN_BYTES || memcmp(extra->at, sign, sizeof sign) != 0)
		return WEIR_OK;
	if (extra->length > SIGN_BYTES && (uint8_t)extra->at[SIGN_BYTES] > VERSION)
		return weir_fail(error, WEIR_NEWER, "the state was saved by a newer version of weir");
	if (extra->length < PLACE_BYTES)
		return weir_fail(error, WEIR_INVALID, "the saved state is truncated");
	for (int i = 0; i < NUMBERS; i++)
		for (int byte = 7; byte >= 0; byte--)
			numbers[i] = numbers[i] << 8 | (uint8_t)extra->at[SIGN_BYTES + 1 + 8 * i + byte];
	place->base = numbers[0];
	place->last = (struct weir_mark){.offset = numbers[1], .appended_ms = (int64_t)numbers[2], .hash = numbers[3]};
	extra->at += PLACE_BYTES;
	extra->length -= PLACE_BYTES;
	return WEIR_OK;
}
