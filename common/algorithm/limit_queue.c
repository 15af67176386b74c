/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue N, hold: entries that wait; each leaves when a record says that one is
 * done, or `hold` after it came.
 *
 * Its length is the limit's rate and its hold the window. An event out of order is taken as it comes, so there is
 * no span that its times must lie in, and they are kept whole.
 */
#include "common/algorithm/internal.h"

/* Above every time: entries of 48 bits stand for themselves. */
#define ANCHOR ((INT64_C(1) << WEIR_TIME_BITS) - 1)

static bool leave(const struct weir_limit_view *view, int64_t t)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	uint32_t before = times.length;
	if (before == 0 || t < view->shape->limit.window_ms)
		return false;
	weir_times_drop_until(&times, t - view->shape->limit.window_ms);
	if (times.length == before)
		return false;
	weir_times_close(&times);
	return true;
}

static bool done(const struct weir_limit_view *view)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	if (times.length == 0)
		return false;
	weir_times_drop_oldest(&times, 1);
	weir_times_close(&times);
	return true;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	(void)t;
	struct weir_times times = weir_limit_times(view, ANCHOR);
	return (int64_t)times.total + c > view->shape->limit.rate ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool blocked)
{
	(void)blocked;
	struct weir_times times = weir_limit_times(view, ANCHOR);
	int64_t count = c < view->shape->limit.rate ? c : view->shape->limit.rate;
	if (count > 1 && !times.runs && view->shape->limit.rate > WEIR_LIMIT_PLAIN_COST_MAX)
		return WEIR_LIMIT_NEEDS_RUNS;
	if (weir_times_wanted(&times, count) > times.room)
		return WEIR_LIMIT_NEEDS_ROOM;
	weir_times_add(&times, t, count);
	weir_times_close(&times);
	return WEIR_LIMIT_RECORDED;
}

static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	if (times.total < (uint64_t)view->shape->limit.rate)
		return t;
	int64_t passes = weir_times_at(&times, 0) + view->shape->limit.window_ms;
	return passes > t ? passes : t;
}

static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	(void)t;
	return (int64_t)weir_limit_times(view, ANCHOR).total;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	struct weir_times source = weir_limit_times(from, ANCHOR), target = weir_limit_times(to, ANCHOR);
	weir_times_copy(&target, &source);
	weir_times_close(&target);
}

static bool is_empty(const struct weir_limit_view *view)
{
	return weir_bytes_get(view->fixed, view->shape->times.count_bytes) == 0;
}

static bool check(const struct weir_limit_view *view)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	return weir_times_check(&times, view->shape->span);
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	weir_limit_show_times(text, &times, 1, -1);
}

static const struct weir_limit_ops ops = {
	.judge = judge,
	.record = record,
	.reset = reset,
	.held = held,
	.leave = leave,
	.done = done,
	.copy = copy,
	.is_empty = is_empty,
	.check = check,
	.show = show,
};

static void shape(struct weir_limit_shape *shape)
{
	shape->ops = &ops;
	shape->has_times = true;
	shape->span = ANCHOR + 1;
	shape->times = weir_times_shape_of(shape->limit.rate, shape->span, false);
	shape->fixed_bytes[0] = weir_times_fixed_bytes(&shape->times, false);
	shape->fixed_bytes[1] = weir_times_fixed_bytes(&shape->times, true);
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " waiting, each for up to ");
	weir_limit_put_time(text, limit->window_ms);
	if (limit->done.field_count == 0)
		return;
	weir_text_puts(text, " or until ");
	weir_match_describe(text, &limit->done);
}

static void brief(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " waiting");
}

static void met(const struct weir_limit *limit, int64_t t, int64_t *after_ms, int64_t *until_ms)
{
	*after_ms = t - limit->window_ms;
	*until_ms = INT64_MAX;
}

const struct weir_algorithm weir_limit_queue = {
	.name = "queue",
	.members = {{.name = "length",
                 .meaning = "how many events may be in progress",
                 .at = offsetof(struct weir_limit, rate),
                 .needed = "how many may be in the queue, such as 5",
                 .least = 1,
                 .most = WEIR_RATE_MAX},
                {.name = "hold",
                 .meaning = "when an event ends by itself",
                 .kind = WEIR_MEMBER_TIME,
                 .at = offsetof(struct weir_limit, window_ms),
                 .needed = "how long an entry stays at most, such as \"30s\"",
                 .least = 1,
                 .most = WEIR_WINDOW_MAX_MS},
                {.name = "done", .meaning = "records that end one, as in \"match\"", .kind = WEIR_MEMBER_MATCH}},
	.describe = describe,
	.brief = brief,
	.met = met,
	.shape = shape,
	.shown = "{\"times\":[[time,count],...]}",
};
