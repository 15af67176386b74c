/* SPDX-License-Identifier: Apache-2.0 */
/* uniform: one event in each interval, whatever it is scaled to. */
#include "limit_case.h"

#define EACH "{\"algorithm\": \"uniform\", \"interval\": \"250ms\"}"

static void the_next_passes_exactly_an_interval_later(void **state)
{
	(void)state;
	struct limit_case *one = case_open(EACH, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_OVER(one, 1249, 1);
	EXPECT_RESET(one, 1249, 1250);
	EXPECT_HELD(one, 1249, 1);
	EXPECT_PASS(one, 1250, 1);
	EXPECT_OVER(one, 1250, 1);
	expect_shown(one, "{\"times\":[[1250,1]]}");
	case_close(one);
}

static void a_cost_of_two_never_passes(void **state)
{
	(void)state;
	struct limit_case *one = case_open(EACH, false);
	EXPECT_OVER(one, 1000, 2);
	EXPECT_PASS(one, 1000, 1);
	case_close(one);
}

static void an_interval_older_than_the_newest_is_late(void **state)
{
	(void)state;
	struct limit_case *one = case_open(EACH, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_OVER(one, 751, 1);
	EXPECT_LATE(one, 750, 1);
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words(EACH, "1 in any 250ms", "one in 250ms", "{\"algorithm\":\"uniform\",\"interval\":\"250ms\"}",
	             "{\"algorithm\":\"uniform\",\"interval\":250}");
	expect_shorthand("uniform", 1, "500ms", "{\"algorithm\":\"uniform\",\"interval\":\"500ms\"}");
	expect_shorthand("uniform", 2, "1s", "uniform lets 1 pass in each interval: write 1/INTERVAL:uniform");
	expect_refused("{\"algorithm\": \"uniform\", \"interval\": \"1s\", \"rate\": 1}",
	               "limit:1: rate: is not a setting of uniform, which has interval");
}

static void its_interval_is_divided_and_rounded_up(void **state)
{
	(void)state;
	expect_scaled(EACH, 2000, "{\"algorithm\":\"uniform\",\"interval\":125}");
	expect_scaled(EACH, 3000, "{\"algorithm\":\"uniform\",\"interval\":84}");
	expect_scaled("{\"algorithm\": \"uniform\", \"interval\": \"366d\"}", 1,
	              "{\"algorithm\":\"uniform\",\"interval\":31622400000}");
	expect_scaled("{\"algorithm\": \"uniform\", \"interval\": \"1ms\"}", 100000,
	              "{\"algorithm\":\"uniform\",\"interval\":1}");
	expect_kept_for(EACH, 250);
	expect_most(EACH, "{\"algorithm\": \"uniform\", \"interval\": \"1s\"}", 4);
	expect_most(EACH, "{\"algorithm\": \"uniform\", \"interval\": \"1001ms\"}", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_passes_exactly_an_interval_later), cmocka_unit_test(a_cost_of_two_never_passes),
		cmocka_unit_test(an_interval_older_than_the_newest_is_late), cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(its_interval_is_divided_and_rounded_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
