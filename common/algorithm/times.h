/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times that a limit holds: sorted, equal ones kept, packed into bits.
 *
 * A ring of entries, oldest first. In the plain form an entry is one time; in
 * the run form it is a time and the running sum of the counts up to it, so that
 * one entry stands for any number of equal times and what lies behind a time is
 * found by halving. Either way the number of entries is bounded by the limit's
 * rate, and in the run form also by the window over its precision.
 *
 * A time is kept in units (ms, or the limit's precision) and only modulo
 * 2^time_bits: with an anchor no older than any of them it is whole again. The
 * sliding window's anchor is its newest time, and it holds nothing older than
 * 2 W, or W and its lateness, before that.
 */
#ifndef WEIR_COMMON_TIMES_H
#define WEIR_COMMON_TIMES_H

#include "common/bytes/bits.h"

#include <stdbool.h>

/* What is the same for all buckets of a layout. */
struct weir_times_shape {
	uint8_t count_bytes; /* of length, head and room */
	uint8_t total_bytes; /* run form: of the total */
	uint8_t time_bits;
	uint8_t sum_bits; /* run form: sums are modulo 2^sum_bits, which is above twice the rate */
	uint32_t entries_max;
	int64_t most; /* times kept: the newest so many */
};

/** A shape for at most `most` times, the oldest less than `span` units after the newest. */
struct weir_times_shape weir_times_shape_of(int64_t most, int64_t span, bool runs_only);

/** Bytes of the fixed part. */
static inline uint32_t weir_times_fixed_bytes(const struct weir_times_shape *shape, bool runs)
{
	return 3u * shape->count_bytes + (runs ? shape->total_bytes : 0);
}

static inline unsigned weir_times_stride(const struct weir_times_shape *shape, bool runs)
{
	return shape->time_bits + (runs ? shape->sum_bits : 0u);
}

/* One limit's times, opened: the counts are copies until weir_times_close(). */
struct weir_times {
	const struct weir_times_shape *shape;
	uint8_t *fixed; /* length, head, room, and in the run form the total */
	uint8_t *entries;
	int64_t anchor; /* unit that no entry is newer than */
	uint64_t total; /* times held; in the plain form the length */
	uint32_t length, head, room;
	bool runs;
	bool apart; /* run form: what is added is an entry of its own, whatever its time */
};

static inline struct weir_times weir_times_open(const struct weir_times_shape *shape, bool runs, uint8_t *fixed,
                                                uint8_t *entries, int64_t anchor)
{
	unsigned bytes = shape->count_bytes;
	struct weir_times times = {.shape = shape, .fixed = fixed, .entries = entries, .anchor = anchor, .runs = runs};
	times.length = (uint32_t)weir_bytes_get(fixed, bytes);
	times.head = (uint32_t)weir_bytes_get(fixed + bytes, bytes);
	times.room = (uint32_t)weir_bytes_get(fixed + 2 * bytes, bytes);
	times.total = runs ? weir_bytes_get(fixed + 3 * bytes, shape->total_bytes) : times.length;
	return times;
}

/** Writes length, head and total back; the room is set when the bucket is laid out. */
static inline void weir_times_close(const struct weir_times *times)
{
	unsigned bytes = times->shape->count_bytes;
	weir_bytes_put(times->fixed, bytes, times->length);
	weir_bytes_put(times->fixed + bytes, bytes, times->head);
	if (times->runs)
		weir_bytes_put(times->fixed + 3 * bytes, times->shape->total_bytes, times->total);
}

static inline void weir_times_set_room(uint8_t *fixed, const struct weir_times_shape *shape, uint32_t room)
{
	weir_bytes_put(fixed + 2 * shape->count_bytes, shape->count_bytes, room);
}

static inline uint32_t weir_times_room(const uint8_t *fixed, const struct weir_times_shape *shape)
{
	return (uint32_t)weir_bytes_get(fixed + 2 * shape->count_bytes, shape->count_bytes);
}

/* The first bit of entry i, 0 the oldest. */
static inline size_t weir_times_place(const struct weir_times *times, uint32_t i)
{
	uint64_t slot = (uint64_t)times->head + i;
	if (slot >= times->room)
		slot -= times->room;
	return (size_t)slot * weir_times_stride(times->shape, times->runs);
}

static inline int64_t weir_times_at(const struct weir_times *times, uint32_t i)
{
	uint64_t bits = weir_bits_get(times->entries, weir_times_place(times, i), times->shape->time_bits);
	uint64_t mask = (UINT64_C(1) << times->shape->time_bits) - 1;
	return times->anchor - (int64_t)(((uint64_t)times->anchor - bits) & mask);
}

/** How many times entry i stands for. */
uint64_t weir_times_count_at(const struct weir_times *times, uint32_t i);

/** The k-th newest time, 1 <= k <= total. */
int64_t weir_times_newest(const struct weir_times *times, uint64_t k);

/** The first entry above a unit; the length if there is none. */
uint32_t weir_times_first_above(const struct weir_times *times, int64_t unit);

/** Times above a unit. */
uint64_t weir_times_above(const struct weir_times *times, int64_t unit);

/** Drops the times up to a unit. */
void weir_times_drop_until(struct weir_times *times, int64_t unit);

/** Drops the oldest `count` times, all there are at most. */
void weir_times_drop_oldest(struct weir_times *times, uint64_t count);

/** Drops the oldest entry, with all that it stands for. There is one. */
void weir_times_drop_entry(struct weir_times *times);

/**
 * Takes times of one unit out.
 *
 * @param whole  of the first entry that stands for just so many; 0: of any
 * @return how many: `count` at most
 */
uint64_t weir_times_take(struct weir_times *times, int64_t unit, uint64_t whole, uint64_t count);

/** Entries that the ring must have room for before weir_times_add(), at most. */
uint32_t weir_times_wanted(const struct weir_times *times, int64_t count);

/**
 * Adds `count` >= 1 equal times, not above the anchor, and keeps the newest `most`.
 *
 * There is room for weir_times_wanted() entries.
 */
void weir_times_add(struct weir_times *times, int64_t unit, int64_t count);

/** Copies the entries, oldest first, into a ring that has room for them; plain into runs if that one has runs. */
void weir_times_copy(struct weir_times *to, const struct weir_times *from);

/**
 * Whether what stands in a fixed part and its entries can be: counts in their bounds, times sorted and within `span`
 * units of the anchor, sums rising, no two runs of one time unless they lie apart. What it says yes to breaks no other
 * function.
 */
bool weir_times_check(const struct weir_times *times, int64_t span);

#endif
