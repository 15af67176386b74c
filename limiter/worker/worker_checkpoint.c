/*
 * Checkpoints as a worker sees them: a cut is taken between two messages, waits
 * until what was published before it is acknowledged, and goes to the saver.
 * And what keepers answer.
 */
#include "limiter/worker/internal.h"

#include "common/base/alloc.h"

#include <string.h>

enum {
	SWEEP_BUCKETS = 1024, /* housekeeping after a checkpoint; eviction goes as far as the ceiling asks */
	STREAM_SEGMENTS = 16, /* read at once in the background: few enough to hold up nothing */
	REPLIES_MOST_MS = 100,
};

/* ---- jobs ---- */

struct checkpoint_job *worker_job(struct worker *worker, struct slot *slot, enum checkpoint_job_kind kind)
{
	struct checkpoint_job *job = weir_alloc(1, sizeof *job);
	job->kind = kind;
	job->partition = slot->partition;
	job->replies = &worker->replies;
	job->epoch = slot->stored.epoch;
	job->at_least = slot->current;
	return job;
}

void worker_submit(struct worker *worker, struct slot *slot, struct checkpoint_job *job)
{
	slot->jobs++;
	checkpoint_io_submit(
		job->kind == CHECKPOINT_SAVE ? worker->options.checkpoint_writer : worker->options.checkpoint_reader, job);
}

void worker_stream(struct worker *worker, struct slot *slot)
{
	uint32_t segments[STREAM_SEGMENTS];
	if (slot->state != WORKER_LIVE || slot->whole || slot->streaming || slot->waiting || atomic_load(&worker->stop))
		return;
	uint32_t count = shard_unread(lane_shard(slot->lane), segments, STREAM_SEGMENTS);
	slot->whole = count == 0;
	if (slot->whole)
		return;
	struct checkpoint_job *job = worker_job(worker, slot, CHECKPOINT_LOAD);
	job->segments = weir_alloc(count, sizeof *segments);
	memcpy(job->segments, segments, count * sizeof *segments);
	job->segment_count = count;
	job->later = true;
	job->stored = slot->checkpoints;
	slot->streaming = true;
	worker_submit(worker, slot, job);
}

/* ---- cuts ---- */

bool worker_is_stored(const struct slot *slot)
{
	return !slot->saving && slot->cut == NULL && lane_next_offset(slot->lane) == slot->cut_offset;
}

bool worker_is_overdue(const struct worker *worker, const struct slot *slot)
{
	int64_t limit_ms = worker->options.age_limit_ms;
	return limit_ms > 0 && !worker_is_stored(slot) && weir_monotonic_ms() - slot->safe_ms > limit_ms;
}

static void cut(struct worker *worker, struct slot *slot, int64_t now_ms)
{
	struct checkpoint_job *job = worker_job(worker, slot, CHECKPOINT_SAVE);
	checkpoint_cut(&job->cut, slot->lane, &slot->stored);
	slot->cut = job;
	memcpy(slot->cut_needs, slot->sent, sizeof slot->cut_needs);
	slot->cut_ms = now_ms;
	slot->cut_offset = lane_next_offset(slot->lane);
}

/* The partition's cut, if it is due; and its way to the saver. */
static void checkpoint(struct worker *worker, struct slot *slot, bool all, int64_t now_ms)
{
	struct shard *shard = lane_shard(slot->lane);
	bool changed = lane_next_offset(slot->lane) != slot->cut_offset;
	bool due = all || slot->state == WORKER_LEAVING || shard_wants_checkpoint(shard) ||
	           now_ms - slot->cut_ms >= worker->options.config->limiter.checkpoint_interval_ms;
	if (changed && due && slot->cut == NULL && !slot->saving && !slot->waiting)
		cut(worker, slot, now_ms);
	if (slot->cut != NULL && worker_acknowledged(slot, slot->cut_needs)) {
		worker_submit(worker, slot, slot->cut);
		slot->cut = NULL;
		slot->saving = true;
	}
	if (worker_is_stored(slot))
		slot->safe_ms = now_ms;
	if (slot->full && !slot->waiting && !shard_is_full(shard) && !worker_is_overdue(worker, slot))
		worker_go_on(worker, slot); /* the cut alone has made room */
}

void worker_checkpoints(struct worker *worker, bool all)
{
	int64_t now_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < worker->slot_count && worker_works(worker); i++) {
		struct slot *slot = &worker->slots[i];
		if (!worker_has(slot))
			continue;
		checkpoint(worker, slot, all, now_ms);
		worker_stream(worker, slot);
		worker_ask_for_policy(worker, slot, now_ms);
	}
}

/* ---- answers ---- */

static void refused(struct worker *worker, struct slot *slot, const struct checkpoint_job *job, enum weir_status status)
{
	if (job->lost)
		worker_take_again(worker, slot, &job->error);
	else
		worker_stick(worker, slot, status, &job->error);
}

static void saved(struct worker *worker, struct slot *slot, struct checkpoint_job *job)
{
	checkpoint_finish(&job->cut, slot->lane, job->status == WEIR_OK);
	slot->saving = false;
	if (!worker_has(slot))
		return;
	if (job->status != WEIR_OK) {
		refused(worker, slot, job, job->status);
		return;
	}
	slot->checkpoints++;
	slot->current = job->cut.state.checkpoint;
	slot->safe_ms = slot->cut_ms;
	weir_trouble_off(&worker->age_trouble, worker->options.log, "limiter");
	worker->bus->consumed(worker->consumer, slot->partition, job->cut.state.next_offset);
	weir_counter_add(&worker->stats.checkpoints, 1);
	weir_histogram_observe(&worker->stats.checkpoint, &weir_latency_scale, (double)job->took_ms / 1000.0);
	if (slot->waiting)
		return;
	shard_sweep(lane_shard(slot->lane), SWEEP_BUCKETS); /* what is clean now may go */
	if (slot->full)
		worker_go_on(worker, slot); /* one message at least: were the ceiling below a frame, it would stand still */
}

/*
 * What was read in the background is as of the checkpoint that was current then. A bucket that was changed since, and
 * left memory, is in one that was stored since: then it is read anew.
 */
static bool is_outdated(const struct slot *slot, const struct checkpoint_job *job)
{
	return job->later && job->stored != slot->checkpoints;
}

static void loaded(struct worker *worker, struct slot *slot, struct checkpoint_job *job)
{
	enum weir_status status = job->status;
	if (job->later)
		slot->streaming = false;
	if (!worker_has(slot))
		return;
	if (status == WEIR_OK && !is_outdated(slot, job))
		status = checkpoint_load(slot->lane, job->segments, job->segment_count, &job->blobs, &job->error);
	if (status != WEIR_OK)
		refused(worker, slot, job, status);
	else if (job->kind == CHECKPOINT_POLICIES)
		worker_policies_read(worker, slot);
	else if (!job->later)
		worker_go_on(worker, slot);
}

static void taken(struct worker *worker, struct slot *slot, struct checkpoint_job *job)
{
	enum weir_status status = job->status;
	if (status == WEIR_OK && (!worker_works(worker) || !slot->wanted || atomic_load(&worker->stop)))
		status = WEIR_END;
	if (status == WEIR_OK)
		status = worker_taken(worker, slot, job, &job->error);
	if (status == WEIR_INVALID || status == WEIR_NEWER) {
		worker_stick(worker, slot, status, &job->error);
	} else if (status != WEIR_OK) {
		int64_t wait_ms = status == WEIR_AGAIN ? job->retry_ms : status == WEIR_END ? 0 : WORKER_RETRY_MS;
		slot->retry_ms = weir_monotonic_ms() + wait_ms;
		worker_set_state(worker, slot, WORKER_EMPTY);
	}
}

void worker_take_replies(struct worker *worker)
{
	struct checkpoint_job *job;
	/* To go on with a partition may wait for its leader: those that are at work have their turn in between. */
	int64_t end_ms = weir_monotonic_ms() + REPLIES_MOST_MS;
	while ((worker->status != WEIR_OK || weir_monotonic_ms() < end_ms) &&
	       (job = checkpoint_replies_take(&worker->replies)) != NULL) {
		struct slot *slot = worker_slot(worker, job->partition);
		slot->jobs--;
		switch (job->kind) {
		case CHECKPOINT_SAVE: saved(worker, slot, job); break;
		case CHECKPOINT_TAKE: taken(worker, slot, job); break;
		case CHECKPOINT_ANNOUNCE: break; /* a courtesy: nothing rests on it */
		default: loaded(worker, slot, job); break;
		}
		checkpoint_job_free(job);
	}
}
