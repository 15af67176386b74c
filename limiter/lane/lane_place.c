/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a partition's `extra`: the base (common/store/record_base.h), then the mark. */
#include "limiter/lane/lane_place.h"

#include "common/store/record_base.h"

#define STEP UINT64_C(10000000000)

uint64_t lane_place_next_base(uint64_t number)
{
	return (number + STEP / 2 + STEP - 1) / STEP * STEP;
}

void lane_place_write(const struct lane_place *place, struct weir_text *extra)
{
	weir_record_base_write(place->base, extra);
	weir_mark_append(extra, &place->last);
}

enum weir_status lane_place_read(struct weir_span *extra, struct lane_place *place, struct weir_error *error)
{
	const char *begins = extra->at;
	*place = (struct lane_place){0};
	enum weir_status status = weir_record_base_read(extra, &place->base, error);
	if (status != WEIR_OK || extra->at == begins)
		return status;
	if (extra->length < WEIR_MARK_STORED_BYTES)
		return weir_fail(error, WEIR_INVALID, "the saved state is damaged");
	place->last = weir_mark_read(extra->at);
	extra->at += WEIR_MARK_STORED_BYTES;
	extra->length -= WEIR_MARK_STORED_BYTES;
	return WEIR_OK;
}
