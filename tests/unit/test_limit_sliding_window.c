/* SPDX-License-Identifier: Apache-2.0 */
/* sliding_window: the boundaries of its window, its precision, events out of order and late. */
#include "limit_case.h"

#define TWO "{\"algorithm\": \"sliding_window\", \"rate\": 2, \"window\": \"100ms\"}"
#define COARSE "{\"algorithm\": \"sliding_window\", \"rate\": 2, \"window\": \"100ms\", \"precision\": \"10ms\"}"

static void an_entry_of_exactly_the_window_s_age_has_left(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1050, 1);
	EXPECT_OVER(one, 1099, 1);
	EXPECT_HELD(one, 1099, 2);
	EXPECT_RESET(one, 1099, 1100);
	EXPECT_HELD(one, 1100, 1);
	EXPECT_PASS(one, 1100, 1);
	EXPECT_OVER(one, 1149, 1);
	case_close(one);
}

static void the_reset_is_the_moment_at_which_one_more_passes(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_RESET(one, 1000, 1000);
	EXPECT_PASS(one, 1007, 1);
	EXPECT_RESET(one, 1007, 1100);
	assert_int_equal(case_judge(one, 1099, 1), WEIR_LIMIT_OVER);
	assert_int_equal(case_judge(one, 1100, 1), 0);
	case_close(one);
}

static void a_cost_needs_as_many_places(void **state)
{
	(void)state;
	struct limit_case *one =
		case_open("{\"algorithm\": \"sliding_window\", \"rate\": 5, \"window\": \"100ms\"}", false);
	EXPECT_PASS(one, 1000, 3);
	EXPECT_OVER(one, 1000, 3);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_OVER(one, 1099, 1);
	EXPECT_PASS(one, 1100, 5);
	EXPECT_OVER(one, 5000, 6); /* more than there may ever be */
	expect_shown(one, "{\"times\":[[1100,5]]}");
	case_close(one);
}

static void a_large_cost_is_one_run(void **state)
{
	(void)state;
	struct limit_case *one =
		case_open("{\"algorithm\": \"sliding_window\", \"rate\": 1000, \"window\": \"100ms\"}", false);
	EXPECT_PASS(one, 1000, 1);
	assert_false(one->view.runs);
	EXPECT_PASS(one, 1001, 900);
	assert_true(one->view.runs);
	EXPECT_OVER(one, 1001, 100);
	EXPECT_PASS(one, 1001, 99);
	expect_shown(one, "{\"times\":[[1000,1],[1001,999]]}");
	EXPECT_PASS(one, 1100, 1);
	EXPECT_RESET(one, 1100, 1101);
	case_close(one);
}

static void precision_rounds_recorded_times_up(void **state)
{
	(void)state;
	struct limit_case *one = case_open(COARSE, false);
	EXPECT_PASS(one, 1001, 1);
	EXPECT_PASS(one, 1010, 1);
	expect_shown(one, "{\"times\":[[1010,2]]}");
	EXPECT_OVER(one, 1109, 1);
	EXPECT_RESET(one, 1109, 1110);
	EXPECT_PASS(one, 1110, 1);
	case_close(one);
	one = case_open(COARSE, false);
	EXPECT_PASS(one, 1010, 1); /* a whole number of them stays */
	EXPECT_PASS(one, 1011, 1);
	expect_shown(one, "{\"times\":[[1010,1],[1020,1]]}");
	case_close(one);
}

static void an_event_out_of_order_counts_what_is_newer_than_it_too(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 950, 1);
	expect_shown(one, "{\"times\":[[950,1],[1000,1]]}");
	EXPECT_OVER(one, 960, 1);
	EXPECT_PASS(one, 1050, 1);
	expect_shown(one, "{\"times\":[[1000,1],[1050,1]]}");
	case_close(one);
}

static void an_event_a_window_older_than_the_newest_is_late(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_LATE(one, 900, 1);
	EXPECT_LATE(one, 900, 3);
	EXPECT_PASS(one, 901, 1);
	expect_shown(one, "{\"times\":[[901,1],[1000,1]]}");
	case_close(one);
}

static void counted_all_it_keeps_the_newest(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, true);
	case_record(one, 1000, 1, false);
	case_record(one, 1010, 1, false);
	assert_int_equal(case_judge(one, 1020, 1), WEIR_LIMIT_OVER);
	case_record(one, 1020, 1, true);
	expect_shown(one, "{\"times\":[[1010,1],[1020,1]]}");
	EXPECT_RESET(one, 1020, 1110);
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words("{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"60s\"}", "10 in any 1m", "10 in 1m",
	             "{\"algorithm\":\"sliding_window\",\"precision\":\"1ms\",\"rate\":10,\"window\":\"1m\"}",
	             "{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":60000}");
	expect_words(COARSE, "2 in any 100ms (times rounded up to 10ms)", "2 in 100ms",
	             "{\"algorithm\":\"sliding_window\",\"precision\":\"10ms\",\"rate\":2,\"window\":\"100ms\"}",
	             "{\"algorithm\":\"sliding_window\",\"rate\":2,\"window\":100,\"precision\":10}");
	expect_shorthand("sliding_window", 10, "60s", "{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"60s\"}");
	expect_refused(
		"{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\", \"precision\": \"1001ms\"}",
		"limit:1: precision: must be a time from \"1ms\" to \"1s\", a whole number of ms, s, m, h or d such as "
		"\"10s\", not \"1001ms\"");
	expect_refused("{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\", \"burst\": 2}",
	               "limit:1: burst: is not a setting of sliding_window, which has rate, window, precision");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	expect_kept_for(TWO, 100);
	expect_kept_for(COARSE, 110);
	expect_scaled(COARSE, 1500, "{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":100,\"precision\":10}");
	expect_scaled(TWO, 499, "{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":100}");
	expect_most(TWO, "{\"algorithm\": \"uniform\", \"interval\": \"100ms\"}", 2);
	expect_most(TWO, "{\"algorithm\": \"uniform\", \"interval\": \"101ms\"}", 4);
}

static void a_precision_of_a_sixtieth_makes_it_cheaper(void **state)
{
	(void)state;
	struct limit_case *one =
		case_open("{\"algorithm\": \"sliding_window\", \"rate\": 10000, \"window\": \"1h\"}", false);
	struct weir_text text = {0};
	assert_true(one->limit.algorithm->economize(&one->limit, &text));
	assert_string_equal(case_text(&text), "\"precision\": \"1m\"");
	assert_false(one->limit.algorithm->economize(&one->limit, &text));
	weir_text_deinit(&text);
	case_close(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_of_exactly_the_window_s_age_has_left),
		cmocka_unit_test(the_reset_is_the_moment_at_which_one_more_passes),
		cmocka_unit_test(a_cost_needs_as_many_places),
		cmocka_unit_test(a_large_cost_is_one_run),
		cmocka_unit_test(precision_rounds_recorded_times_up),
		cmocka_unit_test(an_event_out_of_order_counts_what_is_newer_than_it_too),
		cmocka_unit_test(an_event_a_window_older_than_the_newest_is_late),
		cmocka_unit_test(counted_all_it_keeps_the_newest),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
		cmocka_unit_test(a_precision_of_a_sixtieth_makes_it_cheaper),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
