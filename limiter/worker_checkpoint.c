/*
 * Checkpoints as a worker sees them: a cut is taken between two messages, waits
 * until what was published before it is acknowledged, and goes to the saver.
 */
#include "limiter/worker_inner.h"

#include "common/alloc.h"
#include "common/clock.h"

#include <string.h>

enum { SWEEP_BUCKETS = 1024 }; /* housekeeping after a checkpoint; eviction goes as far as the ceiling asks */

static void cut(struct worker *worker, struct slot *slot, int64_t now_ms)
{
	struct keeper_job *job = weir_alloc(1, sizeof *job);
	job->kind = KEEPER_SAVE;
	job->partition = lane_partition(slot->lane);
	job->replies = &worker->replies;
	checkpoint_cut(&job->cut, slot->lane, &slot->stored);
	slot->cut = job;
	memcpy(slot->cut_needs, slot->sent, sizeof slot->cut_needs);
	slot->cut_ms = now_ms;
	slot->cut_offset = lane_next_offset(slot->lane);
}

/* Cuts that are due; cuts whose messages are acknowledged go to the saver. `all`: every partition that has changed. */
void worker_checkpoints(struct worker *worker, bool all)
{
	int64_t now_ms = weir_monotonic_ms();
	int64_t interval_ms = worker->options.config->limiter.checkpoint_interval_ms;
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		struct shard *shard = lane_shard(slot->lane);
		bool changed = lane_next_offset(slot->lane) != slot->cut_offset;
		bool due = all || now_ms - slot->cut_ms >= interval_ms || shard_wants_checkpoint(shard);
		if (changed && due && slot->cut == NULL && !slot->saving && !slot->waiting)
			cut(worker, slot, now_ms);
		if (slot->cut != NULL && worker_acknowledged(slot, slot->cut_needs)) {
			keeper_submit(worker->options.saver, slot->cut);
			slot->cut = NULL;
			slot->saving = true;
		}
		if (slot->full && !slot->waiting && !shard_is_full(shard))
			worker_go_on(worker, slot); /* the cut alone has made room */
	}
}

static void saved(struct worker *worker, struct slot *slot, struct keeper_job *job)
{
	checkpoint_finish(&job->cut, slot->lane, job->status == WEIR_OK);
	slot->saving = false;
	if (job->status != WEIR_OK) {
		worker_fail(worker, job->status, &job->error);
		return;
	}
	worker->bus->consumed(worker->consumer, lane_partition(slot->lane), job->cut.state.next_offset);
	weir_counter_add(&worker->stats.checkpoints, 1);
	weir_histogram_observe(&worker->stats.checkpoint, &weir_latency_scale, (double)job->took_ms / 1000.0);
	if (slot->waiting)
		return;
	shard_sweep(lane_shard(slot->lane), SWEEP_BUCKETS); /* what is clean now may go */
	if (slot->full)
		worker_go_on(worker, slot); /* one message at least: were the ceiling below a frame, it would stand still */
}

static void loaded(struct worker *worker, struct slot *slot, struct keeper_job *job)
{
	enum weir_status status = job->status;
	if (status == WEIR_OK)
		status = checkpoint_load(slot->lane, job->segments, job->segment_count, &job->blobs, &job->error);
	if (status != WEIR_OK)
		worker_fail(worker, status, &job->error);
	else
		worker_go_on(worker, slot);
}

void worker_take_replies(struct worker *worker)
{
	struct keeper_job *job;
	while ((job = keeper_replies_take(&worker->replies)) != NULL) {
		struct slot *slot = worker_slot(worker, job->partition);
		if (job->kind == KEEPER_SAVE)
			saved(worker, slot, job);
		else
			loaded(worker, slot, job);
		keeper_job_free(job);
	}
}
