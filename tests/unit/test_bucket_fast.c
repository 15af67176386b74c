/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way at its boundaries: each case runs with it and without it, and says whether it was open; and events at
 * random give the same bucket and the same verdicts in both ways.
 */
#include "bucket_scene.h"

#define SLIDING(rate, window) "{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define LATE(rate, window, lateness) \
	"{\"algorithm\":\"sliding_window\",\"rate\":" #rate ",\"window\":\"" #window "\",\"lateness\":\"" #lateness "\"}"
#define FIXED(rate, window) "{\"algorithm\":\"fixed_window\",\"rate\":" #rate ",\"window\":\"" #window "\"}"
#define UNIFORM(interval) "{\"algorithm\":\"uniform\",\"interval\":\"" #interval "\"}"
#define THREE SLIDING(2, 100ms) "," FIXED(3, 1s) "," FIXED(4, 10s)

enum { ROUNDS = 150, STEPS = 300 };

static struct bucket_scene *open_way(void **state, const char *limits, const char *members)
{
	struct bucket_scene *scene = scene_open(limits, members);
	scene->fast_way = *(const bool *)*state;
	return scene;
}

/* How many events took the short way, where it is asked. */
static void close_way(struct bucket_scene *scene, unsigned fast)
{
	assert_int_equal(scene->fast_count, scene->fast_way ? fast : 0);
	scene_close(scene);
}

static uint32_t ring_length(struct bucket_scene *scene, uint32_t i)
{
	struct bucket_view view;
	bucket_open(&view, scene->bucket, scene_layout(scene));
	return weir_limit_times(&view.limits[i], 0).length;
}

/* ---- one limit ---- */

static void sliding_window_takes_the_rate_and_not_one_more(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(3, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1010, 1);
	EXPECT_PASS(scene, 1020, 1);
	EXPECT_DECIDED(scene, 1020, 1, 1100);
	assert_int_equal(scene->verdict.count, 3);
	EXPECT_BLOCK(scene, 1020, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1],[1010,1],[1020,1]]}");
	close_way(scene, 3); /* all but the first, which makes the bucket, and the decision */
}

static void sliding_window_at_a_window_less_one_ms_and_at_a_window(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(3, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1010, 1);
	EXPECT_PASS(scene, 1020, 1);
	EXPECT_DECIDED(scene, 1099, 1, 1100);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1109, 1, 1110);
	EXPECT_PASS(scene, 1111, 1); /* a window and 1 ms */
	EXPECT_SHOWN(scene, "{\"times\":[[1020,1],[1100,1],[1111,1]]}");
	close_way(scene, 4);
}

static void a_time_of_two_windows_age_is_dropped_and_one_ms_younger_is_not(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(9, 100ms), "");
	for (int64_t t = 1000; t < 1004; t++)
		EXPECT_PASS(scene, t, 1);
	EXPECT_PASS(scene, 1199, 1);
	assert_int_equal(ring_length(scene, 0), 5);
	EXPECT_PASS(scene, 1200, 1);
	assert_int_equal(ring_length(scene, 0), 5);
	EXPECT_PASS(scene, 1202, 1); /* two at once, the second of them just so */
	assert_int_equal(ring_length(scene, 0), 4);
	EXPECT_SHOWN(scene, "{\"times\":[[1003,1],[1199,1],[1200,1],[1202,1]]}");
	EXPECT_PASS(scene, 1402, 1); /* all four */
	assert_int_equal(ring_length(scene, 0), 1);
	close_way(scene, 7); /* all but the first, which makes the bucket */
}

/* What times are kept modulo must not make an old one look new. */
static void a_gap_of_the_modulus_of_times_is_a_gap(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(2, 100ms), "");
	assert_int_equal(scene->zone->layout->limits[0].times.time_bits, 8);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	for (int64_t gap = 256, t = 1000; gap < INT64_C(1) << 38; gap *= 2) {
		t += gap;
		EXPECT_PASS(scene, t, 1);
		assert_int_equal(ring_length(scene, 0), 1);
		EXPECT_PASS(scene, t, 1);
	}
	close_way(scene, 61);
}

/* ---- a window with a lateness ---- */

static void with_a_lateness_the_time_that_counts_is_the_rate_th_newest(void **state)
{
	struct bucket_scene *scene = open_way(state, LATE(2, 100ms, 500ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1010, 1);
	EXPECT_DECIDED(scene, 1099, 1, 1100);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1109, 1, 1110);
	EXPECT_PASS(scene, 1110, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1],[1010,1],[1100,1],[1110,1]]}");
	EXPECT_PASS(scene, 1300, 1);
	EXPECT_BLOCK(scene, 1050, 1); /* two lie behind 950, and the whole way is asked */
	close_way(scene, 4);
}

static void with_a_lateness_times_stay_for_a_window_and_that(void **state)
{
	struct bucket_scene *scene = open_way(state, LATE(9, 100ms, 500ms), "");
	for (int64_t t = 1000; t < 1003; t++)
		EXPECT_PASS(scene, t, 1);
	EXPECT_PASS(scene, 1599, 1);
	assert_int_equal(ring_length(scene, 0), 4);
	EXPECT_PASS(scene, 1600, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1001,1],[1002,1],[1599,1],[1600,1]]}");
	EXPECT_PASS(scene, 9000, 1);
	assert_int_equal(ring_length(scene, 0), 1);
	close_way(scene, 5);
}

static void with_a_lateness_shorter_than_the_window_as_many_as_may_be_stay(void **state)
{
	struct bucket_scene *scene = open_way(state, LATE(2, 100ms, 20ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_PASS(scene, 1119, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1],[1001,1],[1119,1]]}");
	EXPECT_PASS(scene, 1120, 1); /* 1000 is of no more use; 1001 is, for 1 ms */
	EXPECT_SHOWN(scene, "{\"times\":[[1001,1],[1119,1],[1120,1]]}");
	EXPECT_PASS(scene, 1300, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1120,1],[1300,1]]}");
	close_way(scene, 4);
}

/* Its times are then as many as are kept at all: only the whole way knows what becomes of an event. */
static void with_a_lateness_a_ring_that_may_not_grow_is_for_the_whole_way(void **state)
{
	struct bucket_scene *scene = open_way(state, LATE(2, 100ms, 100ms), ",\"count\":\"all\"");
	for (int64_t t = 1000; t < 1050; t++)
		(void)scene_event(scene, t, 1);
	assert_int_equal(ring_length(scene, 0), 6);
	unsigned grown = scene->grown_count;
	EXPECT_PASS(scene, 1149, 1);
	assert_int_equal(scene->grown_count, grown);
	assert_int_equal(ring_length(scene, 0), 6);
	scene_close(scene);
}

/* ---- fixed windows ---- */

static void fixed_window_at_its_last_ms_and_at_the_first_of_the_next(void **state)
{
	struct bucket_scene *scene = open_way(state, FIXED(2, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1099, 1);
	EXPECT_DECIDED(scene, 1099, 1, 1100);
	assert_int_equal(scene->verdict.count, 2);
	EXPECT_BLOCK(scene, 1099, 1);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_SHOWN(scene, "{\"bucket\":11,\"count\":1,\"previous\":2}");
	EXPECT_PASS(scene, 1199, 1);
	EXPECT_DECIDED(scene, 1199, 1, 1200);
	EXPECT_PASS(scene, 1299, 1);
	close_way(scene, 5);
}

static void fixed_window_remembers_the_one_before_and_none_further_back(void **state)
{
	struct bucket_scene *scene = open_way(state, FIXED(9, 100ms), "");
	EXPECT_PASS(scene, 1099, 1);
	EXPECT_PASS(scene, 1099, 1);
	EXPECT_PASS(scene, 1200, 1); /* 1 ms too far */
	EXPECT_SHOWN(scene, "{\"bucket\":12,\"count\":1,\"previous\":0}");
	EXPECT_PASS(scene, 1300, 1); /* from the first ms of a window to the first of the next */
	EXPECT_SHOWN(scene, "{\"bucket\":13,\"count\":1,\"previous\":1}");
	EXPECT_PASS(scene, 1499, 1); /* to the last */
	EXPECT_SHOWN(scene, "{\"bucket\":14,\"count\":1,\"previous\":1}");
	close_way(scene, 4);
}

static void counts_of_each_width_reach_their_rate(void **state)
{
	static const struct {
		int64_t rate;
		unsigned bytes;
	} cases[] = {{1, 1}, {2, 1}, {255, 1}, {256, 2}, {65535, 2}, {65536, 4}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char limits[128], shown[96];
		snprintf(limits, sizeof limits, "{\"algorithm\":\"fixed_window\",\"rate\":%lld,\"window\":\"1h\"}",
		         (long long)cases[i].rate);
		struct bucket_scene *scene = open_way(state, limits, "");
		assert_int_equal(scene->zone->layout->limits[0].value_bytes, cases[i].bytes);
		for (int64_t n = 0; n < cases[i].rate; n++)
			EXPECT_PASS(scene, 5, 1);
		EXPECT_DECIDED(scene, 5, 1, 3600000);
		EXPECT_PASS(scene, 3600000, 1);
		snprintf(shown, sizeof shown, "{\"bucket\":1,\"count\":1,\"previous\":%lld}", (long long)cases[i].rate);
		EXPECT_SHOWN(scene, shown);
		scene_close(scene);
	}
}

static void the_smallest_interval_takes_one_a_millisecond(void **state)
{
	struct bucket_scene *scene = open_way(state, UNIFORM(1ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1001);
	EXPECT_BLOCK(scene, 1000, 1);
	EXPECT_PASS(scene, 1001, 1);
	EXPECT_PASS(scene, 1002, 1);
	close_way(scene, 3);
}

/* ---- three limits: each is the one that is reached ---- */

static void of_three_limits_each_blocks_at_its_rate(void **state)
{
	struct bucket_scene *scene = open_way(state, THREE, "");
	assert_int_equal(scene->zone->layout->fast, LAYOUT_THREE);
	EXPECT_PASS(scene, 10000, 1);
	EXPECT_PASS(scene, 10000, 1);
	EXPECT_DECIDED(scene, 10099, 1, 10100);
	assert_int_equal(scene->verdict.limit, 0);
	EXPECT_PASS(scene, 10100, 1);
	EXPECT_DECIDED(scene, 10199, 1, 11000);
	assert_int_equal(scene->verdict.limit, 1);
	assert_int_equal(scene->verdict.count, 3);
	EXPECT_BLOCK(scene, 10999, 1);
	EXPECT_PASS(scene, 11000, 1);
	EXPECT_DECIDED(scene, 11500, 1, 20000);
	assert_int_equal(scene->verdict.limit, 2);
	EXPECT_BLOCK(scene, 19999, 1);
	EXPECT_PASS(scene, 20000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[20000,1]]} {\"bucket\":20,\"count\":1,\"previous\":0} "
	                    "{\"bucket\":2,\"count\":1,\"previous\":4}");
	close_way(scene, 6);
}

static void of_three_limits_a_full_count_does_not_touch_the_one_beside_it(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(200, 1ms) "," FIXED(255, 1s) "," FIXED(65535, 10s), "");
	assert_int_equal(scene->zone->layout->fast, LAYOUT_THREE);
	for (int64_t t = 0; t < 255; t++)
		EXPECT_PASS(scene, 1000 + t, 1);
	EXPECT_DECIDED(scene, 1255, 1, 2000);
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[2000,1]]} {\"bucket\":2,\"count\":1,\"previous\":255} "
	                    "{\"bucket\":0,\"count\":256,\"previous\":0}");
	for (int64_t t = 1; t < 255; t++)
		EXPECT_PASS(scene, 2000 + t, 1);
	EXPECT_PASS(scene, 3000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[3000,1]]} {\"bucket\":3,\"count\":1,\"previous\":255} "
	                    "{\"bucket\":0,\"count\":511,\"previous\":0}");
	scene_close(scene);
}

static void of_three_limits_windows_roll_at_their_first_ms_and_forget_after_two(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(9, 1ms) "," FIXED(9, 100ms) "," FIXED(9, 1s), "");
	EXPECT_PASS(scene, 1899, 1);
	EXPECT_PASS(scene, 1899, 1);
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[2000,1]]} {\"bucket\":20,\"count\":1,\"previous\":0} "
	                    "{\"bucket\":2,\"count\":1,\"previous\":2}");
	EXPECT_PASS(scene, 2100, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[2100,1]]} {\"bucket\":21,\"count\":1,\"previous\":1} "
	                    "{\"bucket\":2,\"count\":2,\"previous\":2}");
	EXPECT_PASS(scene, 2199, 1);
	EXPECT_PASS(scene, 4000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[4000,1]]} {\"bucket\":40,\"count\":1,\"previous\":0} "
	                    "{\"bucket\":4,\"count\":1,\"previous\":0}");
	close_way(scene, 5);
}

static void nothing_is_recorded_in_any_limit_when_the_last_one_is_over(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(9, 100ms) "," FIXED(9, 1s) "," SLIDING(2, 50ms), "");
	assert_int_equal(scene->zone->layout->fast, LAYOUT_FAST);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1049, 1, 1050);
	EXPECT_BLOCK(scene, 1049, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,2]]} {\"bucket\":1,\"count\":2,\"previous\":0} {\"times\":[[1000,2]]}");
	EXPECT_PASS(scene, 1050, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,2],[1050,1]]} {\"bucket\":1,\"count\":3,\"previous\":0} "
	                    "{\"times\":[[1000,1],[1050,1]]}");
	close_way(scene, 3);
}

/* ---- decisions ---- */

static void a_penalty_lasts_until_its_last_ms(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(1, 100ms), ",\"block_for\":\"1s\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1050, 1, 2050);
	EXPECT_BLOCK(scene, 1100, 1); /* no limit is over any more */
	EXPECT_BLOCK(scene, 2049, 1);
	EXPECT_PASS(scene, 2050, 1);
	EXPECT_DECIDED(scene, 2050, 1, 3050);
	close_way(scene, 3);
}

static void of_three_limits_a_penalty_lasts_until_its_last_ms(void **state)
{
	struct bucket_scene *scene =
		open_way(state, SLIDING(1, 100ms) "," FIXED(9, 1s) "," FIXED(9, 10s), ",\"block_for\":\"1s\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1050, 1, 2050);
	EXPECT_BLOCK(scene, 1100, 1);
	EXPECT_BLOCK(scene, 2049, 1);
	EXPECT_PASS(scene, 2050, 1);
	close_way(scene, 3);
}

static void without_a_penalty_what_no_limit_is_over_of_passes_before_the_end(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(1, 100ms) "," FIXED(9, 1s) "," FIXED(9, 10s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1000, 1, 1100);
	EXPECT_BLOCK(scene, 1099, 1);
	EXPECT_PASS(scene, 1100, 1);
	EXPECT_DECIDED(scene, 1199, 1, 1200); /* the decision before has ended */
	close_way(scene, 2);
}

static void counting_all_records_what_is_blocked_too(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(2, 100ms), ",\"count\":\"all\"");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1010, 1);
	EXPECT_DECIDED(scene, 1020, 1, 1110);
	EXPECT_SHOWN(scene, "{\"times\":[[1010,1],[1020,1]]}");
	EXPECT_BLOCK(scene, 1109, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1020,1],[1109,1]]}");
	EXPECT_DECIDED(scene, 1110, 1, 1209);
	EXPECT_PASS(scene, 1210, 1);
	close_way(scene, 2); /* the second, and the last: what is blocked goes the whole way */
}

/* ---- what is not for the short way ---- */

static void an_event_older_than_the_newest_goes_the_whole_way_and_an_equal_one_does_not(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(9, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1); /* these two: the short way */
	EXPECT_PASS(scene, 999, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[999,1],[1000,3]]}");
	close_way(scene, 2);
}

static void a_cost_goes_the_whole_way_and_counts_as_many(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(4, 100ms) "," FIXED(9, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1010, 2);
	EXPECT_BLOCK(scene, 1020, 2); /* one would still pass: no decision */
	EXPECT_PASS(scene, 1020, 1);
	EXPECT_DECIDED(scene, 1020, 1, 1100);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,1],[1010,2],[1020,1]]} {\"bucket\":1,\"count\":4,\"previous\":0}");
	close_way(scene, 1);
}

/* 3, 5, 7, 9, 11 entries, until there are as many as may be. */
static void a_ring_without_room_is_given_more_and_goes_the_short_way(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(12, 100ms), "");
	for (int64_t t = 1000; t < 1012; t++)
		EXPECT_PASS(scene, t, 1);
	assert_int_equal(scene->grown_count, scene->fast_way ? 6 : 0);
	EXPECT_DECIDED(scene, 1099, 1, 1100);
	EXPECT_PASS(scene, 1100, 1); /* the oldest makes place */
	EXPECT_PASS(scene, 1101, 1);
	assert_int_equal(scene->grown_count, scene->fast_way ? 6 : 0);
	assert_int_equal(ring_length(scene, 0), 12);
	close_way(scene, 13);
}

/* Its bucket is as any other's then, and what the whole way says of it is right. */
static void a_second_event_that_is_over_goes_the_whole_way(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(9, 100ms) "," FIXED(1, 1s), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1001, 1, 2000);
	EXPECT_BLOCK(scene, 1999, 1);
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[2000,1]]} {\"bucket\":2,\"count\":1,\"previous\":1}");
	close_way(scene, 2);
}

static void runs_are_for_the_whole_way(void **state)
{
	struct bucket_scene *scene = open_way(state, SLIDING(100, 100ms), "");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 2); /* above 32, a cost is kept as a run */
	assert_true(scene->bucket->flags & BUCKET_RUNS);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[1000,4]]}");
	close_way(scene, 0);
}

/* Behind its second block a bucket has two bytes more in front of its limits; the short way goes past them. */
static void a_key_that_was_blocked_before_goes_the_short_way(void **state)
{
	struct bucket_scene *scene =
		open_way(state, SLIDING(2, 100ms) "," FIXED(3, 1s) "," FIXED(9, 1m), ",\"block_for\":[\"200ms\",\"400ms\"]");
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_DECIDED(scene, 1001, 1, 1201);
	EXPECT_PASS(scene, 1201, 1);
	EXPECT_DECIDED(scene, 1202, 1, 2000); /* three in a second */
	assert_true(scene->bucket->flags & BUCKET_NTH);
	assert_int_equal(scene->verdict.nth, 2);
	EXPECT_BLOCK(scene, 1999, 1);
	EXPECT_PASS(scene, 2000, 1);
	EXPECT_PASS(scene, 2050, 1);
	EXPECT_SHOWN(scene, "{\"times\":[[2000,1],[2050,1]]} {\"bucket\":2,\"count\":2,\"previous\":3} "
	                    "{\"bucket\":0,\"count\":5,\"previous\":0}");
	EXPECT_DECIDED(scene, 2051, 1, 2451);
	assert_int_equal(scene->verdict.nth, 3);
	close_way(scene, 5);
}

static void times_of_zero_and_of_the_last_year(void **state)
{
	const int64_t last = WEIR_TIME_END_MS - 1;
	struct bucket_scene *scene = open_way(state, SLIDING(2, 100ms) "," FIXED(3, 1s), "");
	EXPECT_PASS(scene, 0, 1);
	EXPECT_PASS(scene, 0, 1);
	EXPECT_DECIDED(scene, 99, 1, 100);
	EXPECT_PASS(scene, 100, 1);
	EXPECT_DECIDED(scene, 101, 1, 1000);
	EXPECT_PASS(scene, 1000, 1);
	EXPECT_PASS(scene, last, 1);
	EXPECT_PASS(scene, last, 1);
	EXPECT_DECIDED(scene, last, 1, last + 100);
	assert_int_equal(bucket_blocked_until(scene->bucket), last + 100);
	EXPECT_BLOCK(scene, last, 1);
	close_way(scene, 6);
}

/* ---- both ways at random ---- */

static const char *const zones[] = {
	THREE,
	SLIDING(1, 1ms) "," FIXED(2, 5ms) "," FIXED(3, 7ms),
	SLIDING(30, 1s) "," FIXED(40, 2s) "," FIXED(300, 1m),
	SLIDING(5, 100ms),
	FIXED(3, 50ms),
	UNIFORM(20ms) "," SLIDING(6, 300ms),
	SLIDING(4, 90ms) "," FIXED(10, 700ms) "," SLIDING(8, 250ms) "," FIXED(12, 1s),
	SLIDING(300, 2s) "," FIXED(400, 3s) "," FIXED(70000, 1m),
	LATE(5, 100ms, 30ms),
	LATE(5, 100ms, 100ms),
	LATE(1, 20ms, 300ms) "," FIXED(30, 1s),
	LATE(30, 1s, 4s) "," FIXED(40, 2s) "," FIXED(300, 1m),
	LATE(6, 90ms, 40ms) "," SLIDING(8, 250ms) "," LATE(9, 300ms, 900ms),
};

static void random_step(struct bucket_scene *fast, struct bucket_scene *whole, int64_t *now, uint64_t *seed)
{
	static const int64_t steps[] = {1, 2, 12, 40, 400, 9000};
	int64_t ahead = scene_random(seed, steps[scene_random(seed, 6)]);
	int64_t t = scene_random(seed, 30) == 0 && *now > ahead ? *now - ahead : (*now += ahead);
	int64_t c = scene_random(seed, 40) == 0 ? scene_random(seed, 5) : 1;
	unsigned bits = scene_event(whole, t, c);
	assert_int_equal(scene_event(fast, t, c), bits);
	if (bits & WEIR_VERDICT_DECIDED) {
		assert_int_equal(fast->verdict.limit, whole->verdict.limit);
		assert_int_equal(fast->verdict.until_ms, whole->verdict.until_ms);
		assert_int_equal(fast->verdict.count, whole->verdict.count);
	}
	assert_int_equal(fast->changed, whole->changed);
	if (fast->bucket == NULL)
		return;
	assert_int_equal(fast->bucket->newest_ms, whole->bucket->newest_ms);
	assert_int_equal(fast->bucket->flags, whole->bucket->flags);
	assert_true(bucket_check(fast->bucket, scene_layout(fast), bucket_used(fast->bucket, scene_layout(fast))));
	char *shown = weir_copy(scene_shown(whole), strlen(scene_shown(whole)) + 1);
	EXPECT_SHOWN(fast, shown);
	free(shown);
}

static void random_events_come_to_the_same_in_both_ways(void **state)
{
	(void)state;
	uint64_t seed = scene_seed();
	unsigned taken = 0;
	for (int round = 0; round < ROUNDS; round++) {
		const char *limits = zones[scene_random(&seed, sizeof zones / sizeof zones[0])];
		const char *members = scene_random(&seed, 4) == 0   ? ",\"block_for\":\"500ms\""
		                      : scene_random(&seed, 6) == 0 ? ",\"count\":\"all\""
		                                                    : "";
		struct bucket_scene *fast = scene_open(limits, members), *whole = scene_open(limits, members);
		whole->fast_way = false;
		fast->spacious = whole->spacious = scene_random(&seed, 3) > 0;
		int64_t now = scene_random(&seed, 2) == 0 ? scene_random(&seed, 100) : INT64_C(1732173600000);
		for (int step = 0; step < STEPS; step++)
			random_step(fast, whole, &now, &seed);
		taken += fast->fast_count;
		scene_close(fast);
		scene_close(whole);
	}
	assert_true(taken > ROUNDS * STEPS / 4);
}

int main(void)
{
	static bool fast = true, whole = false;
#define BOTH(name)                                \
	{"fast: " #name, name, NULL, NULL, &fast},    \
	{                                             \
		"whole: " #name, name, NULL, NULL, &whole \
	}
	const struct CMUnitTest tests[] = {
		BOTH(sliding_window_takes_the_rate_and_not_one_more),
		BOTH(sliding_window_at_a_window_less_one_ms_and_at_a_window),
		BOTH(a_time_of_two_windows_age_is_dropped_and_one_ms_younger_is_not),
		BOTH(a_gap_of_the_modulus_of_times_is_a_gap),
		BOTH(with_a_lateness_the_time_that_counts_is_the_rate_th_newest),
		BOTH(with_a_lateness_times_stay_for_a_window_and_that),
		BOTH(with_a_lateness_shorter_than_the_window_as_many_as_may_be_stay),
		BOTH(with_a_lateness_a_ring_that_may_not_grow_is_for_the_whole_way),
		BOTH(fixed_window_at_its_last_ms_and_at_the_first_of_the_next),
		BOTH(fixed_window_remembers_the_one_before_and_none_further_back),
		BOTH(counts_of_each_width_reach_their_rate),
		BOTH(the_smallest_interval_takes_one_a_millisecond),
		BOTH(of_three_limits_each_blocks_at_its_rate),
		BOTH(of_three_limits_a_full_count_does_not_touch_the_one_beside_it),
		BOTH(of_three_limits_windows_roll_at_their_first_ms_and_forget_after_two),
		BOTH(nothing_is_recorded_in_any_limit_when_the_last_one_is_over),
		BOTH(a_penalty_lasts_until_its_last_ms),
		BOTH(of_three_limits_a_penalty_lasts_until_its_last_ms),
		BOTH(without_a_penalty_what_no_limit_is_over_of_passes_before_the_end),
		BOTH(counting_all_records_what_is_blocked_too),
		BOTH(an_event_older_than_the_newest_goes_the_whole_way_and_an_equal_one_does_not),
		BOTH(a_cost_goes_the_whole_way_and_counts_as_many),
		BOTH(a_ring_without_room_is_given_more_and_goes_the_short_way),
		BOTH(a_second_event_that_is_over_goes_the_whole_way),
		BOTH(runs_are_for_the_whole_way),
		BOTH(a_key_that_was_blocked_before_goes_the_short_way),
		BOTH(times_of_zero_and_of_the_last_year),
		cmocka_unit_test(random_events_come_to_the_same_in_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
