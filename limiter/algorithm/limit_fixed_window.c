/*
 * fixed_window N, W, offset: how many were recorded in the newest window, and in
 * the one before it.
 *
 * Which window is the newest follows from the bucket's newest recorded time, so
 * two counts are all there is. The newest window's count is never 0 once
 * anything was recorded.
 */
#include "limiter/algorithm/limit.h"

#define COUNT_MAX (INT64_C(1) << 62)

static void shape(struct limit_shape *shape)
{
	shape->window = divider_of(shape->limit.window_ms);
	shape->value_bytes = shape->counts_past ? 8 : bytes_for((uint64_t)shape->limit.rate);
	shape->value_mask = UINT64_MAX >> (64 - 8 * shape->value_bytes);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = 2u * shape->value_bytes;
}

static inline int64_t window_of(const struct limit_view *view, int64_t t)
{
	return divide(view->shape->window, t + view->shape->limit.offset_ms);
}

static inline int64_t count_get(const struct limit_view *view, unsigned which)
{
	unsigned bytes = view->shape->value_bytes;
	return (int64_t)bytes_get(view->fixed + which * bytes, bytes);
}

static inline void count_put(const struct limit_view *view, unsigned which, int64_t count)
{
	unsigned bytes = view->shape->value_bytes;
	bytes_put(view->fixed + which * bytes, bytes, (uint64_t)count);
}

/* Count 0 is the newest window's, 1 of the one before. */
static inline int64_t count_at(const struct limit_view *view, int64_t window, int64_t newest)
{
	return window == newest ? count_get(view, 0) : window == newest - 1 ? count_get(view, 1) : 0;
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	int64_t current = count_get(view, 0);
	if (current == 0)
		return c > limit->rate ? LIMIT_OVER : 0;
	int64_t window = window_of(view, t), newest = window_of(view, view->newest_ms);
	if (window < newest - 1)
		return LIMIT_LATE;
	int64_t count = window == newest ? current : window == newest - 1 ? count_get(view, 1) : 0;
	return count + c > limit->rate ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	int64_t current = count_get(view, 0);
	if (current == 0) {
		if (t < view->newest_ms)
			return LIMIT_NEEDS_OWN_TIME;
		count_put(view, 0, c);
		return LIMIT_RECORDED;
	}
	int64_t window = window_of(view, t), newest = window_of(view, view->newest_ms);
	if (window > newest) {
		count_put(view, 1, window == newest + 1 ? current : 0);
		count_put(view, 0, c);
		return LIMIT_RECORDED;
	}
	unsigned which = window == newest ? 0 : 1;
	int64_t count = count_get(view, which) + c;
	count_put(view, which, count < COUNT_MAX ? count : COUNT_MAX);
	return LIMIT_RECORDED;
}

static int64_t reset(const struct limit_view *view, int64_t t)
{
	return (window_of(view, t) + 1) * view->shape->limit.window_ms - view->shape->limit.offset_ms;
}

static int64_t held(const struct limit_view *view, int64_t t)
{
	if (count_get(view, 0) == 0)
		return 0;
	return count_at(view, window_of(view, t), window_of(view, view->newest_ms));
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	count_put(to, 0, count_get(from, 0));
	count_put(to, 1, count_get(from, 1));
}

static bool is_empty(const struct limit_view *view)
{
	return count_get(view, 0) == 0;
}

static bool check(const struct limit_view *view)
{
	uint64_t most = view->shape->counts_past ? COUNT_MAX : (uint64_t)view->shape->limit.rate;
	return (uint64_t)count_get(view, 0) <= most && (uint64_t)count_get(view, 1) <= most;
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	image->bucket = window_of(view, view->newest_ms);
	image->count = count_get(view, 0);
	image->previous = count_get(view, 1);
}

const struct limit_ops limit_fixed_window = {
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
