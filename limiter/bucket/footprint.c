/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket's block is rounded up to the size that the slabs give; a slot of the
 * table takes 8 bytes and tables are six to seven and a half tenths full. What slabs and
 * tables keep free besides is bounded by about an eighth.
 */
#include "limiter/bucket/footprint.h"

#include "limiter/bucket/bucket.h"
#include "limiter/memory/slab.h"

enum { TABLE_SHARE_BYTES = 12 };

/* Of a bucket in one form whose rings are as long as they can get. */
static size_t full_bytes(const struct layout *layout, unsigned form)
{
	uint32_t rooms[WEIR_ZONE_LIMITS_MAX] = {0};
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (!shape->has_times)
			continue;
		int64_t room = shape->times.entries_max;
		/* No two runs have the same unit. */
		if ((form & BUCKET_RUNS) && shape->span + 1 < room)
			room = shape->span + 1;
		rooms[i] = (uint32_t)room;
	}
	return bucket_bytes(layout, form, rooms);
}

struct footprint footprint_of(const struct layout *layout)
{
	struct slab slab;
	slab_init(&slab);
	unsigned decided = BUCKET_DECIDED | (layout->forgive_ms > 0 ? BUCKET_NTH : 0);
	size_t times = full_bytes(layout, decided);
	size_t runs = full_bytes(layout, bucket_form(layout, decided | BUCKET_RUNS));
	struct footprint footprint = {
		.once = slab_fit_bytes(&slab, sizeof(struct bucket)) + TABLE_SHARE_BYTES,
		.full = slab_fit_bytes(&slab, times < runs ? times : runs) + TABLE_SHARE_BYTES,
	};
	slab_deinit(&slab);
	return footprint;
}
