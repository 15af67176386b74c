/* SPDX-License-Identifier: Apache-2.0 */
/* A clock's lead: the least of what messages show, forgotten when none comes, and no delay is taken for it. */
#include "common/bus/kafka/clock_skew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { HOUR_MS = 3600000, W = WEIR_CLOCK_SKEW_WINDOW_MS };

static void few_messages_say_nothing(void **state)
{
	(void)state;
	struct weir_clock_skew skew = {0};
	int64_t ahead_ms = 7;
	assert_false(weir_clock_skew_read(&skew, 1000, &ahead_ms));
	weir_clock_skew_note(&skew, 1000, 2 * HOUR_MS);
	weir_clock_skew_note(&skew, 1001, 2 * HOUR_MS);
	assert_false(weir_clock_skew_read(&skew, 1002, &ahead_ms));
	weir_clock_skew_note(&skew, 1002, 2 * HOUR_MS + 5);
	assert_true(weir_clock_skew_read(&skew, 1002, &ahead_ms));
	assert_int_equal(ahead_ms, 2 * HOUR_MS);
}

static void late_messages_do_not_count_while_one_is_in_time(void **state)
{
	(void)state;
	struct weir_clock_skew skew = {0};
	int64_t ahead_ms;
	for (int i = 0; i < 1000; i++)
		weir_clock_skew_note(&skew, 5 + i, i == 500 ? 3 : 60000);
	assert_true(weir_clock_skew_read(&skew, 1005, &ahead_ms));
	assert_int_equal(ahead_ms, 3);
	for (int i = 0; i < 10; i++) /* the next window is all late: the one before it still says what is true */
		weir_clock_skew_note(&skew, 5 + W + i, 60000);
	assert_true(weir_clock_skew_read(&skew, 5 + W + 10, &ahead_ms));
	assert_int_equal(ahead_ms, 3);
}

static void a_clock_that_is_behind_shows(void **state)
{
	(void)state;
	struct weir_clock_skew skew = {0};
	int64_t ahead_ms;
	for (int i = 0; i < 3; i++)
		weir_clock_skew_note(&skew, 5, -HOUR_MS + i);
	assert_true(weir_clock_skew_read(&skew, 5, &ahead_ms));
	assert_int_equal(ahead_ms, -HOUR_MS);
}

static void it_is_unknown_again_when_nothing_comes(void **state)
{
	(void)state;
	struct weir_clock_skew skew = {0};
	int64_t ahead_ms;
	for (int i = 0; i < 3; i++)
		weir_clock_skew_note(&skew, 100, 40);
	assert_true(weir_clock_skew_read(&skew, 100 + W, &ahead_ms));
	assert_false(weir_clock_skew_read(&skew, 100 + 3 * W, &ahead_ms));
	for (int i = 0; i < 3; i++) /* a clock that was set meanwhile is the new one at once */
		weir_clock_skew_note(&skew, 100 + 3 * W, HOUR_MS);
	assert_true(weir_clock_skew_read(&skew, 100 + 3 * W, &ahead_ms));
	assert_int_equal(ahead_ms, HOUR_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_messages_say_nothing),
		cmocka_unit_test(late_messages_do_not_count_while_one_is_in_time),
		cmocka_unit_test(a_clock_that_is_behind_shows),
		cmocka_unit_test(it_is_unknown_again_when_nothing_comes),
	};
	return cmocka_run_group_tests_name("clock_skew", tests, NULL, NULL);
}
