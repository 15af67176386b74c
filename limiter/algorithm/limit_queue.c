/*
 * queue N, hold: entries that wait; each leaves when a record says that one is
 * done, or `hold` after it came.
 *
 * There is no window that its times must lie in (an event out of order is taken
 * as it comes), so they are kept whole.
 */
#include "limiter/algorithm/limit.h"

/* Above every time: entries of 48 bits stand for themselves. */
#define ANCHOR ((INT64_C(1) << TIME_BITS) - 1)

static void shape(struct limit_shape *shape)
{
	shape->has_times = true;
	shape->span = ANCHOR + 1;
	shape->times = times_shape_of(shape->limit.length, shape->span, false);
	shape->fixed_bytes[0] = times_fixed_bytes(&shape->times, false);
	shape->fixed_bytes[1] = times_fixed_bytes(&shape->times, true);
}

static bool leave(const struct limit_view *view, int64_t t)
{
	struct times times = limit_times(view, ANCHOR);
	uint32_t before = times.length;
	if (before == 0 || t < view->shape->limit.hold_ms)
		return false;
	times_drop_until(&times, t - view->shape->limit.hold_ms);
	if (times.length == before)
		return false;
	times_close(&times);
	return true;
}

static bool done(const struct limit_view *view)
{
	struct times times = limit_times(view, ANCHOR);
	if (times.length == 0)
		return false;
	times_drop_oldest(&times, 1);
	times_close(&times);
	return true;
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	(void)t;
	struct times times = limit_times(view, ANCHOR);
	return (int64_t)times.total + c > view->shape->limit.length ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	struct times times = limit_times(view, ANCHOR);
	int64_t count = c < view->shape->limit.length ? c : view->shape->limit.length;
	if (count > 1 && !times.runs && view->shape->limit.length > LIMIT_PLAIN_COST_MAX)
		return LIMIT_NEEDS_RUNS;
	if (times_wanted(&times, count) > times.room)
		return LIMIT_NEEDS_ROOM;
	times_add(&times, t, count);
	times_close(&times);
	return LIMIT_RECORDED;
}

static int64_t reset(const struct limit_view *view, int64_t t)
{
	struct times times = limit_times(view, ANCHOR);
	if (times.total < (uint64_t)view->shape->limit.length)
		return t;
	int64_t passes = times_at(&times, 0) + view->shape->limit.hold_ms;
	return passes > t ? passes : t;
}

static int64_t held(const struct limit_view *view, int64_t t)
{
	(void)t;
	return (int64_t)limit_times(view, ANCHOR).total;
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	struct times source = limit_times(from, ANCHOR), target = limit_times(to, ANCHOR);
	times_copy(&target, &source);
	times_close(&target);
}

static bool is_empty(const struct limit_view *view)
{
	return bytes_get(view->fixed, view->shape->times.count_bytes) == 0;
}

static bool check(const struct limit_view *view)
{
	struct times times = limit_times(view, ANCHOR);
	return times_check(&times, view->shape->span);
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	struct times times = limit_times(view, ANCHOR);
	limit_image_runs(image, &times, 1, -1);
}

const struct limit_ops limit_queue = {
	.shape = shape,
	.judge = judge,
	.record = record,
	.reset = reset,
	.held = held,
	.leave = leave,
	.done = done,
	.copy = copy,
	.is_empty = is_empty,
	.check = check,
	.image = image,
};
