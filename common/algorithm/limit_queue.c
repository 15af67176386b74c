/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue N, hold: entries that wait; each leaves when a record says that one is
 * done, or `hold` after it came.
 *
 * Its length is the limit's rate and its hold the window. An event out of order is taken as it comes, so there is
 * no span that its times must lie in, and they are kept whole.
 *
 * A record that says done takes the oldest entry with all of its cost. Plain times are entries of cost 1; others are
 * runs, which lie apart: two events of one time are two entries. Where refused events count too, the queue may be longer
 * than its length. Of what lies before the newest N, only the number of entries is kept: each takes one such record that
 * frees nothing.
 */
#include "common/algorithm/internal.h"

/* Above every time: entries of 48 bits stand for themselves. */
#define ANCHOR ((INT64_C(1) << WEIR_TIME_BITS) - 1)

enum { MORE_BYTES = 4 };

static struct weir_times open_entries(const struct weir_limit_view *view)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	times.apart = view->apart;
	return times;
}

static bool is_empty(const struct weir_limit_view *view)
{
	return weir_bytes_get(view->fixed, view->shape->times.count_bytes) == 0;
}

/*
 * Entries before the newest N. Without an entry there are none: a reservation may have given back the last one, and nothing
 * would say when those before it leave.
 */
static uint32_t more_of(const struct weir_limit_view *view)
{
	if (!view->apart || is_empty(view))
		return 0;
	return (uint32_t)weir_bytes_get(view->fixed + view->shape->fixed_bytes[1], MORE_BYTES);
}

static void set_more(const struct weir_limit_view *view, uint64_t more)
{
	if (view->apart)
		weir_bytes_put(view->fixed + view->shape->fixed_bytes[1], MORE_BYTES, more < UINT32_MAX ? more : UINT32_MAX);
}

static bool leave(const struct weir_limit_view *view, int64_t t)
{
	struct weir_times times = open_entries(view);
	uint32_t before = times.length;
	if (before == 0 || t < view->shape->limit.window_ms)
		return false;
	weir_times_drop_until(&times, t - view->shape->limit.window_ms);
	if (times.length == before)
		return false;
	weir_times_close(&times);
	set_more(view, 0); /* they are older */
	return true;
}

static bool done(const struct weir_limit_view *view)
{
	struct weir_times times = open_entries(view);
	uint32_t more = more_of(view);
	if (times.length == 0)
		return false;
	if (more > 0) {
		set_more(view, more - 1u);
		return true;
	}
	if (times.apart)
		weir_times_drop_entry(&times);
	else
		weir_times_drop_oldest(&times, 1); /* runs that do not lie apart are an older weir's: it merged entries */
	weir_times_close(&times);
	return true;
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	(void)t;
	struct weir_times times = weir_limit_times(view, ANCHOR);
	return (int64_t)times.total + c > view->shape->limit.rate ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	struct weir_times times = open_entries(view);
	int64_t rate = view->shape->limit.rate, count = c < rate ? c : rate;
	if (!times.apart && (times.runs || count > 1 || (int64_t)times.total + count > rate))
		return WEIR_LIMIT_NEEDS_RUNS;
	if (weir_times_wanted(&times, count) > times.room)
		return WEIR_LIMIT_NEEDS_ROOM;
	uint64_t entries = UINT64_C(1) + more_of(view) + times.length;
	weir_times_add(&times, t, count);
	weir_times_close(&times);
	set_more(view, entries - times.length);
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

static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	return view->shape->limit.rate - held(view, t);
}

/* An entry leaves with all of its cost: so much of the newest may stay as leaves room for c. */
static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	struct weir_times times = weir_limit_times(view, ANCHOR);
	const struct weir_limit *limit = &view->shape->limit;
	if (c > limit->rate)
		return WEIR_LIMIT_NEVER;
	if ((int64_t)times.total + c <= limit->rate)
		return t;
	int64_t at = weir_times_newest(&times, (uint64_t)(limit->rate - c + 1)) + limit->window_ms;
	return at > t ? at : t;
}

/* The entry of that event, if it waits still. */
static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	struct weir_times times = open_entries(view);
	int64_t rate = view->shape->limit.rate;
	if (weir_times_take(&times, t, (uint64_t)(whole < rate ? whole : rate), (uint64_t)c) == 0)
		return false;
	weir_times_close(&times);
	return true;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	struct weir_times source = open_entries(from), target = open_entries(to);
	weir_times_copy(&target, &source);
	weir_times_close(&target);
	set_more(to, more_of(from));
}

static bool check(const struct weir_limit_view *view)
{
	struct weir_times times = open_entries(view);
	return weir_times_check(&times, view->shape->span);
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	struct weir_times times = open_entries(view);
	weir_text_puts(text, "{\"times\":[");
	for (uint32_t i = 0; i < times.length; i++) {
		weir_text_puts(text, i > 0 ? ",[" : "[");
		weir_text_int(text, weir_times_at(&times, i));
		weir_text_append(text, ",", 1);
		weir_text_int(text, (int64_t)weir_times_count_at(&times, i));
		weir_text_append(text, "]", 1);
	}
	weir_text_append(text, "]", 1);
	if (more_of(view) > 0) {
		weir_text_puts(text, ",\"more\":");
		weir_text_int(text, more_of(view));
	}
	weir_text_append(text, "}", 1);
}

static const struct weir_limit_ops ops = {
	.judge = judge,
	.record = record,
	.reset = reset,
	.held = held,
	.left = left,
	.passes = passes,
	.leave = leave,
	.done = done,
	.give_back = give_back,
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
	shape->apart_bytes = MORE_BYTES;
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
	.shown = "{\"times\":[[time,cost],...],\"more\":count}",
};
