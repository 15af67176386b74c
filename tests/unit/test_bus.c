/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of bus share, with a bus that has a problem when it is told to. */
#include "common/bus/bus.h"
#include "common/log/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static bool has_problem;
static int64_t now_ms = 1000;

static bool problem(struct weir_bus *bus, char *text, size_t bytes)
{
	(void)bus;
	if (has_problem)
		snprintf(text, bytes, "no broker answers");
	return has_problem;
}

static int64_t test_clock_ms(void)
{
	return now_ms;
}

/* So many seconds, in each of which it fails. @return in how many of them that was worth a line */
static int fail_for(int seconds, struct weir_lasting *lasting)
{
	static const struct weir_bus_ops ops = {.problem = problem};
	static const struct weir_log log = {.clock_ms = test_clock_ms};
	struct weir_bus bus = {.ops = &ops};
	int lines = 0;
	for (int i = 0; i < seconds; i++, now_ms += 1000)
		lines += weir_bus_failure_lasts(&bus, lasting, &log);
	return lines;
}

static void a_failure_is_worth_a_line_where_it_lasts_and_the_bus_has_no_problem(void **state)
{
	(void)state;
	struct weir_lasting lasting = {0};
	assert_int_equal(fail_for(5, &lasting), 0);
	assert_int_equal(fail_for(3, &lasting), 3);
	has_problem = true; /* the bus tells of it itself */
	assert_int_equal(fail_for(60, &lasting), 0);
	has_problem = false;
	assert_int_equal(fail_for(4, &lasting), 0); /* what that left behind is given time */
	assert_int_equal(fail_for(3, &lasting), 3);
	weir_lasting_worked(&lasting);
	assert_int_equal(fail_for(5, &lasting), 0);
	assert_int_equal(fail_for(1, &lasting), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_is_worth_a_line_where_it_lasts_and_the_bus_has_no_problem),
	};
	return cmocka_run_group_tests_name("bus", tests, NULL, NULL);
}
