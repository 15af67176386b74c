/* SPDX-License-Identifier: Apache-2.0 */
/* fixed_window: the edges of its windows, the window before, late events. */
#include "limit_case.h"

#define TWO "{\"algorithm\": \"fixed_window\", \"rate\": 2, \"window\": \"100ms\"}"
#define SHIFTED "{\"algorithm\": \"fixed_window\", \"rate\": 2, \"window\": \"100ms\", \"offset\": \"30ms\"}"

static void a_window_holds_its_last_millisecond_and_not_the_next(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1099, 1);
	EXPECT_OVER(one, 1099, 1);
	EXPECT_HELD(one, 1099, 2);
	EXPECT_RESET(one, 1099, 1100);
	EXPECT_PASS(one, 1100, 1);
	EXPECT_HELD(one, 1100, 1);
	expect_shown(one, "{\"bucket\":11,\"count\":1,\"previous\":2}");
	case_close(one);
}

static void an_offset_begins_windows_earlier(void **state)
{
	(void)state;
	struct limit_case *one = case_open(SHIFTED, false);
	EXPECT_PASS(one, 1069, 2);
	EXPECT_OVER(one, 1069, 1);
	EXPECT_RESET(one, 1069, 1070);
	EXPECT_PASS(one, 1070, 2);
	EXPECT_RESET(one, 1070, 1170);
	EXPECT_OVER(one, 1169, 1);
	expect_shown(one, "{\"bucket\":11,\"count\":2,\"previous\":2}");
	case_close(one);
}

static void the_window_before_has_its_own_count(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1150, 2);
	EXPECT_OVER(one, 1199, 1);
	EXPECT_PASS(one, 1099, 1);
	EXPECT_OVER(one, 1099, 1);
	EXPECT_HELD(one, 1099, 2);
	expect_shown(one, "{\"bucket\":11,\"count\":2,\"previous\":2}");
	case_close(one);
}

static void a_window_that_was_skipped_held_nothing(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_PASS(one, 1200, 1);
	expect_shown(one, "{\"bucket\":12,\"count\":1,\"previous\":0}");
	EXPECT_PASS(one, 1100, 2);
	expect_shown(one, "{\"bucket\":12,\"count\":1,\"previous\":2}");
	case_close(one);
}

static void what_is_older_than_the_window_before_is_late(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1200, 1);
	EXPECT_LATE(one, 1099, 1);
	EXPECT_LATE(one, 1099, 3);
	EXPECT_PASS(one, 1100, 1);
	case_close(one);
}

static void a_cost_above_the_rate_never_passes(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_OVER(one, 1000, 3);
	EXPECT_PASS(one, 1000, 2);
	case_close(one);
}

static void counted_all_it_counts_past_its_rate(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, true);
	for (int i = 0; i < 300; i++)
		case_record(one, 1000, 1, i >= 2);
	EXPECT_HELD(one, 1000, 300);
	case_record(one, 1000, INT64_C(1) << 40, true);
	EXPECT_HELD(one, 1000, (INT64_C(1) << 40) + 300);
	EXPECT_RESET(one, 1000, 1100);
	EXPECT_PASS(one, 1100, 1);
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words("{\"algorithm\": \"fixed_window\", \"rate\": 100, \"window\": \"60m\"}", "100 in each hour",
	             "100 in 1h", "{\"algorithm\":\"fixed_window\",\"offset\":\"0s\",\"rate\":100,\"window\":\"1h\"}",
	             "{\"algorithm\":\"fixed_window\",\"rate\":100,\"window\":3600000}");
	expect_words(SHIFTED, "2 in each 100ms (begun 30ms early)", "2 in 100ms",
	             "{\"algorithm\":\"fixed_window\",\"offset\":\"30ms\",\"rate\":2,\"window\":\"100ms\"}",
	             "{\"algorithm\":\"fixed_window\",\"rate\":2,\"window\":100,\"offset\":30}");
	expect_shorthand("fixed_window", 5, "1h", "{\"algorithm\":\"fixed_window\",\"rate\":5,\"window\":\"1h\"}");
	expect_refused(
		"{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"1s\", \"offset\": \"1s\"}",
		"limit:1: offset: must be a time from \"0s\" to \"999ms\", a whole number of ms, s, m, h or d such as "
		"\"10s\", not \"1s\"");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	expect_kept_for(SHIFTED, 100);
	expect_scaled(SHIFTED, 2000, "{\"algorithm\":\"fixed_window\",\"rate\":4,\"window\":100,\"offset\":30}");
	expect_scaled(TWO, 1, "{\"algorithm\":\"fixed_window\",\"rate\":1,\"window\":100}");
	/* A span may begin and end within windows; one of whole windows may not. */
	expect_most(TWO, "{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"200ms\"}", 6);
	expect_most(TWO, "{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"200ms\"}", 4);
	expect_most(SHIFTED, "{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"200ms\"}", 6);
	expect_most(SHIFTED, "{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"200ms\", \"offset\": \"130ms\"}",
	            4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_holds_its_last_millisecond_and_not_the_next),
		cmocka_unit_test(an_offset_begins_windows_earlier),
		cmocka_unit_test(the_window_before_has_its_own_count),
		cmocka_unit_test(a_window_that_was_skipped_held_nothing),
		cmocka_unit_test(what_is_older_than_the_window_before_is_late),
		cmocka_unit_test(a_cost_above_the_rate_never_passes),
		cmocka_unit_test(counted_all_it_counts_past_its_rate),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
