/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_bucket N, W, burst: tokens of W units each; N units come back each ms.
 *
 * What is kept is the units that are missing from a full bucket as of the newest
 * recorded time; 0 says that nothing was recorded, as recording takes a token or
 * more.
 */
#include "common/algorithm/internal.h"

enum { PENALIZE }; /* own; 1: limit_penalizing_bucket.c keeps and judges it */

static int64_t full(const struct weir_limit_view *view)
{
	return view->shape->limit.burst * view->shape->limit.window_ms;
}

static inline int64_t missing_get(const struct weir_limit_view *view)
{
	return (int64_t)weir_bytes_get(view->fixed, view->shape->value_bytes);
}

/* Units missing at t: none come back for a t that lies before the newest. */
static int64_t missing_at(const struct weir_limit_view *view, int64_t t)
{
	int64_t missing = missing_get(view);
	if (missing == 0 || t <= view->newest_ms)
		return missing;
	weir_wide back = (weir_wide)view->shape->limit.rate * (t - view->newest_ms);
	return back < missing ? missing - (int64_t)back : 0;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	weir_wide asked = (weir_wide)c * view->shape->limit.window_ms;
	return full(view) - missing_at(view, t) < asked ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	if (t < view->newest_ms && missing_get(view) == 0)
		return WEIR_LIMIT_NEEDS_OWN_TIME;
	weir_wide missing = missing_at(view, t) + (weir_wide)c * view->shape->limit.window_ms;
	if (missing > full(view))
		missing = full(view);
	weir_bytes_put(view->fixed, view->shape->value_bytes, (uint64_t)missing);
	return WEIR_LIMIT_RECORDED;
}

static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	weir_wide wanting = (weir_wide)view->shape->limit.window_ms - (full(view) - missing_get(view));
	int64_t passes = view->newest_ms + (int64_t)weir_limit_ceil_divide(wanting, view->shape->limit.rate);
	return missing_get(view) != 0 && passes > t ? passes : t;
}

static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	return limit->burst - (full(view) - missing_at(view, t)) / limit->window_ms;
}

static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	return (full(view) - missing_at(view, t)) / view->shape->limit.window_ms;
}

static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (c > limit->burst)
		return WEIR_LIMIT_NEVER;
	int64_t wanting = missing_get(view) - (limit->burst - c) * limit->window_ms;
	int64_t at = wanting > 0 ? view->newest_ms + weir_limit_divide_up(wanting, limit->rate) : t;
	return at > t ? at : t;
}

/* What has come back by itself meanwhile is not missing any more: seen from the newest time or from now, it is the same. */
static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	(void)t;
	(void)whole;
	int64_t missing = missing_get(view);
	weir_wide back = (weir_wide)c * view->shape->limit.window_ms;
	weir_bytes_put(view->fixed, view->shape->value_bytes, back < missing ? (uint64_t)(missing - (int64_t)back) : 0);
	return missing > 0;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	weir_bytes_put(to->fixed, to->shape->value_bytes, (uint64_t)missing_get(from));
}

static bool is_empty(const struct weir_limit_view *view)
{
	return missing_get(view) == 0;
}

static bool check(const struct weir_limit_view *view)
{
	return (uint64_t)missing_get(view) <= (uint64_t)full(view);
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	weir_text_printf(text, "{\"level\":%lld,\"time\":%lld}", (long long)(full(view) - missing_get(view)),
	                 (long long)view->newest_ms);
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
	shape->capacity = shape->limit.burst;
	if (shape->limit.own[PENALIZE]) {
		weir_limit_penalizing_shape(shape);
		return;
	}
	shape->ops = &ops;
	shape->value_bytes = weir_bytes_for((uint64_t)shape->limit.burst * (uint64_t)shape->limit.window_ms);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes;
}

static int64_t rate_of(const struct weir_limit *limit)
{
	return limit->rate;
}

static enum weir_status check_tokens(const struct weir_json *at, const struct weir_limit *limit,
                                     struct weir_error *error)
{
	return weir_limit_check_capacity(at, limit->burst, limit->window_ms, error);
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_printf(text, "%lld at once, with %lld more each ", (long long)limit->burst, (long long)limit->rate);
	weir_limit_put_period(text, limit->window_ms);
	if (limit->own[PENALIZE])
		weir_text_puts(text, " (blocked requests delay the refill)");
}

/* Rounding of whole tokens has no bound over many calls. */
static int64_t most_within(const struct weir_limit *limit, const struct weir_limit *window)
{
	return limit->own[PENALIZE] ? INT64_MAX : weir_limit_most_refilled(limit, window->window_ms);
}

static int64_t memory_ms(const struct weir_limit *limit)
{
	return weir_limit_divide_up(limit->burst * limit->window_ms, limit->rate);
}

static void scale(struct weir_limit *limit, uint32_t thousandths)
{
	limit->rate = weir_limit_multiply(limit->rate, thousandths, 1, WEIR_RATE_MAX);
	limit->burst = weir_limit_multiply(limit->burst, thousandths, 1, weir_limit_capacity(limit->window_ms));
}

const struct weir_algorithm weir_limit_token_bucket = {
	.name = "token_bucket",
	.members = {WEIR_RATE_MEMBER,
                WEIR_WINDOW_MEMBER,
                {.name = "burst",
                 .meaning = "how many tokens the bucket holds; by default as many as \"rate\"",
                 .at = offsetof(struct weir_limit, burst),
                 .least = 1,
                 .most = WEIR_RATE_MAX,
                 .otherwise = rate_of},
                {.name = "penalize",
                 .meaning = "whether blocked requests take tokens, too",
                 .kind = WEIR_MEMBER_SWITCH,
                 .at = offsetof(struct weir_limit, own[PENALIZE])}},
	.check = check_tokens,
	.describe = describe,
	.brief = weir_limit_brief_burst,
	.most_within = most_within,
	.memory_ms = memory_ms,
	.scale = scale,
	.shape = shape,
	.shown = "{\"level\":units,\"time\":t} or {\"tokens\":k,\"time\":t}",
};
