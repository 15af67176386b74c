/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that is far ahead deletes nothing until it has been so for hours, or is right again. */
#include "archiver/work/keep_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int64_t HOUR = 3600000, DAY = 24 * INT64_C(3600000), NOW = 20000 * 24 * INT64_C(3600000);

static void a_clock_that_goes_on_is_believed(void **state)
{
	(void)state;
	struct keep_clock clock = {0};
	assert_int_equal(NOW, keep_clock_now(&clock, NOW, 0, 5));
	assert_int_equal(NOW + HOUR, keep_clock_now(&clock, NOW + HOUR, NOW, 5 + HOUR));
	assert_int_equal(NOW + DAY, keep_clock_now(&clock, NOW + DAY, NOW, 5 + DAY));
	assert_int_equal(NOW - DAY, keep_clock_now(&clock, NOW - DAY, NOW, 6 + DAY)); /* it was set back */
}

static void one_that_is_far_ahead_is_believed_after_hours(void **state)
{
	(void)state;
	struct keep_clock clock = {0};
	int64_t far = NOW + 400 * DAY;
	assert_int_equal(NOW, keep_clock_now(&clock, far, NOW, 5));
	assert_int_equal(NOW, keep_clock_now(&clock, far + 5 * HOUR, NOW, 5 + 5 * HOUR));
	assert_int_equal(far + 6 * HOUR, keep_clock_now(&clock, far + 6 * HOUR, NOW, 5 + 6 * HOUR));
	/* a deletion that failed is tried again by the same time */
	assert_int_equal(far + 7 * HOUR, keep_clock_now(&clock, far + 7 * HOUR, NOW, 5 + 7 * HOUR));
	/* who was right again meanwhile waits anew */
	clock = (struct keep_clock){0};
	assert_int_equal(NOW, keep_clock_now(&clock, far, NOW, 5));
	assert_int_equal(NOW + HOUR, keep_clock_now(&clock, NOW + HOUR, NOW, 5 + HOUR));
	assert_int_equal(NOW, keep_clock_now(&clock, far + 6 * HOUR, NOW, 5 + 6 * HOUR));
}

static void one_that_others_contradict_is_not_believed(void **state)
{
	(void)state;
	struct keep_clock clock = {0};
	for (int64_t at = 0; at < 3 * DAY; at += HOUR) /* they delete by theirs */
		assert_int_equal(NOW + at, keep_clock_now(&clock, NOW + 30 * DAY + at, NOW + at, at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_goes_on_is_believed),
		cmocka_unit_test(one_that_is_far_ahead_is_believed_after_hours),
		cmocka_unit_test(one_that_others_contradict_is_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
