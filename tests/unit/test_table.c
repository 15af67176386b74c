/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table against a list: what was added is found under its tag, and only
 * that, whatever is added, moved and removed; and its corners by name.
 */
#include "limiter/memory/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS_MAX = 40000, MANY_KEYS = 1000000, STEPS = 300000, LINE_KEYS = TABLE_LINE_SLOTS };

struct entry {
	uint32_t tag, ref;
};

enum kind { TIGHT, LOOSE, LOOSENED };

static void init_table(const enum kind *kind, struct table *table)
{
	if (*kind == LOOSE)
		table_init_loose(table);
	else
		table_init(table);
}

static uint32_t tag_in(uint32_t segment, uint32_t rest)
{
	return segment << TABLE_SEGMENT_SHIFT | rest;
}

/* How many references a tag has, and whether one of them is `ref`. */
static uint32_t count_of(const struct table *table, uint32_t tag, uint32_t ref, bool *there)
{
	uint32_t count = 0;
	*there = false;
	for (uint32_t found; (found = table_find(table, tag, count)) != 0; count++)
		*there = *there || found == ref;
	return count;
}

static void assert_holds(const struct table *table, uint32_t tag, uint32_t ref)
{
	bool there;
	count_of(table, tag, ref, &there);
	assert_true(there);
}

/* A line that lies in two of the processor's is waited for twice. */
static void every_line_is_one_of_the_processors(void **state)
{
	struct table table;
	init_table(*state, &table);
	for (uint32_t i = 1; i <= KEYS_MAX; i++) {
		struct table_segment *segment = &table.segments[i % 7];
		table_add(&table, tag_in(i % 7, i * 2654435761u >> 10), i);
		assert_int_equal((uintptr_t)segment->lines % sizeof(struct table_line), 0);
	}
	table_loosen(&table);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal((uintptr_t)table.segments[i].lines % sizeof(struct table_line), 0);
	table_deinit(&table);
}

static void an_empty_table_finds_nothing_in_any_segment(void **state)
{
	struct table table;
	init_table(*state, &table);
	for (uint32_t segment = 0; segment < TABLE_SEGMENTS; segment++)
		assert_int_equal(table_find(&table, tag_in(segment, segment * 7), 0), 0);
	assert_int_equal(table.count, 0);
	table_deinit(&table);
}

static void tags_of_zero_and_of_all_ones_are_tags_like_others(void **state)
{
	struct table table;
	init_table(*state, &table);
	table_add(&table, 0, 11);
	assert_int_equal(table_find(&table, 0, 0), 11);
	assert_int_equal(table_find(&table, UINT32_MAX, 0), 0);
	table_add(&table, UINT32_MAX, 12);
	assert_int_equal(table_find(&table, UINT32_MAX, 0), 12);
	table_remove(&table, 0, 11);
	assert_int_equal(table_find(&table, 0, 0), 0);
	assert_int_equal(table_find(&table, UINT32_MAX, 0), 12);
	table_deinit(&table);
}

static void equal_tags_are_told_apart_by_how_many_to_skip(void **state)
{
	struct table table;
	init_table(*state, &table);
	const uint32_t tag = tag_in(5, 1234);
	for (uint32_t ref = 1; ref <= 3; ref++)
		table_add(&table, tag, ref);
	bool there;
	for (uint32_t ref = 1; ref <= 3; ref++)
		assert_int_equal(count_of(&table, tag, ref, &there), 3), assert_true(there);
	table_remove(&table, tag, 2);
	assert_int_equal(count_of(&table, tag, 2, &there), 2);
	assert_false(there);
	table_deinit(&table);
}

/* A key that a full home line sends to the line behind it is found, and pulled home when a slot becomes free. */
static void a_key_behind_its_full_home_line_is_found_and_comes_home(void **state)
{
	struct table table;
	init_table(*state, &table);
	for (uint32_t ref = 1; ref <= 4 * LINE_KEYS; ref++)
		table_add(&table, tag_in(9, ref << 17), ref); /* spread, so that there are several lines */
	const uint32_t rest = 3;                          /* all of these have one home */
	for (uint32_t ref = 101; ref <= 100 + LINE_KEYS + 2; ref++)
		table_add(&table, tag_in(9, rest), ref);
	for (uint32_t ref = 101; ref <= 100 + LINE_KEYS + 2; ref++)
		assert_holds(&table, tag_in(9, rest), ref);
	for (uint32_t ref = 101; ref <= 100 + LINE_KEYS; ref++)
		table_remove(&table, tag_in(9, rest), ref);
	assert_holds(&table, tag_in(9, rest), 100 + LINE_KEYS + 1);
	assert_holds(&table, tag_in(9, rest), 100 + LINE_KEYS + 2);
	const struct table_segment *segment = &table.segments[9];
	const struct table_line *home = &segment->lines[table_home(segment, tag_in(9, rest))];
	assert_int_not_equal(table_compare(home->tags, tag_in(9, rest)), 0);
	table_deinit(&table);
}

static void a_moved_bucket_is_found_under_its_new_reference_alone(void **state)
{
	struct table table;
	init_table(*state, &table);
	const uint32_t tag = tag_in(1023, 77);
	table_add(&table, tag, 5);
	table_replace(&table, tag, 5, 6);
	assert_int_equal(table_find(&table, tag, 0), 6);
	assert_int_equal(table_find(&table, tag, 1), 0);
	assert_int_equal(table.count, 1);
	table_deinit(&table);
}

static void a_table_that_was_emptied_gives_its_memory_back(void **state)
{
	struct table table;
	init_table(*state, &table);
	const uint64_t bytes = table.bytes;
	for (uint32_t ref = 1; ref <= MANY_KEYS; ref++)
		table_add(&table, ref * 2654435761u, ref);
	assert_true(table.bytes > bytes);
	const uint64_t full = table.bytes;
	for (uint32_t ref = 1; ref <= MANY_KEYS; ref++)
		table_remove(&table, ref * 2654435761u, ref);
	assert_int_equal(table.count, 0);
	assert_true(table.bytes < full);
	table_deinit(&table);
}

static void a_table_with_room_for_keys_takes_them_where_it_is(void **state)
{
	enum { KEYS = 1000 };
	struct table table;
	init_table(*state, &table);
	table_add(&table, tag_in(5, 7), 1);
	table_reserve(&table, 5, KEYS);
	const struct table_line *lines = table.segments[5].lines;
	for (uint32_t ref = 2; ref <= KEYS; ref++)
		table_add(&table, tag_in(5, ref * 2654435761u >> 10), ref);
	assert_ptr_equal(table.segments[5].lines, lines);
	table_reserve(&table, 5, KEYS / 2); /* it is there */
	assert_ptr_equal(table.segments[5].lines, lines);
	assert_holds(&table, tag_in(5, 7), 1);
	assert_int_equal(table.segments[5].count, KEYS);
	table_deinit(&table);
}

/* Few segments and few tags a segment, so that lines are full, tags are equal and tables grow and shrink. */
static uint32_t any_tag(uint32_t random)
{
	return tag_in(random % 3 * 511, (random >> 8) % 2500 << 9);
}

static void random_changes_leave_what_a_list_has(void **state)
{
	const char *given = getenv("WEIR_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20241121;
	print_message("WEIR_SEED=%llu\n", (unsigned long long)seed);
	struct table table;
	init_table(*state, &table);
	struct entry *list = calloc(KEYS_MAX, sizeof *list);
	uint32_t count = 0, next_ref = 1;
	for (uint32_t step = 0; step < STEPS; step++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint32_t random = (uint32_t)(seed >> 32), at = count > 0 ? random % count : 0;
		bool filling = step / 20000 % 2 == 0; /* it grows, and shrinks, by turns */
		if (step == STEPS / 2 && *(const enum kind *)*state == LOOSENED) {
			assert_true(table_unused_bytes(&table) > 0);
			table_loosen(&table);
			assert_int_equal(table_unused_bytes(&table), 0);
		}
		if (count < KEYS_MAX && (count == 0 || (random >> 20) % 8 < (filling ? 5 : 2))) {
			list[count] = (struct entry){.tag = any_tag(random), .ref = next_ref++};
			table_add(&table, list[count].tag, list[count].ref);
			count++;
		} else if ((random >> 18) % 512 == 0) {
			table_reserve(&table, random % 3 * 511, random >> 21);
		} else if ((random >> 23) % 4 == 0) {
			table_replace(&table, list[at].tag, list[at].ref, next_ref);
			list[at].ref = next_ref++;
		} else {
			table_remove(&table, list[at].tag, list[at].ref);
			list[at] = list[--count];
		}
		if (count > 0)
			assert_holds(&table, list[at % count].tag, list[at % count].ref);
	}
	assert_int_equal(table.count, count);
	uint32_t found = 0;
	for (uint32_t i = 0; i < count; i++)
		assert_holds(&table, list[i].tag, list[i].ref);
	for (uint32_t segment = 0; segment < TABLE_SEGMENTS; segment++)
		found += table.segments[segment].count;
	assert_int_equal(found, count);
	free(list);
	table_deinit(&table);
}

#define BOTH(test)                                                 \
	{#test, test, NULL, NULL, &kinds[TIGHT]},                      \
	{                                                              \
#test " in a loose table", test, NULL, NULL, &kinds[LOOSE] \
	}

int main(void)
{
	static enum kind kinds[] = {TIGHT, LOOSE, LOOSENED};
	const struct CMUnitTest tests[] = {
		BOTH(every_line_is_one_of_the_processors),
		BOTH(an_empty_table_finds_nothing_in_any_segment),
		BOTH(tags_of_zero_and_of_all_ones_are_tags_like_others),
		BOTH(equal_tags_are_told_apart_by_how_many_to_skip),
		BOTH(a_key_behind_its_full_home_line_is_found_and_comes_home),
		BOTH(a_moved_bucket_is_found_under_its_new_reference_alone),
		BOTH(a_table_that_was_emptied_gives_its_memory_back),
		BOTH(a_table_with_room_for_keys_takes_them_where_it_is),
		BOTH(random_changes_leave_what_a_list_has),
		{"random changes of a table that becomes loose", random_changes_leave_what_a_list_has, NULL, NULL,
	     &kinds[LOOSENED]},
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
