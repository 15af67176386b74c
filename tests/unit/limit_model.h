/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The obvious limit: a plain list of times or plain numbers for each algorithm,
 * and the rules of the specification word by word. The part of the obvious shard
 * (shard_model.h) that knows algorithms.
 */
#ifndef TESTS_UNIT_LIMIT_MODEL_H
#define TESTS_UNIT_LIMIT_MODEL_H

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/policy/policy.h"

#include <stdlib.h>
#include <string.h>

typedef __int128 model_wide;

static inline model_wide model_ceil_div(model_wide a, model_wide b)
{
	return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static inline model_wide model_floor_div(model_wide a, model_wide b)
{
	return -model_ceil_div(-a, b);
}

/* ---- which limits it knows: by their names, as no two parts of weir may judge by one table ---- */

enum model_kind {
	MODEL_SLIDING_WINDOW,
	MODEL_FIXED_WINDOW,
	MODEL_UNIFORM,
	MODEL_TOKEN_BUCKET,
	MODEL_GCRA,
	MODEL_QUEUE,
	MODEL_KINDS
};

/* What they have of their own, all in one place. */
enum { MODEL_PRECISION = 0, MODEL_LATENESS = 1, MODEL_OFFSET = 0, MODEL_PENALIZE = 0 };

static const char *const model_names[MODEL_KINDS] = {"sliding_window", "fixed_window", "uniform",
                                                     "token_bucket",   "gcra",         "queue"};

static inline const struct weir_algorithm *model_algorithm(enum model_kind kind)
{
	return weir_algorithm_named(model_names[kind]);
}

static inline enum model_kind model_kind(const struct weir_limit *limit)
{
	int kind = 0;
	while (kind < MODEL_KINDS && strcmp(model_names[kind], limit->algorithm->name) != 0)
		kind++;
	return (enum model_kind)kind;
}

static inline bool model_penalizes(const struct weir_limit *limit)
{
	return model_kind(limit) == MODEL_TOKEN_BUCKET && limit->own[MODEL_PENALIZE];
}

/* ---- one limit's state ---- */

struct model_limit {
	const struct weir_limit *limit;
	bool recorded;
	int64_t *times; /* sliding_window, queue: sorted */
	int64_t *costs; /* queue: of each entry */
	size_t count;
	int64_t more;                      /* queue: entries before the newest that make its length */
	int64_t newest, current, previous; /* fixed_window */
	model_wide level;                  /* token_bucket: units; penalize: tokens; gcra: TAT */
	int64_t time;
	int64_t seen; /* sliding_window, uniform, gcra: the newest time recorded, which giving back does not lower */
};

static inline model_wide model_level(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	model_wide full = (model_wide)limit->burst * limit->window_ms;
	if (!state->recorded)
		return full;
	int64_t gone = t > state->time ? t - state->time : 0;
	model_wide level = state->level + (model_wide)limit->rate * gone;
	return level < full ? level : full;
}

static inline model_wide model_penalized(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	if (!state->recorded)
		return limit->burst - c < -1 ? -1 : limit->burst - c;
	int64_t gone = t > state->time ? t - state->time : 0;
	model_wide exact = (state->level - c) * limit->window_ms + (model_wide)limit->rate * gone;
	model_wide away = (2 * (exact < 0 ? -exact : exact) + limit->window_ms) / (2 * (model_wide)limit->window_ms);
	model_wide k = exact >= 0 ? away : -away;
	return k < -1 ? -1 : k > limit->burst ? limit->burst : k;
}

static inline model_wide model_tat(const struct model_limit *state, int64_t t)
{
	model_wide now = (model_wide)t * state->limit->rate;
	return state->recorded && state->level > now ? state->level : now;
}

static inline void model_leave(struct model_limit *state, int64_t t)
{
	if (model_kind(state->limit) != MODEL_QUEUE)
		return;
	size_t kept = 0;
	for (size_t i = 0; i < state->count; i++) {
		if (state->times[i] + state->limit->window_ms <= t)
			continue;
		state->costs[kept] = state->costs[i];
		state->times[kept++] = state->times[i];
	}
	if (kept < state->count)
		state->more = 0;
	state->count = kept;
}

static inline void model_first_goes(struct model_limit *state)
{
	state->count--;
	memmove(state->times, state->times + 1, state->count * sizeof *state->times);
	memmove(state->costs, state->costs + 1, state->count * sizeof *state->costs);
}

/* Whether there was an entry that a done record takes out. */
static inline bool model_done(struct model_limit *state)
{
	if (model_kind(state->limit) != MODEL_QUEUE || state->count == 0)
		return false;
	if (state->more > 0)
		state->more--;
	else
		model_first_goes(state);
	return true;
}

static inline int64_t model_waiting(const struct model_limit *state)
{
	int64_t sum = 0;
	for (size_t i = 0; i < state->count; i++)
		sum += state->costs[i];
	return sum;
}

/* An entry, behind those of its time. What lies before the newest that make the queue's length is only counted. */
static inline void model_enqueue(struct model_limit *state, int64_t t, int64_t c)
{
	int64_t most = state->limit->rate;
	state->times = weir_realloc(state->times, state->count + 1, sizeof *state->times);
	state->costs = weir_realloc(state->costs, state->count + 1, sizeof *state->costs);
	size_t place = state->count++;
	for (; place > 0 && state->times[place - 1] > t; place--) {
		state->times[place] = state->times[place - 1];
		state->costs[place] = state->costs[place - 1];
	}
	state->times[place] = t;
	state->costs[place] = c < most ? c : most;
	for (int64_t excess; (excess = model_waiting(state) - most) > 0;) {
		if (state->costs[0] > excess) {
			state->costs[0] -= excess;
			break;
		}
		model_first_goes(state);
		state->more++;
	}
}

/* sliding_window's lateness; uniform has none. */
static inline int64_t model_lateness(const struct weir_limit *limit)
{
	return model_kind(limit) == MODEL_SLIDING_WINDOW ? limit->own[MODEL_LATENESS] : 0;
}

static inline int64_t model_reach(const struct weir_limit *limit)
{
	return model_lateness(limit) > limit->window_ms ? model_lateness(limit) : limit->window_ms;
}

/* How many times a sliding window keeps at most. */
static inline int64_t model_most(const struct weir_limit *limit)
{
	int64_t lateness = model_lateness(limit);
	return lateness > 0 ? limit->rate * (2 + (int64_t)model_ceil_div(lateness, limit->window_ms)) : limit->rate;
}

static inline bool model_late(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	if (model_kind(limit) == MODEL_SLIDING_WINDOW || model_kind(limit) == MODEL_UNIFORM)
		return state->count > 0 && t <= state->seen - model_reach(limit);
	if (model_kind(limit) == MODEL_FIXED_WINDOW)
		return state->recorded && (t + limit->own[MODEL_OFFSET]) / limit->window_ms < state->newest - 1;
	return false;
}

static inline int64_t model_held(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	int64_t held = 0;
	switch (model_kind(limit)) {
	case MODEL_SLIDING_WINDOW:
	case MODEL_UNIFORM:
		for (size_t i = 0; i < state->count; i++)
			held += state->times[i] > t - limit->window_ms;
		return held < limit->rate ? held : limit->rate;
	case MODEL_FIXED_WINDOW: {
		int64_t bucket = (t + limit->own[MODEL_OFFSET]) / limit->window_ms;
		if (!state->recorded)
			return 0;
		return bucket == state->newest ? state->current : bucket == state->newest - 1 ? state->previous : 0;
	}
	case MODEL_TOKEN_BUCKET:
		if (limit->own[MODEL_PENALIZE])
			return limit->burst - (int64_t)(state->level > 0 ? state->level : 0);
		return limit->burst - (int64_t)(model_level(state, t) / limit->window_ms);
	case MODEL_GCRA: {
		model_wide owed = model_ceil_div(state->level - (model_wide)t * limit->rate, limit->window_ms);
		if (!state->recorded || owed < 0)
			return 0;
		return (int64_t)(owed > limit->burst + 1 ? limit->burst + 1 : owed);
	}
	default: return model_waiting(state);
	}
}

/* Every span that holds t, by each of its times and by t. */
static inline bool model_full_span(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	int64_t step = limit->own[MODEL_PRECISION] > 0 ? limit->own[MODEL_PRECISION] : 1;
	for (size_t i = 0; i <= state->count; i++) {
		int64_t start = i < state->count ? state->times[i] - 1 : t - 1, held = 0;
		if (start < t - limit->window_ms || start > t - 1)
			continue;
		for (size_t j = 0; j < state->count; j++)
			held += state->times[j] > start && state->times[j] < start + limit->window_ms + step;
		if (held + c > limit->rate)
			return true;
	}
	return false;
}

static inline bool model_sliding_over(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	bool is_over = model_held(state, t) + c > limit->rate;
	if (!is_over || c > limit->rate || model_lateness(limit) == 0 || t <= state->seen - model_lateness(limit))
		return is_over;
	if (state->count == (size_t)model_most(limit) && state->times[0] > t - limit->window_ms)
		return true;
	return model_full_span(state, t, c);
}

static inline bool model_over(const struct model_limit *state, int64_t t, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	switch (model_kind(limit)) {
	case MODEL_SLIDING_WINDOW:
	case MODEL_UNIFORM: return model_sliding_over(state, t, c);
	case MODEL_FIXED_WINDOW: return model_held(state, t) + c > limit->rate;
	case MODEL_TOKEN_BUCKET:
		if (limit->own[MODEL_PENALIZE])
			return model_penalized(state, t, c) == -1;
		return model_level(state, t) < (model_wide)c * limit->window_ms;
	case MODEL_GCRA:
		return model_tat(state, t) + (model_wide)c * limit->window_ms -
		           ((model_wide)limit->burst + 1) * limit->window_ms >
		       (model_wide)t * limit->rate;
	default: return model_waiting(state) + c > limit->rate;
	}
}

static inline void model_insert(struct model_limit *state, int64_t time, int64_t copies, int64_t most)
{
	if (copies > most)
		copies = most;
	state->times = weir_realloc(state->times, state->count + (size_t)copies, sizeof *state->times);
	size_t place = state->count;
	while (place > 0 && state->times[place - 1] > time)
		place--;
	memmove(state->times + place + copies, state->times + place, (state->count - place) * sizeof *state->times);
	for (int64_t i = 0; i < copies; i++)
		state->times[place + (size_t)i] = time;
	state->count += (size_t)copies;
	if (state->count > (size_t)most) {
		size_t oldest = state->count - (size_t)most;
		memmove(state->times, state->times + oldest, (size_t)most * sizeof *state->times);
		state->count = (size_t)most;
	}
}

/* What is so old that not even a late event can meet it goes when a newer one comes: giving back leaves none of it. */
static inline void model_drop_old(struct model_limit *state, int64_t newest)
{
	const struct weir_limit *limit = state->limit;
	size_t old = 0;
	while (old < state->count && state->times[old] <= newest - limit->window_ms - model_reach(limit))
		old++;
	if (old == 0) /* there may be no times at all */
		return;
	state->count -= old;
	memmove(state->times, state->times + old, state->count * sizeof *state->times);
}

/* Of the times up to newest - W - L only those among the newest N stay. */
static inline void model_trim(struct model_limit *state)
{
	const struct weir_limit *limit = state->limit;
	int64_t cut = state->seen - limit->window_ms - model_lateness(limit);
	size_t old = 0;
	while (state->count - old > (size_t)limit->rate && state->times[old] <= cut)
		old++;
	state->count -= old;
	memmove(state->times, state->times + old, state->count * sizeof *state->times);
}

static inline void model_count(struct model_limit *state, int64_t bucket, int64_t c, int64_t most)
{
	if (!state->recorded) {
		state->newest = bucket;
	} else if (bucket > state->newest) {
		state->previous = bucket == state->newest + 1 ? state->current : 0;
		state->current = 0;
		state->newest = bucket;
	}
	int64_t *count = bucket == state->newest ? &state->current : &state->previous;
	int64_t sum = *count + c < most ? *count + c : most;
	*count = sum > *count ? sum : *count;
}

/* @param past  what is refused counts, too */
static inline void model_record(struct model_limit *state, int64_t t, int64_t c, bool past)
{
	const struct weir_limit *limit = state->limit;
	int64_t step = limit->own[MODEL_PRECISION] > 0 ? limit->own[MODEL_PRECISION] : 1;
	model_wide most = (model_wide)t * limit->rate + ((model_wide)limit->burst + 1) * limit->window_ms;
	switch (model_kind(limit)) {
	case MODEL_SLIDING_WINDOW:
	case MODEL_UNIFORM:
		state->seen =
			state->count > 0 && state->seen > (t + step - 1) / step * step ? state->seen : (t + step - 1) / step * step;
		model_drop_old(state, state->seen);
		model_insert(state, (t + step - 1) / step * step, c < limit->rate ? c : limit->rate, model_most(limit));
		model_trim(state);
		break;
	case MODEL_FIXED_WINDOW:
		model_count(state, (t + limit->own[MODEL_OFFSET]) / limit->window_ms, c, past ? INT64_C(1) << 62 : limit->rate);
		break;
	case MODEL_TOKEN_BUCKET:
		if (limit->own[MODEL_PENALIZE]) {
			state->level = model_penalized(state, t, c);
		} else {
			state->level = model_level(state, t) - (model_wide)c * limit->window_ms;
			if (state->level < 0)
				state->level = 0;
		}
		state->time = state->recorded && state->time > t ? state->time : t;
		break;
	case MODEL_GCRA: {
		model_wide tat = model_tat(state, t) + (model_wide)c * limit->window_ms;
		if (tat > most)
			tat = most;
		if (!state->recorded || tat > state->level)
			state->level = tat;
		state->seen = state->recorded && state->seen > t ? state->seen : t;
		break;
	}
	default: model_enqueue(state, t, c); break;
	}
	state->recorded = true;
}

static inline bool model_take_times(struct model_limit *state, int64_t time, int64_t c)
{
	size_t kept = 0, before = state->count;
	for (size_t i = 0; i < before; i++) {
		if (state->times[i] == time && c > 0)
			c--;
		else
			state->times[kept++] = state->times[i];
	}
	state->count = kept;
	state->recorded = kept > 0;
	return kept < before;
}

static inline bool model_take_entry(struct model_limit *state, int64_t t, int64_t whole, int64_t c)
{
	for (size_t i = 0; i < state->count; i++) {
		if (state->times[i] != t || state->costs[i] != whole)
			continue;
		state->costs[i] -= c < whole ? c : whole;
		if (state->costs[i] > 0)
			return true;
		state->count--;
		if (state->count == 0)
			state->more = 0;
		memmove(state->times + i, state->times + i + 1, (state->count - i) * sizeof *state->times);
		memmove(state->costs + i, state->costs + i + 1, (state->count - i) * sizeof *state->costs);
		return true;
	}
	return false;
}

static inline bool model_take_count(struct model_limit *state, int64_t window, int64_t c)
{
	if (!state->recorded || window > state->newest || window < state->newest - 1)
		return false;
	int64_t *count = window == state->newest ? &state->current : &state->previous, before = *count;
	*count = before > c ? before - c : 0;
	if (state->current == 0) {
		state->recorded = false;
		state->previous = 0;
	}
	return before > 0;
}

/* Gives back c of what an event at t of cost `whole` took. @return whether anything was left of it */
static inline bool model_give_back(struct model_limit *state, int64_t t, int64_t whole, int64_t c)
{
	const struct weir_limit *limit = state->limit;
	int64_t step = limit->own[MODEL_PRECISION] > 0 ? limit->own[MODEL_PRECISION] : 1;
	model_wide owed, back = (model_wide)c * limit->window_ms, full = (model_wide)limit->burst * limit->window_ms;
	switch (model_kind(limit)) {
	case MODEL_SLIDING_WINDOW: return model_take_times(state, (t + step - 1) / step * step, c);
	case MODEL_UNIFORM: return model_take_times(state, t, c);
	case MODEL_FIXED_WINDOW: return model_take_count(state, (t + limit->own[MODEL_OFFSET]) / limit->window_ms, c);
	case MODEL_TOKEN_BUCKET:
		if (!state->recorded)
			return false;
		if (limit->own[MODEL_PENALIZE]) {
			bool was_full = state->level == limit->burst;
			state->level = state->level + c < limit->burst ? state->level + c : limit->burst;
			return !was_full;
		}
		owed = full - state->level;
		state->level = back < owed ? state->level + back : full;
		state->recorded = state->level < full;
		return owed > 0;
	case MODEL_GCRA:
		owed = state->recorded ? state->level - (model_wide)state->seen * limit->rate : 0;
		state->level -= back < owed ? back : owed;
		state->recorded = back < owed;
		return owed > 0;
	default: return model_take_entry(state, t, whole < limit->rate ? whole : limit->rate, c);
	}
}

static inline int64_t model_reset(const struct model_limit *state, int64_t t)
{
	const struct weir_limit *limit = state->limit;
	model_wide reset = t;
	switch (model_kind(limit)) {
	case MODEL_SLIDING_WINDOW:
	case MODEL_UNIFORM:
		if (state->count >= (size_t)limit->rate)
			reset = state->times[state->count - (size_t)limit->rate] + limit->window_ms;
		break;
	case MODEL_FIXED_WINDOW:
		reset = ((t + limit->own[MODEL_OFFSET]) / limit->window_ms + 1) * limit->window_ms - limit->own[MODEL_OFFSET];
		break;
	case MODEL_TOKEN_BUCKET:
		if (!state->recorded)
			break;
		if (limit->own[MODEL_PENALIZE])
			reset = state->time +
			        model_floor_div((model_wide)limit->window_ms * (1 - 2 * state->level), 2 * limit->rate) + 1;
		else
			reset = state->time + model_ceil_div(limit->window_ms - state->level, limit->rate);
		break;
	case MODEL_GCRA:
		reset = model_ceil_div(model_tat(state, t) - (model_wide)limit->burst * limit->window_ms, limit->rate);
		break;
	default:
		if (model_waiting(state) >= limit->rate)
			reset = state->times[0] + limit->window_ms;
		break;
	}
	return (int64_t)(reset > t ? reset : t);
}

static inline int64_t model_memory_ms(const struct weir_limit *limits, uint32_t count)
{
	model_wide longest = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_limit *limit = &limits[i];
		model_wide memory = 0;
		switch (model_kind(limit)) {
		case MODEL_SLIDING_WINDOW:
			memory = limit->window_ms + limit->own[MODEL_PRECISION] + model_lateness(limit);
			break;
		case MODEL_TOKEN_BUCKET:
			memory = model_ceil_div((model_wide)limit->burst * limit->window_ms, limit->rate);
			break;
		case MODEL_GCRA: memory = model_ceil_div(((model_wide)limit->burst + 1) * limit->window_ms, limit->rate); break;
		case MODEL_QUEUE: memory = limit->window_ms; break;
		default: memory = limit->window_ms; break;
		}
		longest = memory > longest ? memory : longest;
	}
	return (int64_t)longest;
}

/* ---- its state as JSON ---- */

static inline void model_show_times(struct weir_text *text, const struct model_limit *state)
{
	int64_t after = state->count == 0 ? -1 : state->seen - state->limit->window_ms - model_reach(state->limit);
	const char *before = "";
	weir_text_puts(text, "{\"times\":[");
	for (size_t i = 0, same; i < state->count; i += same) {
		for (same = 1; i + same < state->count && state->times[i + same] == state->times[i];)
			same++;
		if (state->times[i] <= after)
			continue;
		weir_text_printf(text, "%s[%lld,%zu]", before, (long long)state->times[i], same);
		before = ",";
	}
	weir_text_puts(text, "]}");
}

static inline void model_show_wide(struct weir_text *text, model_wide number)
{
	if (number >= 10)
		model_show_wide(text, number / 10);
	weir_text_printf(text, "%d", (int)(number % 10));
}

static inline void model_show_queue(struct weir_text *text, const struct model_limit *state)
{
	weir_text_puts(text, "{\"times\":[");
	for (size_t i = 0; i < state->count; i++)
		weir_text_printf(text, "%s[%lld,%lld]", i > 0 ? "," : "", (long long)state->times[i],
		                 (long long)state->costs[i]);
	weir_text_puts(text, "]");
	if (state->more > 0)
		weir_text_printf(text, ",\"more\":%lld", (long long)state->more);
	weir_text_puts(text, "}");
}

/* Nothing where nothing was recorded, or all has left. */
static inline void model_show(struct weir_text *text, const struct model_limit *state)
{
	if (!state->recorded)
		return;
	switch (model_kind(state->limit)) {
	case MODEL_FIXED_WINDOW:
		weir_text_printf(text, "{\"bucket\":%lld,\"count\":%lld,\"previous\":%lld}", (long long)state->newest,
		                 (long long)state->current, (long long)state->previous);
		break;
	case MODEL_TOKEN_BUCKET:
		weir_text_printf(text, "{\"%s\":%lld,\"time\":%lld}", state->limit->own[MODEL_PENALIZE] ? "tokens" : "level",
		                 (long long)state->level, (long long)state->time);
		break;
	case MODEL_GCRA:
		weir_text_puts(text, "{\"tat\":");
		model_show_wide(text, state->level);
		weir_text_puts(text, "}");
		break;
	case MODEL_QUEUE:
		if (state->count > 0)
			model_show_queue(text, state);
		break;
	default:
		if (state->count > 0)
			model_show_times(text, state);
		break;
	}
}

static inline void model_limit_free(struct model_limit *state)
{
	free(state->times);
	free(state->costs);
}

#endif
