/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way: a request of cost 1, not older than any before it, in a bucket
 * whose limits are sliding windows of plain times and fixed windows. That is
 * nearly every event of nearly every log, so it is judged and recorded in one go,
 * by code that knows no other case. All else, and every request that publishes a
 * decision, goes the whole way (bucket_judge.h); both ways give the same.
 *
 * Each limit says what its bytes would become, and only when none is over are
 * they written. What one event finds and the next does not (whether times have
 * become too old, whether the ring is full) is computed, not branched on: a
 * branch that a processor guesses wrong costs as much as a limit.
 */
#ifndef LIMITER_BUCKET_FAST_H
#define LIMITER_BUCKET_FAST_H

#include "limiter/bucket/bucket.h"

/* FAST_GROW: the bucket must be laid out larger first (bucket_plan()). Then ask again: a single one may still be FAST_NOT. */
enum bucket_fast { FAST_NOT, FAST_PASSED, FAST_BLOCKED, FAST_GROW };

/*
 * Where the last event of a zone lay: in which window of each fixed limit, and from when on for how long no event is in
 * another window of any of them. The next event is nearly always there too.
 */
struct fast_windows {
	int64_t from_ms;
	uint64_t span_ms; /* 0: nothing is known yet */
	int64_t start_ms[WEIR_ZONE_LIMITS_MAX];
};

static __attribute__((noinline)) void fast_windows_move(struct fast_windows *windows, const struct layout *layout,
                                                        int64_t t)
{
	int64_t from_ms = 0, until_ms = INT64_MAX;
	for (uint32_t i = 0; i < layout->limit_count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		if (shape->has_times || shape->divider.divisor != shape->limit.window_ms)
			continue; /* it has no windows that begin and end */
		int64_t window_ms = shape->limit.window_ms, offset_ms = shape->offset_ms;
		int64_t start_ms = weir_divide(shape->divider, t + offset_ms) * window_ms - offset_ms;
		windows->start_ms[i] = start_ms;
		from_ms = start_ms > from_ms ? start_ms : from_ms;
		until_ms = start_ms + window_ms < until_ms ? start_ms + window_ms : until_ms;
	}
	windows->from_ms = from_ms;
	windows->span_ms = (uint64_t)(until_ms - from_ms);
}

/* What a limit's bytes are to become. */
struct fast_change {
	uint64_t state;   /* fixed_window: both counts; sliding_window: length, then head */
	uint8_t *entries; /* sliding_window: where the time goes, */
	size_t bit;       /* and its first bit there */
};

/* Two numbers of 1, 2 or 4 bytes, as one. The widths of a limit are the same for all its buckets: easily guessed. */
static inline uint64_t fast_get(const uint8_t *at, unsigned bytes)
{
	return weir_bytes_get(at, 2 * bytes);
}

static inline void fast_put(uint8_t *at, unsigned bytes, uint64_t value)
{
	weir_bytes_put(at, 2 * bytes, value);
}

/* FAST_UNSURE, beside the others: only the whole way can tell. */
enum fast_judgement { FAST_UNDER = 0, FAST_OVER = 1, FAST_NO_ROOM = 2, FAST_UNSURE = 4 };

/* A ring, opened. */
struct fast_ring {
	uint8_t *entries;
	uint32_t length, head, room;
	unsigned bits;
	int64_t newest_ms;
};

static inline uint32_t fast_slot(const struct fast_ring *ring, uint32_t i)
{
	uint32_t slot = ring->head + i;
	return slot >= ring->room ? slot - ring->room : slot;
}

static inline void fast_drop(struct fast_ring *ring, uint32_t count)
{
	ring->head = fast_slot(ring, count);
	ring->length -= count;
}

/* The two oldest entries, the oldest in the lowest bits. Where there is but one, the other says nothing. */
static inline uint64_t fast_oldest_two(const struct fast_ring *ring)
{
	size_t start = (size_t)ring->head * ring->bits;
	if (__builtin_expect(ring->head + 1 < ring->room, 1))
		return weir_bits_peek(ring->entries, start, 2 * ring->bits);
	return weir_bits_get(ring->entries, start, ring->bits) | weir_bits_peek(ring->entries, 0, ring->bits) << ring->bits;
}

/* Drops the entries of an age or more, two at once: more leave seldom. @return the oldest one's age, if one is left */
static inline int64_t fast_leave(struct fast_ring *ring, int64_t age)
{
	const uint64_t mask = (UINT64_C(1) << ring->bits) - 1;
	while (__builtin_expect(ring->length > 0, 1)) {
		uint64_t two = fast_oldest_two(ring);
		int64_t first = (int64_t)(((uint64_t)ring->newest_ms - two) & mask);
		int64_t second = (int64_t)(((uint64_t)ring->newest_ms - (two >> ring->bits)) & mask);
		uint32_t gone = (uint32_t)(first >= age) + (uint32_t)((second >= age) & (ring->length > 1));
		fast_drop(ring, gone);
		if (__builtin_expect(gone < 2, 1))
			return gone ? second : first;
	}
	return 0;
}

static inline void fast_open_ring(struct fast_ring *ring, const struct weir_limit_shape *shape, unsigned bytes,
                                  const uint8_t *fixed)
{
	ring->length = (uint32_t)weir_bytes_get(fixed, bytes);
	ring->head = (uint32_t)weir_bytes_get(fixed + bytes, bytes);
	ring->room = (uint32_t)weir_bytes_get(fixed + 2 * bytes, bytes);
	ring->bits = shape->times.time_bits;
}

/* One more time at the end of a ring that has room for it. */
static inline struct fast_change fast_change_of(const struct fast_ring *ring, unsigned bytes)
{
	return (struct fast_change){.state = (ring->length + 1) | (uint64_t)ring->head << (8 * bytes),
	                            .entries = ring->entries,
	                            .bit = (size_t)fast_slot(ring, ring->length) * ring->bits};
}

static inline __attribute__((always_inline)) enum fast_judgement fast_sliding(struct fast_change *change,
                                                                              const struct weir_limit_shape *shape,
                                                                              unsigned bytes, const uint8_t *fixed,
                                                                              struct fast_ring *ring, int64_t t)
{
	int64_t window_ms = shape->limit.window_ms, since_ms = t - ring->newest_ms;
	uint32_t rate = (uint32_t)shape->limit.rate;
	fast_open_ring(ring, shape, bytes, fixed);
	/* What has become too old to matter goes first, then, of as many as may be, the oldest. */
	int64_t oldest = fast_leave(ring, 2 * window_ms - since_ms);
	*change = (struct fast_change){0};
	uint32_t full = ring->length == rate, over = full & (oldest < window_ms - since_ms);
	uint32_t no_room = (ring->length == ring->room) & (full ^ 1);
	if (__builtin_expect((over | no_room) != 0, 0))
		return over ? FAST_OVER : FAST_NO_ROOM;
	fast_drop(ring, full);
	*change = fast_change_of(ring, bytes);
	return FAST_UNDER;
}

/* The age of entry i, 0 the oldest, when the newest was recorded. */
static inline int64_t fast_age(const struct fast_ring *ring, uint32_t i)
{
	uint64_t time = weir_bits_peek(ring->entries, (size_t)fast_slot(ring, i) * ring->bits, ring->bits);
	return (int64_t)(((uint64_t)ring->newest_ms - time) & ((UINT64_C(1) << ring->bits) - 1));
}

/*
 * The same with a lateness, for an event that is not late: times stay although as many as may be are newer, so it is the
 * rate-th newest that must be out of the window.
 */
static enum fast_judgement fast_sliding_late(struct fast_change *change, const struct weir_limit_shape *shape,
                                             const uint8_t *fixed, struct fast_ring *ring, int64_t t)
{
	unsigned bytes = shape->times.count_bytes;
	int64_t window_ms = shape->limit.window_ms, since_ms = t - ring->newest_ms;
	int64_t reach_ms = shape->lateness_ms > window_ms ? shape->lateness_ms : window_ms;
	uint32_t rate = (uint32_t)shape->limit.rate;
	fast_open_ring(ring, shape, bytes, fixed);
	(void)fast_leave(ring, window_ms + reach_ms - since_ms);
	if (ring->length >= rate && fast_age(ring, ring->length - rate) < window_ms - since_ms)
		return FAST_OVER;
	/* What no late event needs stays only among the newest as many as may be, of which this event is one. */
	while (ring->length >= rate && ring->length > 0 && fast_age(ring, 0) >= window_ms + shape->lateness_ms - since_ms)
		fast_drop(ring, 1);
	if (ring->length == ring->room)
		return ring->room < shape->times.entries_max ? FAST_NO_ROOM : FAST_UNSURE;
	*change = fast_change_of(ring, bytes);
	return FAST_UNDER;
}

static inline enum fast_judgement fast_fixed(struct fast_change *change, const struct weir_limit_shape *shape,
                                             const uint8_t *fixed, int64_t newest_ms, int64_t start_ms)
{
	unsigned bytes = shape->value_bytes;
	uint64_t counts = fast_get(fixed, bytes);
	uint64_t count = counts & shape->value_mask;
	change->state = counts + 1;
	if (__builtin_expect(newest_ms >= start_ms, 1))
		return count >= (uint64_t)shape->limit.rate ? FAST_OVER : FAST_UNDER;
	change->state = newest_ms >= start_ms - shape->limit.window_ms ? count << (8 * bytes) | 1 : 1;
	return FAST_UNDER;
}

/* A bucket at an event. */
struct fast_bucket {
	uint8_t *fixed; /* of its limits */
	int64_t newest_ms, decided_at_ms, decided_until_ms;
	struct fast_ring ring;
};

static inline void fast_open(struct fast_bucket *at, struct bucket *bucket, const struct layout *layout)
{
	*at = (struct fast_bucket){.fixed = (uint8_t *)(bucket + 1), .newest_ms = bucket->newest_ms};
	if (bucket->flags & BUCKET_DECIDED) {
		at->decided_at_ms = weir_time_get(at->fixed);
		at->decided_until_ms = weir_time_get(at->fixed + WEIR_TIME_BYTES);
		if (__builtin_expect(at->decided_until_ms == at->decided_at_ms, 0))
			at->decided_until_ms = 0; /* it was taken back: over at any time */
		at->fixed += decided_bytes(bucket->flags);
	}
	at->ring = (struct fast_ring){.entries = at->fixed + layout->fixed_bytes[0], .newest_ms = at->newest_ms};
}

static inline bool fast_has_penalty(const struct fast_bucket *at, const struct weir_zone *zone, int64_t t)
{
	return t < at->decided_until_ms && zone->block_for_ms > 0 && at->decided_at_ms <= t;
}

/* What becomes of an event that does not simply pass. */
static inline enum bucket_fast fast_refuse(const struct fast_bucket *at, const struct weir_zone *zone,
                                           unsigned judgement, int64_t t)
{
	bool has_penalty = fast_has_penalty(at, zone, t);
	bool is_known = t < at->decided_until_ms && (has_penalty || (judgement & FAST_OVER));
	if (judgement == FAST_NO_ROOM && !has_penalty)
		return FAST_GROW;
	return is_known && !zone->count_all ? FAST_BLOCKED : FAST_NOT;
}

static inline __attribute__((always_inline)) void fast_record(const struct fast_change *change,
                                                              const struct weir_limit_shape *shape, uint8_t *fixed,
                                                              int64_t t, bool is_ring)
{
	if (is_ring)
		weir_bits_put(change->entries, change->bit, shape->times.time_bits, (uint64_t)t);
	fast_put(fixed, is_ring ? shape->times.count_bytes : shape->value_bytes, change->state);
}

static __attribute__((noinline)) enum bucket_fast fast_any(struct bucket *bucket, const struct layout *layout,
                                                           const struct weir_zone *zone,
                                                           const struct fast_windows *windows, int64_t t)
{
	uint32_t count = layout->limit_count;
	unsigned times = layout->times_mask, judgement = FAST_UNDER;
	struct fast_change changes[WEIR_ZONE_LIMITS_MAX];
	struct fast_bucket at;
	fast_open(&at, bucket, layout);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_limit_shape *shape = &layout->limits[i];
		const uint8_t *fixed = at.fixed + layout->at[0][i];
		if (!(times >> i & 1)) {
			judgement |= fast_fixed(&changes[i], shape, fixed, at.newest_ms, windows->start_ms[i]);
			continue;
		}
		judgement |= shape->lateness_ms == 0
		                 ? fast_sliding(&changes[i], shape, shape->times.count_bytes, fixed, &at.ring, t)
		                 : fast_sliding_late(&changes[i], shape, fixed, &at.ring, t);
		if (times >> i > 1)
			at.ring.entries += weir_bits_bytes(at.ring.room, at.ring.bits);
	}
	if (__builtin_expect(judgement != FAST_UNDER || fast_has_penalty(&at, zone, t), 0))
		return fast_refuse(&at, zone, judgement, t);
	for (uint32_t i = 0; i < count; i++)
		fast_record(&changes[i], &layout->limits[i], at.fixed + layout->at[0][i], t, times >> i & 1);
	bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
	return FAST_PASSED;
}

/* One window that slides: what zones have that are many, with nothing to loop over. */
static __attribute__((noinline)) enum bucket_fast fast_one(struct bucket *bucket, const struct layout *layout,
                                                           const struct weir_zone *zone, int64_t t)
{
	const struct weir_limit_shape *shape = &layout->limits[0];
	struct fast_change change;
	struct fast_bucket at;
	fast_open(&at, bucket, layout);
	enum fast_judgement judgement = fast_sliding(&change, shape, shape->times.count_bytes, at.fixed, &at.ring, t);
	if (__builtin_expect(judgement != FAST_UNDER || fast_has_penalty(&at, zone, t), 0))
		return fast_refuse(&at, zone, judgement, t);
	fast_record(&change, shape, at.fixed, t, true);
	bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
	return FAST_PASSED;
}

/* The counts of limits 1 and 2 as windows that have begun since the bucket's newest event make them. */
static inline uint64_t fast_roll(uint64_t counts, const struct layout *layout, const struct fast_windows *windows,
                                 int64_t newest_ms)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct layout_counts *one = &layout->counts[i];
		int64_t start_ms = windows->start_ms[i + 1];
		uint64_t count = counts >> one->shift & one->mask;
		uint64_t before = newest_ms >= start_ms - layout->limits[i + 1].limit.window_ms ? count << one->bits : 0;
		uint64_t rolled = (counts & ~one->both) | before << one->shift;
		counts = newest_ms >= start_ms ? counts : rolled;
	}
	return counts;
}

/*
 * A minute that slides, an hour, a day: what most people ask for, with nothing to loop over. All counts are the eight
 * bytes that end where the ring begins, so that a window which goes on costs one addition for both. A function of its
 * own, so that the registers are its own.
 */
static __attribute__((noinline)) enum bucket_fast fast_three(struct bucket *bucket, const struct layout *layout,
                                                             const struct weir_zone *zone,
                                                             const struct fast_windows *windows, int64_t t)
{
	const struct weir_limit_shape *shape = &layout->limits[0];
	const struct layout_counts *two = layout->counts;
	struct fast_change change;
	struct fast_bucket at;
	fast_open(&at, bucket, layout);
	uint8_t *last = at.ring.entries - sizeof(uint64_t);
	uint64_t counts = weir_bytes_get(last, sizeof counts);
	if (at.newest_ms < windows->from_ms)
		counts = fast_roll(counts, layout, windows, at.newest_ms);
	bool is_over = ((counts >> two[0].shift & two[0].mask) >= two[0].rate) |
	               ((counts >> two[1].shift & two[1].mask) >= two[1].rate);
	bool decided = t < at.decided_until_ms;
	if (__builtin_expect(is_over | decided, 0)) {
		if (decided && (zone->block_for_ms > 0 || zone->count_all))
			return fast_any(bucket, layout, zone, windows, t);
		if (is_over)
			return decided ? FAST_BLOCKED : FAST_NOT;
	}
	enum fast_judgement judgement = fast_sliding(&change, shape, 1, at.fixed, &at.ring, t);
	if (__builtin_expect(judgement != FAST_UNDER, 0))
		return judgement == FAST_NO_ROOM ? FAST_GROW : decided ? FAST_BLOCKED : FAST_NOT;
	weir_bits_put(change.entries, change.bit, shape->times.time_bits, (uint64_t)t);
	weir_bytes_put(last, sizeof counts, counts + two[0].one + two[1].one);
	weir_bytes_put(at.fixed, 2, change.state);
	bucket->newest_ms = (uint64_t)t & WEIR_TIME_MASK;
	return FAST_PASSED;
}

/**
 * Whether a request of cost 1 that was answered with block changes nothing: a decision holds, and what is refused does not
 * count.
 */
static inline bool bucket_fast_is_blocked(const struct bucket *bucket, const struct layout *layout,
                                          const struct weir_zone *zone, int64_t t)
{
	if (t < (int64_t)bucket->newest_ms || layout->fast == LAYOUT_SLOW || zone->count_all ||
	    (bucket->flags & BUCKET_FORM & ~(BUCKET_DECIDED | BUCKET_NTH)) != 0)
		return false;
	int64_t until_ms = bucket_blocked_until(bucket);
	return t < until_ms && weir_time_get(bucket_decided((struct bucket *)bucket)) < until_ms;
}

/**
 * Judges and records a request of cost 1 in a bucket of the layout in force, if this way is open to it.
 *
 * @return FAST_NOT, FAST_GROW: nothing was changed
 */
static inline enum bucket_fast bucket_fast(struct bucket *bucket, const struct layout *layout,
                                           const struct weir_zone *zone, struct fast_windows *windows, int64_t t)
{
	if (t < (int64_t)bucket->newest_ms)
		return FAST_NOT;
	if (__builtin_expect((bucket->flags & BUCKET_FORM & ~(BUCKET_DECIDED | BUCKET_NTH)) != 0, 0))
		return (bucket->flags & BUCKET_SINGLE) && layout->fast != LAYOUT_SLOW ? FAST_GROW : FAST_NOT;
	if (layout->fast == LAYOUT_ONE)
		return fast_one(bucket, layout, zone, t);
	if (__builtin_expect((uint64_t)(t - windows->from_ms) >= windows->span_ms, 0))
		fast_windows_move(windows, layout, t);
	switch (layout->fast) {
	case LAYOUT_THREE: return fast_three(bucket, layout, zone, windows, t);
	case LAYOUT_FAST: return fast_any(bucket, layout, zone, windows, t);
	default: return FAST_NOT;
	}
}

#endif
