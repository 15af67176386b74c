/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other threads see of a worker: the states of its partitions, and the counts of
 * its lanes.
 *
 * Lanes come and go, and are freed, so whoever reads their tallies holds the
 * lock, as the worker does while it adds or removes one. What a lane had counted
 * stays when it goes, so that sums only grow.
 */
#ifndef LIMITER_VIEW_H
#define LIMITER_VIEW_H

#include "limiter/worker/worker.h"

#include <pthread.h>

struct view {
	pthread_mutex_t lock;                /* of all that follows */
	struct worker_partition *partitions; /* by number; messages and bytes are not kept here */
	struct tally *retired;               /* counters of lanes that went, less those that lanes came with */
	struct lane **lanes;                 /* there are now */
	uint32_t lane_count;
};

void view_init(struct view *view, uint32_t partitions);
void view_deinit(struct view *view);

/* ---- told by the worker's thread ---- */

void view_set_state(struct view *view, uint32_t partition, enum worker_state state);
/** @param error  "": none */
void view_set_error(struct view *view, uint32_t partition, const char *error);
/** How far it is. @param waiting  messages that are known to be there after that */
void view_set_place(struct view *view, uint32_t partition, uint64_t next_offset, int64_t clock_ms, uint64_t waiting);

/**
 * A lane comes, or goes: it is counted with all others in between.
 *
 * @param policy  by which counters are folded
 * @param anew    what it comes with is taken off, so that the process's counters begin at nothing
 */
void view_add_lane(struct view *view, struct lane *lane, const struct weir_policy *policy, bool anew);
void view_remove_lane(struct view *view, struct lane *lane, const struct weir_policy *policy);

/* ---- read by any thread ---- */

void view_partition(struct view *view, uint32_t partition, struct worker_partition *look);
void view_zone(struct view *view, uint32_t zone_id, struct worker_zone *numbers);

#endif
