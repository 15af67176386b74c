/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window's events are those whose times it spans. Of a limit that keeps a level, any event since the level was last at
 * rest has a share in it. A limit that starts empty, after a lift, a changed policy or another rate, drops all.
 */
#include "deploy/weir/explain/counted.h"

#include "common/algorithm/limit_state.h"
#include "common/base/alloc.h"

#include <stdlib.h>

enum { LOOK_LEAST = 1024, KEPT_MAX = 2 * QUESTION_EVENTS_MAX };

/* What an event has added to what the limit holds. */
static int64_t units_of(const struct weir_limit *limit, const struct explained_event *event)
{
	bool bounded =
		event->cost > limit->rate && limit->algorithm->met != NULL && weir_limit_shape_of(limit, false).has_times;
	return (bounded ? limit->rate : event->cost) - event->gone;
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

static void drop_all(struct counted *counted)
{
	counted->count = counted->left_out = 0;
}

/* A level may not rest for as long as a log is, and a window may span millions: the newest are kept. */
static void leave_out(struct counted *counted)
{
	size_t over = counted->count - QUESTION_EVENTS_MAX;
	for (size_t i = 0; i < over; i++)
		if ((counted->left_out == 0 && i == 0) || counted->events[i].time_ms > counted->left_out_ms)
			counted->left_out_ms = counted->events[i].time_ms;
	counted->left_out += over;
	counted->count = counted->looked = QUESTION_EVENTS_MAX;
	memmove(counted->events, counted->events + over, counted->count * sizeof *counted->events);
}

static void add(struct counted *counted, const struct explained_event *event)
{
	if (counted->count == KEPT_MAX)
		leave_out(counted);
	if (counted->count == counted->room) {
		counted->room = 2 * counted->room + 16;
		counted->events = weir_realloc(counted->events, counted->room, sizeof *counted->events);
	}
	counted->events[counted->count++] = *event;
	if (event->time_ms > counted->newest_ms)
		counted->newest_ms = event->time_ms;
}

/* What has left a queue by t stays away, though a later event may be of an earlier time. */
static void drop_ended(struct counted *counted, const struct weir_limit *limit, int64_t t)
{
	int64_t after_ms, until_ms;
	size_t kept = 0;
	limit->algorithm->met(limit, t, &after_ms, &until_ms);
	while (kept < counted->count && meets(&counted->events[kept], after_ms, until_ms))
		kept++; /* mostly all: they stay where they are */
	for (size_t i = kept; i < counted->count; i++)
		if (meets(&counted->events[i], after_ms, until_ms))
			counted->events[kept++] = counted->events[i];
	counted->count = kept;
}

/* Entries that were taken out, or had no room: the oldest ones, while it holds fewer than are here. */
static void drop_oldest(struct counted *counted, const struct counted_step *step)
{
	int64_t surplus = -step->after.held;
	for (size_t i = 0; i < counted->count; i++)
		surplus += units_of(step->limit, &counted->events[i]);
	while (surplus > 0 && counted->count > 0) {
		size_t oldest = 0;
		for (size_t i = 1; i < counted->count; i++)
			if (counted->events[i].time_ms < counted->events[oldest].time_ms)
				oldest = i;
		int64_t units = units_of(step->limit, &counted->events[oldest]);
		if (units > surplus) {
			counted->events[oldest].gone += surplus;
			return;
		}
		surplus -= units;
		drop_at(counted, oldest);
	}
}

static bool is_recorded(const struct counted_step *step, const struct explained_event *event, bool charged_by_all)
{
	if (step->done || (step->verdict & WEIR_VERDICT_NONE) != 0)
		return false;
	if (charged_by_all)
		return true;
	return step->records && event->cost > 0 && !step->before.late;
}

/* A bucket that is not there yet when judging begins had its events before, if they are not too old to matter. */
static void follow_level(struct counted *counted, const struct counted_step *step, const struct explained_event *event)
{
	if (!step->before.any || step->before.held == 0) {
		counted->rested =
			counted->rested || counted->judged || event->time_ms - weir_limit_memory_ms(step->limit) >= step->since_ms;
		drop_all(counted);
	}
	counted->judged = true;
}

void counted_take(struct counted *counted, const struct counted_step *step, const struct explained_event *event)
{
	const struct weir_algorithm *algorithm = step->limit->algorithm;
	bool charged_by_all = weir_limit_shape_of(step->limit, false).ops->charged_by_all;
	bool recorded = is_recorded(step, event, charged_by_all);
	if (algorithm->met == NULL)
		follow_level(counted, step, event);
	else if (!step->before.any)
		drop_all(counted);
	bool is_queue = algorithm->met != NULL && !algorithm->is_window;
	bool judged = step->done || (step->verdict & WEIR_VERDICT_NONE) == 0;
	if (is_queue && judged)
		drop_ended(counted, step->limit, event->time_ms);
	if (recorded)
		add(counted, event);
	if (algorithm->met == NULL && step->after.held == 0)
		drop_all(counted);
	if (is_queue && judged)
		drop_oldest(counted, step);
	drop_old(counted, step->limit);
}

struct aged {
	int64_t time_ms;
	size_t place; /* in the list */
};

static int by_age(const void *a, const void *b)
{
	const struct aged *one = a, *other = b;
	if (one->time_ms != other->time_ms)
		return one->time_ms < other->time_ms ? -1 : 1;
	return (one->place > other->place) - (one->place < other->place);
}

/* Marks the oldest of them as not counted, as long as the others make up what is held. */
static void leave_out_old(const struct counted *counted, const struct weir_limit *limit, struct aged *aged,
                          size_t count, int64_t surplus, bool *taken)
{
	qsort(aged, count, sizeof *aged, by_age);
	for (size_t i = 0; i < count && surplus > 0; i++) {
		int64_t units = units_of(limit, &counted->events[aged[i].place]);
		taken[aged[i].place] = units > surplus;
		surplus -= units;
	}
}

/* @param lacks  how much of what is held the events do not make up; of a level, that is no measure */
static void tell(const struct counted *counted, bool is_level, int64_t after_ms, int64_t lacks,
                 struct question *question)
{
	bool left_out = counted->left_out > 0 && counted->left_out_ms > after_ms;
	question->lacking = is_level || left_out ? 0 : lacks;
	question->left_out = !left_out ? 0 : is_level ? (int64_t)counted->left_out : lacks;
	question->may_lack = is_level && !counted->rested;
}

size_t counted_of(const struct counted *counted, const struct weir_limit *limit, int64_t t, int64_t held,
                  struct question *question, struct explained_event **events)
{
	int64_t after_ms = INT64_MIN, until_ms = INT64_MAX, units = 0;
	bool all = limit->algorithm->met == NULL;
	bool *taken = weir_alloc(counted->count + 1, sizeof *taken);
	struct aged *aged = weir_alloc(counted->count + 1, sizeof *aged);
	size_t count = 0, made = 0;
	if (!all)
		limit->algorithm->met(limit, t, &after_ms, &until_ms);
	for (size_t i = 0; i < counted->count; i++) {
		taken[i] = meets(&counted->events[i], after_ms, until_ms);
		if (!taken[i])
			continue;
		aged[count++] = (struct aged){.time_ms = counted->events[i].time_ms, .place = i};
		units += units_of(limit, &counted->events[i]);
	}
	if (!all && units > held)
		leave_out_old(counted, limit, aged, count, units - held, taken);
	count = 0;
	for (size_t i = 0; i < counted->count; i++)
		count += taken[i];
	size_t over = count > QUESTION_EVENTS_MAX ? count - QUESTION_EVENTS_MAX : 0;
	*events = weir_alloc(count + 1, sizeof **events);
	for (size_t i = 0, met = 0; i < counted->count; i++)
		if (taken[i] && met++ >= over)
			(*events)[made++] = counted->events[i];
	tell(counted, all, after_ms, units < held ? held - units : 0, question);
	question->left_out += (int64_t)over;
	free(taken);
	free(aged);
	return made;
}

void counted_deinit(struct counted *counted)
{
	free(counted->events);
	*counted = (struct counted){0};
}
