/*
 * gcra burst, N, W: the theoretical arrival time in 1/N ms, where an emission
 * interval is W of these.
 *
 * What is kept is how far it lies ahead of the newest recorded time: more than 0
 * once anything was recorded, and never more than (burst + 1) W.
 */
#include "limiter/algorithm/limit.h"

static int64_t reach(const struct limit_view *view)
{
	return (view->shape->limit.burst + 1) * view->shape->limit.window_ms;
}

static void shape(struct limit_shape *shape)
{
	shape->value_bytes = bytes_for(((uint64_t)shape->limit.burst + 1) * (uint64_t)shape->limit.window_ms);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes;
}

static inline int64_t ahead_get(const struct limit_view *view)
{
	return (int64_t)bytes_get(view->fixed, view->shape->value_bytes);
}

/* How far the arrival time lies ahead of t: below 0 once it has passed. */
static limit_wide ahead_of(const struct limit_view *view, int64_t t)
{
	if (ahead_get(view) == 0)
		return 0;
	return ahead_get(view) + (limit_wide)view->shape->limit.rate * (view->newest_ms - t);
}

/* The same for max(arrival time, t). */
static limit_wide start_of(const struct limit_view *view, int64_t t)
{
	limit_wide ahead = ahead_of(view, t);
	return ahead > 0 ? ahead : 0;
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	return start_of(view, t) + (limit_wide)c * view->shape->limit.window_ms > reach(view) ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	if (t < view->newest_ms && ahead_get(view) == 0)
		return LIMIT_NEEDS_OWN_TIME;
	limit_wide before = ahead_of(view, t);
	limit_wide ahead = start_of(view, t) + (limit_wide)c * view->shape->limit.window_ms;
	if (blocked && ahead > reach(view))
		ahead = reach(view);
	if (ahead < before)
		ahead = before; /* never lowered */
	/* From here it is seen from the newest time, which may be later than t. */
	if (t < view->newest_ms)
		ahead -= (limit_wide)view->shape->limit.rate * (view->newest_ms - t);
	bytes_put(view->fixed, view->shape->value_bytes, (uint64_t)ahead);
	return LIMIT_RECORDED;
}

static int64_t reset(const struct limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	limit_wide past = start_of(view, t) - (limit_wide)limit->burst * limit->window_ms;
	return past > 0 ? t + (int64_t)limit_ceil_divide(past, limit->rate) : t;
}

static int64_t held(const struct limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	limit_wide owed = limit_ceil_divide(start_of(view, t), limit->window_ms);
	return (int64_t)(owed > limit->burst + 1 ? limit->burst + 1 : owed);
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	bytes_put(to->fixed, to->shape->value_bytes, (uint64_t)ahead_get(from));
}

static bool is_empty(const struct limit_view *view)
{
	return ahead_get(view) == 0;
}

static bool check(const struct limit_view *view)
{
	return (uint64_t)ahead_get(view) <= (uint64_t)reach(view);
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	image->tat = (limit_wide)view->newest_ms * view->shape->limit.rate + ahead_get(view);
}

const struct limit_ops limit_gcra = {
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
