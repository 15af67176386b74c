/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of rounds under one mutex: a round is some ten thousand records, so
 * the lock is taken a few hundred times a second.
 */
#include "deploy/weir/run/rounds.h"

#include "common/base/alloc.h"
#include "common/store/sqlite/store_sqlite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* filling, judged, and slack for an uneven pair */
#define ROUND_COUNT ROUNDS_UNDER_WAY

struct round {
	struct weir_text *frames;     /* by partition: u32 length, bytes, and so on */
	struct output_batch *outputs; /* by worker */
	uint32_t left;                /* workers that are not done */
	enum weir_status status;      /* the first failure of a worker */
	struct weir_error error;
};

struct worker {
	struct rounds *rounds;
	struct weir_store *store; /* NULL: nothing is ever evicted */
	uint32_t number;
	pthread_t thread;
};

struct rounds {
	struct rounds_options options;
	pthread_mutex_t lock;
	pthread_cond_t submitted_more, done_more;
	uint64_t submitted, written; /* rounds so far; round n is ring[n % ROUND_COUNT] */
	bool stopping;
	_Atomic bool want_cut;
	struct round ring[ROUND_COUNT];
	struct worker *workers;
	uint32_t started;
};

/* Loads what the waiting message misses; --once may wait for it, it has nothing else to do. */
static enum weir_status load_missing(struct worker *worker, struct lane *lane, struct weir_error *error)
{
	const struct checkpoint_partition *partition = &worker->rounds->options.partitions[lane_partition(lane)];
	uint32_t count;
	const uint32_t *missing = lane_missing(lane, &count);
	struct checkpoint_blobs blobs;
	/* What is current is the main thread's to know, and a file shows no older one. */
	enum weir_status status =
		checkpoint_read(worker->store, partition->partition, partition->epoch, 0, missing, count, &blobs, error);
	if (status == WEIR_OK)
		status = checkpoint_load(lane, missing, count, &blobs, error);
	checkpoint_blobs_deinit(&blobs);
	return status;
}

static void archive(struct rounds *rounds, const struct lane *lane, const struct lane_result *result)
{
	const struct rounds_options *options = &rounds->options;
	if (options->archive == NULL)
		return;
	once_archive_add(options->archive, lane, result);
	if (once_archive_bytes(options->archive, lane_partition(lane)) > options->archive_bytes)
		atomic_store_explicit(&rounds->want_cut, true, memory_order_relaxed);
}

static void tell_decisions(const struct rounds *rounds, const struct lane *lane, const struct lane_result *result)
{
	for (uint32_t i = 0; rounds->options.events != NULL && i < result->judged.decision_count; i++)
		decision_events_add(rounds->options.events, lane_partition(lane), &result->judged.decisions[i]);
}

static void tell_watch(const struct worker *worker, const struct round *round, const struct lane *lane,
                       const struct lane_result *result)
{
	const struct once_watch *watch = worker->rounds->options.watch;
	if (watch != NULL)
		watch->judged(watch->context, (unsigned)(round - worker->rounds->ring), worker->number, lane, result);
}

static enum weir_status judge_frame(struct worker *worker, struct lane *lane, struct weir_span frame,
                                    struct round *round, struct weir_error *error)
{
	struct lane_result result;
	enum weir_status status = lane_offer(lane, frame, lane_next_offset(lane), 0, &result, error);
	while (status == WEIR_AGAIN) {
		status = load_missing(worker, lane, error);
		if (status == WEIR_OK)
			status = lane_go_on(lane, &result, error);
	}
	if (status == WEIR_OK && result.frame != NULL) {
		output_batch_add(&round->outputs[worker->number], &worker->rounds->options.choice, lane, &result);
		archive(worker->rounds, lane, &result);
		tell_decisions(worker->rounds, lane, &result);
		tell_watch(worker, round, lane, &result);
	}
	shard_sweep(lane_shard(lane), 2 * result.judged.buckets_made);
	/* Not as soon as it wants a checkpoint: nothing is judged while a cut is stored, so there is nothing to be early for. */
	if (shard_is_full(lane_shard(lane)))
		atomic_store_explicit(&worker->rounds->want_cut, true, memory_order_relaxed);
	return status == WEIR_OK ? shard_check_whole(lane_shard(lane), error) : status;
}

static enum weir_status judge_round(struct worker *worker, struct round *round, struct weir_error *error)
{
	const struct rounds_options *options = &worker->rounds->options;
	for (uint32_t p = worker->number; p < options->partition_count; p += options->threads) {
		struct weir_text *frames = &round->frames[p];
		for (size_t at = 0; at < frames->length;) {
			uint32_t length;
			memcpy(&length, frames->at + at, sizeof length);
			struct weir_span frame = {.at = frames->at + at + sizeof length, .length = length};
			enum weir_status status = judge_frame(worker, options->lanes[p], frame, round, error);
			if (status != WEIR_OK)
				return status;
			at += sizeof length + length;
		}
		weir_text_clear(frames);
	}
	return WEIR_OK;
}

static void *work(void *context)
{
	struct worker *worker = context;
	struct rounds *rounds = worker->rounds;
	for (uint64_t number = 0;; number++) {
		pthread_mutex_lock(&rounds->lock);
		while (rounds->submitted <= number && !rounds->stopping)
			pthread_cond_wait(&rounds->submitted_more, &rounds->lock);
		bool stop = rounds->submitted <= number;
		pthread_mutex_unlock(&rounds->lock);
		if (stop)
			return NULL;

		struct round *round = &rounds->ring[number % ROUND_COUNT];
		struct weir_error error;
		enum weir_status status = judge_round(worker, round, &error);

		pthread_mutex_lock(&rounds->lock);
		if (status != WEIR_OK && round->status == WEIR_OK) {
			round->status = status;
			round->error = error;
		}
		if (--round->left == 0)
			pthread_cond_signal(&rounds->done_more);
		pthread_mutex_unlock(&rounds->lock);
	}
}

static enum weir_status start_worker(struct rounds *rounds, uint32_t number, struct weir_error *error)
{
	struct worker *worker = &rounds->workers[number];
	worker->rounds = rounds;
	worker->number = number;
	if (rounds->options.state_directory != NULL) {
		enum weir_status status = weir_store_sqlite_open(rounds->options.state_directory, &worker->store, error);
		if (status != WEIR_OK)
			return status;
	}
	int failed = pthread_create(&worker->thread, NULL, work, worker);
	if (failed != 0) {
		if (worker->store != NULL)
			worker->store->ops->close(worker->store);
		return weir_fail(error, WEIR_IO, "cannot start a worker thread: %s", weir_errno_words(failed));
	}
	rounds->started++;
	return WEIR_OK;
}

enum weir_status rounds_new(const struct rounds_options *options, struct rounds **out, struct weir_error *error)
{
	struct rounds *rounds = weir_alloc(1, sizeof *rounds);
	rounds->options = *options;
	pthread_mutex_init(&rounds->lock, NULL);
	pthread_cond_init(&rounds->submitted_more, NULL);
	pthread_cond_init(&rounds->done_more, NULL);
	for (int i = 0; i < ROUND_COUNT; i++) {
		rounds->ring[i].frames = weir_alloc(options->partition_count, sizeof *rounds->ring[i].frames);
		rounds->ring[i].outputs = weir_alloc(options->threads, sizeof *rounds->ring[i].outputs);
	}
	rounds->workers = weir_alloc(options->threads, sizeof *rounds->workers);
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < options->threads; i++)
		status = start_worker(rounds, i, error);
	if (status != WEIR_OK) {
		rounds_free(rounds);
		return status;
	}
	*out = rounds;
	return WEIR_OK;
}

void rounds_free(struct rounds *rounds)
{
	if (rounds == NULL)
		return;
	pthread_mutex_lock(&rounds->lock);
	rounds->stopping = true;
	pthread_cond_broadcast(&rounds->submitted_more);
	pthread_mutex_unlock(&rounds->lock);
	for (uint32_t i = 0; i < rounds->started; i++) {
		pthread_join(rounds->workers[i].thread, NULL);
		if (rounds->workers[i].store != NULL)
			rounds->workers[i].store->ops->close(rounds->workers[i].store);
	}
	for (int i = 0; i < ROUND_COUNT; i++) {
		for (uint32_t p = 0; p < rounds->options.partition_count; p++)
			weir_text_deinit(&rounds->ring[i].frames[p]);
		for (uint32_t w = 0; w < rounds->options.threads; w++)
			output_batch_deinit(&rounds->ring[i].outputs[w]);
		free(rounds->ring[i].frames);
		free(rounds->ring[i].outputs);
	}
	free(rounds->workers);
	pthread_cond_destroy(&rounds->submitted_more);
	pthread_cond_destroy(&rounds->done_more);
	pthread_mutex_destroy(&rounds->lock);
	free(rounds);
}

void rounds_emit(void *context, uint32_t partition, struct weir_span frame)
{
	struct rounds *rounds = context;
	struct weir_text *frames = &rounds->ring[rounds->submitted % ROUND_COUNT].frames[partition];
	weir_text_append(frames, &frame.length, sizeof frame.length);
	weir_text_append(frames, frame.at, frame.length);
}

enum weir_status rounds_judge(struct rounds *rounds, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < rounds->options.threads; i++)
		status = judge_round(&rounds->workers[i], &rounds->ring[rounds->submitted % ROUND_COUNT], error);
	return status;
}

/* Waits for the oldest round that is not yet written, and writes it. */
static enum weir_status write_oldest(struct rounds *rounds, struct weir_error *error)
{
	struct round *round = &rounds->ring[rounds->written % ROUND_COUNT];
	pthread_mutex_lock(&rounds->lock);
	while (round->left > 0)
		pthread_cond_wait(&rounds->done_more, &rounds->lock);
	pthread_mutex_unlock(&rounds->lock);
	if (round->status != WEIR_OK) {
		if (error != NULL)
			*error = round->error;
		return round->status;
	}
	const struct once_watch *watch = rounds->options.watch;
	enum weir_status status = output_files_write(rounds->options.files, round->outputs, rounds->options.threads, error);
	if (status == WEIR_OK && watch != NULL)
		status = watch->written(watch->context, (unsigned)(round - rounds->ring), error);
	if (status == WEIR_OK)
		rounds->written++;
	return status;
}

enum weir_status rounds_submit(struct rounds *rounds, struct weir_error *error)
{
	pthread_mutex_lock(&rounds->lock);
	rounds->ring[rounds->submitted % ROUND_COUNT].left = rounds->options.threads;
	rounds->submitted++;
	pthread_cond_broadcast(&rounds->submitted_more);
	pthread_mutex_unlock(&rounds->lock);
	/* the next round to fill must be free */
	return rounds->submitted - rounds->written == ROUND_COUNT ? write_oldest(rounds, error) : WEIR_OK;
}

bool rounds_want_cut(const struct rounds *rounds)
{
	return atomic_load_explicit(&rounds->want_cut, memory_order_relaxed);
}

enum weir_status rounds_drain(struct rounds *rounds, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && rounds->written < rounds->submitted)
		status = write_oldest(rounds, error);
	atomic_store_explicit(&rounds->want_cut, false, memory_order_relaxed);
	return status;
}
