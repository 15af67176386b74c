/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit's packed times at their boundaries, by name and in both forms: what leaves at which unit, what the ring does
 * when it is full, out of order or around its end, where times and sums wrap, what bytes are no times; and against a
 * plain list on random input.
 */
#include "common/algorithm/times.h"

#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BEFORE_BYTES = 8, SHOWN_BYTES = 1 << 16, ROUNDS = 200, STEPS = 400 };

/* Times in a block of exactly their bytes, so that a sanitizer sees what lies outside. */
struct ring {
	struct weir_times_shape shape;
	struct weir_times times;
	uint8_t *block;
	int64_t span;
};

static void ring_open(struct ring *ring, int64_t most, int64_t span, uint32_t room, bool runs, bool runs_only)
{
	ring->span = span;
	ring->shape = weir_times_shape_of(most, span, runs_only);
	uint32_t fixed = weir_times_fixed_bytes(&ring->shape, runs);
	size_t entries = weir_bits_bytes(room, weir_times_stride(&ring->shape, runs));
	ring->block = weir_alloc(BEFORE_BYTES + fixed + entries, 1);
	uint8_t *at = ring->block + BEFORE_BYTES;
	weir_times_set_room(at, &ring->shape, room);
	assert_int_equal(weir_times_room(at, &ring->shape), room);
	ring->times = weir_times_open(&ring->shape, runs, at, at + fixed, 0);
}

/* Closed and opened again: what is not in the bytes is gone. */
static void again(struct ring *ring, int64_t anchor)
{
	struct weir_times *times = &ring->times;
	weir_times_close(times);
	*times = weir_times_open(&ring->shape, times->runs, times->fixed, times->entries, anchor);
}

static void add(struct ring *ring, int64_t unit, int64_t count)
{
	if (unit > ring->times.anchor)
		again(ring, unit);
	assert_true(weir_times_wanted(&ring->times, count) <= ring->times.room);
	weir_times_add(&ring->times, unit, count);
	again(ring, ring->times.anchor);
	assert_true(weir_times_check(&ring->times, ring->span));
}

/* "unit*count" of each unit, oldest first. */
static const char *shown(const struct ring *ring)
{
	static char text[SHOWN_BYTES];
	size_t length = 0;
	uint64_t count = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < ring->times.length; i++) {
		int64_t unit = weir_times_at(&ring->times, i);
		count += weir_times_count_at(&ring->times, i);
		if (i + 1 < ring->times.length && weir_times_at(&ring->times, i + 1) == unit)
			continue;
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld*%llu", length > 0 ? " " : "",
		                           (long long)unit, (unsigned long long)count);
		assert_true(length < sizeof text);
		count = 0;
	}
	return text;
}

#define EXPECT(ring, text) assert_string_equal(shown(ring), text)

/* Each case runs in both forms. */
static bool in_runs(void **state)
{
	return *(const bool *)*state;
}

/* 1000 once, 1010 three times, 1020 twice; room for as many as there may be. */
static void ring_of_six(struct ring *ring, bool runs)
{
	ring_open(ring, 6, 1000, 6, runs, false);
	add(ring, 1000, 1);
	add(ring, 1010, 3);
	add(ring, 1020, 2);
}

/* ---- what leaves, and what is above ---- */

static void empty_times_hold_nothing(void **state)
{
	struct ring ring;
	ring_open(&ring, 6, 1000, 0, in_runs(state), false);
	assert_int_equal(weir_times_above(&ring.times, -1), 0);
	weir_times_drop_until(&ring.times, INT64_MAX);
	weir_times_drop_oldest(&ring.times, 1);
	again(&ring, 0);
	EXPECT(&ring, "");
	assert_true(weir_times_check(&ring.times, ring.span));
	free(ring.block);
}

static void a_time_leaves_at_exactly_its_unit(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	weir_times_drop_until(&ring.times, 999);
	EXPECT(&ring, "1000*1 1010*3 1020*2");
	weir_times_drop_until(&ring.times, 1000);
	EXPECT(&ring, "1010*3 1020*2");
	weir_times_drop_until(&ring.times, 1009);
	EXPECT(&ring, "1010*3 1020*2");
	weir_times_drop_until(&ring.times, 1019);
	EXPECT(&ring, "1020*2");
	weir_times_drop_until(&ring.times, 1020);
	EXPECT(&ring, "");
	again(&ring, 1020);
	assert_int_equal(ring.times.total, 0);
	assert_int_equal(ring.times.head, 0); /* an empty ring begins anew */
	free(ring.block);
}

static void a_time_at_the_unit_is_not_above_it(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	static const struct {
		int64_t unit;
		uint64_t above;
	} cases[] = {{0, 6}, {999, 6}, {1000, 5}, {1009, 5}, {1010, 2}, {1011, 2}, {1019, 2}, {1020, 0}, {1021, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(weir_times_above(&ring.times, cases[i].unit), cases[i].above);
	free(ring.block);
}

static void the_kth_newest_is_counted_by_times_not_by_entries(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	static const int64_t newest[] = {1020, 1020, 1010, 1010, 1010, 1000};
	for (uint64_t k = 1; k <= 6; k++)
		assert_int_equal(weir_times_newest(&ring.times, k), newest[k - 1]);
	free(ring.block);
}

static void the_oldest_go_one_by_one_out_of_equal_ones(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	weir_times_drop_oldest(&ring.times, 0);
	EXPECT(&ring, "1000*1 1010*3 1020*2");
	weir_times_drop_oldest(&ring.times, 2);
	again(&ring, 1020);
	EXPECT(&ring, "1010*2 1020*2");
	weir_times_drop_oldest(&ring.times, 1);
	again(&ring, 1020);
	EXPECT(&ring, "1010*1 1020*2");
	weir_times_drop_oldest(&ring.times, 1); /* exactly what the entry holds */
	again(&ring, 1020);
	EXPECT(&ring, "1020*2");
	assert_true(weir_times_check(&ring.times, ring.span));
	weir_times_drop_oldest(&ring.times, 3); /* more than there are */
	again(&ring, 1020);
	EXPECT(&ring, "");
	assert_int_equal(ring.times.total, 0);
	free(ring.block);
}

/* ---- full, out of order, around the end ---- */

static void equal_times_are_all_kept(void **state)
{
	struct ring ring;
	bool runs = in_runs(state);
	ring_open(&ring, 4, 100, 4, runs, false);
	for (int i = 0; i < 3; i++)
		add(&ring, 50, 1);
	EXPECT(&ring, "50*3");
	assert_int_equal(ring.times.length, runs ? 1 : 3);
	assert_int_equal(ring.times.total, 3);
	free(ring.block);
}

static void one_more_than_the_most_takes_the_place_of_the_oldest(void **state)
{
	struct ring ring;
	ring_open(&ring, 3, 100, 3, in_runs(state), false);
	add(&ring, 10, 1);
	add(&ring, 11, 1);
	add(&ring, 12, 1);
	EXPECT(&ring, "10*1 11*1 12*1");
	add(&ring, 13, 1);
	EXPECT(&ring, "11*1 12*1 13*1");
	add(&ring, 13, 1);
	EXPECT(&ring, "12*1 13*2");
	free(ring.block);
}

static void an_older_one_than_all_of_a_full_ring_is_not_kept(void **state)
{
	struct ring ring;
	ring_open(&ring, 3, 100, 3, in_runs(state), false);
	add(&ring, 10, 1);
	add(&ring, 11, 2);
	add(&ring, 9, 1);
	EXPECT(&ring, "10*1 11*2");
	add(&ring, 10, 1); /* as old as the oldest: one of the two goes */
	EXPECT(&ring, "10*1 11*2");
	free(ring.block);
	ring_open(&ring, 3, 100, 3, in_runs(state), false);
	for (int i = 10; i < 13; i++)
		add(&ring, i, 1);
	add(&ring, 9, 3);
	EXPECT(&ring, "10*1 11*1 12*1");
	free(ring.block);
}

static void a_count_of_the_most_fills_it_and_more_is_no_more(void **state)
{
	static const int64_t counts[] = {4, 5, 8, 9, INT64_C(1) << 40};
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		struct ring ring;
		ring_open(&ring, 4, 100, 4, in_runs(state), false);
		add(&ring, 10, 1);
		add(&ring, 12, 2);
		add(&ring, 12, counts[i]);
		EXPECT(&ring, "12*4");
		free(ring.block);
	}
}

/* Of what is newer than they are nothing goes, and of themselves as many stay as there is place for. */
static void many_out_of_order_take_the_place_of_older_ones_alone(void **state)
{
	struct ring ring;
	ring_open(&ring, 5, 100, 5, in_runs(state), false);
	add(&ring, 10, 1);
	add(&ring, 12, 1);
	add(&ring, 20, 2);
	add(&ring, 15, 2);
	EXPECT(&ring, "12*1 15*2 20*2");
	add(&ring, 15, 4);
	EXPECT(&ring, "15*3 20*2");
	add(&ring, 15, 1);
	EXPECT(&ring, "15*3 20*2");
	free(ring.block);
}

static void one_out_of_order_lies_between_older_and_newer(void **state)
{
	struct ring ring;
	ring_open(&ring, 8, 100, 8, in_runs(state), false);
	add(&ring, 10, 1);
	add(&ring, 30, 2);
	add(&ring, 20, 1);
	EXPECT(&ring, "10*1 20*1 30*2");
	add(&ring, 20, 1); /* beside its equal */
	EXPECT(&ring, "10*1 20*2 30*2");
	add(&ring, 0, 1);
	EXPECT(&ring, "0*1 10*1 20*2 30*2");
	assert_int_equal(weir_times_above(&ring.times, 10), 4);
	free(ring.block);
}

/* Strides of bits that are no whole bytes, heads at every slot, and one out of order across the end. */
static void the_ring_goes_around_its_end_from_every_head(void **state)
{
	struct ring ring;
	char expected[64];
	ring_open(&ring, 4, 100, 4, in_runs(state), false);
	add(&ring, 1, 1);
	add(&ring, 2, 1);
	for (int64_t unit = 3; unit < 300; unit++) {
		add(&ring, unit, 1);
		add(&ring, unit - 1, 1); /* moves the newest one slot up */
		snprintf(expected, sizeof expected, "%lld*1 %lld*2 %lld*1", (long long)unit - 2, (long long)unit - 1,
		         (long long)unit);
		if (unit > 3)
			EXPECT(&ring, expected);
		weir_times_drop_until(&ring.times, unit - 2);
		weir_times_drop_oldest(&ring.times, 1);
		again(&ring, unit);
		assert_true(ring.times.head < ring.times.room);
		snprintf(expected, sizeof expected, "%lld*1 %lld*1", (long long)unit - 1, (long long)unit);
		EXPECT(&ring, expected);
	}
	free(ring.block);
}

static void a_ring_of_one(void **state)
{
	struct ring ring;
	ring_open(&ring, 1, 10, 1, in_runs(state), false);
	add(&ring, 5, 1);
	add(&ring, 5, 1);
	EXPECT(&ring, "5*1");
	add(&ring, 4, 1);
	EXPECT(&ring, "5*1");
	add(&ring, 6, 7);
	EXPECT(&ring, "6*1");
	free(ring.block);
}

/* ---- numbers that wrap, and the largest ones ---- */

static void a_time_is_whole_as_long_as_it_is_within_the_span(void **state)
{
	enum { SPAN = 6 }; /* three bits: times are kept modulo 8 */
	for (int64_t anchor = SPAN - 1; anchor < 70; anchor++) {
		struct ring ring;
		char expected[64];
		ring_open(&ring, 3, SPAN, 3, in_runs(state), false);
		assert_int_equal(ring.shape.time_bits, 3);
		add(&ring, anchor - SPAN + 1, 1);
		add(&ring, anchor, 1);
		snprintf(expected, sizeof expected, "%lld*1 %lld*1", (long long)anchor - SPAN + 1, (long long)anchor);
		EXPECT(&ring, expected);
		free(ring.block);
	}
}

/* For spans above the bits of a time, as a queue has: it is kept whole. */
static void times_of_zero_and_of_the_last_year_lie_side_by_side(void **state)
{
	const int64_t anchor = (int64_t)WEIR_TIME_MASK;
	struct ring ring;
	char expected[64];
	ring_open(&ring, 3, anchor + 1, 3, in_runs(state), false);
	again(&ring, anchor);
	add(&ring, 0, 1);
	add(&ring, WEIR_TIME_END_MS - 1, 1);
	add(&ring, anchor, 1);
	snprintf(expected, sizeof expected, "0*1 %lld*1 %lld*1", (long long)WEIR_TIME_END_MS - 1, (long long)anchor);
	EXPECT(&ring, expected);
	weir_times_drop_until(&ring.times, 0);
	assert_int_equal(weir_times_at(&ring.times, 0), WEIR_TIME_END_MS - 1);
	free(ring.block);
}

/* The sums go on rising as the ring turns, far past what their bits hold. */
static void sums_wrap_around_and_counts_do_not(void **state)
{
	(void)state;
	for (int64_t most = 3; most <= 5; most++) {
		struct ring ring;
		char expected[64];
		ring_open(&ring, most, 100, (uint32_t)most, true, false);
		add(&ring, 1, 1);
		for (int64_t unit = 2; unit < 200; unit++) {
			int64_t count = 1 + unit % most, kept = most - count;
			add(&ring, unit, count);
			assert_int_equal(weir_times_above(&ring.times, unit - 1), count);
			if (unit > most + 1)
				assert_int_equal(ring.times.total, most);
			if (kept > 0 && kept <= 1 + (unit - 1) % most && unit > most) {
				snprintf(expected, sizeof expected, "%lld*%lld %lld*%lld", (long long)unit - 1, (long long)kept,
				         (long long)unit, (long long)count);
				EXPECT(&ring, expected);
			}
		}
		free(ring.block);
	}
}

/* ---- widths and room ---- */

static void widths_change_exactly_at_their_bounds(void **state)
{
	(void)state;
	static const struct {
		int64_t most, span;
		bool runs_only;
		unsigned count_bytes, total_bytes, time_bits, sum_bits;
		uint32_t entries_max;
	} cases[] = {
		{1, 0, false, 1, 1, 1, 2, 1},
		{3, 6, false, 1, 1, 3, 3, 3},
		{4, 7, false, 1, 1, 4, 4, 4},
		{255, 254, false, 1, 1, 8, 9, 255},
		{256, 255, false, 2, 2, 9, 10, 256},
		{65535, 1000, false, 2, 2, 10, 17, 65535},
		{65536, 1000, false, 4, 4, 10, 18, 65536},
		{1, (INT64_C(1) << 48) - 2, false, 1, 1, 48, 2, 1},
		{1, (INT64_C(1) << 48) - 1, false, 1, 1, 48, 2, 1}, /* would be 49 */
		{1000, 10, true, 1, 2, 4, 11, 11},                  /* an entry for each unit of the span, and one */
		{1000, 998, true, 2, 2, 10, 11, 999},
		{1000, 999, true, 2, 2, 10, 11, 1000},
		{1000, 1000, true, 2, 2, 10, 11, 1000},
		{1000000000, 254, true, 1, 4, 8, 31, 255},
		{1000000000, 255, true, 2, 4, 9, 31, 256},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct weir_times_shape shape = weir_times_shape_of(cases[i].most, cases[i].span, cases[i].runs_only);
		assert_int_equal(shape.count_bytes, cases[i].count_bytes);
		assert_int_equal(shape.total_bytes, cases[i].total_bytes);
		assert_int_equal(shape.time_bits, cases[i].time_bits);
		assert_int_equal(shape.sum_bits, cases[i].sum_bits);
		assert_int_equal(shape.entries_max, cases[i].entries_max);
		assert_int_equal(shape.most, cases[i].most);
		assert_int_equal(weir_times_fixed_bytes(&shape, false), 3 * cases[i].count_bytes);
		assert_int_equal(weir_times_fixed_bytes(&shape, true), 3 * cases[i].count_bytes + cases[i].total_bytes);
		assert_int_equal(weir_times_stride(&shape, false), cases[i].time_bits);
		assert_int_equal(weir_times_stride(&shape, true), cases[i].time_bits + cases[i].sum_bits);
	}
}

static void room_is_wanted_for_each_time_or_for_one_run_and_never_past_the_most(void **state)
{
	struct ring ring;
	bool runs = in_runs(state);
	ring_open(&ring, 6, 1000, 6, runs, false);
	assert_int_equal(weir_times_wanted(&ring.times, 1), 1);
	assert_int_equal(weir_times_wanted(&ring.times, 2), runs ? 1 : 2);
	add(&ring, 10, 1);
	add(&ring, 11, 1);
	assert_int_equal(weir_times_wanted(&ring.times, 1), 3);
	assert_int_equal(weir_times_wanted(&ring.times, 4), runs ? 3 : 6);
	assert_int_equal(weir_times_wanted(&ring.times, 5), runs ? 3 : 6);
	assert_int_equal(weir_times_wanted(&ring.times, INT64_C(1) << 40), runs ? 3 : 6);
	for (int i = 12; i < 16; i++)
		add(&ring, i, 1);
	assert_int_equal(weir_times_wanted(&ring.times, 1), 6);
	free(ring.block);
}

/* 255 entries and their head are the most of one byte. */
static void the_most_entries_of_single_bytes_turn_as_others_do(void **state)
{
	struct ring ring;
	ring_open(&ring, 255, 1000, 255, in_runs(state), false);
	for (int64_t unit = 0; unit < 1000; unit++)
		add(&ring, unit, 1);
	assert_int_equal(ring.times.length, 255);
	assert_int_equal(weir_times_at(&ring.times, 0), 745);
	assert_int_equal(weir_times_newest(&ring.times, 255), 745);
	assert_int_equal(weir_times_above(&ring.times, 745), 254);
	free(ring.block);
}

/* ---- copies ---- */

static void copy_to(const struct ring *from, uint32_t room, bool runs, struct ring *to)
{
	ring_open(to, from->shape.most, from->span, room, runs, false);
	again(to, from->times.anchor);
	weir_times_copy(&to->times, &from->times);
	again(to, from->times.anchor);
	assert_true(weir_times_check(&to->times, to->span));
	assert_int_equal(to->times.head, 0);
}

static void a_copy_into_exactly_its_room_holds_the_same(void **state)
{
	struct ring ring, copy;
	bool runs = in_runs(state);
	ring_open(&ring, 5, 100, 5, runs, false);
	for (int i = 10; i < 17; i++)
		add(&ring, i, 1); /* the head is not at the beginning */
	add(&ring, 17, 2);
	assert_true(ring.times.head > 0);
	copy_to(&ring, ring.times.length, runs, &copy);
	EXPECT(&copy, "14*1 15*1 16*1 17*2");
	free(copy.block);
	copy_to(&ring, 5, runs, &copy);
	EXPECT(&copy, "14*1 15*1 16*1 17*2");
	add(&copy, 18, 1);
	EXPECT(&copy, "15*1 16*1 17*2 18*1");
	free(copy.block);
	free(ring.block);
}

static void plain_times_become_runs_with_equal_ones_as_one(void **state)
{
	(void)state;
	struct ring ring, copy;
	ring_of_six(&ring, false);
	copy_to(&ring, 3, true, &copy);
	EXPECT(&copy, "1000*1 1010*3 1020*2");
	assert_int_equal(copy.times.length, 3);
	assert_int_equal(copy.times.total, 6);
	free(copy.block);
	free(ring.block);
}

static void a_copy_of_empty_times_is_empty(void **state)
{
	struct ring ring, copy;
	ring_open(&ring, 5, 100, 5, in_runs(state), false);
	copy_to(&ring, 0, in_runs(state), &copy);
	EXPECT(&copy, "");
	free(copy.block);
	free(ring.block);
}

/* ---- bytes that are no times ---- */

#define REFUSED(ring, change)                                 \
	do {                                                      \
		struct weir_times times = (ring)->times;              \
		change;                                               \
		assert_false(weir_times_check(&times, (ring)->span)); \
	} while (0)

static void counts_out_of_their_bounds_are_refused(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	uint32_t length = ring.times.length;
	REFUSED(&ring, times.room = 7);
	REFUSED(&ring, times.room = length - 1);
	REFUSED(&ring, times.length = 7);
	REFUSED(&ring, times.head = times.room);
	REFUSED(&ring, times.total = 7);
	REFUSED(&ring, times.total = length - 1);
	REFUSED(&ring, times.length = 0);
	assert_true(weir_times_check(&ring.times, ring.span));
	free(ring.block);
	ring_open(&ring, 6, 1000, 0, in_runs(state), false);
	REFUSED(&ring, times.head = 1);
	REFUSED(&ring, times.total = 1);
	assert_true(weir_times_check(&ring.times, ring.span)); /* no room and head 0 */
	free(ring.block);
}

/* The one too many would be read from the first one's slot, which says nothing against it. */
static void one_more_equal_time_than_there_is_room_for_is_refused(void **state)
{
	(void)state;
	struct ring ring;
	ring_open(&ring, 3, 100, 2, false, false);
	add(&ring, 10, 2);
	REFUSED(&ring, (times.total = 3, times.length = 3));
	free(ring.block);
}

static void the_last_slot_may_be_the_head(void **state)
{
	struct ring ring;
	ring_open(&ring, 2, 100, 2, in_runs(state), false);
	add(&ring, 10, 1);
	add(&ring, 11, 1);
	weir_times_drop_oldest(&ring.times, 1);
	again(&ring, 11);
	assert_int_equal(ring.times.head, 1);
	assert_true(weir_times_check(&ring.times, ring.span));
	free(ring.block);
}

static void a_time_of_the_spans_age_is_refused_and_one_unit_younger_is_not(void **state)
{
	struct ring ring;
	ring_of_six(&ring, in_runs(state));
	assert_true(weir_times_check(&ring.times, 21)); /* 1000 is 20 behind 1020 */
	assert_false(weir_times_check(&ring.times, 20));
	free(ring.block);
}

static void a_time_before_zero_is_refused(void **state)
{
	struct ring ring;
	ring_open(&ring, 2, 6, 2, in_runs(state), false);
	add(&ring, 5, 1);
	again(&ring, 3); /* 5 can only be 5 - 8 now */
	assert_int_equal(weir_times_at(&ring.times, 0), -3);
	assert_false(weir_times_check(&ring.times, 8));
	again(&ring, 5);
	assert_true(weir_times_check(&ring.times, 8));
	free(ring.block);
}

static void put_time(struct ring *ring, uint32_t i, int64_t unit)
{
	weir_bits_put(ring->times.entries, weir_times_place(&ring->times, i), ring->shape.time_bits, (uint64_t)unit);
}

static void times_that_do_not_rise_are_refused(void **state)
{
	struct ring ring;
	bool runs = in_runs(state);
	ring_open(&ring, 3, 100, 3, runs, false);
	add(&ring, 10, 1);
	add(&ring, 20, 1);
	put_time(&ring, 0, 20); /* equal: only plain times may be */
	assert_int_equal(weir_times_check(&ring.times, ring.span), !runs);
	put_time(&ring, 1, 19);
	assert_false(weir_times_check(&ring.times, ring.span));
	free(ring.block);
}

static void a_total_that_the_sums_do_not_give_is_refused(void **state)
{
	(void)state;
	struct ring ring;
	ring_open(&ring, 6, 100, 6, true, false);
	add(&ring, 10, 3);
	add(&ring, 20, 2);               /* sums 3 and 5 */
	REFUSED(&ring, times.total = 2); /* the first would count nothing */
	REFUSED(&ring, times.total = 1); /* less than nothing */
	struct weir_times fewer = ring.times;
	fewer.total = 3;
	assert_true(weir_times_check(&fewer, ring.span)); /* one of the first: as after two were dropped */
	weir_bits_put(ring.times.entries, weir_times_place(&ring.times, 1) + ring.shape.time_bits, ring.shape.sum_bits, 3);
	assert_false(weir_times_check(&ring.times, ring.span)); /* a second entry of none */
	free(ring.block);
}

/* ---- against a list ---- */

struct list {
	int64_t units[1024];
	size_t count;
};

static void list_drop(struct list *list, size_t count)
{
	count = count < list->count ? count : list->count;
	memmove(list->units, list->units + count, (list->count - count) * sizeof list->units[0]);
	list->count -= count;
}

static void list_add(struct list *list, int64_t unit, int64_t count, int64_t most)
{
	for (int64_t n = count < most ? count : most; n > 0; n--) {
		size_t i = list->count++;
		for (; i > 0 && list->units[i - 1] > unit; i--)
			list->units[i] = list->units[i - 1];
		list->units[i] = unit;
	}
	if (list->count > (size_t)most)
		list_drop(list, list->count - (size_t)most);
}

static size_t list_above(const struct list *list, int64_t unit)
{
	size_t above = 0;
	for (size_t i = 0; i < list->count; i++)
		above += list->units[i] > unit;
	return above;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void compare(const struct ring *ring, const struct list *list, uint64_t *seed)
{
	const struct weir_times *times = &ring->times;
	assert_true(weir_times_check(times, ring->span));
	assert_int_equal(times->total, list->count);
	size_t at = 0;
	for (uint32_t i = 0; i < times->length; i++)
		for (uint64_t n = weir_times_count_at(times, i); n > 0; n--)
			assert_int_equal(weir_times_at(times, i), list->units[at++]);
	for (uint64_t k = 1; k <= list->count; k++)
		assert_int_equal(weir_times_newest(times, k), list->units[list->count - k]);
	int64_t unit = times->anchor - (int64_t)(next_random(seed) % (uint64_t)(ring->span + 2)) + 1;
	assert_int_equal(weir_times_above(times, unit), list_above(list, unit));
	if (list->count > 0)
		assert_int_equal(weir_times_above(times, list->units[at / 2]), list_above(list, list->units[at / 2]));
}

/* Into a ring of the room that is wanted, as a bucket grows; once in a while into runs. */
static void grow(struct ring *ring, uint32_t room, bool runs, bool runs_only)
{
	struct ring larger;
	ring_open(&larger, ring->shape.most, ring->span, room, runs, runs_only);
	again(&larger, ring->times.anchor);
	weir_times_copy(&larger.times, &ring->times);
	free(ring->block);
	*ring = larger;
	ring->times.shape = &ring->shape;
	again(ring, ring->times.anchor);
}

static void random_step(struct ring *ring, struct list *list, bool runs_only, uint64_t *seed)
{
	int64_t span = ring->span, most = ring->shape.most;
	int64_t ahead = (int64_t)(next_random(seed) % (uint64_t)(span / 3 + 2));
	int64_t unit = ring->times.anchor + (next_random(seed) % 4 == 0 ? -ahead : ahead);
	int64_t count = next_random(seed) % 4 > 0 ? 1 : 1 + (int64_t)(next_random(seed) % (uint64_t)(most + 2));
	if (unit <= ring->times.anchor - span) /* as late ones are not recorded */
		unit = ring->times.anchor - span + 1;
	if (unit < 0)
		unit = 0;
	switch (next_random(seed) % 10) {
	case 0:
		weir_times_drop_oldest(&ring->times, (uint64_t)count);
		list_drop(list, (size_t)count);
		break;
	case 1:
		weir_times_drop_until(&ring->times, unit);
		list_drop(list, list->count - list_above(list, unit));
		break;
	case 2: grow(ring, ring->times.room, ring->times.runs || next_random(seed) % 20 == 0, runs_only); break;
	default:
		if (unit > ring->times.anchor) {
			weir_times_drop_until(&ring->times, unit - span);
			list_drop(list, list->count - list_above(list, unit - span));
			again(ring, unit);
		}
		if (weir_times_wanted(&ring->times, count) > ring->times.room)
			grow(ring, weir_times_wanted(&ring->times, count), ring->times.runs, runs_only);
		weir_times_add(&ring->times, unit, count);
		list_add(list, unit, count, most);
		break;
	}
	again(ring, ring->times.anchor);
}

static void random_times_are_those_of_a_list(void **state)
{
	(void)state;
	const char *given = getenv("WEIR_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20251125;
	print_message("WEIR_SEED=%llu\n", (unsigned long long)seed);
	static const int64_t mosts[] = {1, 2, 3, 4, 7, 8, 31, 256}, spans[] = {1, 2, 6, 7, 40, 255, 2000, INT64_C(1) << 40};
	for (int round = 0; round < ROUNDS; round++) {
		struct ring ring;
		struct list list = {.count = 0};
		int64_t most = mosts[next_random(&seed) % 8], span = spans[next_random(&seed) % 8];
		bool runs_only = next_random(&seed) % 3 == 0;
		ring_open(&ring, most, span, 0, runs_only, runs_only);
		again(&ring, next_random(&seed) % 2 == 0 ? 0 : INT64_C(1732173600000));
		for (int step = 0; step < STEPS; step++) {
			random_step(&ring, &list, runs_only, &seed);
			compare(&ring, &list, &seed);
		}
		free(ring.block);
	}
}

int main(void)
{
	static bool plain = false, runs = true;
#define BOTH(name)                               \
	{"plain: " #name, name, NULL, NULL, &plain}, \
	{                                            \
		"runs: " #name, name, NULL, NULL, &runs  \
	}
	const struct CMUnitTest tests[] = {
		BOTH(empty_times_hold_nothing),
		BOTH(a_time_leaves_at_exactly_its_unit),
		BOTH(a_time_at_the_unit_is_not_above_it),
		BOTH(the_kth_newest_is_counted_by_times_not_by_entries),
		BOTH(the_oldest_go_one_by_one_out_of_equal_ones),
		BOTH(equal_times_are_all_kept),
		BOTH(one_more_than_the_most_takes_the_place_of_the_oldest),
		BOTH(an_older_one_than_all_of_a_full_ring_is_not_kept),
		BOTH(a_count_of_the_most_fills_it_and_more_is_no_more),
		BOTH(many_out_of_order_take_the_place_of_older_ones_alone),
		BOTH(one_out_of_order_lies_between_older_and_newer),
		BOTH(the_ring_goes_around_its_end_from_every_head),
		BOTH(a_ring_of_one),
		BOTH(a_time_is_whole_as_long_as_it_is_within_the_span),
		BOTH(times_of_zero_and_of_the_last_year_lie_side_by_side),
		cmocka_unit_test(sums_wrap_around_and_counts_do_not),
		cmocka_unit_test(widths_change_exactly_at_their_bounds),
		BOTH(room_is_wanted_for_each_time_or_for_one_run_and_never_past_the_most),
		BOTH(the_most_entries_of_single_bytes_turn_as_others_do),
		BOTH(a_copy_into_exactly_its_room_holds_the_same),
		cmocka_unit_test(plain_times_become_runs_with_equal_ones_as_one),
		BOTH(a_copy_of_empty_times_is_empty),
		BOTH(counts_out_of_their_bounds_are_refused),
		cmocka_unit_test(one_more_equal_time_than_there_is_room_for_is_refused),
		BOTH(the_last_slot_may_be_the_head),
		BOTH(a_time_of_the_spans_age_is_refused_and_one_unit_younger_is_not),
		BOTH(a_time_before_zero_is_refused),
		BOTH(times_that_do_not_rise_are_refused),
		cmocka_unit_test(a_total_that_the_sums_do_not_give_is_refused),
		cmocka_unit_test(random_times_are_those_of_a_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
