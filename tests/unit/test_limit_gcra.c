/* SPDX-License-Identifier: Apache-2.0 */
/* gcra: its burst to the millisecond, before and at the reset; out of order; counted while it blocks. */
#include "limit_case.h"

/* A turn each 100 ms, and two ahead of time: three at once. The arrival time is in 1/10 ms. */
#define TEN "{\"algorithm\": \"gcra\", \"rate\": 10, \"window\": \"1s\", \"burst\": 2}"
/* A turn each 33 1/3 ms, none ahead. */
#define THIRD "{\"algorithm\": \"gcra\", \"rate\": 3, \"window\": \"100ms\", \"burst\": 0}"

static void exactly_the_burst_and_one_pass_at_once(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TEN, false);
	EXPECT_PASS(one, 5000, 1);
	EXPECT_PASS(one, 5000, 1);
	EXPECT_PASS(one, 5000, 1);
	EXPECT_OVER(one, 5000, 1);
	EXPECT_HELD(one, 5000, 3);
	expect_shown(one, "{\"tat\":53000}");
	case_close(one);
	one = case_open(TEN, false);
	EXPECT_PASS(one, 5000, 3);
	expect_shown(one, "{\"tat\":53000}");
	case_close(one);
}

static void one_millisecond_before_the_reset_it_blocks(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TEN, false);
	EXPECT_PASS(one, 5000, 3);
	EXPECT_RESET(one, 5000, 5100);
	EXPECT_OVER(one, 5099, 1);
	EXPECT_PASS(one, 5100, 1);
	EXPECT_RESET(one, 5100, 5200);
	case_close(one);
}

static void a_reset_is_rounded_up_to_the_millisecond(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THIRD, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_RESET(one, 1000, 1034);
	EXPECT_OVER(one, 1033, 1);
	EXPECT_PASS(one, 1034, 1);
	case_close(one);
}

static void a_cost_above_the_burst_and_one_never_passes(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TEN, false);
	EXPECT_OVER(one, 5000, 4);
	EXPECT_PASS(one, 5000, 3);
	EXPECT_OVER(one, 500000, 4);
	case_close(one);
}

/* It has no lateness: an event from before is judged by the arrival time that there is. */
static void an_event_out_of_order_is_never_late(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TEN, false);
	EXPECT_PASS(one, 5000, 1);
	EXPECT_PASS(one, 4900, 1); /* exactly the burst ahead of its own time */
	EXPECT_OVER(one, 4999, 1); /* the next turn is at 5200 - 200 */
	EXPECT_PASS(one, 5000, 1);
	expect_shown(one, "{\"tat\":53000}");
	case_close(one);
}

static void counted_all_while_it_blocks_it_reaches_the_burst_and_is_never_lowered(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TEN, true);
	case_record(one, 5000, 3, false);
	assert_int_equal(case_judge(one, 5050, 1), WEIR_LIMIT_OVER);
	case_record(one, 5050, 1, true);
	expect_shown(one, "{\"tat\":53500}"); /* 5050 and three turns, not four */
	EXPECT_RESET(one, 5050, 5150);
	EXPECT_HELD(one, 5050, 3);
	case_record(one, 4000, 1000, true);
	expect_shown(one, "{\"tat\":53500}");
	case_close(one);
}

static void an_arrival_time_may_take_more_than_64_bits(void **state)
{
	(void)state;
	struct limit_case *one =
		case_open("{\"algorithm\": \"gcra\", \"rate\": 1000000000, \"window\": \"1s\", \"burst\": 5}", false);
	EXPECT_PASS(one, INT64_C(253402300799999), 1);
	expect_shown(one, "{\"tat\":253402300799999000001000}");
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words(TEN, "10 each second evenly spaced, with 2 ahead of time", "10 in 1s, bursts of 2",
	             "{\"algorithm\":\"gcra\",\"burst\":2,\"rate\":10,\"window\":\"1s\"}",
	             "{\"algorithm\":\"gcra\",\"burst\":2,\"rate\":10,\"window\":1000}");
	expect_words(THIRD, "3 each 100ms evenly spaced, with 0 ahead of time", "3 in 100ms, bursts of 0",
	             "{\"algorithm\":\"gcra\",\"burst\":0,\"rate\":3,\"window\":\"100ms\"}",
	             "{\"algorithm\":\"gcra\",\"burst\":0,\"rate\":3,\"window\":100}");
	expect_shorthand("gcra", 5, "1s", "{\"algorithm\":\"gcra\",\"burst\":4,\"rate\":5,\"window\":\"1s\"}");
	expect_refused("{\"algorithm\": \"gcra\", \"rate\": 1, \"window\": \"1s\"}",
	               "limit:1: burst: is missing; how many events may come at once beyond the first, such as 5, or 0");
	expect_refused("{\"algorithm\": \"gcra\", \"rate\": 1, \"window\": \"4000000000ms\", \"burst\": 1000000000}",
	               "limit:1: burst times window, in ms, must be at most 4000000000000000000");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	expect_kept_for(TEN, 300);
	expect_kept_for(THIRD, 34);
	expect_scaled(TEN, 1500, "{\"algorithm\":\"gcra\",\"burst\":3,\"rate\":15,\"window\":1000}");
	expect_scaled(TEN, 1, "{\"algorithm\":\"gcra\",\"burst\":0,\"rate\":1,\"window\":1000}");
	expect_most(TEN, "{\"algorithm\": \"uniform\", \"interval\": \"1s\"}", 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_the_burst_and_one_pass_at_once),
		cmocka_unit_test(one_millisecond_before_the_reset_it_blocks),
		cmocka_unit_test(a_reset_is_rounded_up_to_the_millisecond),
		cmocka_unit_test(a_cost_above_the_burst_and_one_never_passes),
		cmocka_unit_test(an_event_out_of_order_is_never_late),
		cmocka_unit_test(counted_all_while_it_blocks_it_reaches_the_burst_and_is_never_lowered),
		cmocka_unit_test(an_arrival_time_may_take_more_than_64_bits),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
