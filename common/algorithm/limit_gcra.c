/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gcra burst, N, W: the theoretical arrival time in 1/N ms, where an emission
 * interval is W of these.
 *
 * What is kept is how far it lies ahead of the newest recorded time: more than 0
 * once anything was recorded, and never more than (burst + 1) W.
 */
#include "common/algorithm/internal.h"

static int64_t reach(const struct weir_limit_view *view)
{
	return (view->shape->limit.burst + 1) * view->shape->limit.window_ms;
}

static inline int64_t ahead_get(const struct weir_limit_view *view)
{
	return (int64_t)weir_bytes_get(view->fixed, view->shape->value_bytes);
}

/* How far the arrival time lies ahead of t: below 0 once it has passed. */
static weir_wide ahead_of(const struct weir_limit_view *view, int64_t t)
{
	if (ahead_get(view) == 0)
		return 0;
	return ahead_get(view) + (weir_wide)view->shape->limit.rate * (view->newest_ms - t);
}

/* The same for max(arrival time, t). */
static weir_wide start_of(const struct weir_limit_view *view, int64_t t)
{
	weir_wide ahead = ahead_of(view, t);
	return ahead > 0 ? ahead : 0;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	return start_of(view, t) + (weir_wide)c * view->shape->limit.window_ms > reach(view) ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	if (t < view->newest_ms && ahead_get(view) == 0)
		return WEIR_LIMIT_NEEDS_OWN_TIME;
	weir_wide before = ahead_of(view, t);
	weir_wide ahead = start_of(view, t) + (weir_wide)c * view->shape->limit.window_ms;
	if (ahead > reach(view))
		ahead = reach(view);
	if (ahead < before)
		ahead = before; /* never lowered */
	/* From here it is seen from the newest time, which may be later than t. */
	if (t < view->newest_ms)
		ahead -= (weir_wide)view->shape->limit.rate * (view->newest_ms - t);
	weir_bytes_put(view->fixed, view->shape->value_bytes, (uint64_t)ahead);
	return WEIR_LIMIT_RECORDED;
}

static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	weir_wide past = start_of(view, t) - (weir_wide)limit->burst * limit->window_ms;
	return past > 0 ? t + (int64_t)weir_limit_ceil_divide(past, limit->rate) : t;
}

static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	weir_wide owed = weir_limit_ceil_divide(start_of(view, t), limit->window_ms);
	return (int64_t)(owed > limit->burst + 1 ? limit->burst + 1 : owed);
}

static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	weir_wide rest = reach(view) - start_of(view, t);
	return rest > 0 ? (int64_t)(rest / view->shape->limit.window_ms) : 0;
}

static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (c > limit->burst + 1)
		return WEIR_LIMIT_NEVER;
	weir_wide past = start_of(view, t) - (weir_wide)(limit->burst + 1 - c) * limit->window_ms;
	return past > 0 ? t + (int64_t)weir_limit_ceil_divide(past, limit->rate) : t;
}

/* So much sooner the next one may arrive: the same seen from any time. */
static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	(void)t;
	(void)whole;
	int64_t ahead = ahead_get(view);
	weir_wide back = (weir_wide)c * view->shape->limit.window_ms;
	weir_bytes_put(view->fixed, view->shape->value_bytes, back < ahead ? (uint64_t)(ahead - (int64_t)back) : 0);
	return ahead > 0;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	weir_bytes_put(to->fixed, to->shape->value_bytes, (uint64_t)ahead_get(from));
}

static bool is_empty(const struct weir_limit_view *view)
{
	return ahead_get(view) == 0;
}

static bool check(const struct weir_limit_view *view)
{
	return (uint64_t)ahead_get(view) <= (uint64_t)reach(view);
}

/* It may take more than 64 bits. */
static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	const weir_wide part = INT64_C(1000000000000000000);
	weir_wide arrival = (weir_wide)view->newest_ms * view->shape->limit.rate + ahead_get(view);
	weir_text_puts(text, "{\"tat\":");
	if (arrival >= part)
		weir_text_printf(text, "%lld%018lld", (long long)(arrival / part), (long long)(arrival % part));
	else
		weir_text_int(text, (int64_t)arrival);
	weir_text_puts(text, "}");
}

static const struct weir_limit_ops ops = {
	.judge = judge,
	.record = record,
	.reset = reset,
	.held = held,
	.left = left,
	.passes = passes,
	.give_back = give_back,
	.copy = copy,
	.is_empty = is_empty,
	.check = check,
	.show = show,
};

static void shape(struct weir_limit_shape *shape)
{
	shape->ops = &ops;
	shape->capacity = shape->limit.burst + 1;
	shape->value_bytes = weir_bytes_for(((uint64_t)shape->limit.burst + 1) * (uint64_t)shape->limit.window_ms);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes;
}

static enum weir_status check_turns(const struct weir_json *at, const struct weir_limit *limit,
                                    struct weir_error *error)
{
	return weir_limit_check_capacity(at, limit->burst + 1, limit->window_ms, error);
}

/* The N of one window may come at once. */
static const char *shorthand(struct weir_limit *limit)
{
	limit->burst = limit->rate - 1;
	return NULL;
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " each ");
	weir_limit_put_period(text, limit->window_ms);
	weir_text_printf(text, " evenly spaced, with %lld ahead of time", (long long)limit->burst);
}

static int64_t most_within(const struct weir_limit *limit, const struct weir_limit *window)
{
	return weir_limit_most_refilled(limit, window->window_ms);
}

static int64_t memory_ms(const struct weir_limit *limit)
{
	return weir_limit_divide_up((limit->burst + 1) * limit->window_ms, limit->rate);
}

static void scale(struct weir_limit *limit, uint32_t thousandths)
{
	limit->rate = weir_limit_multiply(limit->rate, thousandths, 1, WEIR_RATE_MAX);
	limit->burst = weir_limit_multiply(limit->burst, thousandths, 0, weir_limit_capacity(limit->window_ms) - 1);
}

const struct weir_algorithm weir_limit_gcra = {
	.name = "gcra",
	.members = {{.name = "burst",
                 .meaning = "how many turns early an event may be",
                 .at = offsetof(struct weir_limit, burst),
                 .needed = "how many events may come at once beyond the first, such as 5, or 0",
                 .most = WEIR_RATE_MAX},
                WEIR_RATE_MEMBER,
                WEIR_WINDOW_MEMBER},
	.check = check_turns,
	.shorthand = shorthand,
	.describe = describe,
	.brief = weir_limit_brief_burst,
	.most_within = most_within,
	.memory_ms = memory_ms,
	.scale = scale,
	.shape = shape,
	.shown = "{\"tat\":n}, the theoretical arrival time in 1/rate ms",
};
