/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread has which partition, and where partitions should be: what a plan
 * gives is held against everything that any plan must keep, over many drawn loads,
 * and against the best of all plans where there are few.
 */
#include "limiter/worker/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, DRAWS = 20000, SMALL = 8 };

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % below;
}

struct sums {
	uint64_t of[MOST], most;
};

static struct sums sums_of(const struct placement_load *loads, uint32_t count, uint32_t threads)
{
	struct sums sums = {0};
	for (uint32_t i = 0; i < count; i++) {
		assert_true(loads[i].thread < threads);
		sums.of[loads[i].thread] += loads[i].work;
	}
	for (uint32_t thread = 0; thread < threads; thread++)
		if (sums.of[thread] > sums.most)
			sums.most = sums.of[thread];
	return sums;
}

static uint32_t improve(struct placement_load *loads, uint32_t count, uint32_t threads)
{
	bool busy[MOST];
	memset(busy, true, sizeof busy);
	return placement_improve(loads, count, threads, busy);
}

/* Partitions by number, of these loads. */
static void spread(struct placement_load *loads, const uint64_t *works, uint32_t count, uint32_t threads)
{
	for (uint32_t i = 0; i < count; i++)
		loads[i] = (struct placement_load){works[i], i % threads};
}

/* ---- who has it ---- */

static void a_partition_has_one_holder_at_a_time(void **state)
{
	(void)state;
	struct placement *placement = placement_new(5, 2);
	uint64_t counted = 1;
	assert_int_equal(placement_of(placement, 3), 1);
	assert_int_equal(placement_holder(placement, 3), 1);
	assert_true(placement_claim(placement, 3, 1, &counted));
	assert_int_equal(counted, 0);
	placement_move(placement, 3, 0);
	assert_int_equal(placement_of(placement, 3), 0);
	assert_int_equal(placement_holder(placement, 3), 1);
	assert_false(placement_claim(placement, 3, 0, &counted));
	assert_true(placement_claim(placement, 4, 0, &counted));
	placement_release(placement, 3, 77);
	assert_int_equal(placement_holder(placement, 3), 0);
	assert_true(placement_claim(placement, 3, 0, &counted));
	assert_int_equal(counted, 77);
	assert_false(placement_claim(placement, 3, 1, &counted));
	placement_free(placement);
}

/* ---- where it should be ---- */

/* A user with half of all requests, 8 partitions, 2 threads: the others leave that thread until both have as much. */
static void a_hot_partition_ends_with_less_beside_it(void **state)
{
	(void)state;
	static const uint64_t works[] = {100, 100, 100, 100, 900, 100, 100, 100};
	struct placement_load loads[8];
	spread(loads, works, 8, 2);
	assert_int_equal(improve(loads, 8, 2), 3);
	struct sums sums = sums_of(loads, 8, 2);
	assert_int_equal(loads[4].thread, 0);
	assert_int_equal(sums.of[0], 900);
	assert_int_equal(sums.of[1], 700);
	assert_int_equal(improve(loads, 8, 2), 0);
}

static void what_is_even_enough_stays(void **state)
{
	(void)state;
	static const uint64_t even[] = {100, 100, 100, 100}, nearly[] = {115, 100, 100, 100, 100, 100, 100, 100};
	struct placement_load loads[8];
	spread(loads, even, 4, 2);
	assert_int_equal(improve(loads, 4, 2), 0);
	spread(loads, nearly, 8, 2);
	assert_int_equal(improve(loads, 8, 2), 0);
	assert_int_equal(improve(loads, 0, 2), 0);
	spread(loads, nearly, 8, 1);
	assert_int_equal(improve(loads, 8, 1), 0);
}

static void one_large_partition_is_not_moved_about(void **state)
{
	(void)state;
	static const uint64_t works[] = {1000, 10, 0, 10};
	struct placement_load loads[4];
	spread(loads, works, 4, 2);
	assert_int_equal(improve(loads, 4, 2), 0);
}

/* Thread 0 has one partition, that nothing makes smaller; thread 1 has four, and thread 2 nothing. */
static void who_can_be_relieved_is_beside_one_who_cannot(void **state)
{
	(void)state;
	struct placement_load loads[] = {{1000, 0}, {200, 1}, {200, 1}, {200, 1}, {200, 1}};
	assert_int_equal(improve(loads, 5, 3), 2);
	struct sums sums = sums_of(loads, 5, 3);
	assert_int_equal(sums.of[0], 1000);
	assert_int_equal(sums.of[1], 400);
	assert_int_equal(sums.of[2], 400);
}

static void who_has_room_gives_nothing(void **state)
{
	(void)state;
	static const uint64_t works[] = {100, 0, 100, 0};
	static const bool idle[] = {false, true}, busy[] = {true, false};
	struct placement_load loads[4];
	spread(loads, works, 4, 2);
	assert_int_equal(placement_improve(loads, 4, 2, idle), 0);
	assert_int_equal(placement_improve(loads, 4, 2, busy), 1);
}

/* What holds of any plan. */
static void check(const struct placement_load *before, const struct placement_load *after, uint32_t count,
                  uint32_t threads, uint32_t moves)
{
	struct sums first = sums_of(before, count, threads), last = sums_of(after, count, threads);
	uint32_t moved = 0;
	uint64_t relieved = 0, most = 0;
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(after[i].work, before[i].work);
		moved += after[i].thread != before[i].thread;
	}
	assert_int_equal(moved, moves);
	assert_true(last.most <= first.most);
	for (uint32_t thread = 0; thread < threads; thread++) {
		if (last.of[thread] < first.of[thread] && first.of[thread] > relieved)
			relieved = first.of[thread];
		if (last.of[thread] != first.of[thread] && last.of[thread] > most)
			most = last.of[thread];
	}
	if (moves > 0)
		assert_true(most <= relieved - relieved / 6);
}

static void what_any_plan_keeps(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint32_t plans = 0;
	for (int i = 0; i < DRAWS; i++) {
		struct placement_load before[MOST] = {0}, after[MOST];
		uint32_t count = draw(&seed, MOST), threads = 1 + draw(&seed, 9);
		for (uint32_t j = 0; j < count; j++)
			before[j] = (struct placement_load){draw(&seed, draw(&seed, 8) == 0 ? 10000 : 100), draw(&seed, threads)};
		memcpy(after, before, sizeof after);
		uint32_t moves = improve(after, count, threads);
		check(before, after, count, threads, moves);
		plans += moves > 0;
	}
	assert_true(plans > DRAWS / 4 && plans < DRAWS);
}

/* No way to make the same loads even ends in moves to and fro: each plan leaves less to do for one that is busier. */
static void plans_come_to_an_end(void **state)
{
	(void)state;
	uint64_t seed = 2;
	for (int i = 0; i < DRAWS / 10; i++) {
		struct placement_load loads[MOST];
		uint32_t count = draw(&seed, MOST), threads = 1 + draw(&seed, 9), plans = 0;
		for (uint32_t j = 0; j < count; j++)
			loads[j] = (struct placement_load){draw(&seed, 1000), draw(&seed, threads)};
		while (improve(loads, count, threads) > 0)
			assert_true(++plans < 4);
	}
}

/* The least that the busiest of two threads can have, over all ways. */
static uint64_t best_of_two(const struct placement_load *loads, uint32_t count)
{
	uint64_t best = UINT64_MAX;
	for (uint32_t mask = 0; mask < 1u << count; mask++) {
		uint64_t sums[2] = {0};
		for (uint32_t i = 0; i < count; i++)
			sums[mask >> i & 1] += loads[i].work;
		uint64_t most = sums[0] > sums[1] ? sums[0] : sums[1];
		best = most < best ? most : best;
	}
	return best;
}

static void two_threads_come_near_the_best(void **state)
{
	(void)state;
	uint64_t seed = 3;
	for (int i = 0; i < DRAWS / 10; i++) {
		struct placement_load loads[SMALL];
		uint32_t hot = draw(&seed, SMALL);
		for (uint32_t j = 0; j < SMALL; j++)
			loads[j] = (struct placement_load){j == hot ? 100 + draw(&seed, 1000) : 50 + draw(&seed, 100), j % 2};
		uint64_t best = best_of_two(loads, SMALL);
		improve(loads, SMALL, 2);
		assert_true(sums_of(loads, SMALL, 2).most <=
		            best + best * 3 / 5); /* 4/3 where no one move helps, less a sixth */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_has_one_holder_at_a_time),
		cmocka_unit_test(a_hot_partition_ends_with_less_beside_it),
		cmocka_unit_test(what_is_even_enough_stays),
		cmocka_unit_test(one_large_partition_is_not_moved_about),
		cmocka_unit_test(who_can_be_relieved_is_beside_one_who_cannot),
		cmocka_unit_test(who_has_room_gives_nothing),
		cmocka_unit_test(what_any_plan_keeps),
		cmocka_unit_test(plans_come_to_an_end),
		cmocka_unit_test(two_threads_come_near_the_best),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
