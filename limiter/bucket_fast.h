/*
 * The short way: a request of cost 1, not older than any before it, in a bucket
 * whose limits are sliding windows of plain times and fixed windows. That is
 * nearly every event of nearly every log, so it is judged and recorded in one go,
 * by code that knows no other case. All else, and every request that publishes a
 * decision or needs more room, goes the whole way (bucket_judge.h); both ways
 * give the same.
 *
 * Each limit says what its bytes would become, and only when none is over are
 * they written. What one event finds and the next does not (whether times have
 * become too old, whether the ring is full) is computed, not branched on: a
 * branch that a processor guesses wrong costs as much as a limit.
 */
#ifndef LIMITER_BUCKET_FAST_H
#define LIMITER_BUCKET_FAST_H

#include "limiter/bucket.h"

enum bucket_fast { FAST_NOT, FAST_PASSED, FAST_BLOCKED };

/* For each limit of a zone the beginning of the window that an event lay in last: the next one nearly always does too. */
struct fast_windows {
	int64_t start_ms[WEIR_ZONE_LIMITS_MAX];
};

/* What a limit's bytes are to become. */
struct fast_change {
	uint64_t state; /* fixed_window: both counts; sliding_window: length, then head */
	uint8_t *entry; /* sliding_window: where the time goes, */
	size_t bit;     /* and its first bit there */
};

/* Two numbers of 1, 2 or 4 bytes, as one. The widths of a limit are the same for all its buckets: easily guessed. */
static inline uint64_t fast_get(const uint8_t *at, unsigned bytes)
{
	return bytes_get(at, 2 * bytes);
}

static inline void fast_put(uint8_t *at, unsigned bytes, uint64_t value)
{
	bytes_put(at, 2 * bytes, value);
}

enum fast_judgement { FAST_UNDER, FAST_OVER, FAST_NO_ROOM };

enum { FAST_LEAVING = 3 }; /* times looked at at once for whether they have become too old */

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

/* How much older the entry of a slot is than the newest. */
static inline int64_t fast_age(const struct fast_ring *ring, uint32_t slot)
{
	uint64_t entry = bits_get(ring->entries, (size_t)slot * ring->bits, ring->bits);
	return (int64_t)(((uint64_t)ring->newest_ms - entry) & ((UINT64_C(1) << ring->bits) - 1));
}

static inline void fast_drop(struct fast_ring *ring, uint32_t count)
{
	ring->head = fast_slot(ring, count);
	ring->length -= count;
}

/* Drops the entries of an age or more. @return the age of the oldest one left, if there is one */
static inline int64_t fast_leave(struct fast_ring *ring, int64_t age)
{
	int64_t oldest = 0;
	while (ring->length >= FAST_LEAVING) {
		int64_t ages[FAST_LEAVING];
		for (uint32_t i = 0; i < FAST_LEAVING; i++)
			ages[i] = fast_age(ring, fast_slot(ring, i));
		unsigned first = ages[0] >= age, second = ages[1] >= age, third = ages[2] >= age;
		fast_drop(ring, first + second + third);
		if (__builtin_expect(!third, 1)) {
			oldest = first ? ages[1] : ages[0];
			return second ? ages[2] : oldest;
		}
	}
	for (; ring->length > 0; fast_drop(ring, 1)) {
		oldest = fast_age(ring, ring->head);
		if (oldest < age)
			break;
	}
	return oldest;
}

static inline enum fast_judgement fast_sliding(struct fast_change *change, const struct limit_shape *shape,
                                               const uint8_t *fixed, struct fast_ring *ring, int64_t t)
{
	unsigned bytes = shape->times.count_bytes;
	int64_t window_ms = shape->limit.window_ms, since_ms = t - ring->newest_ms;
	uint32_t rate = (uint32_t)shape->limit.rate;
	ring->length = (uint32_t)bytes_get(fixed, bytes);
	ring->head = (uint32_t)bytes_get(fixed + bytes, bytes);
	ring->room = (uint32_t)bytes_get(fixed + 2 * bytes, bytes);
	ring->bits = shape->times.time_bits;
	/* What has become too old to matter goes first, then, of as many as may be, the oldest. */
	int64_t oldest = fast_leave(ring, 2 * window_ms - since_ms);
	uint32_t full = ring->length == rate;
	if (__builtin_expect(full & (oldest < window_ms - since_ms), 0))
		return FAST_OVER;
	if (__builtin_expect(!full & (ring->length == ring->room), 0))
		return FAST_NO_ROOM;
	fast_drop(ring, full);
	change->entry = ring->entries;
	change->bit = (size_t)fast_slot(ring, ring->length) * ring->bits;
	change->state = (ring->length + 1) | (uint64_t)ring->head << (8 * bytes);
	return FAST_UNDER;
}

static inline enum fast_judgement fast_fixed(struct fast_change *change, const struct limit_shape *shape,
                                             const uint8_t *fixed, int64_t newest_ms, int64_t t, int64_t *start_ms)
{
	unsigned bytes = shape->value_bytes;
	int64_t window_ms = shape->limit.window_ms;
	if (__builtin_expect(t < *start_ms || t - *start_ms >= window_ms, 0))
		*start_ms = divide(shape->window, t + shape->limit.offset_ms) * window_ms - shape->limit.offset_ms;
	uint64_t counts = fast_get(fixed, bytes);
	uint64_t count = counts & ((UINT64_C(1) << (8 * bytes)) - 1);
	change->state = counts + 1;
	if (__builtin_expect(newest_ms >= *start_ms, 1))
		return count >= (uint64_t)shape->limit.rate ? FAST_OVER : FAST_UNDER;
	change->state = newest_ms >= *start_ms - window_ms ? count << (8 * bytes) | 1 : 1;
	return FAST_UNDER;
}

/* The same for buckets of any shape, or of one that is known when this is compiled: `times` has a bit for each ring. */
static inline __attribute__((always_inline)) enum bucket_fast bucket_fast_as(struct bucket *bucket,
                                                                             const struct layout *layout,
                                                                             const struct weir_zone *zone,
                                                                             struct fast_windows *windows, int64_t t,
                                                                             uint32_t count, unsigned times)
{
	int64_t newest_ms = bucket->newest_ms, decided_at_ms = 0, decided_until_ms = 0;
	unsigned form = bucket->flags & BUCKET_FORM;
	uint8_t *fixed = (uint8_t *)(bucket + 1);
	if (form & BUCKET_DECIDED) {
		decided_at_ms = time_get(fixed);
		decided_until_ms = time_get(fixed + TIME_BYTES);
		fixed += 2 * TIME_BYTES;
	}
	struct fast_change changes[WEIR_ZONE_LIMITS_MAX];
	struct fast_ring ring = {.entries = fixed + layout->fixed_bytes[0], .newest_ms = newest_ms};
	unsigned judgement = FAST_UNDER;
	for (uint32_t i = 0; i < count; i++) {
		const struct limit_shape *shape = &layout->limits[i];
		const uint8_t *at = fixed + layout->at[0][i];
		if (!(times >> i & 1)) {
			judgement |= fast_fixed(&changes[i], shape, at, newest_ms, t, &windows->start_ms[i]);
			continue;
		}
		judgement |= fast_sliding(&changes[i], shape, at, &ring, t);
		if (times >> i > 1)
			ring.entries += bits_bytes(ring.room, ring.bits);
	}
	bool penalty = t < decided_until_ms && zone->block_for_ms > 0 && decided_at_ms <= t;
	if (__builtin_expect(judgement != FAST_UNDER || penalty, 0)) {
		bool is_known = t < decided_until_ms && (penalty || (judgement & FAST_OVER));
		return is_known && !zone->count_all ? FAST_BLOCKED : FAST_NOT;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct limit_shape *shape = &layout->limits[i];
		uint8_t *at = fixed + layout->at[0][i];
		bool is_ring = times >> i & 1;
		if (is_ring)
			bits_put(changes[i].entry, changes[i].bit, shape->times.time_bits, (uint64_t)t);
		fast_put(at, is_ring ? shape->times.count_bytes : shape->value_bytes, changes[i].state);
	}
	bucket->newest_ms = (uint64_t)t & TIME_MASK;
	return FAST_PASSED;
}

/**
 * Judges and records a request of cost 1 in a bucket of the layout in force, if this way is open to it.
 *
 * @return FAST_NOT: nothing was changed
 */
static inline enum bucket_fast bucket_fast(struct bucket *bucket, const struct layout *layout,
                                           const struct weir_zone *zone, struct fast_windows *windows, int64_t t)
{
	if (t < (int64_t)bucket->newest_ms || (bucket->flags & BUCKET_FORM & ~BUCKET_DECIDED) != 0 || !layout->is_fast)
		return FAST_NOT;
	if (layout->limit_count == 3 && layout->times_mask == 1) /* a minute that slides, an hour, a day */
		return bucket_fast_as(bucket, layout, zone, windows, t, 3, 1);
	return bucket_fast_as(bucket, layout, zone, windows, t, layout->limit_count, layout->times_mask);
}

#endif
