/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No checkpoint is stored before everything published up to its cut is
 * acknowledged, because decisions and judged frames before a checkpoint are not
 * made again.
 */
#include "limiter/worker/checkpointing.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <assert.h>

enum { SWEEP_BUCKETS = 1024 }; /* housekeeping after a checkpoint; eviction goes as far as the ceiling requires */

bool checkpointing_state_may_follow(enum checkpointing_state from, enum checkpointing_state to)
{
	switch (from) {
	case CHECKPOINTING_IDLE: return to == CHECKPOINTING_CUT;
	case CHECKPOINTING_CUT: return to == CHECKPOINTING_STORING || to == CHECKPOINTING_IDLE;
	case CHECKPOINTING_STORING: return to == CHECKPOINTING_IDLE;
	default: return false;
	}
}

static void set_state(struct checkpointing *checkpointing, enum checkpointing_state to)
{
	assert(checkpointing_state_may_follow(checkpointing->state, to));
	checkpointing->state = to;
}

void checkpointing_begin(struct checkpointing *checkpointing, const struct checkpoint_partition *taken,
                         const struct weir_partition_state *state)
{
	assert(checkpointing->state == CHECKPOINTING_IDLE);
	checkpointing->taken = *taken;
	checkpointing->current = state->checkpoint;
	checkpointing->cut_ms = checkpointing->safe_ms = weir_monotonic_ms();
	checkpointing->cut_offset = state->next_offset;
	checkpointing->stored = 0;
}

/* ---- when ---- */

static bool has_changed(const struct checkpointing *checkpointing, const struct lane *lane)
{
	return lane_next_offset(lane) != checkpointing->cut_offset;
}

bool checkpointing_is_done(const struct checkpointing *checkpointing, const struct lane *lane)
{
	return checkpointing->state == CHECKPOINTING_IDLE && !has_changed(checkpointing, lane);
}

bool checkpointing_is_overdue(const struct checkpointing *checkpointing, const struct lane *lane, int64_t limit_ms)
{
	return limit_ms > 0 && !checkpointing_is_done(checkpointing, lane) &&
	       weir_monotonic_ms() - checkpointing->safe_ms > limit_ms;
}

bool checkpointing_is_due(const struct checkpointing *checkpointing, struct lane *lane, int64_t interval_ms,
                          int64_t now_ms)
{
	return shard_wants_checkpoint(lane_shard(lane)) || now_ms - checkpointing->cut_ms >= interval_ms;
}

/* ---- each step ---- */

void checkpointing_cut(struct checkpointing *checkpointing, const struct publisher *publisher, struct lane *lane,
                       int64_t now_ms)
{
	if (checkpointing->state != CHECKPOINTING_IDLE || !has_changed(checkpointing, lane))
		return;
	struct checkpoint_job *job = weir_alloc(1, sizeof *job);
	job->kind = CHECKPOINT_SAVE;
	job->partition = lane_partition(lane);
	job->replies = &publisher->core->replies;
	job->epoch = checkpointing->taken.epoch;
	job->at_least = checkpointing->current;
	job->registry = publisher->core->options.registry;
	checkpoint_cut(&job->cut, lane, &checkpointing->taken);
	publisher_mark(publisher, job->partition, &checkpointing->needs);
	checkpointing->job = job;
	checkpointing->cut_ms = now_ms;
	checkpointing->cut_offset = lane_next_offset(lane);
	set_state(checkpointing, CHECKPOINTING_CUT);
}

void checkpointing_go_on(struct checkpointing *checkpointing, const struct publisher *publisher,
                         const struct lane *lane, int64_t now_ms)
{
	if (checkpointing->state == CHECKPOINTING_CUT &&
	    publisher_has_passed(publisher, lane_partition(lane), &checkpointing->needs)) {
		set_state(checkpointing, CHECKPOINTING_STORING);
		checkpoint_io_submit(publisher->core->options.checkpoint_writer, checkpointing->job);
		checkpointing->job = NULL;
	}
	if (checkpointing_is_done(checkpointing, lane))
		checkpointing->safe_ms = now_ms;
}

void checkpointing_answered(struct checkpointing *checkpointing, struct lane *lane, struct checkpoint_job *job)
{
	set_state(checkpointing, CHECKPOINTING_IDLE);
	checkpoint_finish(&job->cut, lane, job->status == WEIR_OK);
}

void checkpointing_advance(struct checkpointing *checkpointing, struct worker_core *core,
                           const struct checkpoint_job *job)
{
	checkpointing->stored++;
	checkpointing->current = job->cut.state.checkpoint;
	checkpointing->safe_ms = checkpointing->cut_ms;
	weir_fault_over(&core->lost, core->options.log, "limiter", "checkpoints are stored again");
	core->bus->consumed(core->consumer, job->partition, job->cut.state.next_offset);
	weir_counter_add(&core->stats.checkpoints, 1);
	weir_histogram_observe(&core->stats.checkpoint, &weir_latency_scale, (double)job->took_ms / 1000.0);
}

void checkpointing_clean(struct lane *lane)
{
	shard_sweep(lane_shard(lane), SWEEP_BUCKETS);
}

void checkpointing_give_up(struct checkpointing *checkpointing, struct lane *lane)
{
	if (checkpointing->state != CHECKPOINTING_CUT)
		return;
	checkpoint_finish(&checkpointing->job->cut, lane, false);
	checkpoint_job_free(checkpointing->job);
	checkpointing->job = NULL;
	set_state(checkpointing, CHECKPOINTING_IDLE);
}
