/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a bucket's parts lie in its block. What the parts mean is the limits'
 * affair; what becomes of a bucket at an event is bucket_judge.c's.
 */
#include "limiter/bucket/bucket.h"

#include "common/frame/frame.h"

enum { GROWTH_LEAST = 2 /* entries */ };

static bool limit_runs(const struct weir_limit_shape *shape, unsigned form)
{
	return shape->runs_only || (form & BUCKET_RUNS);
}

static uint32_t scale_bytes(const struct layout *layout)
{
	return layout->scale == SCALE_ONE ? 0 : SCALE_BYTES;
}

static uint32_t form_index(unsigned form)
{
	return form & BUCKET_APART ? 2 : form & BUCKET_RUNS ? 1 : 0;
}

/* Where the rings begin. */
static size_t head_bytes(const struct layout *layout, unsigned form)
{
	return sizeof(struct bucket) + scale_bytes(layout) + (form & BUCKET_DECIDED ? decided_bytes(form) : 0) +
	       (form & BUCKET_OWN_TIMES ? WEIR_TIME_BYTES * layout->limit_count : 0) +
	       layout->fixed_bytes[form_index(form)];
}

static size_t ring_bytes(const struct weir_limit_shape *shape, unsigned form, uint32_t room)
{
	return weir_bits_bytes(room, weir_times_stride(&shape->times, limit_runs(shape, form)));
}

size_t bucket_bytes(const struct layout *layout, unsigned flags, const uint32_t *rooms)
{
	size_t bytes = head_bytes(layout, flags);
	for (uint32_t i = 0; i < layout->limit_count; i++)
		if (layout->limits[i].has_times)
			bytes += ring_bytes(&layout->limits[i], flags, rooms[i]);
	return bytes;
}

size_t bucket_used(const struct bucket *bucket, const struct layout *layout)
{
	if (bucket->flags & BUCKET_SINGLE)
		return sizeof *bucket;
	size_t bytes = head_bytes(layout, bucket->flags);
	if (layout->times_count == 0)
		return bytes;
	const uint8_t *fixed = (const uint8_t *)bucket + bytes - layout->fixed_bytes[form_index(bucket->flags)];
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (shape->has_times)
			bytes += ring_bytes(shape, bucket->flags,
			                    weir_times_room(fixed + layout->at[form_index(bucket->flags)][i], &shape->times));
	}
	return bytes;
}

void bucket_refresh(struct bucket_view *view)
{
	for (uint32_t i = 0; i < view->layout->limit_count; i++)
		view->limits[i].newest_ms = view->own_times == NULL
		                                ? (int64_t)view->bucket->newest_ms
		                                : weir_time_get(view->own_times + (size_t)WEIR_TIME_BYTES * i);
}

void bucket_open(struct bucket_view *view, struct bucket *bucket, const struct layout *layout)
{
	uint8_t *at = (uint8_t *)(bucket + 1) + scale_bytes(layout);
	unsigned form = bucket->flags;
	int64_t newest_ms = bucket->newest_ms;
	view->bucket = bucket;
	view->layout = layout;
	view->decided = NULL;
	view->own_times = NULL;
	if (form & BUCKET_DECIDED) {
		view->decided = at;
		at += decided_bytes(form);
	}
	if (form & BUCKET_OWN_TIMES) {
		view->own_times = at;
		at += (size_t)WEIR_TIME_BYTES * layout->limit_count;
	}
	uint8_t *rings = at + layout->fixed_bytes[form_index(form)];
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		struct weir_limit_view *limit = &view->limits[i];
		limit->shape = shape;
		limit->fixed = at + layout->at[form_index(form)][i];
		limit->newest_ms = newest_ms;
		limit->runs = limit_runs(shape, form);
		limit->apart = shape->apart_bytes > 0 && (form & BUCKET_APART);
		limit->entries = rings;
		if (shape->has_times && layout->times_count > 1)
			rings += ring_bytes(shape, form, weir_times_room(limit->fixed, &shape->times));
	}
	if (form & BUCKET_OWN_TIMES)
		bucket_refresh(view);
}

void bucket_init(struct bucket *bucket, const struct layout *layout, unsigned form, const uint32_t *rooms)
{
	memset(bucket, 0, head_bytes(layout, form));
	bucket->flags = form & BUCKET_FORM;
	bucket->layout = layout->id & LAYOUT_NUMBER_MASK;
	if (layout->scale != SCALE_ONE)
		weir_bytes_put((uint8_t *)(bucket + 1), SCALE_BYTES, layout->scale);
	uint8_t *fixed = (uint8_t *)bucket + head_bytes(layout, form) - layout->fixed_bytes[form_index(form)];
	for (uint32_t i = 0; i < layout->limit_count; i++)
		if (layout->limits[i].has_times)
			weir_times_set_room(fixed + layout->at[form_index(form)][i], &layout->limits[i].times, rooms[i]);
}

/* The limit of `from` whose state limit i of `to` goes on with, NULL if it starts empty. */
static const struct weir_limit_view *source_of(const struct bucket_view *to, const struct bucket_view *from, uint32_t i)
{
	if (to->layout == from->layout)
		return &from->limits[i];
	if (layout_is_rescaled(to->layout, from->layout))
		return layout_same_limit(to->layout, from->layout, i) ? &from->limits[i] : NULL;
	int8_t before = to->layout->before[i];
	return before < 0 ? NULL : &from->limits[before];
}

void bucket_copy(const struct bucket_view *to, const struct bucket_view *from)
{
	struct bucket *bucket = to->bucket;
	bucket->low = from->bucket->low;
	bucket->high = from->bucket->high;
	bucket->newest_ms = from->bucket->newest_ms;
	bucket->clock_s = from->bucket->clock_s;
	bucket->generation = from->bucket->generation;
	bucket->flags |= from->bucket->flags & (BUCKET_USED | BUCKET_DIRTY) & 0xff;
	if (from->decided != NULL && to->decided != NULL) {
		memcpy(to->decided, from->decided, DECIDED_BYTES);
		if (bucket->flags & BUCKET_NTH)
			weir_bytes_put(to->decided + DECIDED_BYTES, NTH_BYTES, decided_nth(from->decided, from->bucket->flags));
	}
	for (uint32_t i = 0; i < to->layout->limit_count; i++) {
		const struct weir_limit_view *source = source_of(to, from, i);
		if (source == NULL || source->shape->ops->is_empty(source))
			continue;
		struct weir_limit_view target = to->limits[i];
		target.newest_ms = source->newest_ms;
		target.shape->ops->copy(&target, source);
		if (to->own_times != NULL)
			weir_time_put(to->own_times + (size_t)WEIR_TIME_BYTES * i, source->newest_ms);
	}
}

void bucket_expand(const struct bucket_view *to, const struct bucket *single)
{
	struct bucket *bucket = to->bucket;
	bucket->low = single->low;
	bucket->high = single->high;
	bucket->newest_ms = single->newest_ms;
	bucket->clock_s = single->clock_s;
	bucket->generation = single->generation;
	bucket->flags |= single->flags & (BUCKET_USED | BUCKET_DIRTY) & 0xff;
	for (uint32_t i = 0; i < to->layout->limit_count; i++) {
		struct weir_limit_view limit = to->limits[i];
		limit.newest_ms = 0;
		limit.shape->ops->record(&limit, (int64_t)single->newest_ms, 1, false);
	}
}

void bucket_rooms(const struct bucket_view *view, uint32_t *rooms)
{
	for (uint32_t i = 0; i < view->layout->limit_count; i++) {
		const struct weir_limit_view *limit = &view->limits[i];
		rooms[i] = 0;
		if (!limit->shape->has_times)
			continue;
		rooms[i] = weir_limit_times(limit, 0).length;
	}
}

void bucket_grow(const struct layout *layout, uint32_t *rooms)
{
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_times_shape *times = &layout->limits[i].times;
		uint64_t quarter = rooms[i] / 4;
		uint64_t wanted = rooms[i] + (quarter > GROWTH_LEAST ? quarter : GROWTH_LEAST);
		if (layout->limits[i].has_times)
			rooms[i] = wanted < times->entries_max ? (uint32_t)wanted : times->entries_max;
	}
}

void bucket_widen(const struct layout *layout, unsigned form, size_t bytes, uint32_t *rooms)
{
	size_t used = bucket_bytes(layout, form, rooms);
	for (uint32_t i = 0; i < layout->limit_count && used < bytes; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (!shape->has_times || rooms[i] >= shape->times.entries_max)
			continue;
		size_t own = ring_bytes(shape, form, rooms[i]);
		size_t most = weir_bits_entries(own + bytes - used, weir_times_stride(&shape->times, limit_runs(shape, form)));
		rooms[i] = most < shape->times.entries_max ? (uint32_t)most : shape->times.entries_max;
		used = used - own + ring_bytes(shape, form, rooms[i]);
	}
}

size_t bucket_plan(const struct bucket *bucket, const struct layout *layout, uint32_t *rooms)
{
	struct bucket_view view;
	if (bucket->flags & BUCKET_SINGLE) {
		for (uint32_t i = 0; i < layout->limit_count; i++)
			rooms[i] = layout->limits[i].has_times ? 1 : 0;
	} else {
		bucket_open(&view, (struct bucket *)bucket, layout);
		bucket_rooms(&view, rooms);
	}
	bucket_grow(layout, rooms);
	return bucket_bytes(layout, bucket->flags, rooms);
}

/* Opens the ring of a bucket that has but one, of plain times, if its entries lie from the first bit on. */
static bool open_in_order(const struct bucket *bucket, const struct layout *layout, struct weir_times *ring)
{
	unsigned form = bucket->flags & BUCKET_FORM;
	if (layout->fast == LAYOUT_SLOW || layout->times_count != 1 ||
	    (form & ~(unsigned)(BUCKET_DECIDED | BUCKET_NTH)) != 0)
		return false;
	uint32_t limit = (uint32_t)__builtin_ctz(layout->times_mask);
	uint8_t *entries = (uint8_t *)bucket + head_bytes(layout, form);
	uint8_t *fixed = entries - layout->fixed_bytes[0] + layout->at[0][limit];
	*ring = weir_times_open(&layout->limits[limit].times, false, fixed, entries, 0);
	return ring->head == 0;
}

void bucket_place(struct bucket *block, size_t bytes, const struct bucket *bucket, const struct layout *layout,
                  uint32_t *rooms)
{
	unsigned form = bucket->flags & BUCKET_FORM & ~(unsigned)BUCKET_SINGLE;
	struct bucket_view from, to;
	struct weir_times ring;
	bucket_widen(layout, form, bytes, rooms);
	if (open_in_order(bucket, layout, &ring)) { /* all of it stays as it is */
		size_t used = (size_t)(ring.entries - (const uint8_t *)bucket) +
		              weir_bits_bytes(ring.length, weir_times_stride(ring.shape, false));
		memcpy(block, bucket, used);
		weir_times_set_room((uint8_t *)block + (ring.fixed - (const uint8_t *)bucket), ring.shape,
		                    rooms[__builtin_ctz(layout->times_mask)]);
		return;
	}
	bucket_init(block, layout, form, rooms);
	bucket_open(&to, block, layout);
	if (bucket->flags & BUCKET_SINGLE) {
		bucket_expand(&to, bucket);
		return;
	}
	bucket_open(&from, (struct bucket *)bucket, layout);
	bucket_copy(&to, &from);
}

bool bucket_spread(struct bucket *bucket, size_t bytes, const struct layout *layout)
{
	struct weir_times ring;
	if (!open_in_order(bucket, layout, &ring))
		return false;
	size_t most = weir_bits_entries(bytes - (size_t)(ring.entries - (const uint8_t *)bucket),
	                                weir_times_stride(ring.shape, false));
	if (most > ring.shape->entries_max)
		most = ring.shape->entries_max;
	if (most <= ring.room)
		return false;
	weir_times_set_room(ring.fixed, ring.shape, (uint32_t)most);
	return true;
}

bool bucket_check(const struct bucket *bucket, const struct layout *layout, size_t length)
{
	unsigned form = bucket->flags & BUCKET_FORM;
	/* With no event later than that, no sum of a time and a limit's parameters leaves the six bytes of a time. */
	if (bucket->newest_ms >= WEIR_TIME_END_MS)
		return false;
	if (form & BUCKET_SINGLE)
		return form == BUCKET_SINGLE && layout->scale == SCALE_ONE && length == sizeof *bucket;
	if ((form & BUCKET_NTH) && !(form & BUCKET_DECIDED))
		return false;
	if ((form & BUCKET_APART) && !(layout->has_queue && (form & BUCKET_RUNS)))
		return false;
	if (length < head_bytes(layout, form) || bucket_used(bucket, layout) != length)
		return false;
	struct bucket_view view;
	bucket_open(&view, (struct bucket *)bucket, layout);
	if (view.decided != NULL &&
	    (bucket_decided_at(&view) >= WEIR_TIME_END_MS || bucket_decided_until(&view) < bucket_decided_at(&view) ||
	     decided_nth(view.decided, form) == 0))
		return false;
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_view *limit = &view.limits[i];
		if (limit->newest_ms > (int64_t)bucket->newest_ms || !limit->shape->ops->check(limit))
			return false;
	}
	return true;
}
