/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window's events are those whose times it spans. Of a limit that keeps a level, any event since the level was last at
 * rest has a share in it. A limit that starts empty, after a lift, a changed policy or another rate, drops all.
 */
#include "deploy/weir/explain/counted.h"

#include "common/algorithm/limit_state.h"
#include "common/base/alloc.h"

#include <stdlib.h>

enum { LOOK_LEAST = 1024 };

/* What an event adds to what the limit holds. */
static int64_t units_of(const struct weir_limit *limit, const struct explained_event *event)
{
	bool bounded = limit->algorithm->met != NULL && weir_limit_shape_of(limit, false).has_times;
	return bounded && event->cost > limit->rate ? limit->rate : event->cost;
}

static bool meets(const struct explained_event *event, int64_t after_ms, int64_t until_ms)
{
	return event->time_ms > after_ms && event->time_ms <= until_ms;
}

static void drop_at(struct counted *counted, size_t place)
{
	counted->count--;
	memmove(counted->events + place, counted->events + place + 1, (counted->count - place) * sizeof *counted->events);
}

/* What no event that is judged from here on can meet: twice what the limit remembers is more than enough. */
static void drop_old(struct counted *counted, const struct weir_limit *limit)
{
	if (limit->algorithm->met == NULL || counted->count < 2 * counted->looked + LOOK_LEAST)
		return;
	int64_t horizon_ms = counted->newest_ms - 2 * weir_limit_memory_ms(limit);
	size_t kept = 0;
	for (size_t i = 0; i < counted->count; i++)
		if (counted->events[i].time_ms > horizon_ms)
			counted->events[kept++] = counted->events[i];
	counted->count = counted->looked = kept;
}

static void add(struct counted *counted, const struct explained_event *event)
{
	if (counted->count == counted->room) {
		counted->room = 2 * counted->room + 16;
		counted->events = weir_realloc(counted->events, counted->room, sizeof *counted->events);
	}
	counted->events[counted->count++] = *event;
	if (event->time_ms > counted->newest_ms)
		counted->newest_ms = event->time_ms;
}

/* Entries that left a queue before their time: the oldest ones, while it holds fewer than are here. */
static void drop_left(struct counted *counted, const struct counted_step *step, int64_t t)
{
	int64_t after_ms, until_ms, held = 0;
	step->limit->algorithm->met(step->limit, t, &after_ms, &until_ms);
	for (size_t i = 0; i < counted->count; i++)
		held += meets(&counted->events[i], after_ms, until_ms) ? units_of(step->limit, &counted->events[i]) : 0;
	while (held > step->after.held && counted->count > 0) {
		size_t oldest = 0;
		for (size_t i = 1; i < counted->count; i++)
			if (counted->events[i].time_ms < counted->events[oldest].time_ms)
				oldest = i;
		struct explained_event *event = &counted->events[oldest];
		int64_t units = meets(event, after_ms, until_ms) ? units_of(step->limit, event) : 0;
		int64_t left = held - step->after.held;
		if (units > left) {
			event->cost -= left;
			return;
		}
		held -= units;
		drop_at(counted, oldest);
	}
}

static bool is_recorded(const struct counted_step *step, const struct explained_event *event, bool charged_by_all)
{
	if (step->done || (step->verdict & WEIR_VERDICT_NONE) != 0)
		return false;
	if (charged_by_all)
		return true;
	/* Late for some limit, perhaps for this one: then it holds no more than before. */
	if ((step->verdict & WEIR_VERDICT_LATE) != 0 && step->after.held <= step->before.held)
		return false;
	return step->records && event->cost > 0 && step->after.any;
}

void counted_take(struct counted *counted, const struct counted_step *step, const struct explained_event *event)
{
	const struct weir_algorithm *algorithm = step->limit->algorithm;
	bool charged_by_all = weir_limit_shape_of(step->limit, false).ops->charged_by_all;
	bool recorded = is_recorded(step, event, charged_by_all);
	bool passed = (step->verdict & WEIR_VERDICT_BLOCK) == 0;
	if (!step->before.any || (algorithm->met == NULL && step->before.held == 0))
		counted->count = 0;
	else if (recorded && passed && !charged_by_all && step->after.held <= step->before.held)
		counted->count = 0; /* it was emptied as it was judged: another rate applies */
	if (recorded)
		add(counted, event);
	if (algorithm->met == NULL && step->after.held == 0)
		counted->count = 0;
	if (algorithm->met != NULL && !algorithm->is_window)
		drop_left(counted, step, event->time_ms);
	drop_old(counted, step->limit);
}

size_t counted_of(const struct counted *counted, const struct weir_limit *limit, int64_t t, int64_t held,
                  struct explained_event **events, int64_t *lacking)
{
	int64_t after_ms = INT64_MIN, until_ms = INT64_MAX, units = 0;
	bool all = limit->algorithm->met == NULL;
	if (!all)
		limit->algorithm->met(limit, t, &after_ms, &until_ms);
	size_t count = 0, place = counted->count;
	struct explained_event *made = weir_alloc(counted->count + 1, sizeof *made);
	for (; place > 0 && (all || units < held); place--) {
		const struct explained_event *event = &counted->events[place - 1];
		if (!meets(event, after_ms, until_ms))
			continue;
		made[count++] = *event;
		units += units_of(limit, event);
	}
	for (size_t i = 0; i < count / 2; i++) {
		struct explained_event other = made[i];
		made[i] = made[count - 1 - i];
		made[count - 1 - i] = other;
	}
	*lacking = !all && units < held ? held - units : 0;
	*events = made;
	return count;
}

void counted_deinit(struct counted *counted)
{
	free(counted->events);
	*counted = (struct counted){0};
}
