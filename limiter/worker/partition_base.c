/* SPDX-License-Identifier: Apache-2.0 */
/* The change of a partition's state, what others see of it, what is counted of it, and jobs about it. */
#include "limiter/worker/partition_base.h"

#include "common/base/alloc.h"

#include <string.h>
#include <time.h>

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The state shown to others, who need not know whether messages wait for a moment. */
static enum worker_state shown(const struct partition *partition)
{
	enum partition_state state = partition->state;
	bool waits = (state == PARTITION_HELD || state == PARTITION_LOADING) &&
	             now_us() - partition->state_us >= (int64_t)WORKER_PAUSED_MS * 1000;
	switch (state) {
	case PARTITION_EMPTY: return WORKER_EMPTY;
	case PARTITION_TAKING: return WORKER_TAKING;
	case PARTITION_RELEASING: return WORKER_DROPPED;
	case PARTITION_HALTED:
	case PARTITION_PARKED: return WORKER_PARKED;
	default: return !partition_state_receives(state) ? WORKER_LEAVING : waits ? WORKER_PAUSED : WORKER_LIVE;
	}
}

/*
 * The position to show. If nothing is queued, all that was received is judged, and the consumer's position may be
 * further: there may be offsets without messages.
 */
static uint64_t place_of(const struct partition *partition)
{
	const struct worker_core *core = partition->tools->core;
	uint64_t judged = lane_next_offset(partition->lane);
	if (!partition_state_receives(partition->state) || partition->queued > 0 ||
	    !publisher_works(partition->tools->publisher))
		return judged;
	uint64_t read = core->bus->position(core->consumer, partition->number);
	return read > judged ? read : judged;
}

void partition_show(const struct partition *partition)
{
	const struct worker_core *core = partition->tools->core;
	if (partition->lane == NULL)
		return;
	uint64_t waiting =
		partition_state_receives(partition->state) ? core->bus->waiting(core->consumer, partition->number) : 0;
	view_set_place(partition->tools->view, partition->number, place_of(partition),
	               shard_clock_ms(lane_shard(partition->lane)), waiting);
	view_set_paused(
		partition->tools->view, partition->number,
		partition->state == PARTITION_HELD &&
			checkpointing_is_overdue(&partition->checkpointing, partition->lane, atomic_load(&core->age_limit_ms)));
	view_set_state(partition->tools->view, partition->number, shown(partition));
}

void partition_go(struct partition *partition, enum partition_state to)
{
	const struct partition_tools *tools = partition->tools;
	struct worker_core *core = tools->core;
	enum partition_state from = partition->state;
	int64_t at_us = now_us();
	if (from == PARTITION_LOADING)
		weir_counter_add(&core->stats.load_us, (uint64_t)(at_us - partition->state_us));
	partition_state_set(&partition->state, to);
	partition->state_us = at_us;
	if (partition_state_receives(from) && partition_state_receives(to)) {
		if (from == PARTITION_LIVE || to == PARTITION_LIVE)
			core->bus->pause(core->consumer, partition->number, to != PARTITION_LIVE);
		return;
	}
	if (to == PARTITION_EMPTY)
		placement_release(core->options.placement, partition->number, partition->counted);
	partition_show(partition);
	if (from == PARTITION_TAKING ? to == PARTITION_LIVE : to == PARTITION_EMPTY && !partition->wanted)
		view_set_error(tools->view, partition->number, "");
	view_set_state(tools->view, partition->number, shown(partition));
}

/* ---- what metrics count ---- */

static const struct weir_policy *newest_policy(const struct partition *partition)
{
	struct policy_registry *registry = partition->tools->core->options.registry;
	return policy_registry_policy(registry, policy_registry_newest(registry));
}

static void count_from(struct partition *partition, uint64_t number, bool anew)
{
	if (partition->counting || number < partition->counted)
		return;
	view_add_lane(partition->tools->view, partition->lane, newest_policy(partition), anew);
	partition->counting = true;
	partition->counted = number;
}

/* A standalone process continues the counters of its checkpoints; those of its own lanes before it has already. */
void partition_count_begin(struct partition *partition)
{
	bool anew = !partition->tools->core->options.standalone || partition->counted > 0;
	partition->counting = false;
	count_from(partition, lane_place(partition->lane)->base + lane_next_offset(partition->lane), anew);
}

void partition_count_from(struct partition *partition, uint64_t offset)
{
	count_from(partition, lane_place(partition->lane)->base + offset, true);
}

void partition_counted(struct partition *partition, uint64_t number)
{
	if (partition->counting && number >= partition->counted)
		partition->counted = number + 1;
}

void partition_count_end(struct partition *partition)
{
	if (partition->counting)
		view_remove_lane(partition->tools->view, partition->lane, newest_policy(partition));
	partition->counting = false;
}

/* ---- jobs ---- */

struct checkpoint_job *partition_job(const struct partition *partition, enum checkpoint_job_kind kind)
{
	struct checkpoint_job *job = weir_alloc(1, sizeof *job);
	job->kind = kind;
	job->partition = partition->number;
	job->replies = &partition->tools->core->replies;
	job->epoch = partition->checkpointing.taken.epoch;
	job->at_least = partition->checkpointing.current;
	return job;
}

struct checkpoint_job *partition_load_job(const struct partition *partition, const uint32_t *segments, uint32_t count)
{
	struct checkpoint_job *job = partition_job(partition, CHECKPOINT_LOAD);
	job->segments = weir_alloc(count, sizeof *segments);
	memcpy(job->segments, segments, count * sizeof *segments);
	job->segment_count = count;
	job->stored = partition->checkpointing.stored;
	return job;
}

void partition_submit(struct partition *partition, struct checkpoint_job *job)
{
	partition->jobs++;
	checkpoint_io_submit(partition->tools->core->options.checkpoint_reader, job);
}

void partition_say_stopped(struct partition *partition, uint64_t epoch, const char *words)
{
	struct checkpoint_job *job = partition_job(partition, CHECKPOINT_STOPPED);
	view_set_error(partition->tools->view, partition->number, words);
	job->epoch = epoch;
	job->words = weir_copy(words, strlen(words));
	partition_submit(partition, job);
}
