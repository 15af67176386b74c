/* SPDX-License-Identifier: Apache-2.0 */
/* A table guarded by a lock, and sums over lanes. */
#include "limiter/worker/view.h"

#include "common/base/alloc.h"
#include "limiter/lane/lane.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const state_names[WORKER_STATE_COUNT] = {"empty",   "taking",  "live", "paused",
                                                            "leaving", "dropped", "stuck"};

const char *worker_state_name(enum worker_state state)
{
	return state_names[state];
}

void view_init(struct view *view, uint32_t partitions)
{
	*view = (struct view){0};
	pthread_mutex_init(&view->lock, NULL);
	view->partitions = weir_alloc(partitions, sizeof *view->partitions);
	view->lanes = weir_alloc(partitions, sizeof(struct lane *));
	view->retired = tally_new();
}

void view_deinit(struct view *view)
{
	tally_free(view->retired);
	pthread_mutex_destroy(&view->lock);
	free(view->partitions);
	free(view->lanes);
}

/* ---- partitions ---- */

void view_set_state(struct view *view, uint32_t partition, enum worker_state state)
{
	pthread_mutex_lock(&view->lock);
	view->partitions[partition].state = state;
	pthread_mutex_unlock(&view->lock);
}

void view_set_error(struct view *view, uint32_t partition, const char *error)
{
	struct worker_partition *look = &view->partitions[partition];
	pthread_mutex_lock(&view->lock);
	snprintf(look->error, sizeof look->error, "%s", error);
	pthread_mutex_unlock(&view->lock);
}

void view_set_paused(struct view *view, uint32_t partition, bool paused)
{
	pthread_mutex_lock(&view->lock);
	view->partitions[partition].paused = paused;
	pthread_mutex_unlock(&view->lock);
}

void view_set_fenced(struct view *view, uint32_t partition, uint32_t times)
{
	pthread_mutex_lock(&view->lock);
	view->partitions[partition].fenced = times;
	pthread_mutex_unlock(&view->lock);
}

void view_set_place(struct view *view, uint32_t partition, uint64_t next_offset, int64_t clock_ms, uint64_t waiting)
{
	struct worker_partition *look = &view->partitions[partition];
	pthread_mutex_lock(&view->lock);
	look->next_offset = next_offset;
	look->clock_ms = clock_ms;
	look->waiting = waiting;
	pthread_mutex_unlock(&view->lock);
}

void view_partition(struct view *view, uint32_t partition, struct worker_partition *look)
{
	pthread_mutex_lock(&view->lock);
	*look = view->partitions[partition];
	pthread_mutex_unlock(&view->lock);
}

/* ---- lanes ---- */

void view_add_lane(struct view *view, struct lane *lane, const struct weir_policy *policy, bool anew)
{
	pthread_mutex_lock(&view->lock);
	view->lanes[view->lane_count++] = lane;
	if (anew)
		tally_fold(view->retired, lane_tally(lane), true, policy);
	pthread_mutex_unlock(&view->lock);
}

void view_remove_lane(struct view *view, struct lane *lane, const struct weir_policy *policy)
{
	pthread_mutex_lock(&view->lock);
	for (uint32_t i = 0; i < view->lane_count; i++)
		if (view->lanes[i] == lane)
			view->lanes[i--] = view->lanes[--view->lane_count];
	tally_fold(view->retired, lane_tally(lane), false, policy);
	pthread_mutex_unlock(&view->lock);
}

static void add_zone(struct worker_zone *numbers, const struct tally_zone *zone)
{
	if (zone == NULL)
		return;
	numbers->passed += zone->passed;
	numbers->blocked += zone->blocked;
	numbers->late += zone->late;
	numbers->decisions += zone->decisions;
}

void view_zone(struct view *view, uint32_t zone_id, struct worker_zone *numbers)
{
	*numbers = (struct worker_zone){0};
	pthread_mutex_lock(&view->lock);
	add_zone(numbers, tally_zone(view->retired, zone_id));
	for (uint32_t i = 0; i < view->lane_count; i++)
		add_zone(numbers, tally_zone(lane_tally(view->lanes[i]), zone_id));
	pthread_mutex_unlock(&view->lock);
}
