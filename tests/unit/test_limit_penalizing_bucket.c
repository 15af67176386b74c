/* SPDX-License-Identifier: Apache-2.0 */
/* token_bucket with "penalize": whole tokens, half away from zero, -1 at the least, charged by every call. */
#include "limit_case.h"

/* A token each 100 ms. */
#define ONE "{\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"100ms\", \"burst\": 2, \"penalize\": true}"

static void a_first_call_leaves_the_burst_less_its_cost(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 1);
	expect_shown(one, "{\"tokens\":1,\"time\":1000}");
	case_close(one);
	one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 2);
	expect_shown(one, "{\"tokens\":0,\"time\":1000}");
	case_close(one);
	one = case_open(ONE, false);
	EXPECT_OVER(one, 1000, 3);
	expect_shown(one, "{\"tokens\":-1,\"time\":1000}");
	case_close(one);
}

/* From 0 tokens: -1 and 49 hundredths is -0.51, -1 rounded; -0.5 is half, and away from zero -1 too; -0.49 is 0. */
static void half_a_token_is_rounded_away_from_zero(void **state)
{
	(void)state;
	static const struct {
		int64_t gone, tokens;
	} cases[] = {{49, -1}, {50, -1}, {51, 0}, {149, 0}, {150, 1}, {151, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char json[64];
		struct limit_case *one = case_open(ONE, false);
		EXPECT_PASS(one, 1000, 2);
		assert_int_equal(case_event(one, 1000 + cases[i].gone, 1), cases[i].tokens < 0 ? WEIR_LIMIT_OVER : 0);
		snprintf(json, sizeof json, "{\"tokens\":%lld,\"time\":%lld}", (long long)cases[i].tokens,
		         (long long)(1000 + cases[i].gone));
		expect_shown(one, json);
		case_close(one);
	}
}

static void blocked_calls_keep_it_at_minus_one(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 2);
	for (int64_t t = 1010; t <= 1500; t += 10)
		EXPECT_OVER(one, t, 1); /* who does not wait stays out */
	EXPECT_OVER(one, 1500, 1000000);
	expect_shown(one, "{\"tokens\":-1,\"time\":1500}");
	EXPECT_RESET(one, 1500, 1651);
	EXPECT_OVER(one, 1510, 1);
	EXPECT_RESET(one, 1510, 1661);
	EXPECT_PASS(one, 1661, 1);
	case_close(one);
}

static void a_reset_is_the_first_millisecond_that_rounds_to_a_token(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_RESET(one, 1000, 1051);
	assert_int_equal(case_judge(one, 1050, 1), WEIR_LIMIT_OVER);
	assert_int_equal(case_judge(one, 1051, 1), 0);
	case_close(one);
}

static void it_never_holds_more_than_its_burst(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 90000, 0);
	expect_shown(one, "{\"tokens\":2,\"time\":90000}");
	EXPECT_HELD(one, 90000, 0);
	case_close(one);
}

static void a_call_out_of_order_brings_nothing_back(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 100, 1);
	expect_shown(one, "{\"tokens\":0,\"time\":1000}");
	EXPECT_OVER(one, 100, 1);
	case_close(one);
}

static void a_call_without_cost_is_charged_to_the_clock(void **state)
{
	(void)state;
	struct limit_case *one = case_open(ONE, false);
	EXPECT_PASS(one, 1000, 2);
	EXPECT_PASS(one, 1040, 0);
	expect_shown(one, "{\"tokens\":0,\"time\":1040}"); /* the 40 ms are lost by rounding */
	EXPECT_OVER(one, 1080, 1);
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words(ONE, "2 at once, with 1 more each 100ms (blocked requests delay the refill)",
	             "1 in 100ms, bursts of 2",
	             "{\"algorithm\":\"token_bucket\",\"burst\":2,\"penalize\":true,\"rate\":1,\"window\":\"100ms\"}",
	             "{\"algorithm\":\"token_bucket\",\"rate\":1,\"window\":100,\"burst\":2,\"penalize\":true}");
	expect_refused("{\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"1s\", \"penalize\": 1}",
	               "limit:1: penalize: must be true or false, not 1");
	expect_scaled(ONE, 3000,
	              "{\"algorithm\":\"token_bucket\",\"rate\":3,\"window\":100,\"burst\":6,\"penalize\":true}");
	expect_kept_for(ONE, 200);
	expect_most(ONE, "{\"algorithm\": \"uniform\", \"interval\": \"1s\"}", INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_call_leaves_the_burst_less_its_cost),
		cmocka_unit_test(half_a_token_is_rounded_away_from_zero),
		cmocka_unit_test(blocked_calls_keep_it_at_minus_one),
		cmocka_unit_test(a_reset_is_the_first_millisecond_that_rounds_to_a_token),
		cmocka_unit_test(it_never_holds_more_than_its_burst),
		cmocka_unit_test(a_call_out_of_order_brings_nothing_back),
		cmocka_unit_test(a_call_without_cost_is_charged_to_the_clock),
		cmocka_unit_test(it_says_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
