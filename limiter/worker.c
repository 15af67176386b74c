/*
 * One loop: replies of the keepers, a batch of messages, acknowledgements,
 * housekeeping. Everything a partition needs beside its lane is in its slot.
 */
#include "limiter/worker_inner.h"

#include "common/alloc.h"
#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

enum { STATS_PERIOD_MS = 1000 };

void worker_fail(struct worker *worker, enum weir_status status, const struct weir_error *error)
{
	if (worker->status != WEIR_OK)
		return;
	worker->status = status;
	worker->error = *error;
}

static void set(struct weir_counter *gauge, uint64_t value)
{
	atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

static void refresh_stats(struct worker *worker)
{
	struct shard_stats sum = {0};
	int64_t now_ms = weir_monotonic_ms(), oldest_ms = 0;
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		const struct slot *slot = &worker->slots[i];
		struct shard_stats stats;
		shard_stats(lane_shard(slot->lane), &stats);
		sum.buckets += stats.buckets;
		sum.spilled += stats.spilled;
		sum.bytes += stats.bytes;
		sum.evicted_segments += stats.evicted_segments;
		sum.evictions += stats.evictions;
		sum.loads += stats.loads;
		sum.forgotten += stats.forgotten;
		if (lane_next_offset(slot->lane) != slot->cut_offset && now_ms - slot->cut_ms > oldest_ms)
			oldest_ms = now_ms - slot->cut_ms;
	}
	set(&worker->stats.buckets, sum.buckets);
	set(&worker->stats.spilled, sum.spilled);
	set(&worker->stats.bytes, sum.bytes);
	set(&worker->stats.evicted_segments, sum.evicted_segments);
	set(&worker->stats.evictions, sum.evictions);
	set(&worker->stats.loads, sum.loads);
	set(&worker->stats.forgotten, sum.forgotten);
	set(&worker->stats.checkpoint_age_ms, (uint64_t)oldest_ms);
	worker->stats_due_ms = now_ms + STATS_PERIOD_MS;
}

/* Whether a keeper or the bus owes an answer. */
static bool owed(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		const struct slot *slot = &worker->slots[i];
		if (slot->waiting || slot->saving || !worker_acknowledged(slot, slot->sent))
			return true;
	}
	return false;
}

static bool turn(struct worker *worker)
{
	worker_take_replies(worker);
	bool any = worker_receive(worker, owed(worker) ? WORKER_BUSY_WAIT_MS : WORKER_IDLE_WAIT_MS);
	worker_take_deliveries(worker, 0);
	worker_checkpoints(worker, false);
	if (weir_monotonic_ms() >= worker->stats_due_ms)
		refresh_stats(worker);
	return any;
}

/* Whether every partition is judged up to the log's end. */
static bool caught_up(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		uint64_t first, next;
		struct weir_error error;
		uint32_t partition = lane_partition(worker->slots[i].lane);
		if (worker->bus->extent(worker->options.bus, WEIR_TOPIC_EVENTS, partition, &first, &next, &error) != WEIR_OK ||
		    lane_next_offset(worker->slots[i].lane) < next)
			return false;
	}
	return true;
}

static bool settled(const struct worker *worker)
{
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		const struct slot *slot = &worker->slots[i];
		if (slot->saving || slot->cut != NULL || lane_next_offset(slot->lane) != slot->cut_offset)
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
		for (uint32_t i = 0; i < worker->slot_count; i++)
			offsets += lane_next_offset(worker->slots[i].lane);
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
	while (worker->status == WEIR_OK && !settled(worker) && weir_monotonic_ms() < end_ms) {
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
	refresh_stats(worker);
	atomic_store(&worker->ended, true);
	return NULL;
}

static enum weir_status open_slot(struct worker *worker, struct slot *slot, uint32_t partition,
                                  struct weir_store *store, struct weir_error *error)
{
	const struct weir_config *config = worker->options.config;
	struct shard_options options = {
		.partition = partition,
		.seed = worker->options.seed,
		.ceiling_bytes = config->limiter.memory_bytes / worker->options.bus->partitions,
		.lateness_ms = config->limiter.lateness_ms,
	};
	struct weir_partition_state state;
	slot->stored.lateness_ms = config->limiter.lateness_ms;
	slot->lane = lane_new(&options, worker->options.book, worker->options.first_policy);
	enum weir_status status = checkpoint_take(&slot->stored, store, partition, &state, error);
	if (status == WEIR_OK)
		status = lane_restore(slot->lane, &state, store, error);
	if (status != WEIR_OK)
		return status;
	slot->cut_ms = weir_monotonic_ms();
	slot->cut_offset = lane_next_offset(slot->lane);
	return worker->bus->assign(worker->consumer, partition, slot->cut_offset, error);
}

enum weir_status worker_new(const struct worker_options *options, struct weir_store *store, struct worker **out,
                            struct weir_error *error)
{
	struct worker *worker = weir_alloc(1, sizeof *worker);
	worker->options = *options;
	worker->bus = options->bus->ops;
	keeper_replies_init(&worker->replies);
	uint32_t partitions = options->bus->partitions;
	worker->slots = weir_alloc(partitions / options->count + 1, sizeof *worker->slots);
	worker->lanes = weir_alloc(partitions / options->count + 1, sizeof(struct lane *));
	enum weir_status status = worker->bus->producer_new(options->bus, &worker->producer, error);
	if (status == WEIR_OK)
		status = worker->bus->consumer_new(options->bus, WEIR_TOPIC_EVENTS, "limiter", &worker->consumer, error);
	for (uint32_t p = options->number; status == WEIR_OK && p < partitions; p += options->count) {
		struct slot *slot = &worker->slots[worker->slot_count++];
		status = open_slot(worker, slot, p, store, error);
		worker->lanes[worker->slot_count - 1] = slot->lane;
	}
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

static void free_slot(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->queued; i++)
		free(slot->queue[i].bytes);
	if (slot->cut != NULL) {
		checkpoint_finish(&slot->cut->cut, slot->lane, false);
		keeper_job_free(slot->cut);
	}
	lane_free(slot->lane);
}

void worker_free(struct worker *worker)
{
	if (worker == NULL)
		return;
	if (worker->status == WEIR_OK)
		worker->status = WEIR_END; /* nothing goes on: the keepers have ended */
	worker_take_replies(worker);   /* cuts that were under way belong to lanes */
	for (uint32_t i = 0; i < worker->slot_count; i++)
		free_slot(&worker->slots[i]);
	keeper_replies_deinit(&worker->replies);
	if (worker->consumer != NULL)
		worker->bus->consumer_free(worker->consumer);
	if (worker->producer != NULL)
		worker->bus->producer_free(worker->producer);
	weir_text_deinit(&worker->text);
	weir_text_deinit(&worker->key);
	weir_text_deinit(&worker->judged);
	free(worker->slots);
	free(worker->lanes);
	free(worker);
}

struct lane *const *worker_lanes(const struct worker *worker, uint32_t *count)
{
	*count = worker->slot_count;
	return worker->lanes;
}

const struct worker_stats *worker_stats(const struct worker *worker)
{
	return &worker->stats;
}
