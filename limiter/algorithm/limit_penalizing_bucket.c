/*
 * token_bucket with penalize: whole tokens, rounded at every call, down to -1 for
 * as long as calls go on.
 *
 * Every judged event is a call, blocked ones and those of cost 0 too, so the
 * state has a time of its own. The tokens are kept plus two: 0 says that there
 * was no call yet.
 */
#include "common/frame/frame.h"
#include "limiter/algorithm/limit.h"

enum { STORED_ABOVE = 2 };

static void shape(struct limit_shape *shape)
{
	shape->value_bytes = bytes_for((uint64_t)shape->limit.burst + STORED_ABOVE);
	shape->fixed_bytes[0] = shape->fixed_bytes[1] = shape->value_bytes + TIME_BYTES;
}

static inline int64_t tokens_get(const struct limit_view *view)
{
	return (int64_t)bytes_get(view->fixed, view->shape->value_bytes) - STORED_ABOVE;
}

static inline int64_t time_of(const struct limit_view *view)
{
	return time_get(view->fixed + view->shape->value_bytes);
}

static bool is_empty(const struct limit_view *view)
{
	return tokens_get(view) == -STORED_ABOVE;
}

/* The tokens that a call at t leaves. */
static int64_t tokens_after(const struct limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (is_empty(view))
		return c > limit->burst ? -1 : limit->burst - c;
	limit_wide gone = t > time_of(view) ? t - time_of(view) : 0;
	limit_wide exact = (limit_wide)(tokens_get(view) - c) * limit->window_ms + limit->rate * gone;
	limit_wide twice = 2 * (exact < 0 ? -exact : exact) + limit->window_ms;
	limit_wide away = twice / (2 * (limit_wide)limit->window_ms); /* rounded, half away from zero */
	limit_wide tokens = exact < 0 ? -away : away;
	return tokens < -1 ? -1 : tokens > limit->burst ? limit->burst : (int64_t)tokens;
}

static unsigned judge(const struct limit_view *view, int64_t t, int64_t c)
{
	return tokens_after(view, t, c) == -1 ? LIMIT_OVER : 0;
}

static enum limit_recorded record(const struct limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	unsigned bytes = view->shape->value_bytes;
	int64_t tokens = tokens_after(view, t, c);
	int64_t time = is_empty(view) || t > time_of(view) ? t : time_of(view);
	bytes_put(view->fixed, bytes, (uint64_t)(tokens + STORED_ABOVE));
	time_put(view->fixed + bytes, time);
	return LIMIT_RECORDED;
}

/* Cost 1 passes once k + N * gone / W - 1 is above -1/2: that is, once gone > W * (1 - 2 k) / (2 N). */
static int64_t reset(const struct limit_view *view, int64_t t)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (is_empty(view))
		return t;
	limit_wide above = (limit_wide)limit->window_ms * (2 * tokens_get(view) - 1);
	int64_t passes = time_of(view) + (int64_t)-limit_ceil_divide(above, 2 * limit->rate) + 1;
	return passes > t ? passes : t;
}

static int64_t held(const struct limit_view *view, int64_t t)
{
	(void)t;
	int64_t tokens = tokens_get(view);
	return view->shape->limit.burst - (tokens > 0 ? tokens : 0);
}

static void copy(const struct limit_view *to, const struct limit_view *from)
{
	memcpy(to->fixed, from->fixed, to->shape->fixed_bytes[0]);
}

static bool check(const struct limit_view *view)
{
	uint64_t stored = bytes_get(view->fixed, view->shape->value_bytes);
	return stored <= (uint64_t)view->shape->limit.burst + STORED_ABOVE && time_of(view) < WEIR_TIME_END_MS;
}

static void image(const struct limit_view *view, struct limit_image *image)
{
	image->level = tokens_get(view);
	image->time_ms = time_of(view);
}

const struct limit_ops limit_penalizing_bucket = {
	.shape = shape,
	.judge = judge,
	.record = record,
	.charged_by_all = true,
	.reset = reset,
	.held = held,
	.copy = copy,
	.is_empty = is_empty,
	.check = check,
	.image = image,
};
