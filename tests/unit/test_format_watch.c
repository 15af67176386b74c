/* SPDX-License-Identifier: Apache-2.0 */
/* When a source's format counts as changed, and when it fits again. */
#include "collector/follow/format_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* All lines that are not malformed fit. */
static bool add(struct format_watch *watch, uint64_t lines, uint64_t malformed, int64_t now_ms)
{
	return format_watch_add(watch, lines, lines - malformed, malformed, now_ms);
}

static void most_of_the_last_lines_malformed_is_a_change(void **state)
{
	(void)state;
	struct format_watch watch = {.fitted = true};
	for (int i = 0; i < 9; i++)
		assert_false(add(&watch, 100, 100, 1000));
	assert_false(watch.changed);
	assert_true(add(&watch, 100, 100, 1000));
	assert_true(watch.changed);
	assert_int_equal(1000, watch.last_malformed);
	assert_true(add(&watch, 50000, 0, 1001)); /* a chunk with more lines than a window */
	assert_false(watch.changed);
}

static void some_foreign_lines_are_none_and_nothing_flaps(void **state)
{
	(void)state;
	struct format_watch watch = {0};
	for (int i = 0; i < 100; i++)
		(void)add(&watch, 500, 250, i);
	assert_false(watch.changed);
	(void)add(&watch, 1000, 501, 0);
	assert_true(watch.changed);
	int turns = 0;
	for (int i = 0; i < 1000; i++) { /* between a quarter and a half */
		(void)add(&watch, 1000, i % 2 == 0 ? 300 : 499, i);
		turns += !watch.changed;
	}
	assert_int_equal(0, turns);
	(void)add(&watch, 1000, 249, 0);
	assert_false(watch.changed);
}

static void a_source_with_few_lines_is_judged_by_the_minute(void **state)
{
	(void)state;
	struct format_watch watch = {.fitted = true};
	for (int64_t s = 0; s < 60; s += 5)
		assert_false(add(&watch, 1, 1, s * 1000));
	assert_true(add(&watch, 1, 1, 60000));
	assert_true(watch.changed);
	struct format_watch rare = {0};
	for (int64_t s = 0; s < 540; s += 60)
		assert_false(add(&rare, 1, 1, s * 1000)); /* nine lines */
	assert_true(add(&rare, 1, 1, 540000));
	assert_true(rare.changed);
}

static void a_format_that_never_fitted_is_told_at_once(void **state)
{
	(void)state;
	struct format_watch watch = {0};
	for (int64_t s = 0; s < 9; s++)
		assert_false(add(&watch, 1, 1, s));
	assert_true(add(&watch, 1, 1, 9));
	assert_true(watch.changed);
	assert_int_equal(10, watch.last_malformed);
	for (int64_t s = 0; s < 900; s++) /* once; then as any other */
		assert_false(add(&watch, 1, 1, s));
	struct format_watch mixed = {0};
	assert_false(add(&mixed, 30, 29, 0));
	struct format_watch gaps = {0}; /* empty lines and heads fit no format */
	assert_true(format_watch_add(&gaps, 25, 0, 10, 0));
}

/* What is old says nothing of the form that lines have now. */
static void a_window_does_not_last_for_a_night(void **state)
{
	(void)state;
	struct format_watch watch = {0};
	for (int64_t hour = 1; hour <= 11; hour++)
		assert_false(add(&watch, 1, hour > 5, hour * 3600000));
	assert_false(watch.changed);
	struct format_watch silent = {0};
	assert_false(add(&silent, 12, 5, 1000));
	assert_true(add(&silent, 3, 3, 30000000)); /* the twelve alone, of which most are well formed */
	assert_false(silent.changed);
	assert_int_equal(12, silent.last_lines);
	assert_true(add(&silent, 7, 7, 30060000));
	assert_true(silent.changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_of_the_last_lines_malformed_is_a_change),
		cmocka_unit_test(some_foreign_lines_are_none_and_nothing_flaps),
		cmocka_unit_test(a_source_with_few_lines_is_judged_by_the_minute),
		cmocka_unit_test(a_format_that_never_fitted_is_told_at_once),
		cmocka_unit_test(a_window_does_not_last_for_a_night),
	};
	return cmocka_run_group_tests_name("format watch", tests, NULL, NULL);
}
