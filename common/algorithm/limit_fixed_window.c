/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_window N, W, offset: how many were recorded in the newest window, and in
 * the one before it.
 *
 * Which window is the newest follows from the bucket's newest recorded time, so
 * two counts are all there is. The newest window's count is never 0 once
 * anything was recorded.
 */
#include "common/algorithm/internal.h"

enum { OFFSET_MS }; /* own; 0 <= offset < window */

#define COUNT_MAX (INT64_C(1) << 62)

static inline int64_t window_of(const struct weir_limit_view *view, int64_t t)
{
	return weir_divide(view->shape->divider, t + view->shape->offset_ms);
}

static inline int64_t count_get(const struct weir_limit_view *view, unsigned which)
{
	unsigned bytes = view->shape->value_bytes;
	return (int64_t)weir_bytes_get(view->fixed + which * bytes, bytes);
}

static inline void count_put(const struct weir_limit_view *view, unsigned which, int64_t count)
{
	unsigned bytes = view->shape->value_bytes;
	weir_bytes_put(view->fixed + which * bytes, bytes, (uint64_t)count);
}

/* Count 0 is the newest window's, 1 of the one before. */
static inline int64_t count_at(const struct weir_limit_view *view, int64_t window, int64_t newest)
{
	return window == newest ? count_get(view, 0) : window == newest - 1 ? count_get(view, 1) : 0;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	int64_t current = count_get(view, 0);
	if (current == 0)
		return c > limit->rate ? WEIR_LIMIT_OVER : 0;
	int64_t window = window_of(view, t), newest = window_of(view, view->newest_ms);
	if (window < newest - 1)
		return WEIR_LIMIT_LATE;
	int64_t count = window == newest ? current : window == newest - 1 ? count_get(view, 1) : 0;
	return count + c > limit->rate ? WEIR_LIMIT_OVER : 0;
}

/* A count does not pass what its bytes hold: the rate, unless what is refused is counted. */
static int64_t count_with(const struct weir_limit_view *view, int64_t count, int64_t c, bool past)
{
	int64_t most = past ? COUNT_MAX : view->shape->limit.rate;
	int64_t sum = count + c < most ? count + c : most;
	return sum > count ? sum : count;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	int64_t current = count_get(view, 0);
	if (current == 0) {
		if (t < view->newest_ms)
			return WEIR_LIMIT_NEEDS_OWN_TIME;
		count_put(view, 0, count_with(view, 0, c, past));
		return WEIR_LIMIT_RECORDED;
	}
	int64_t window = window_of(view, t), newest = window_of(view, view->newest_ms);
	if (window > newest) {
		count_put(view, 1, window == newest + 1 ? current : 0);
		count_put(view, 0, count_with(view, 0, c, past));
		return WEIR_LIMIT_RECORDED;
	}
	unsigned which = window == newest ? 0 : 1;
	count_put(view, which, count_with(view, count_get(view, which), c, past));
	return WEIR_LIMIT_RECORDED;
}

static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	return (window_of(view, t) + 1) * view->shape->limit.window_ms - view->shape->offset_ms;
}

static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	if (count_get(view, 0) == 0)
		return 0;
	return count_at(view, window_of(view, t), window_of(view, view->newest_ms));
}

static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	int64_t rest = view->shape->limit.rate - held(view, t);
	return rest > 0 ? rest : 0;
}

/* Of a window and the one behind it there may be counts, behind that there are none. */
static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (!(judge(view, t, c) & WEIR_LIMIT_OVER))
		return t;
	if (c > limit->rate)
		return WEIR_LIMIT_NEVER;
	int64_t window = window_of(view, t) + 1;
	if (count_at(view, window, window_of(view, view->newest_ms)) + c > limit->rate)
		window++;
	return window * limit->window_ms - view->shape->offset_ms;
}

/* The newest window's count is never 0 but in an empty state: then the one before it goes too. */
static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	(void)whole;
	int64_t window = window_of(view, t), newest = window_of(view, view->newest_ms);
	if (count_get(view, 0) == 0 || window > newest || window < newest - 1)
		return false;
	unsigned which = window == newest ? 0 : 1;
	int64_t count = count_get(view, which);
	count_put(view, which, count > c ? count - c : 0);
	if (count_get(view, 0) == 0)
		count_put(view, 1, 0);
	return count > 0;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	count_put(to, 0, count_get(from, 0));
	count_put(to, 1, count_get(from, 1));
}

static bool is_empty(const struct weir_limit_view *view)
{
	return count_get(view, 0) == 0;
}

static bool check(const struct weir_limit_view *view)
{
	uint64_t most = view->shape->counts_past ? COUNT_MAX : (uint64_t)view->shape->limit.rate;
	return (uint64_t)count_get(view, 0) <= most && (uint64_t)count_get(view, 1) <= most;
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	weir_text_printf(text, "{\"bucket\":%lld,\"count\":%lld,\"previous\":%lld}",
	                 (long long)window_of(view, view->newest_ms), (long long)count_get(view, 0),
	                 (long long)count_get(view, 1));
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
	shape->divider = weir_divider_of(shape->limit.window_ms);
	shape->offset_ms = shape->limit.own[OFFSET_MS];
	shape->value_bytes = shape->counts_past ? 8 : weir_bytes_for((uint64_t)shape->limit.rate);
	shape->value_mask = UINT64_MAX >> (64 - 8 * shape->value_bytes);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = 2u * shape->value_bytes;
	shape->is_plain = shape->value_bytes <= 4;
}

static int64_t offset_max(const struct weir_limit *limit)
{
	return limit->window_ms - 1;
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " in each ");
	weir_limit_put_period(text, limit->window_ms);
	if (limit->own[OFFSET_MS] == 0)
		return;
	weir_text_puts(text, " (begun ");
	weir_limit_put_time(text, limit->own[OFFSET_MS]);
	weir_text_puts(text, " early)");
}

/* A span may begin and end within windows, but for one that is made of whole ones. */
static int64_t most_within(const struct weir_limit *limit, const struct weir_limit *window)
{
	int64_t windows = weir_limit_divide_up(window->window_ms, limit->window_ms);
	bool is_made_of = window->algorithm == limit->algorithm && window->window_ms % limit->window_ms == 0 &&
	                  (window->own[OFFSET_MS] - limit->own[OFFSET_MS]) % limit->window_ms == 0;
	return weir_limit_most_in(is_made_of ? windows : windows + 1, limit->rate);
}

static void met(const struct weir_limit *limit, int64_t t, int64_t *after_ms, int64_t *until_ms)
{
	int64_t window = (t + limit->own[OFFSET_MS]) / limit->window_ms;
	*after_ms = window * limit->window_ms - limit->own[OFFSET_MS] - 1;
	*until_ms = *after_ms + limit->window_ms;
}

const struct weir_algorithm weir_limit_fixed_window = {
	.name = "fixed_window",
	.members = {WEIR_RATE_MEMBER,
                WEIR_WINDOW_MEMBER,
                {.name = "offset",
                 .meaning = "shifts the edges of the window",
                 .kind = WEIR_MEMBER_TIME,
                 .at = offsetof(struct weir_limit, own[OFFSET_MS]),
                 .bound = offset_max}},
	.describe = describe,
	.is_window = true,
	.most_within = most_within,
	.met = met,
	.shape = shape,
	.shown = "{\"bucket\":number,\"count\":n,\"previous\":n}",
};
