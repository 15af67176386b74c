/*
 * Partitions that come and go while the others go on.
 *
 *   EMPTY ─► TAKING ─► LIVE ─► LEAVING ─► DROPPED ─► EMPTY
 *                        ├─ a gap ─► LEAVING ─┐
 *                        └─ fenced ───────────┴─► DROPPED ─► STUCK ─► EMPTY
 *
 * Taking, storing and loading are the keepers' work; a partition is freed only
 * when they have given back every job about it. Who owns one is decided by its
 * epoch in the store alone: to be told late that it is another's costs work
 * that is refused, and nothing else.
 */
#include "limiter/worker/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- taking ---- */

static void ask_for(struct worker *worker, struct slot *slot)
{
	struct checkpoint_job *job = worker_job(worker, slot, CHECKPOINT_TAKE);
	job->book = worker->options.book;
	job->assignment = worker->options.assignment;
	job->partition_stored = weir_alloc(1, sizeof *job->partition_stored);
	job->partition_stored->lateness_ms = worker->options.config->limiter.lateness_ms;
	if (slot->asked_ms == 0)
		slot->asked_ms = weir_monotonic_ms();
	job->asked_ms = slot->asked_ms;
	slot->generation = worker->generation;
	worker_set_state(worker, slot, WORKER_TAKING);
	worker_submit(worker, slot, job);
}

/* The slot as a new owner finds it; what was published by the owner before is still to be acknowledged. */
static void begin(struct slot *slot, const struct checkpoint_job *job)
{
	int64_t now_ms = weir_monotonic_ms();
	slot->stored = *job->partition_stored;
	slot->current = job->state.checkpoint;
	slot->asked_ms = 0;
	slot->saying_left = false;
	slot->waiting = slot->paused = slot->full = slot->saving = slot->streaming = slot->whole = false;
	slot->cut_ms = slot->safe_ms = now_ms;
	slot->cut_offset = job->state.next_offset;
	slot->checkpoints = 0;
	slot->remind_due_ms = slot->policy_due_ms = 0;
}

/* What a gap in the log is said by; what must be done about it only a person can say. */
static void explain_gap(struct weir_error *error, bool damaged)
{
	struct weir_error gap = *error;
	(void)weir_fail(error, gap.status,
	                damaged ? "%s: when the records up to behind it are deleted (kafka-delete-records), "
	                          "`weir recover --accept-gap` goes on there"
	                        : "%s: what lies between is lost; `weir recover --accept-gap` goes on behind it",
	                gap.text);
}

enum weir_status worker_taken(struct worker *worker, struct slot *slot, struct checkpoint_job *job,
                              struct weir_error *error)
{
	struct shard_options options = {
		.partition = slot->partition,
		.seed = worker->options.seed,
		.ceiling_bytes = worker->ceiling_bytes,
		.lateness_ms = worker->options.config->limiter.lateness_ms,
	};
	struct lane *lane = lane_new(&options, worker->options.book, worker->options.first_policy);
	enum weir_status status = checkpoint_restore(job->partition_stored, &job->state, lane, error);
	if (status == WEIR_OK) {
		status = worker->bus->assign(worker->consumer, slot->partition, job->state.next_offset, error);
		if (status == WEIR_INVALID)
			explain_gap(error, false);
	}
	if (status != WEIR_OK) {
		worker_set_place(worker, slot, lane);
		lane_free(lane);
		return status;
	}
	weir_histogram_observe(&worker->stats.take, &weir_latency_scale,
	                       (double)(weir_monotonic_ms() - slot->asked_ms) / 1000.0);
	begin(slot, job);
	worker_add_lane(worker, slot, lane);
	worker_set_state(worker, slot, WORKER_LIVE);
	weir_counter_add(&worker->stats.taken, 1);
	return WEIR_OK;
}

/* ---- letting go ---- */

static void free_lane(struct worker *worker, struct slot *slot)
{
	worker_cut_queue(slot, 0);
	worker_remove_lane(worker, slot);
	worker_set_state(worker, slot, slot->stuck ? WORKER_STUCK : WORKER_EMPTY);
}

void worker_drop(struct worker *worker, struct slot *slot, int64_t retry_ms)
{
	worker->bus->unassign(worker->consumer, slot->partition);
	if (slot->cut != NULL) {
		checkpoint_finish(&slot->cut->cut, slot->lane, false);
		checkpoint_job_free(slot->cut);
		slot->cut = NULL;
	}
	slot->retry_ms = retry_ms;
	weir_counter_add(&worker->stats.given_up, 1);
	worker_set_state(worker, slot, WORKER_DROPPED);
	if (slot->jobs == 0)
		free_lane(worker, slot);
}

static void tell_stuck(struct worker *worker, struct slot *slot, enum weir_status status,
                       const struct weir_error *error)
{
	const struct weir_log *log = worker->options.log;
	slot->stuck = true;
	if (status == WEIR_FENCED) {
		weir_log(log, WEIR_LOG_INFO, "limiter", "%s; it is taken again if the group still gives it", error->text);
		weir_counter_add(&worker->stats.fenced, 1);
	} else if (strncmp(error->text, slot->look.trouble, sizeof slot->look.trouble - 1) != 0) {
		weir_log(log, WEIR_LOG_ERROR, "limiter", "partition %u stands still: %s", slot->partition, error->text);
		worker_set_trouble(worker, slot, error->text);
	}
}

void worker_stick(struct worker *worker, struct slot *slot, enum weir_status status, const struct weir_error *error)
{
	if (worker->status != WEIR_OK)
		return;
	if (worker->options.assignment == NULL) {
		worker_fail(worker, status, error);
		return;
	}
	tell_stuck(worker, slot, status, error);
	int64_t retry_ms = weir_monotonic_ms() + (status == WEIR_FENCED ? WORKER_FENCED_RETRY_MS : WORKER_STUCK_RETRY_MS);
	if (worker_has(slot)) {
		worker_drop(worker, slot, retry_ms);
		return;
	}
	slot->retry_ms = retry_ms;
	worker_set_state(worker, slot, WORKER_STUCK);
}

/* Nobody else is about it, so there is nothing to wait for. What was judged since is judged again. */
void worker_take_again(struct worker *worker, struct slot *slot, const struct weir_error *error)
{
	if (worker->status != WEIR_OK)
		return;
	if (worker->options.assignment == NULL) {
		worker_fail(worker, WEIR_FENCED, error);
		return;
	}
	weir_log(worker->options.log, WEIR_LOG_WARNING, "limiter",
	         "the store has lost a checkpoint of partition %u: it is taken again from the one that is there (%s)",
	         slot->partition, error->text);
	worker_drop(worker, slot, 0);
}

static void say(struct worker *worker, struct slot *slot, bool left)
{
	struct checkpoint_job *job = worker_job(worker, slot, CHECKPOINT_ANNOUNCE);
	job->left = left;
	worker_submit(worker, slot, job);
}

/* A last checkpoint of what is judged; what is only received is the next owner's. */
static void leave(struct worker *worker, struct slot *slot)
{
	say(worker, slot, false);
	worker->bus->unassign(worker->consumer, slot->partition);
	worker_cut_queue(slot, slot->waiting ? 1 : 0);
	slot->full = false;
	slot->leave_end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
	worker_set_state(worker, slot, WORKER_LEAVING);
}

/*
 * What was judged before a gap may be stored, and must be where the log no longer has it to be judged again. But a log
 * that ends before it has lost what nobody will see again, and state of it is wrong.
 */
void worker_stand_at_gap(struct worker *worker, const struct weir_message *at, struct weir_error *error)
{
	const struct worker_options *options = &worker->options;
	bool named = at->partition < options->bus->partitions;
	struct slot *slot = options->assignment != NULL && named ? worker_slot(worker, at->partition) : NULL;
	if (options->assignment == NULL || !named) {
		worker_fail(worker, error->status, error);
	} else if (slot->state == WORKER_LIVE) {
		uint64_t first, next;
		struct weir_error unknown;
		bool known =
			worker->bus->extent(options->bus, WEIR_TOPIC_EVENTS, at->partition, &first, &next, &unknown) == WEIR_OK;
		explain_gap(error, known && first <= at->offset && at->offset <= next);
		if (known && at->offset <= next) {
			tell_stuck(worker, slot, WEIR_INVALID, error);
			leave(worker, slot);
		} else {
			worker_stick(worker, slot, WEIR_INVALID, error);
		}
	}
}

/* ---- each turn ---- */

static void read_assignment(struct worker *worker)
{
	uint64_t version = weir_assignment_version(worker->options.assignment);
	if (version == worker->assignment_version)
		return;
	uint32_t count;
	worker->assignment_version = version;
	worker->generation = weir_assignment_get(worker->options.assignment, worker->given, &count);
	worker->ceiling_bytes = worker->options.config->limiter.memory_bytes / (count > 0 ? count : 1);
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		slot->given = worker->given[slot->partition];
		if (slot->lane != NULL)
			shard_set_ceiling(lane_shard(slot->lane), worker->ceiling_bytes);
	}
}

/*
 * A stuck partition is tried again when the group has spoken since it was taken. And now and then: the other may have
 * taken it by mistake and dropped it, as one does whom the group's word reached late; or a person has mended the log.
 */
static bool may_retry(const struct worker *worker, const struct slot *slot, int64_t now_ms)
{
	return !slot->wanted || worker->generation > slot->generation || now_ms >= slot->retry_ms;
}

/* On its way out: once all is stored, and said, it goes. Nobody waits for one that stands at a gap. */
static void go(struct worker *worker, struct slot *slot, int64_t now_ms)
{
	bool late = now_ms >= slot->leave_end_ms && !(slot->stuck && slot->wanted);
	if (late || (slot->saying_left && slot->jobs == 0)) {
		worker_drop(worker, slot, slot->stuck ? now_ms + WORKER_STUCK_RETRY_MS : 0);
	} else if (!slot->saying_left && !slot->waiting && worker_is_stored(slot)) {
		slot->saying_left = true;
		say(worker, slot, true);
	}
}

/* Another thread that still has it lets it go first. */
static bool may_take(const struct worker *worker, const struct slot *slot, int64_t now_ms)
{
	const struct worker_options *options = &worker->options;
	return slot->wanted && worker->generation > 0 && now_ms >= slot->retry_ms && worker_works(worker) &&
	       placement_claim(options->placement, slot->partition, options->number);
}

static void step(struct worker *worker, struct slot *slot, int64_t now_ms)
{
	switch (slot->state) {
	case WORKER_EMPTY:
		if (may_take(worker, slot, now_ms))
			ask_for(worker, slot);
		else if (!slot->wanted)
			slot->asked_ms = 0;
		break;
	case WORKER_LIVE:
		if (!slot->wanted)
			leave(worker, slot);
		break;
	case WORKER_LEAVING: go(worker, slot, now_ms); break;
	case WORKER_DROPPED:
		if (slot->jobs == 0)
			free_lane(worker, slot);
		break;
	case WORKER_STUCK:
		if (may_retry(worker, slot, now_ms)) {
			slot->retry_ms = 0;
			slot->stuck = false;
			worker_set_state(worker, slot, WORKER_EMPTY);
		}
		break;
	default: break; /* TAKING: the keeper's answer moves it on */
	}
}

void worker_follow_assignment(struct worker *worker)
{
	const struct worker_options *options = &worker->options;
	if (options->assignment == NULL)
		return;
	bool stop = atomic_load(&worker->stop);
	if (!stop)
		read_assignment(worker);
	int64_t now_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		slot->wanted = !stop && slot->given && placement_of(options->placement, i) == options->number;
		step(worker, slot, now_ms);
	}
}
