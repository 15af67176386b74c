/* SPDX-License-Identifier: Apache-2.0 */
/* token_bucket: when tokens are there, rounded up; what its level never leaves; a bucket that is full. */
#include "limit_case.h"

/* 3 tokens in 100 ms: one each 33 1/3 ms. A token is 100 units, and 3 units come each ms. */
#define THREE "{\"algorithm\": \"token_bucket\", \"rate\": 3, \"window\": \"100ms\", \"burst\": 2}"

static void a_burst_passes_at_once_and_no_more(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_OVER(one, 1000, 1);
	EXPECT_HELD(one, 1000, 2);
	expect_shown(one, "{\"level\":0,\"time\":1000}");
	case_close(one);
}

static void a_reset_is_rounded_up_to_the_millisecond(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, false);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_RESET(one, 1000, 1034);
	EXPECT_OVER(one, 1033, 1);
	EXPECT_PASS(one, 1034, 1);
	expect_shown(one, "{\"level\":2,\"time\":1034}");
	EXPECT_RESET(one, 1034, 1067);
	case_close(one);
}

static void a_full_bucket_gains_nothing(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_HELD(one, 1033, 1);
	EXPECT_HELD(one, 1034, 0);
	EXPECT_PASS(one, 9000, 2);
	EXPECT_OVER(one, 9000, 1);
	case_close(one);
}

static void a_level_is_never_below_zero(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, true);
	case_record(one, 1000, 2, false);
	case_record(one, 1000, 1000000, true);
	expect_shown(one, "{\"level\":0,\"time\":1000}");
	EXPECT_RESET(one, 1000, 1034);
	case_close(one);
}

static void an_event_out_of_order_brings_no_tokens_back(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 500, 1);
	EXPECT_OVER(one, 600, 1);
	expect_shown(one, "{\"level\":0,\"time\":1000}");
	case_close(one);
}

static void a_cost_above_the_burst_never_passes(void **state)
{
	(void)state;
	struct limit_case *one = case_open(THREE, false);
	EXPECT_OVER(one, 1000, 3);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_OVER(one, 100000, 3);
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words(THREE, "2 at once, with 3 more each 100ms", "3 in 100ms, bursts of 2",
	             "{\"algorithm\":\"token_bucket\",\"burst\":2,\"penalize\":false,\"rate\":3,\"window\":\"100ms\"}",
	             "{\"algorithm\":\"token_bucket\",\"rate\":3,\"window\":100,\"burst\":2}");
	/* Its burst is its rate where nobody says another. */
	expect_words("{\"algorithm\": \"token_bucket\", \"rate\": 5, \"window\": \"1m\"}",
	             "5 at once, with 5 more each minute", "5 in 1m, bursts of 5",
	             "{\"algorithm\":\"token_bucket\",\"burst\":5,\"penalize\":false,\"rate\":5,\"window\":\"1m\"}",
	             "{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":60000,\"burst\":5}");
	expect_shorthand("token_bucket", 5, "1s", "{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":\"1s\"}");
	expect_refused("{\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"1s\", \"burst\": 0}",
	               "limit:1: burst: must be a whole number from 1 to 1000000000, not 0");
	expect_refused("{\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"366d\", \"burst\": 1000000000}",
	               "limit:1: burst times window, in ms, must be at most 4000000000000000000");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	expect_kept_for(THREE, 67); /* 200 units, 3 each ms */
	expect_scaled(THREE, 1500, "{\"algorithm\":\"token_bucket\",\"rate\":4,\"window\":100,\"burst\":3}");
	expect_scaled(THREE, 1, "{\"algorithm\":\"token_bucket\",\"rate\":1,\"window\":100,\"burst\":1}");
	/* What a full bucket holds keeps its bound. */
	expect_scaled("{\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"366d\", \"burst\": 100000000}", 100000,
	              "{\"algorithm\":\"token_bucket\",\"rate\":100,\"window\":31622400000,\"burst\":126492612}");
	expect_most(THREE, "{\"algorithm\": \"uniform\", \"interval\": \"1s\"}", 34);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_passes_at_once_and_no_more),
		cmocka_unit_test(a_reset_is_rounded_up_to_the_millisecond),
		cmocka_unit_test(a_full_bucket_gains_nothing),
		cmocka_unit_test(a_level_is_never_below_zero),
		cmocka_unit_test(an_event_out_of_order_brings_no_tokens_back),
		cmocka_unit_test(a_cost_above_the_burst_never_passes),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
