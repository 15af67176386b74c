/*
 * The short way: a request of cost 1, not older than any before it, in a bucket
 * whose limits are sliding windows of plain times and fixed windows. That is
 * nearly every event of nearly every log, so it is judged and recorded in one go,
 * by code that knows no other case. All else, and every request that publishes a
 * decision or needs more room, goes the whole way (bucket_judge.h); both ways
 * give the same.
 *
 * Each limit says what its bytes would become, and only when none is over are
 * they written.
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
	uint8_t *fixed;
	uint64_t state;   /* fixed_window: both counts; sliding_window: length, then head */
	uint8_t *entries; /* sliding_window: where the time goes */
	size_t entry;     /* its first bit there */
};

/* The 1, 2, 4 or 8 bytes at a place, by the eight that end with them: a header lies before. */
static inline uint64_t fast_get(const uint8_t *at, unsigned bytes)
{
	uint64_t word;
	memcpy(&word, at + bytes - sizeof word, sizeof word);
	return le64toh(word) >> (64 - 8 * bytes);
}

static inline void fast_put(uint8_t *at, unsigned bytes, uint64_t value)
{
	uint16_t two = htole16((uint16_t)value);
	if (bytes == sizeof two)
		memcpy(at, &two, sizeof two);
	else
		bytes_put(at, bytes, value);
}

enum fast_judgement { FAST_UNDER, FAST_OVER, FAST_NO_ROOM };

static inline enum fast_judgement fast_sliding(struct fast_change *change, const struct limit_shape *shape,
                                               int64_t newest_ms, int64_t t, uint32_t *room_out)
{
	unsigned bytes = shape->times.count_bytes, bits = shape->times.time_bits;
	uint64_t mask = (UINT64_C(1) << bits) - 1;
	uint32_t length = (uint32_t)fast_get(change->fixed, bytes);
	uint32_t head = (uint32_t)fast_get(change->fixed + bytes, bytes);
	uint32_t room = (uint32_t)fast_get(change->fixed + 2 * bytes, bytes);
	uint32_t rate = (uint32_t)shape->limit.rate;
	int64_t horizon = t - 2 * shape->limit.window_ms, oldest = 0;
	/* What has become too old to matter goes first. */
	for (; length > 0; length--) {
		uint64_t entry = bits_get(change->entries, (size_t)head * bits, bits);
		oldest = newest_ms - (int64_t)(((uint64_t)newest_ms - entry) & mask);
		if (oldest > horizon)
			break;
		head = head + 1 == room ? 0 : head + 1;
	}
	*room_out = room;
	if (length == rate) {
		if (oldest > t - shape->limit.window_ms)
			return FAST_OVER;
		head = head + 1 == room ? 0 : head + 1;
		length--;
	} else if (length == room) {
		return FAST_NO_ROOM;
	}
	uint32_t slot = head + length >= room ? head + length - room : head + length;
	change->entry = (size_t)slot * bits;
	change->state = (length + 1) | (uint64_t)head << (8 * bytes);
	return FAST_UNDER;
}

static inline enum fast_judgement fast_fixed(struct fast_change *change, const struct limit_shape *shape,
                                             int64_t newest_ms, int64_t t, int64_t *start_ms)
{
	unsigned bytes = shape->value_bytes;
	int64_t window_ms = shape->limit.window_ms;
	if (t < *start_ms || t - *start_ms >= window_ms)
		*start_ms = divide(shape->window, t + shape->limit.offset_ms) * window_ms - shape->limit.offset_ms;
	uint64_t counts = fast_get(change->fixed, 2 * bytes);
	uint64_t count = counts & ((UINT64_C(1) << (8 * bytes)) - 1);
	change->state = counts + 1;
	if (newest_ms >= *start_ms)
		return count >= (uint64_t)shape->limit.rate ? FAST_OVER : FAST_UNDER;
	change->state = newest_ms >= *start_ms - window_ms ? count << (8 * bytes) | 1 : 1;
	return FAST_UNDER;
}

/**
 * Judges and records a request of cost 1 in a bucket of the layout in force, if this way is open to it.
 *
 * @return FAST_NOT: nothing was changed
 */
static inline enum bucket_fast bucket_fast(struct bucket *bucket, const struct layout *layout,
                                           const struct weir_zone *zone, struct fast_windows *windows, int64_t t)
{
	int64_t newest_ms = bucket->newest_ms;
	unsigned form = bucket->flags & BUCKET_FORM;
	if (t < newest_ms || (form & ~(unsigned)BUCKET_DECIDED) != 0 || !layout->is_fast)
		return FAST_NOT;
	uint8_t *fixed = (uint8_t *)(bucket + 1);
	int64_t decided_until_ms = 0, decided_at_ms = 0;
	if (form & BUCKET_DECIDED) {
		decided_at_ms = time_get(fixed);
		decided_until_ms = time_get(fixed + TIME_BYTES);
		fixed += 2 * TIME_BYTES;
	}
	struct fast_change changes[WEIR_ZONE_LIMITS_MAX];
	uint8_t *entries = fixed + layout->fixed_bytes[0];
	uint32_t count = layout->limit_count;
	unsigned judgement = FAST_UNDER;
	for (uint32_t i = 0; i < count; i++) {
		const struct limit_shape *shape = &layout->limits[i];
		changes[i].fixed = fixed + layout->at[0][i];
		if (!shape->has_times) {
			judgement |= fast_fixed(&changes[i], shape, newest_ms, t, &windows->start_ms[i]);
			continue;
		}
		uint32_t room;
		changes[i].entries = entries;
		judgement |= fast_sliding(&changes[i], shape, newest_ms, t, &room);
		if (layout->times_count > 1)
			entries += bits_bytes(room, shape->times.time_bits);
	}
	bool penalty = t < decided_until_ms && zone->block_for_ms > 0 && decided_at_ms <= t;
	if (__builtin_expect(judgement != FAST_UNDER || penalty, 0)) {
		bool is_known = t < decided_until_ms && (penalty || (judgement & FAST_OVER));
		return is_known && !zone->count_all ? FAST_BLOCKED : FAST_NOT;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct limit_shape *shape = &layout->limits[i];
		if (shape->has_times) {
			bits_put(changes[i].entries, changes[i].entry, shape->times.time_bits, (uint64_t)t);
			fast_put(changes[i].fixed, 2u * shape->times.count_bytes, changes[i].state);
		} else {
			fast_put(changes[i].fixed, 2u * shape->value_bytes, changes[i].state);
		}
	}
	bucket->newest_ms = (uint64_t)t & TIME_MASK;
	return FAST_PASSED;
}

#endif
