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

#define LATE(rate, window, lateness)                                                                                   \
	"{\"algorithm\": \"sliding_window\", \"rate\": " #rate ", \"window\": \"" #window "\", \"lateness\": \"" #lateness \
	"\"}"
#define LATE_TWO LATE(2, 100ms, 300ms)

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

/* ---- lateness ---- */

static void with_lateness_a_late_event_is_judged_by_its_own_spans(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE_TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1300, 1);
	EXPECT_PASS(one, 1310, 1); /* two of its window: nothing fits beside them */
	EXPECT_PASS(one, 1200, 1); /* 110 before the newest: no span of 100 holds it and both */
	EXPECT_OVER(one, 1211, 1); /* 1211 to 1310 are 100 */
	EXPECT_OVER(one, 1290, 1);
	EXPECT_PASS(one, 1210, 1); /* 1210 to 1310 are 101; 1200, 1210 and 1299 would be three */
	EXPECT_OVER(one, 1205, 1);
	EXPECT_OVER(one, 1299, 1);
	EXPECT_PASS(one, 1099, 1);
	expect_shown(one, "{\"times\":[[1000,1],[1099,1],[1200,1],[1210,1],[1300,1],[1310,1]]}");
	case_close(one);
}

static void a_span_that_holds_an_event_begins_within_its_window_and_ends_with_it_or_later(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE_TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1001, 1);
	EXPECT_PASS(one, 1200, 1);
	EXPECT_OVER(one, 902, 1); /* 902 to 1001 */
	EXPECT_PASS(one, 901, 1); /* 901 to 1000 holds but one more */
	EXPECT_OVER(one, 1099, 1);
	EXPECT_PASS(one, 1100, 1); /* 1001 to 1100 */
	EXPECT_OVER(one, 1100, 1);
	case_close(one);
}

static void an_event_exactly_as_late_as_the_lateness_is_judged_by_the_rule_for_others(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE(1, 100ms, 40ms), false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_OVER(one, 960, 1); /* above newest - W: all that is newer counts */
	EXPECT_OVER(one, 901, 1);
	EXPECT_LATE(one, 900, 1);
	case_close(one);
	one = case_open(LATE(1, 100ms, 300ms), false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 701, 1);
	EXPECT_LATE(one, 700, 1);
	EXPECT_LATE(one, 700, 2);
	EXPECT_PASS(one, 900, 1);
	EXPECT_OVER(one, 801, 1);
	EXPECT_OVER(one, 800, 1); /* 701 to 800 */
	case_close(one);
}

static void within_the_lateness_newer_events_beyond_its_spans_do_not_count(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE(2, 100ms, 60ms), false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1090, 1);
	EXPECT_PASS(one, 1110, 1);
	EXPECT_OVER(one, 1050, 1); /* 60 late: 1090 and 1110 are newer than 950 */
	EXPECT_OVER(one, 1051, 1); /* 59 late: 1051 to 1110 holds both */
	case_close(one);
	one = case_open(LATE(3, 100ms, 90ms), false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1050, 1);
	EXPECT_PASS(one, 1105, 1);
	EXPECT_PASS(one, 1140, 1);
	EXPECT_OVER(one, 1050, 1); /* 90 late: 1000, 1050, 1105 and 1140 are newer than 950 */
	EXPECT_OVER(one, 1051, 1); /* 1050 to 1149 */
	case_close(one);
}

static void times_behind_window_and_lateness_stay_among_the_newest_alone(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE(2, 100ms, 50ms), false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1001, 1);
	EXPECT_PASS(one, 1101, 1);
	expect_shown(one, "{\"times\":[[1000,1],[1001,1],[1101,1]]}");
	EXPECT_PASS(one, 1150, 1); /* 1000 is 150 old, and a third */
	expect_shown(one, "{\"times\":[[1001,1],[1101,1],[1150,1]]}");
	EXPECT_PASS(one, 1301, 1); /* 1101 is one of the newest two no more */
	expect_shown(one, "{\"times\":[[1150,1],[1301,1]]}");
	EXPECT_PASS(one, 1350, 1); /* 1150 is 200 old */
	expect_shown(one, "{\"times\":[[1301,1],[1350,1]]}");
	case_close(one);
}

static void the_reset_of_a_late_event_is_that_of_the_newest(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE_TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1010, 1);
	EXPECT_PASS(one, 1200, 1);
	EXPECT_OVER(one, 1050, 1);
	EXPECT_HELD(one, 1050, 2); /* never more than the rate */
	EXPECT_RESET(one, 1050, 1110);
	case_close(one);
}

static void a_cost_needs_as_many_places_in_each_span(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE(50, 100ms, 300ms), false);
	EXPECT_PASS(one, 1000, 40); /* taken as a run */
	EXPECT_PASS(one, 1200, 50);
	EXPECT_OVER(one, 1050, 11);
	EXPECT_PASS(one, 1050, 10);
	EXPECT_PASS(one, 1100, 40); /* 1050 to 1149 are full, 1101 to 1200 as well */
	EXPECT_OVER(one, 1100, 1);
	EXPECT_OVER(one, 1500, 51);
	assert_int_equal(case_judge(one, 1060, 0), 0);
	expect_shown(one, "{\"times\":[[1000,40],[1050,10],[1100,40],[1200,50]]}");
	case_close(one);
}

static void with_a_precision_a_time_counts_wherever_it_may_have_been(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"100ms\", "
	                                   "\"precision\": \"10ms\", \"lateness\": \"1s\"}",
	                                   false);
	EXPECT_PASS(one, 1001, 1); /* kept as 1010 */
	EXPECT_PASS(one, 1300, 1);
	EXPECT_OVER(one, 902, 1); /* 902 to 1001: kept as 1010 it may have been 1001 */
	EXPECT_PASS(one, 901, 1);
	EXPECT_OVER(one, 1109, 1);
	EXPECT_PASS(one, 1110, 1);
	case_close(one);
}

static void counted_all_what_lies_before_the_kept_times_is_over(void **state)
{
	(void)state;
	struct limit_case *one = case_open(LATE(1, 100ms, 200ms), true);
	for (int64_t t = 1000; t < 1006; t++)
		case_record(one, t, 1, t > 1000);
	expect_shown(one, "{\"times\":[[1002,1],[1003,1],[1004,1],[1005,1]]}"); /* 1 x (2 + 200 / 100) */
	assert_int_equal(case_judge(one, 850, 1), WEIR_LIMIT_OVER);
	case_record(one, 850, 1, true); /* older than all, which are as many as there may be */
	expect_shown(one, "{\"times\":[[1002,1],[1003,1],[1004,1],[1005,1]]}");
	assert_int_equal(case_judge(one, 805, 1), WEIR_LIMIT_LATE);
	assert_int_equal(case_judge(one, 1104, 1), WEIR_LIMIT_OVER);
	assert_int_equal(case_judge(one, 1105, 1), 0);
	case_close(one);
}

/* Events in order, of any cost: with a lateness each is judged as without. */
static void in_order_a_lateness_changes_nothing(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{TWO, LATE_TWO},
		{TWO, LATE(2, 100ms, 30ms)},
		{"{\"algorithm\": \"sliding_window\", \"rate\": 40, \"window\": \"1s\"}", LATE(40, 1s, 2500ms)},
		{COARSE, "{\"algorithm\": \"sliding_window\", \"rate\": 2, \"window\": \"100ms\", \"precision\": \"10ms\", "
	             "\"lateness\": \"1s\"}"},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		for (int counts_all = 0; counts_all < 2; counts_all++) {
			struct limit_case *with = case_open(pairs[i][1], counts_all), *without = case_open(pairs[i][0], counts_all);
			uint64_t random = 88172645463325252;
			for (int64_t t = 1000, n = 0; n < 3000; n++) {
				random ^= random << 13, random ^= random >> 7, random ^= random << 17;
				t += (int64_t)(random % 60);
				int64_t cost = random >> 40 & 7 ? 1 : (int64_t)(random >> 50 & 3);
				unsigned judgement = case_judge(without, t, cost);
				assert_int_equal(case_judge(with, t, cost), judgement);
				if (cost > 0 && (judgement == 0 || counts_all)) {
					case_record(with, t, cost, judgement != 0);
					case_record(without, t, cost, judgement != 0);
				}
				if (without->shape.ops->is_empty(&without->view))
					continue;
				EXPECT_RESET(with, t, without->shape.ops->reset(&without->view, t));
				EXPECT_HELD(with, t, without->shape.ops->held(&without->view, t));
			}
			case_close(with);
			case_close(without);
		}
	}
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
	expect_words(LATE_TWO, "2 in any 100ms (exact for events up to 300ms late)", "2 in 100ms",
	             "{\"algorithm\":\"sliding_window\",\"lateness\":\"300ms\",\"precision\":\"1ms\",\"rate\":2,"
	             "\"window\":\"100ms\"}",
	             "{\"algorithm\":\"sliding_window\",\"rate\":2,\"window\":100,\"lateness\":300}");
	expect_words("{\"algorithm\": \"sliding_window\", \"rate\": 2, \"window\": \"1m\", \"precision\": \"1s\", "
	             "\"lateness\": \"2m\"}",
	             "2 in any 1m (times rounded up to 1s, exact for events up to 2m late)", "2 in 1m",
	             "{\"algorithm\":\"sliding_window\",\"lateness\":\"2m\",\"precision\":\"1s\",\"rate\":2,"
	             "\"window\":\"1m\"}",
	             "{\"algorithm\":\"sliding_window\",\"rate\":2,\"window\":60000,\"precision\":1000,"
	             "\"lateness\":120000}");
	expect_words(LATE(2, 1m, 0s), "2 in any 1m", "2 in 1m",
	             "{\"algorithm\":\"sliding_window\",\"precision\":\"1ms\",\"rate\":2,\"window\":\"1m\"}",
	             "{\"algorithm\":\"sliding_window\",\"rate\":2,\"window\":60000}");
	expect_shorthand("sliding_window", 10, "60s", "{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"60s\"}");
	expect_refused(
		"{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\", \"precision\": \"1001ms\"}",
		"limit:1: precision: must be a time from \"1ms\" to \"1s\", a whole number of ms, s, m, h or d such as "
		"\"10s\", not \"1001ms\"");
	expect_refused("{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\", \"burst\": 2}",
	               "limit:1: burst: is not a setting of sliding_window, which has rate, window, precision, lateness");
	expect_refused(LATE(2, 1m, 25h),
	               "limit:1: lateness: must be a time from \"0s\" to \"1d\", a whole number of ms, s, m, "
	               "h or d such as \"10s\", not \"25h\"");
	expect_refused(
		LATE(100000, 1s, 1d),
		"limit:1: lateness: needs up to rate x (2 + lateness / window) = 8640200000 times a key, and may need "
		"1000000000: choose a shorter lateness, a smaller rate or a longer window");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	expect_kept_for(TWO, 100);
	expect_kept_for(COARSE, 110);
	expect_kept_for(LATE_TWO, 400);
	expect_scaled(LATE(1000000, 1s, 900s), 100000,
	              "{\"algorithm\":\"sliding_window\",\"rate\":1108647,\"window\":1000,\"lateness\":900000}");
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
		cmocka_unit_test(with_lateness_a_late_event_is_judged_by_its_own_spans),
		cmocka_unit_test(a_span_that_holds_an_event_begins_within_its_window_and_ends_with_it_or_later),
		cmocka_unit_test(an_event_exactly_as_late_as_the_lateness_is_judged_by_the_rule_for_others),
		cmocka_unit_test(within_the_lateness_newer_events_beyond_its_spans_do_not_count),
		cmocka_unit_test(times_behind_window_and_lateness_stay_among_the_newest_alone),
		cmocka_unit_test(the_reset_of_a_late_event_is_that_of_the_newest),
		cmocka_unit_test(a_cost_needs_as_many_places_in_each_span),
		cmocka_unit_test(with_a_precision_a_time_counts_wherever_it_may_have_been),
		cmocka_unit_test(counted_all_what_lies_before_the_kept_times_is_over),
		cmocka_unit_test(in_order_a_lateness_changes_nothing),
		cmocka_unit_test(counted_all_it_keeps_the_newest),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
		cmocka_unit_test(a_precision_of_a_sixtieth_makes_it_cheaper),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
