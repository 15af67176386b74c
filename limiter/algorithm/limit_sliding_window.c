/*
 * sliding_window N, W: the newest N recorded times, of which those above t - W
 * and c more may not exceed N. uniform I is the same with N = 1, W = I.
 *
 * The test needs no count: c more fit unless the (N - c + 1)-th newest time is
 * above t - W. For one more with plain times that is one look at the oldest.
 *
 * Times up to newest - 2 W go: a judged event lies above newest - W, so nothing
 * there can be above its t - W. That bounds how far back a time can lie, and
 * with it the bits that it takes.
 */
#include "limiter/algorithm/limit.h"

static void shape(struct limit_shape *shape)
{
	struct weir_limit *limit = &shape->limit;
	int64_t unit_ms = limit->precision_ms > 1 ? limit->precision_ms : 1;
	shape->has_times = true;
	shape->runs_only = unit_ms > 1;
	shape->precision = divider_of(unit_ms);
	shape->span = 2 * limit->window_ms / unit_ms + 2;
	shape->times = times_shape_of(limit->rate, shape->span, shape->runs_only);
	shape->fixed_bytes[0] = times_fixed_bytes(&shape->times, shape->runs_only);
	shape->fixed_bytes[1] = times_fixed_bytes(&shape->times, true);
}

static inline int64_t unit_ms(const struct limit_view *view)
{
	return view->shape->precision.factor == 0 ? 1 : view->shape->precision.divisor;
}

/* Recorded times are rounded up to the precision. */
static inline int64_t unit_of(const struct limit_view *view, int64_t t)
{
	if (view->shape->precision.factor == 0)
		return t;
	return divide(view->shape->precision, t + view->shape->precision.divisor - 1);
}

static inline struct times open(const struct limit_view *view)
{
	return limit_times(view, unit_of(view, view->newest_ms));
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	struct times times = open(view);
	if (times.length == 0)
		return c > limit->rate ? LIMIT_OVER : 0;
	int64_t window_start = t - limit->window_ms;
	if (t <= times.anchor * unit_ms(view) - limit->window_ms)
		return LIMIT_LATE;
	if (c > limit->rate)
		return LIMIT_OVER;
	uint64_t k = (uint64_t)(limit->rate - c + 1);
	if (times.total < k)
		return 0;
	int64_t kth = c == 1 ? times_at(&times, 0) : times_newest(&times, k);
	return kth * unit_ms(view) > window_start ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	const struct weir_limit *limit = &view->shape->limit;
	struct times times = open(view);
	int64_t unit = unit_of(view, t);
	if (t < view->newest_ms && times.length == 0)
		return LIMIT_NEEDS_OWN_TIME;
	if (c > 1 && !times.runs && limit->rate > LIMIT_PLAIN_COST_MAX)
		return LIMIT_NEEDS_RUNS;
	if (unit > times.anchor) {
		/* The newest so far: what has become too old to matter makes place first. */
		int64_t horizon = unit * unit_ms(view) - 2 * limit->window_ms;
		if (times.length > 0 && horizon >= 0)
			times_drop_until(&times, divide(view->shape->precision, horizon));
		times.anchor = unit;
	} else if (times.length == 0) {
		times.anchor = unit;
	}
	if (c == 1 && !times.runs && times.total == (uint64_t)limit->rate && unit >= times.anchor)
		times_drop_oldest(&times, 1);
	if (times_wanted(&times, c < limit->rate ? c : limit->rate) > times.room)
		return LIMIT_NEEDS_ROOM;
	times_add(&times, unit, c);
	times_close(&times);
	return LIMIT_RECORDED;
}

static int64_t reset(const struct limit_view *view, int64_t t)
{
	struct times times = open(view);
	if (times.total < (uint64_t)view->shape->limit.rate)
		return t;
	int64_t passes = times_at(&times, 0) * unit_ms(view) + view->shape->limit.window_ms;
	return passes > t ? passes : t;
}

/* A time that is a whole number of units is above t - W if that number is above floor((t - W) / unit). */
static int64_t held(const struct limit_view *view, int64_t t)
{
	struct times times = open(view);
	int64_t start = t - view->shape->limit.window_ms;
	if (start < 0)
		return (int64_t)times.total;
	return (int64_t)times_above(&times, divide(view->shape->precision, start));
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	struct times source = open(from), target = open(to);
	times_copy(&target, &source);
	times_close(&target);
}

static bool is_empty(const struct limit_view *view)
{
	return bytes_get(view->fixed, view->shape->times.count_bytes) == 0;
}

static bool check(const struct limit_view *view)
{
	struct times times = open(view);
	return times_check(&times, view->shape->span) &&
	       (times.length == 0 || times_at(&times, times.length - 1) == times.anchor);
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	struct times times = open(view);
	limit_image_runs(image, &times, unit_ms(view), times.anchor * unit_ms(view) - 2 * view->shape->limit.window_ms);
}

const struct limit_ops limit_sliding_window = {
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
