/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sliding_window N, W: the newest N recorded times, of which those above t - W
 * and c more may not exceed N. uniform I (limit_uniform.c) is the same with
 * N = 1, W = I.
 *
 * The test needs no count: c more fit unless the (N - c + 1)-th newest time is
 * above t - W. For one more with plain times that is one look at the oldest.
 *
 * Times up to newest - 2 W go: a judged event lies above newest - W, so nothing
 * there can be above its t - W. That bounds how far back a time can lie, and
 * with it the bits that it takes.
 *
 * With a lateness L the times above newest - W - L stay too, so an event above
 * newest - L is judged by every span that holds it. While events come in order
 * the span that ends with the event is the fullest, and the first test is enough.
 * Of such times at most N lie in any span of W, so there are N (1 + L/W) at most;
 * only with "count": "all" can they be N (2 + L/W), and then what lies before the
 * oldest is no longer known: an event whose spans reach there is over.
 */
#include "common/algorithm/internal.h"

enum {
	PRECISION_MS, /* own; up to 1: none, as times are whole milliseconds */
	LATENESS_MS,  /* own; 0: none */
};
#define LATENESS_MAX_MS INT64_C(86400000)
enum { ECONOMIC_PARTS = 60 };

static inline int64_t unit_ms(const struct weir_limit_view *view)
{
	return view->shape->divider.factor == 0 ? 1 : view->shape->divider.divisor;
}

/* Recorded times are rounded up to the precision. */
static inline int64_t unit_of(const struct weir_limit_view *view, int64_t t)
{
	if (view->shape->divider.factor == 0)
		return t;
	return weir_divide(view->shape->divider, t + view->shape->divider.divisor - 1);
}

static inline struct weir_times open(const struct weir_limit_view *view)
{
	return weir_limit_times(view, unit_of(view, view->newest_ms));
}

static unsigned judge(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	struct weir_times times = open(view);
	if (times.length == 0)
		return c > limit->rate ? WEIR_LIMIT_OVER : 0;
	int64_t window_start = t - limit->window_ms;
	if (t <= times.anchor * unit_ms(view) - limit->window_ms)
		return WEIR_LIMIT_LATE;
	if (c > limit->rate)
		return WEIR_LIMIT_OVER;
	uint64_t k = (uint64_t)(limit->rate - c + 1);
	if (times.total < k)
		return 0;
	int64_t kth = c == 1 ? weir_times_at(&times, 0) : weir_times_newest(&times, k);
	return kth * unit_ms(view) > window_start ? WEIR_LIMIT_OVER : 0;
}

static enum weir_limit_recorded record(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	const struct weir_limit *limit = &view->shape->limit;
	struct weir_times times = open(view);
	int64_t unit = unit_of(view, t);
	if (t < view->newest_ms && times.length == 0)
		return WEIR_LIMIT_NEEDS_OWN_TIME;
	if (c > 1 && !times.runs && limit->rate > WEIR_LIMIT_PLAIN_COST_MAX)
		return WEIR_LIMIT_NEEDS_RUNS;
	if (unit > times.anchor) {
		/* The newest so far: what has become too old to matter makes place first. */
		int64_t horizon = unit * unit_ms(view) - 2 * limit->window_ms;
		if (times.length > 0 && horizon >= 0)
			weir_times_drop_until(&times, weir_divide(view->shape->divider, horizon));
		times.anchor = unit;
	} else if (times.length == 0) {
		times.anchor = unit;
	}
	if (c == 1 && !times.runs && times.total == (uint64_t)limit->rate && unit >= times.anchor)
		weir_times_drop_oldest(&times, 1);
	if (weir_times_wanted(&times, c < limit->rate ? c : limit->rate) > times.room)
		return WEIR_LIMIT_NEEDS_ROOM;
	weir_times_add(&times, unit, c);
	weir_times_close(&times);
	return WEIR_LIMIT_RECORDED;
}

/* ---- with a lateness ---- */

static inline int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* How far behind the newest time an event is not yet late. */
static inline int64_t reach_ms(const struct weir_limit *limit)
{
	return larger(limit->window_ms, limit->own[LATENESS_MS]);
}

/* Windows that their times lie in, and one for those that "count": "all" adds. */
static int64_t windows_of(const struct weir_limit *limit)
{
	return 2 + weir_limit_divide_up(limit->own[LATENESS_MS], limit->window_ms);
}

/*
 * Whether some span of W that holds t has `wanted` times. Spans begin behind t - W and before t; one that begins just
 * before a time holds all that any span between it and the time before does, so only those are looked at. A time that
 * was rounded up counts in each span that the event itself may have been in.
 */
static bool has_full_span(const struct weir_limit_view *view, const struct weir_times *times, int64_t t,
                          uint64_t wanted)
{
	int64_t unit = unit_ms(view), reach = view->shape->limit.window_ms + unit - 1;
	int64_t window_start = t - view->shape->limit.window_ms;
	uint32_t begin =
		window_start < 0 ? 0 : weir_times_first_above(times, weir_divide(view->shape->divider, window_start));
	uint32_t end = begin;
	uint64_t held = 0;
	for (;; begin++) {
		int64_t start = begin < times->length ? weir_times_at(times, begin) * unit - 1 : t - 1;
		start = start < t - 1 ? start : t - 1;
		for (; end < times->length && weir_times_at(times, end) * unit <= start + reach; end++)
			held += weir_times_count_at(times, end);
		if (held >= wanted)
			return true;
		if (start == t - 1)
			return false;
		held -= weir_times_count_at(times, begin);
	}
}

static unsigned judge_late(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	struct weir_times times = open(view);
	int64_t newest_ms = times.anchor * unit_ms(view), window_start = t - limit->window_ms;
	if (times.length > 0 && t <= newest_ms - reach_ms(limit))
		return WEIR_LIMIT_LATE;
	if (c > limit->rate)
		return WEIR_LIMIT_OVER;
	uint64_t wanted = (uint64_t)(limit->rate - c + 1);
	if (c == 0 || times.total < wanted)
		return 0;
	if (weir_times_newest(&times, wanted) * unit_ms(view) <= window_start)
		return 0; /* not even with all that is newer than it */
	if (t > newest_ms - unit_ms(view) || t <= newest_ms - limit->own[LATENESS_MS])
		return WEIR_LIMIT_OVER;
	if (times.total == (uint64_t)times.shape->most && weir_times_at(&times, 0) * unit_ms(view) > window_start)
		return WEIR_LIMIT_OVER;
	return has_full_span(view, &times, t, wanted) ? WEIR_LIMIT_OVER : 0;
}

/* Of the times up to newest - W - L only those among the newest N stay. */
static void trim(const struct weir_limit_view *view, struct weir_times *times)
{
	const struct weir_limit *limit = &view->shape->limit;
	int64_t cut_ms = times->anchor * unit_ms(view) - limit->window_ms - limit->own[LATENESS_MS];
	if (times->total <= (uint64_t)limit->rate || cut_ms < 0 || weir_times_at(times, 0) * unit_ms(view) > cut_ms)
		return;
	uint64_t kept = weir_times_above(times, weir_divide(view->shape->divider, cut_ms));
	weir_times_drop_oldest(times, times->total - (kept > (uint64_t)limit->rate ? kept : (uint64_t)limit->rate));
}

static enum weir_limit_recorded record_late(const struct weir_limit_view *view, int64_t t, int64_t c, bool past)
{
	(void)past;
	const struct weir_limit *limit = &view->shape->limit;
	struct weir_times times = open(view);
	int64_t unit = unit_of(view, t), more = c < limit->rate ? c : limit->rate;
	if (t < view->newest_ms && times.length == 0)
		return WEIR_LIMIT_NEEDS_OWN_TIME;
	if (c > 1 && !times.runs && limit->rate > WEIR_LIMIT_PLAIN_COST_MAX)
		return WEIR_LIMIT_NEEDS_RUNS;
	if (unit > times.anchor || times.length == 0) {
		int64_t horizon = unit * unit_ms(view) - limit->window_ms - reach_ms(limit);
		if (times.length > 0 && horizon >= 0)
			weir_times_drop_until(&times, weir_divide(view->shape->divider, horizon));
		times.anchor = unit;
	}
	if (weir_times_wanted(&times, more) > times.room)
		return WEIR_LIMIT_NEEDS_ROOM;
	weir_times_add(&times, unit, more);
	trim(view, &times);
	weir_times_close(&times);
	return WEIR_LIMIT_RECORDED;
}

/* ---- with and without ---- */

static int64_t reset(const struct weir_limit_view *view, int64_t t)
{
	struct weir_times times = open(view);
	uint64_t rate = (uint64_t)view->shape->limit.rate;
	if (times.total < rate)
		return t;
	int64_t passes = weir_times_newest(&times, rate) * unit_ms(view) + view->shape->limit.window_ms;
	return passes > t ? passes : t;
}

/* A time that is a whole number of units is above t - W if that number is above floor((t - W) / unit). */
static int64_t held(const struct weir_limit_view *view, int64_t t)
{
	struct weir_times times = open(view);
	const struct weir_limit *limit = &view->shape->limit;
	int64_t start = t - limit->window_ms;
	uint64_t above = start < 0 ? times.total : weir_times_above(&times, weir_divide(view->shape->divider, start));
	return above < (uint64_t)limit->rate ? (int64_t)above : limit->rate;
}

static int64_t left(const struct weir_limit_view *view, int64_t t)
{
	bool is_late = view->shape->ops->judge(view, t, 1) & WEIR_LIMIT_LATE;
	return is_late ? view->shape->limit.rate : view->shape->limit.rate - held(view, t);
}

static int64_t passes(const struct weir_limit_view *view, int64_t t, int64_t c)
{
	const struct weir_limit *limit = &view->shape->limit;
	if (!(view->shape->ops->judge(view, t, c) & WEIR_LIMIT_OVER))
		return t;
	if (c > limit->rate)
		return WEIR_LIMIT_NEVER;
	struct weir_times times = open(view);
	int64_t at = weir_times_newest(&times, (uint64_t)(limit->rate - c + 1)) * unit_ms(view) + limit->window_ms;
	return at > t ? at : t;
}

/* The newest time stays what it was, though it may be the one that goes. */
static bool give_back(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c)
{
	(void)whole;
	struct weir_times times = open(view);
	if (weir_times_take(&times, unit_of(view, t), 0, (uint64_t)c) == 0)
		return false;
	weir_times_close(&times);
	return true;
}

static void copy(const struct weir_limit_view *to, const struct weir_limit_view *from)
{
	struct weir_times source = open(from), target = open(to);
	weir_times_copy(&target, &source);
	weir_times_close(&target);
}

static bool is_empty(const struct weir_limit_view *view)
{
	return weir_bytes_get(view->fixed, view->shape->times.count_bytes) == 0;
}

static bool check(const struct weir_limit_view *view)
{
	struct weir_times times = open(view);
	return weir_times_check(&times, view->shape->span);
}

static void show(const struct weir_limit_view *view, struct weir_text *text)
{
	struct weir_times times = open(view);
	const struct weir_limit *limit = &view->shape->limit;
	weir_limit_show_times(text, &times, unit_ms(view),
	                      times.anchor * unit_ms(view) - limit->window_ms - reach_ms(limit));
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

static const struct weir_limit_ops late_ops = {
	.judge = judge_late,
	.record = record_late,
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

void weir_limit_sliding_shape(struct weir_limit_shape *shape)
{
	struct weir_limit *limit = &shape->limit;
	int64_t unit_ms = limit->own[PRECISION_MS] > 1 ? limit->own[PRECISION_MS] : 1;
	bool has_lateness = limit->own[LATENESS_MS] > 0;
	shape->ops = has_lateness ? &late_ops : &ops;
	shape->lateness_ms = limit->own[LATENESS_MS];
	shape->has_times = true;
	shape->runs_only = unit_ms > 1;
	shape->divider = weir_divider_of(unit_ms);
	shape->span = (limit->window_ms + reach_ms(limit)) / unit_ms + 2;
	int64_t most = has_lateness ? limit->rate * windows_of(limit) : limit->rate;
	shape->times = weir_times_shape_of(most, shape->span, shape->runs_only);
	shape->fixed_bytes[0] = weir_times_fixed_bytes(&shape->times, shape->runs_only);
	shape->fixed_bytes[1] = weir_times_fixed_bytes(&shape->times, true);
	shape->is_plain = !shape->runs_only && 2 * shape->times.time_bits <= WEIR_BITS_ENTRY_MAX;
}

static int64_t window_of(const struct weir_limit *limit)
{
	return limit->window_ms;
}

static void describe(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " in any ");
	weir_limit_put_time(text, limit->window_ms);
	const char *before = " (";
	if (limit->own[PRECISION_MS] > 1) {
		weir_text_puts(text, " (times rounded up to ");
		weir_limit_put_time(text, limit->own[PRECISION_MS]);
		before = ", ";
	}
	if (limit->own[LATENESS_MS] > 0) {
		weir_text_puts(text, before);
		weir_text_puts(text, "exact for events up to ");
		weir_limit_put_time(text, limit->own[LATENESS_MS]);
		weir_text_puts(text, " late");
		before = ", ";
	}
	if (before[0] == ',')
		weir_text_puts(text, ")");
}

/* Beyond it the times that a bucket may keep would be more than a rate may be. */
static enum weir_status check_lateness(const struct weir_json *at, const struct weir_limit *limit,
                                       struct weir_error *error)
{
	if (limit->own[LATENESS_MS] == 0 || limit->rate <= WEIR_RATE_MAX / windows_of(limit))
		return WEIR_OK;
	struct weir_json lateness = weir_json_member(at, "lateness");
	return weir_json_fail(&lateness, error,
	                      "needs up to rate x (2 + lateness / window) = %lld times a key, and may need %lld: choose a "
	                      "shorter lateness, a smaller rate or a longer window",
	                      (long long)(limit->rate * windows_of(limit)), (long long)WEIR_RATE_MAX);
}

static void scale(struct weir_limit *limit, uint32_t thousandths)
{
	int64_t most = limit->own[LATENESS_MS] > 0 ? WEIR_RATE_MAX / windows_of(limit) : WEIR_RATE_MAX;
	limit->rate = weir_limit_multiply(limit->rate, thousandths, 1, most);
}

int64_t weir_limit_sliding_most(const struct weir_limit *limit, const struct weir_limit *window)
{
	return weir_limit_most_in(weir_limit_divide_up(window->window_ms, limit->window_ms), limit->rate);
}

/* A time that is rounded up to whole units is above t - W if the time itself is above that, rounded down to them. */
void weir_limit_sliding_met(const struct weir_limit *limit, int64_t t, int64_t *after_ms, int64_t *until_ms)
{
	int64_t unit = limit->own[PRECISION_MS] > 1 ? limit->own[PRECISION_MS] : 1, start = t - limit->window_ms;
	*after_ms = start < 0 ? -1 : start / unit * unit;
	*until_ms = INT64_MAX;
}

/* To the window's sixtieth, as people write it. */
static bool economize(struct weir_limit *limit, struct weir_text *member)
{
	static const int64_t steps[] = {86400000, 21600000, 3600000, 600000, 60000, 10000, 1000, 100, 10, 1};
	size_t i = 0;
	while (steps[i] > 1 && steps[i] > limit->window_ms / ECONOMIC_PARTS)
		i++;
	if (limit->own[PRECISION_MS] >= steps[i])
		return false;
	limit->own[PRECISION_MS] = steps[i];
	weir_text_puts(member, "\"precision\": \"");
	weir_limit_put_time(member, steps[i]);
	weir_text_puts(member, "\"");
	return true;
}

static int64_t memory_ms(const struct weir_limit *limit)
{
	return limit->window_ms + limit->own[LATENESS_MS] + (limit->own[PRECISION_MS] > 1 ? limit->own[PRECISION_MS] : 0);
}

const struct weir_algorithm weir_limit_sliding_window = {
	.name = "sliding_window",
	.members = {WEIR_RATE_MEMBER,
                WEIR_WINDOW_MEMBER,
                {.name = "precision",
                 .meaning = "rounds times up to it, which bounds the memory of a large window",
                 .kind = WEIR_MEMBER_TIME,
                 .at = offsetof(struct weir_limit, own[PRECISION_MS]),
                 .least = 1,
                 .bound = window_of},
                {.name = "lateness",
                 .meaning = "judges events that are less late than this by their own time",
                 .kind = WEIR_MEMBER_TIME,
                 .at = offsetof(struct weir_limit, own[LATENESS_MS]),
                 .most = LATENESS_MAX_MS,
                 .is_optional = true}},
	.check = check_lateness,
	.describe = describe,
	.is_window = true,
	.most_within = weir_limit_sliding_most,
	.economize = economize,
	.met = weir_limit_sliding_met,
	.memory_ms = memory_ms,
	.scale = scale,
	.shape = weir_limit_sliding_shape,
	.shown = "{\"times\":[[time,count],...]}",
};
