/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that is set, once and little by little, and a process that is stopped between two readings. */
#include "common/base/clock_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static int64_t wall_ms, monotonic_ms, stopped_ms;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t ms = clock == CLOCK_REALTIME ? wall_ms : monotonic_ms;
	*now = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	wall_ms += stopped_ms;
	monotonic_ms += stopped_ms;
	return 0;
}

static void pass(int64_t time_ms)
{
	wall_ms += time_ms;
	monotonic_ms += time_ms;
}

static int set_up(void **state)
{
	(void)state;
	wall_ms = 1700000000000;
	monotonic_ms = 5000;
	stopped_ms = 0;
	return 0;
}

static void test_steps(void **state)
{
	(void)state;
	struct weir_clock_step clock;
	weir_clock_step_begin(&clock);
	pass(86400000);
	assert_int_equal(0, weir_clock_step_take(&clock));
	wall_ms += 7200000;
	assert_int_equal(7200000, weir_clock_step_take(&clock));
	assert_int_equal(0, weir_clock_step_take(&clock));
	pass(1000);
	wall_ms -= 7200000;
	assert_int_equal(-7200000, weir_clock_step_take(&clock));
	assert_int_equal(0, weir_clock_step_take(&clock));
}

static void test_little_by_little(void **state)
{
	(void)state;
	struct weir_clock_step clock;
	weir_clock_step_begin(&clock);
	wall_ms += 1000; /* a leap second */
	assert_int_equal(0, weir_clock_step_take(&clock));
	wall_ms += 999;
	assert_int_equal(0, weir_clock_step_take(&clock));
	wall_ms += 1;
	assert_int_equal(2000, weir_clock_step_take(&clock));
}

static void test_a_process_that_is_stopped_between_readings(void **state)
{
	(void)state;
	struct weir_clock_step clock;
	weir_clock_step_begin(&clock);
	stopped_ms = 10000;
	assert_int_equal(0, weir_clock_step_take(&clock));
	wall_ms += 7200000;
	assert_int_equal(0, weir_clock_step_take(&clock));
	stopped_ms = 0;
	assert_int_equal(7200000, weir_clock_step_take(&clock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_steps, set_up),
		cmocka_unit_test_setup(test_little_by_little, set_up),
		cmocka_unit_test_setup(test_a_process_that_is_stopped_between_readings, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
