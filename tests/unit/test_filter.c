/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter: what was added is always there; how often something else seems to
 * be is bounded, with the expected number of keys and with many more.
 */
#include "limiter/memory/filter.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { KEYS = 20000, OTHERS = 100000 };

/* Evenly spread, and never the same for two numbers (a bijection of 64 bits). */
static uint64_t hash_of(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

static void fill(struct filter *filter, uint32_t expected, uint32_t keys)
{
	filter_init(filter, expected);
	for (uint32_t i = 0; i < keys; i++)
		filter_add(filter, hash_of(i));
}

/* Of a thousand keys that were not added, how many seem to be there. */
static unsigned per_mille_of_others(const struct filter *filter)
{
	uint32_t seem = 0;
	for (uint64_t i = 0; i < OTHERS; i++)
		seem += filter_has(filter, hash_of(UINT64_C(1) << 40 | i));
	return seem / (OTHERS / 1000);
}

static void a_filter_that_nothing_was_added_to_has_nothing(void **state)
{
	(void)state;
	struct filter empty;
	filter_init(&empty, 0);
	assert_int_equal(per_mille_of_others(&empty), 0);
	assert_int_equal(filter_bytes(&empty), 0);
	filter_deinit(&empty);
	filter_init(&empty, 1000);
	assert_int_equal(per_mille_of_others(&empty), 0);
	assert_int_equal(empty.count, 0);
	filter_deinit(&empty);
}

static void every_key_that_was_added_is_there(void **state)
{
	(void)state;
	static const uint32_t expected[] = {0, 1, 47, 48, 49, KEYS / 10, KEYS, 2 * KEYS};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		struct filter filter;
		fill(&filter, expected[i], KEYS);
		assert_int_equal(filter.count, KEYS);
		for (uint32_t key = 0; key < KEYS; key++)
			assert_true(filter_has(&filter, hash_of(key)));
		filter_deinit(&filter);
	}
}

static void hashes_of_zero_and_of_all_ones_are_keys_like_others(void **state)
{
	(void)state;
	struct filter filter;
	filter_init(&filter, 10);
	filter_add(&filter, 0);
	assert_true(filter_has(&filter, 0));
	assert_false(filter_has(&filter, UINT64_MAX));
	filter_add(&filter, UINT64_MAX);
	assert_true(filter_has(&filter, UINT64_MAX));
	filter_deinit(&filter);
}

static void three_of_a_hundred_others_seem_to_be_there_at_most(void **state)
{
	(void)state;
	struct filter filter;
	fill(&filter, KEYS, KEYS);
	assert_in_range(per_mille_of_others(&filter), 1, 30);
	/* About ten bits a key. */
	assert_in_range(filter_bytes(&filter), KEYS, KEYS * 2);
	filter_deinit(&filter);
}

/* Each part is as large as all before it, so that a flood of keys gives few parts, whose mistakes add up. */
static void far_more_keys_than_expected_cost_mistakes_but_lose_nothing(void **state)
{
	(void)state;
	struct filter filter;
	fill(&filter, KEYS / 64, KEYS);
	for (uint32_t key = 0; key < KEYS; key++)
		assert_true(filter_has(&filter, hash_of(key)));
	assert_in_range(per_mille_of_others(&filter), 1, 150);
	assert_in_range(filter_bytes(&filter), KEYS, KEYS * 4);
	filter_deinit(&filter);
}

static void a_filter_that_was_taken_down_can_be_used_anew(void **state)
{
	(void)state;
	struct filter filter;
	fill(&filter, KEYS, KEYS);
	filter_deinit(&filter);
	assert_int_equal(filter_bytes(&filter), 0);
	assert_false(filter_has(&filter, hash_of(1)));
	filter_add(&filter, hash_of(1));
	assert_true(filter_has(&filter, hash_of(1)));
	assert_int_equal(filter.count, 1);
	filter_deinit(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_that_nothing_was_added_to_has_nothing),
		cmocka_unit_test(every_key_that_was_added_is_there),
		cmocka_unit_test(hashes_of_zero_and_of_all_ones_are_keys_like_others),
		cmocka_unit_test(three_of_a_hundred_others_seem_to_be_there_at_most),
		cmocka_unit_test(far_more_keys_than_expected_cost_mistakes_but_lose_nothing),
		cmocka_unit_test(a_filter_that_was_taken_down_can_be_used_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
