/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_bucket with penalize: whole tokens, rounded at every call, down to -1 for
 * as long as calls continue.
 *
 * Every judged event is a call, blocked ones and those of cost 0 too, so the
 * state has a time of its own. The tokens are kept plus two: 0 says that there
 * was no call yet.
 */
#include "common/algorithm/internal.h"

enum { STORED_ABOVE = 2 };

static inline int64_t tokens_get(const struct weir_limit_view *view)
{
	return (int64_t)weir_bytes_get(view->fixed, view->shape->value_bytes) - STORED_ABOVE;
}

static inline int64_t time_of(const struct weir_limit_view *view)
{
	return weir_time_get(view->fixed + view->shape->value_bytes);
}

static bool is_empty(const struct weir_limit_view *view)
{
	return tokens_get(view) == -STORED_ABOVE;
}

/* The tokens that a call at t leaves. */
static int64_t tokens_after(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (is_empty(view))
		return c > limit->burst ? -1 : limit->burst - c;
	weir_wide gone = t > time_of(view) ? t - time_of(view) : 0;
	weir_wide exact = (weir_wide)(tokens_get(view) - c) * limit->window_ms + limit->rate * gone;
	weir_wide twice = 2 * (exact < 0 ? -exact : exact) + limit->window_ms;
	weir_wide away = twice / (2 * (weir_wide)limit->window_ms); /* rounded, half away from zero */
	weir_wide tokens = exact < 0 ? -away : away;
	return tokens < -1 ? -1 : tokens > limit->burst ? limit->burst : (int64_t)tokens;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	return tokens_after(view, t, c) == -1 ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	unsigned bytes = view->shape->value_bytes;
	int64_t tokens = tokens_after(view, t, c);
	int64_t time = is_empty(view) || t > time_of(view) ? t : time_of(view);
	weir_bytes_put(view->fixed, bytes, (uint64_t)(tokens + STORED_ABOVE));
	weir_time_put(view->fixed + bytes, time);
	return WEIR_LIMIT_RECORDED;
}

/* Cost 1 passes once k + N * gone / W - 1 is above -1/2: that is, once gone > W * (1 - 2 k) / (2 N). */
static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (is_empty(view))
		return t;
	weir_wide above = (weir_wide)limit->window_ms * (2 * tokens_get(view) - 1);
	int64_t passes = time_of(view) + (int64_t)-weir_limit_ceil_divide(above, 2 * limit->rate) + 1;
	return passes > t ? passes : t;
}

static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	(void)t;
	int64_t tokens = tokens_get(view);
	return view->shape->limit.burst - (tokens > 0 ? tokens : 0);
}

/* What is above -1/2 is not rounded to -1: of the half tokens at t, less than those and one more may be asked for. */
static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (is_empty(view))
		return limit->burst;
	weir_wide gone = t > time_of(view) ? t - time_of(view) : 0;
	weir_wide twice = 2 * ((weir_wide)tokens_get(view) * limit->window_ms + limit->rate * gone) + limit->window_ms;
	weir_wide most = weir_limit_ceil_divide(twice, 2 * (weir_wide)limit->window_ms) - 1;
	return most < 0 ? 0 : most > limit->burst ? limit->burst : (int64_t)most;
}

/* As reset(): cost c passes once gone > W * (2 c - 1 - 2 k) / (2 N). */
static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (c > limit->burst)
		return WEIR_LIMIT_NEVER;
	if (is_empty(view))
		return t;
	weir_wide above = (weir_wide)limit->window_ms * (2 * (tokens_get(view) - c) + 1);
	int64_t gone = (int64_t)-weir_limit_ceil_divide(above, 2 * limit->rate) + 1;
	return gone > 0 && time_of(view) + gone > t ? time_of(view) + gone : t;
}

static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	(void)t;
	(void)whole;
	int64_t burst = view->shape->limit.burst, tokens = tokens_get(view);
	if (is_empty(view) || tokens == burst)
		return false;
	tokens = c < burst - tokens ? tokens + c : burst;
	weir_bytes_put(view->fixed, view->shape->value_bytes, (uint64_t)(tokens + STORED_ABOVE));
	return true;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	memcpy(to->fixed, from->fixed, to->shape->fixed_bytes[0]);
}

static bool check(const struct weir_limit_view *view)
{
	uint64_t stored = weir_bytes_get(view->fixed, view->shape->value_bytes);
	return stored <= (uint64_t)view->shape->limit.burst + STORED_ABOVE && time_of(view) < WEIR_TIME_END_MS;
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	weir_text_printf(text, "{\"tokens\":%lld,\"time\":%lld}", (long long)tokens_get(view), (long long)time_of(view));
}

static const struct weir_limit_ops ops = {
	.judge = judge,
	.record = record,
	.charged_by_all = true,
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

void weir_limit_penalizing_shape(struct weir_limit_shape *shape)
{
	shape->ops = &ops;
	shape->value_bytes = weir_bytes_for((uint64_t)shape->limit.burst + STORED_ABOVE);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes + WEIR_TIME_BYTES;
}
