/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other threads see of a worker: the states of its partitions, and the counts of
 * its lanes.
 *
 * Lanes are added, removed and freed, so their tallies are read under the lock,
 * which the worker also holds while it adds or removes one. A lane is added when it
 * begins to count, which may be after it has begun to judge. The counts of a
 * removed lane are kept, so that sums only grow.
 */
#ifndef LIMITER_VIEW_H
#define LIMITER_VIEW_H

#include "limiter/worker/worker.h"

#include <pthread.h>

struct view {
	pthread_mutex_t lock;                /* guards all that follows */
	struct worker_partition *partitions; /* by number; `messages` and `bytes` are not kept here */
	struct tally *retired;               /* counters of removed lanes, less those that lanes had when they were added */
	struct lane **lanes;                 /* those that count */
	uint32_t lane_count;
};

void view_init(struct view *view, uint32_t partitions);
void view_deinit(struct view *view);

/* ---- set by the worker's thread ---- */

void view_set_state(struct view *view, uint32_t partition, enum worker_state state);
void view_set_paused(struct view *view, uint32_t partition, bool paused);
void view_set_fenced(struct view *view, uint32_t partition, uint32_t times);
/** @param error  "": none */
void view_set_error(struct view *view, uint32_t partition, const char *error);
/** Sets the position. @param waiting  how many messages are known to be in the log after it */
void view_set_place(struct view *view, uint32_t partition, uint64_t next_offset, int64_t clock_ms, uint64_t waiting);

/**
 * Adds or removes a lane; in between it is counted with all others.
 *
 * @param policy  the policy by which counters are folded
 * @param anew    subtract the counts that it has already, so that only what follows is counted
 */
void view_add_lane(struct view *view, struct lane *lane, const struct weir_policy *policy, bool anew);
void view_remove_lane(struct view *view, struct lane *lane, const struct weir_policy *policy);

/* ---- read by any thread ---- */

void view_partition(struct view *view, uint32_t partition, struct worker_partition *look);
void view_zone(struct view *view, uint32_t zone_id, struct worker_zone *numbers);

#endif
