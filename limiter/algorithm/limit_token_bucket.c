/*
 * token_bucket N, W, burst: tokens of W units each; N units come back each ms.
 *
 * What is kept is the units that are missing from a full bucket as of the newest
 * recorded time; 0 says that nothing was recorded, as recording takes a token or
 * more.
 */
#include "limiter/algorithm/limit.h"

static int64_t full(const struct limit_view *view)
{
	return view->shape->limit.burst * view->shape->limit.window_ms;
}

static void shape(struct limit_shape *shape)
{
	shape->value_bytes = bytes_for((uint64_t)shape->limit.burst * (uint64_t)shape->limit.window_ms);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes;
}

static inline int64_t missing_get(const struct limit_view *view)
{
	return (int64_t)bytes_get(view->fixed, view->shape->value_bytes);
}

/* Units missing at t: none come back for a t that lies before the newest. */
static int64_t missing_at(const struct limit_view *view, int64_t t)
{
	int64_t missing = missing_get(view);
	if (missing == 0 || t <= view->newest_ms)
		return missing;
	limit_wide back = (limit_wide)view->shape->limit.rate * (t - view->newest_ms);
	return back < missing ? missing - (int64_t)back : 0;
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	limit_wide asked = (limit_wide)c * view->shape->limit.window_ms;
	return full(view) - missing_at(view, t) < asked ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	if (t < view->newest_ms && missing_get(view) == 0)
		return LIMIT_NEEDS_OWN_TIME;
	limit_wide missing = missing_at(view, t) + (limit_wide)c * view->shape->limit.window_ms;
	if (missing > full(view))
		missing = full(view);
	bytes_put(view->fixed, view->shape->value_bytes, (uint64_t)missing);
	return LIMIT_RECORDED;
}

static int64_t reset(const struct limit_view *view, int64_t t)
{
	limit_wide wanting = (limit_wide)view->shape->limit.window_ms - (full(view) - missing_get(view));
	int64_t passes = view->newest_ms + (int64_t)limit_ceil_divide(wanting, view->shape->limit.rate);
	return missing_get(view) != 0 && passes > t ? passes : t;
}

static int64_t held(const struct limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	return limit->burst - (full(view) - missing_at(view, t)) / limit->window_ms;
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	bytes_put(to->fixed, to->shape->value_bytes, (uint64_t)missing_get(from));
}

static bool is_empty(const struct limit_view *view)
{
	return missing_get(view) == 0;
}

static bool check(const struct limit_view *view)
{
	return (uint64_t)missing_get(view) <= (uint64_t)full(view);
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	image->level = full(view) - missing_get(view);
	image->time_ms = view->newest_ms;
}

const struct limit_ops limit_token_bucket = {
	.shape = shape,
	.judge = judge,
	.record = record,
	.reset = reset,
	.held = held,
	.copy = copy,
	.is_empty = is_empty,
	.check = check,
	.image = image,
};
