/* SPDX-License-Identifier: Apache-2.0 */
/* queue: when an entry leaves by itself, what takes one out, and what stands first. */
#include "limit_case.h"

#define TWO "{\"algorithm\": \"queue\", \"length\": 2, \"hold\": \"100ms\"}"

static void an_entry_leaves_exactly_when_its_hold_is_over(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1050, 1);
	EXPECT_OVER(one, 1099, 1);
	EXPECT_RESET(one, 1099, 1100);
	EXPECT_PASS(one, 1100, 1);
	expect_shown(one, "{\"times\":[[1050,1],[1100,1]]}");
	EXPECT_RESET(one, 1100, 1150);
	case_close(one);
}

static void what_is_done_takes_the_oldest_out(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	const struct weir_limit_ops *ops = one->shape.ops;
	assert_false(ops->done(&one->view));
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1050, 1);
	assert_true(ops->done(&one->view));
	expect_shown(one, "{\"times\":[[1050,1]]}");
	EXPECT_HELD(one, 1050, 1);
	EXPECT_PASS(one, 1060, 1);
	EXPECT_OVER(one, 1060, 1);
	assert_true(ops->done(&one->view));
	assert_true(ops->done(&one->view));
	assert_false(ops->done(&one->view));
	assert_true(ops->is_empty(&one->view));
	case_close(one);
}

static void an_event_out_of_order_stands_where_its_time_says(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 920, 1);
	expect_shown(one, "{\"times\":[[920,1],[1000,1]]}");
	EXPECT_OVER(one, 1019, 1);
	EXPECT_RESET(one, 1019, 1020);
	EXPECT_PASS(one, 1020, 1);
	case_close(one);
}

static void a_cost_takes_as_many_places(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\": \"queue\", \"length\": 100, \"hold\": \"100ms\"}", false);
	EXPECT_PASS(one, 1000, 99);
	assert_true(one->view.apart);
	EXPECT_OVER(one, 1001, 2);
	EXPECT_PASS(one, 1001, 1);
	EXPECT_OVER(one, 1001, 101);                   /* longer than the queue */
	assert_true(one->shape.ops->done(&one->view)); /* with all that it cost */
	expect_shown(one, "{\"times\":[[1001,1]]}");
	case_close(one);
}

static void entries_of_one_time_are_done_one_by_one(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\": \"queue\", \"length\": 9, \"hold\": \"100ms\"}", false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1000, 1);
	assert_false(one->view.apart); /* costs of 1 take places of their own */
	EXPECT_PASS(one, 1000, 3);
	EXPECT_PASS(one, 999, 2);
	EXPECT_PASS(one, 1000, 2);
	expect_shown(one, "{\"times\":[[999,2],[1000,1],[1000,1],[1000,3],[1000,2]]}");
	EXPECT_OVER(one, 1000, 1);
	for (int left = 7; left > 0; left -= left == 7 || left == 6 ? 1 : left == 5 ? 3 : 2) {
		assert_true(one->shape.ops->done(&one->view));
		EXPECT_HELD(one, 1000, left);
	}
	assert_true(one->shape.ops->done(&one->view));
	assert_true(one->shape.ops->is_empty(&one->view));
	case_close(one);
}

/* Where refused events count, the queue may be longer than its length. What is done of that frees nothing. */
static void what_was_pushed_out_is_done_first(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, true);
	for (int i = 0; i < 5; i++)
		case_record(one, 1000 + 10 * i, 1, i >= 2);
	expect_shown(one, "{\"times\":[[1030,1],[1040,1]],\"more\":3}");
	for (int i = 0; i < 3; i++) {
		EXPECT_OVER(one, 1040, 1);
		assert_true(one->shape.ops->done(&one->view));
	}
	EXPECT_OVER(one, 1040, 1);
	assert_true(one->shape.ops->done(&one->view));
	EXPECT_PASS(one, 1040, 1);
	case_record(one, 1050, 2, true); /* takes both places */
	case_record(one, 1045, 1, true); /* older than all that it holds */
	expect_shown(one, "{\"times\":[[1050,2]],\"more\":3}");
	assert_int_equal(case_judge(one, 1150, 1), 0); /* what is older left before */
	assert_true(one->shape.ops->is_empty(&one->view));
	assert_false(one->shape.ops->done(&one->view));
	case_close(one);
}

/* A queue without entries is empty, whether its bucket was laid out anew since or not: what was pushed out is forgotten. */
static void what_was_pushed_out_goes_with_the_last_entry_that_is_given_back(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		struct limit_case *one = case_open(TWO, true);
		const struct weir_limit_ops *ops = one->shape.ops;
		for (int i = 0; i < 4; i++)
			case_record(one, 1000 + 10 * i, 1, i >= 2);
		expect_shown(one, "{\"times\":[[1020,1],[1030,1]],\"more\":2}");
		assert_true(ops->give_back(&one->view, 1030, 1, 1));
		expect_shown(one, "{\"times\":[[1020,1]],\"more\":2}");
		assert_true(ops->done(&one->view));
		expect_shown(one, "{\"times\":[[1020,1]],\"more\":1}");
		assert_true(ops->give_back(&one->view, 1020, 1, 1));
		assert_true(ops->is_empty(&one->view));
		assert_false(ops->done(&one->view));
		if (again)
			case_take_form(one, true, true);
		EXPECT_PASS(one, 1040, 1);
		expect_shown(one, "{\"times\":[[1040,1]]}");
		assert_true(ops->done(&one->view));
		assert_true(ops->is_empty(&one->view));
		case_close(one);
	}
}

/* An older weir wrote entries of one time as one, and places without costs: each place is one entry then. */
static void runs_of_an_older_weir_are_done_by_places(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\": \"queue\", \"length\": 9, \"hold\": \"100ms\"}", false);
	EXPECT_PASS(one, 1000, 1);
	EXPECT_PASS(one, 1000, 1);
	case_take_form(one, true, false);
	expect_shown(one, "{\"times\":[[1000,2]]}");
	assert_true(one->shape.ops->check(&one->view));
	assert_true(one->shape.ops->done(&one->view));
	expect_shown(one, "{\"times\":[[1000,1]]}");
	EXPECT_PASS(one, 1000, 1);
	assert_true(one->view.apart);
	expect_shown(one, "{\"times\":[[1000,1],[1000,1]]}");
	case_close(one);
}

static void counted_all_the_oldest_makes_place(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, true);
	case_record(one, 1000, 2, false);
	case_record(one, 1010, 1, true);
	expect_shown(one, "{\"times\":[[1000,1],[1010,1]]}"); /* of the first, a part */
	case_close(one);
}

static void it_says_what_it_is(void **state)
{
	(void)state;
	expect_words(TWO, "2 waiting, each for up to 100ms", "2 waiting",
	             "{\"algorithm\":\"queue\",\"hold\":\"100ms\",\"length\":2}",
	             "{\"algorithm\":\"queue\",\"length\":2,\"hold\":100}");
	expect_words("{\"algorithm\": \"queue\", \"length\": 3, \"hold\": \"90s\", \"done\": {\"path\": \"/out\"}}",
	             "3 waiting, each for up to 90s or until requests to /out", "3 waiting",
	             "{\"algorithm\":\"queue\",\"done\":{\"path\":[\"/out\"]},\"hold\":\"90s\",\"length\":3}",
	             "{\"algorithm\":\"queue\",\"length\":3,\"hold\":90000}");
	expect_shorthand("queue", 3, "30s", "{\"algorithm\":\"queue\",\"length\":3,\"hold\":\"30s\"}");
	expect_refused("{\"algorithm\": \"queue\", \"length\": 1, \"hold\": \"1s\", \"done\": {}}",
	               "limit:1: done: must name at least one field: it would match every record");
	expect_refused("{\"algorithm\": \"queue\", \"hold\": \"1s\"}",
	               "limit:1: length: is missing; how many may be in the queue, such as 5");
}

static void it_says_what_it_comes_to(void **state)
{
	(void)state;
	struct limit_case *one = case_open(TWO, false);
	assert_null(one->limit.algorithm->most_within); /* one after another, any number */
	case_close(one);
	expect_kept_for(TWO, 100);
	expect_scaled(TWO, 2500, "{\"algorithm\":\"queue\",\"length\":5,\"hold\":100}");
	expect_scaled(TWO, 1, "{\"algorithm\":\"queue\",\"length\":1,\"hold\":100}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_leaves_exactly_when_its_hold_is_over),
		cmocka_unit_test(what_is_done_takes_the_oldest_out),
		cmocka_unit_test(an_event_out_of_order_stands_where_its_time_says),
		cmocka_unit_test(a_cost_takes_as_many_places),
		cmocka_unit_test(entries_of_one_time_are_done_one_by_one),
		cmocka_unit_test(what_was_pushed_out_is_done_first),
		cmocka_unit_test(what_was_pushed_out_goes_with_the_last_entry_that_is_given_back),
		cmocka_unit_test(runs_of_an_older_weir_are_done_by_places),
		cmocka_unit_test(counted_all_the_oldest_makes_place),
		cmocka_unit_test(it_says_what_it_is),
		cmocka_unit_test(it_says_what_it_comes_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
