/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What limits say to those who ask: what is left, and when an event of some cost would pass. Held against the obvious
 * limit, asked cost by cost and millisecond by millisecond. Events that were answered with pass exceed limits on the way.
 */
#include "limit_case.h"
#include "shard_scene.h"

enum { CASES = 400, EVENTS = 60, CLOSE_MS = 40000 };

static uint64_t seen_waits, seen_nevers;

static bool is_over_at(const struct model_limit *model, int64_t t, int64_t c)
{
	if (model_late(model, t))
		return false;
	if (model_kind(model->limit) != MODEL_QUEUE)
		return model_over(model, t, c);
	int64_t waiting = 0;
	for (size_t i = 0; i < model->count; i++)
		waiting += model->times[i] + model->limit->window_ms > t ? model->costs[i] : 0;
	return waiting + c > model->limit->rate;
}

static int64_t most_that_passes(const struct model_limit *model, int64_t t, int64_t capacity)
{
	int64_t c = 0;
	while (c < capacity && !is_over_at(model, t, c + 1))
		c++;
	return c;
}

static void compare_wait(struct limit_case *one, const struct model_limit *model, int64_t t, int64_t c, bool is_exact)
{
	const struct weir_limit_ops *ops = one->shape.ops;
	int64_t passes = ops->passes(&one->view, t, c), at = t;
	if (c > one->shape.capacity && !model_late(model, t)) {
		seen_nevers++;
		assert_true(passes == WEIR_LIMIT_NEVER);
		return;
	}
	while (is_exact && at < t + CLOSE_MS && is_over_at(model, at, c))
		at++;
	seen_waits += passes > t;
	if (is_exact && at < t + CLOSE_MS)
		assert_int_equal(passes, at);
	else
		assert_false(is_over_at(model, passes, c));
}

static void compare(struct limit_case *one, const struct model_limit *model, struct scene_random *random, int64_t t,
                    int64_t newest_ms)
{
	const struct weir_limit_ops *ops = one->shape.ops;
	int64_t capacity = one->shape.capacity, left = ops->left(&one->view, t);
	bool is_exact = model_lateness(&one->limit) == 0 || t >= newest_ms;
	assert_in_range(left, 0, capacity);
	if (is_exact)
		assert_int_equal(left, most_that_passes(model, t, capacity));
	else
		assert_true(left == 0 || !is_over_at(model, t, left));
	compare_wait(one, model, t, 1, is_exact);
	compare_wait(one, model, t, left, is_exact);
	compare_wait(one, model, t, capacity, is_exact);
	compare_wait(one, model, t, capacity + 1, is_exact);
	compare_wait(one, model, t, 1 + scene_below(random, capacity), is_exact);
}

static struct limit_case *open_random(struct scene_random *random, enum model_kind kind)
{
	struct limit_case *one = weir_alloc(1, sizeof *one);
	do
		one->limit = scene_limit_of(random, kind);
	while (one->limit.rate > 300 || one->limit.window_ms > 1000);
	one->shape = weir_limit_shape_of(&one->limit, scene_below(random, 3) == 0);
	case_lay_out(one, false, false);
	return one;
}

static void run_case(uint64_t seed)
{
	static const int64_t costs[] = {1, 1, 1, 2, 5, 40};
	struct scene_random random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
	struct limit_case *one = open_random(&random, (enum model_kind)(seed % MODEL_KINDS));
	struct model_limit model = {.limit = &one->limit};
	int64_t now_ms = 100000 + scene_below(&random, 1000), newest_ms = 0;
	for (uint32_t i = 0; i < EVENTS; i++) {
		now_ms += scene_below(&random, 3) == 0 ? scene_below(&random, one->limit.window_ms + 1) : 0;
		int64_t back = scene_below(&random, 5) == 0 ? scene_below(&random, 2 * one->limit.window_ms) : 0;
		int64_t t = now_ms - back, c = costs[scene_below(&random, 6)];
		model_leave(&model, t);
		unsigned judged = case_judge(one, t, c);
		compare(one, &model, &random, t, newest_ms);
		assert_int_equal((judged & WEIR_LIMIT_OVER) != 0, !model_late(&model, t) && model_over(&model, t, c));
		bool passes = !(judged & WEIR_LIMIT_OVER) || scene_below(&random, 4) == 0; /* it was answered so */
		if ((judged & WEIR_LIMIT_LATE) || (!passes && !one->shape.ops->charged_by_all))
			continue;
		bool past = one->shape.counts_past && scene_below(&random, 2);
		case_record(one, t, c, past);
		model_record(&model, t, c, past);
		newest_ms = t > newest_ms ? t : newest_ms;
		compare(one, &model, &random, t, newest_ms);
	}
	model_limit_free(&model);
	case_close(one);
}

static void what_is_left_and_when_more_passes_is_true(void **state)
{
	(void)state;
	const char *from = getenv("WEIR_SEED"), *count = getenv("WEIR_SCENES");
	uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
	uint64_t cases = count != NULL ? strtoull(count, NULL, 10) : CASES;
	for (uint64_t seed = first; seed < first + cases; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		run_case(seed);
	}
	assert_true(seen_waits > 0 && seen_nevers > 0);
}

/* 255 fit into a byte: one more does not make it none. */
static void a_fixed_window_stays_full_when_more_was_let_in(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\":\"fixed_window\",\"rate\":255,\"window\":\"1s\"}", false);
	EXPECT_PASS(one, 1000, 255);
	case_record(one, 1000, 1, false);
	EXPECT_HELD(one, 1000, 255);
	EXPECT_OVER(one, 1000, 1);
	case_record(one, 2000, 1000, false); /* a new window, all at once */
	EXPECT_HELD(one, 2000, 255);
	EXPECT_HELD(one, 1000, 255);
	case_close(one);
	one = case_open("{\"algorithm\":\"fixed_window\",\"rate\":255,\"window\":\"1s\"}", true);
	case_record(one, 1000, 300, true); /* "count": "all" */
	case_record(one, 1000, 1, false);  /* and then no more: what it holds is not lowered */
	EXPECT_HELD(one, 1000, 300);
	case_close(one);
}

static void others_stay_in_their_bounds_when_more_was_let_in(void **state)
{
	(void)state;
	struct limit_case *one = case_open("{\"algorithm\":\"gcra\",\"burst\":1,\"rate\":1,\"window\":\"1s\"}", false);
	EXPECT_PASS(one, 1000, 2);
	case_record(one, 1000, 5, false);
	EXPECT_HELD(one, 1000, 2);
	EXPECT_RESET(one, 1000, 2000);
	case_close(one);
	one = case_open("{\"algorithm\":\"token_bucket\",\"rate\":1,\"window\":\"1s\",\"burst\":2}", false);
	EXPECT_PASS(one, 1000, 2);
	case_record(one, 1000, 5, false);
	EXPECT_RESET(one, 1000, 2000);
	case_close(one);
	one = case_open("{\"algorithm\":\"queue\",\"length\":2,\"hold\":\"1s\"}", false);
	EXPECT_PASS(one, 1000, 2);
	case_record(one, 1001, 1, false);
	EXPECT_HELD(one, 1001, 2);
	EXPECT_RESET(one, 1001, 2000);
	case_close(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_and_when_more_passes_is_true),
		cmocka_unit_test(a_fixed_window_stays_full_when_more_was_let_in),
		cmocka_unit_test(others_stay_in_their_bounds_when_more_was_let_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
