/*
 * One loop: replies of the keepers, what the assignment gives, a batch of messages,
 * acknowledgements, checkpoints. Everything a partition needs beside its lane
 * is in its slot.
 */
#include "limiter/worker/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>

void worker_fail(struct worker *worker, enum weir_status status, const struct weir_error *error)
{
	if (worker->status != WEIR_OK)
		return;
	worker->status = status;
	worker->error = *error;
}

/* Whether a keeper or the bus owes an answer. */
static bool owed(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		const struct slot *slot = &worker->slots[i];
		if (slot->jobs > 0 || !worker_acknowledged(slot, slot->sent))
			return true;
	}
	return false;
}

static int wait_ms(const struct worker *worker)
{
	if (owed(worker))
		return WORKER_BUSY_WAIT_MS;
	return worker->options.assignment != NULL ? WORKER_ASSIGNMENT_WAIT_MS : WORKER_IDLE_WAIT_MS;
}

static void turn(struct worker *worker)
{
	worker_take_replies(worker);
	if (worker->broken)
		worker_renew_producer(worker);
	worker_follow_assignment(worker);
	worker_receive(worker, wait_ms(worker));
	worker_take_deliveries(worker, 0);
	worker_checkpoints(worker, false);
	worker_remind(worker);
	worker_refresh(worker, false);
}

/* Whether every partition is judged up to the log's end. */
static bool caught_up(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->lane_count; i++) {
		uint64_t first, next;
		struct weir_error error;
		const struct lane *lane = worker->lanes[i];
		if (worker->bus->extent(worker->options.bus, WEIR_TOPIC_EVENTS, lane_partition(lane), &first, &next, &error) !=
		        WEIR_OK ||
		    lane_next_offset(lane) < next)
			return false;
	}
	return true;
}

/* Whether nothing is left to be stored, and to be said where partitions are handed on. */
static bool settled(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		const struct slot *slot = &worker->slots[i];
		if (worker_has(slot) && (worker->options.assignment != NULL || !worker_is_stored(slot)))
			return false;
	}
	return true;
}

/* Judges what the log still holds, for as long as that goes on: a partition may wait for what does not come. */
static void drain(struct worker *worker)
{
	uint64_t judged = UINT64_MAX;
	int64_t end_ms = 0;
	while (worker->status == WEIR_OK && !caught_up(worker)) {
		uint64_t offsets = 0;
		for (uint32_t i = 0; i < worker->lane_count; i++)
			offsets += lane_next_offset(worker->lanes[i]);
		if (offsets != judged)
			end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			return;
		judged = offsets;
		turn(worker);
	}
}

/* The last checkpoint, within a bound: what it misses is judged again by the next start. */
static void finish(struct worker *worker)
{
	if (atomic_load(&worker->drain))
		drain(worker);
	int64_t end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
	while (worker_works(worker) && !settled(worker) && weir_monotonic_ms() < end_ms) {
		worker_follow_assignment(worker);
		worker_checkpoints(worker, true);
		worker_take_deliveries(worker, WORKER_BUSY_WAIT_MS);
		worker_take_replies(worker);
	}
}

static void *work(void *context)
{
	struct worker *worker = context;
	while (!atomic_load(&worker->stop) && worker->status == WEIR_OK)
		turn(worker);
	finish(worker);
	worker_refresh(worker, true);
	atomic_store(&worker->ended, true);
	return NULL;
}

/* Without an assignment: takes a partition at once, and what goes wrong with it is the start's failure. */
static enum weir_status open_slot(struct worker *worker, struct slot *slot, struct weir_store *store,
                                  struct weir_error *error)
{
	struct checkpoint_job job = {.kind = CHECKPOINT_TAKE, .partition = slot->partition, .book = worker->options.book};
	job.partition_stored = weir_alloc(1, sizeof *job.partition_stored);
	job.partition_stored->lateness_ms = worker->options.config->limiter.lateness_ms;
	slot->wanted = placement_claim(worker->options.placement, slot->partition, worker->options.number);
	slot->asked_ms = weir_monotonic_ms();
	enum weir_status status = checkpoint_io_do(&job, store);
	if (status != WEIR_OK)
		*error = job.error;
	else
		status = worker_taken(worker, slot, &job, error);
	free(job.partition_stored);
	weir_text_deinit(&job.extra);
	return status;
}

enum weir_status worker_new(const struct worker_options *options, struct weir_store *store, struct worker **out,
                            struct weir_error *error)
{
	struct worker *worker = weir_alloc(1, sizeof *worker);
	uint32_t partitions = options->bus->partitions;
	worker->options = *options;
	worker->bus = options->bus->ops;
	worker->ceiling_bytes = options->config->limiter.memory_bytes / partitions;
	pthread_mutex_init(&worker->lock, NULL);
	checkpoint_replies_init(&worker->replies);
	worker->slots = weir_alloc(partitions, sizeof *worker->slots);
	worker->slot_count = partitions;
	worker->lanes = weir_alloc(partitions, sizeof(struct lane *));
	worker->given = weir_alloc(partitions, sizeof *worker->given);
	worker->retired = tally_new();
	for (uint32_t partition = 0; partition < partitions; partition++)
		worker->slots[partition].partition = partition;
	enum weir_status status = worker->bus->producer_new(options->bus, &worker->producer, error);
	if (status == WEIR_OK)
		status = worker->bus->consumer_new(options->bus, WEIR_TOPIC_EVENTS, "limiter", &worker->consumer, error);
	for (uint32_t i = 0; status == WEIR_OK && options->assignment == NULL && i < partitions; i++)
		if (placement_of(options->placement, i) == options->number)
			status = open_slot(worker, &worker->slots[i], store, error);
	if (status != WEIR_OK) {
		worker_free(worker);
		return status;
	}
	*out = worker;
	return WEIR_OK;
}

enum weir_status worker_start(struct worker *worker, struct weir_error *error)
{
	int failed = pthread_create(&worker->thread, NULL, work, worker);
	if (failed != 0)
		return weir_fail(error, WEIR_IO, "cannot start a worker thread: %s", strerror(failed));
	worker->started = true;
	return WEIR_OK;
}

void worker_stop(struct worker *worker, bool drain)
{
	atomic_store(&worker->drain, drain);
	atomic_store(&worker->stop, true);
}

bool worker_ended(const struct worker *worker)
{
	return atomic_load(&worker->ended);
}

enum weir_status worker_join(struct worker *worker, struct weir_error *error)
{
	if (worker->started)
		pthread_join(worker->thread, NULL);
	worker->started = false;
	if (worker->status != WEIR_OK && error != NULL)
		*error = worker->error;
	return worker->status;
}

static void free_slot(struct worker *worker, struct slot *slot)
{
	worker_cut_queue(slot, 0);
	if (slot->cut != NULL) {
		checkpoint_finish(&slot->cut->cut, slot->lane, false);
		checkpoint_job_free(slot->cut);
	}
	if (slot->lane != NULL)
		worker_remove_lane(worker, slot);
}

void worker_free(struct worker *worker)
{
	if (worker == NULL)
		return;
	if (worker->status == WEIR_OK)
		worker->status = WEIR_END; /* nothing goes on: the keepers have ended */
	worker_take_replies(worker);   /* cuts that were under way belong to lanes */
	for (uint32_t i = 0; i < worker->slot_count; i++)
		free_slot(worker, &worker->slots[i]);
	checkpoint_replies_deinit(&worker->replies);
	if (worker->consumer != NULL)
		worker->bus->consumer_free(worker->consumer);
	if (worker->producer != NULL)
		worker->bus->producer_free(worker->producer);
	weir_text_deinit(&worker->text);
	weir_text_deinit(&worker->key);
	weir_text_deinit(&worker->judged);
	tally_free(worker->retired);
	pthread_mutex_destroy(&worker->lock);
	free(worker->slots);
	free(worker->lanes);
	free(worker->given);
	free(worker);
}
