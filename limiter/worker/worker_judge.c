/*
 * Messages in, verdicts out. A message that needs evicted segments is copied,
 * with what the batch still holds of its partition, and the bus is told to
 * deliver no more of that partition until it has gone on.
 */
#include "common/json/units.h"
#include "limiter/worker/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SWEEP_BUCKETS = 256, /* housekeeping a frame, beside two buckets for each that was made */
	RETRY_NS = 100000000,
	AHEAD_SAID_MS = 60000,
};

static void enqueue(struct slot *slot, const struct weir_message *message)
{
	slot->queue[slot->queued++] = (struct queued){.offset = message->offset,
	                                              .appended_ms = message->appended_ms,
	                                              .length = message->payload.length,
	                                              .bytes = weir_copy(message->payload.at, message->payload.length)};
}

/* Asks for what the waiting message needs: segments, or else a policy. */
static void submit_load(struct worker *worker, struct slot *slot)
{
	uint32_t count;
	const uint32_t *missing = lane_missing(slot->lane, &count);
	struct checkpoint_job *job = worker_job(worker, slot, count > 0 ? CHECKPOINT_LOAD : CHECKPOINT_POLICIES);
	job->book = worker->options.book;
	job->segments = weir_alloc(count, sizeof *job->segments);
	if (count > 0)
		memcpy(job->segments, missing, count * sizeof *job->segments);
	job->segment_count = count;
	worker_submit(worker, slot, job);
}

void worker_pause_slot(struct worker *worker, struct slot *slot, bool paused)
{
	if (slot->paused == paused)
		return;
	if (slot->state == WORKER_LIVE)
		worker->bus->pause(worker->consumer, slot->partition, paused);
	slot->paused = paused;
}

void worker_cut_queue(struct slot *slot, uint32_t from)
{
	for (uint32_t i = from; i < slot->queued; i++)
		free(slot->queue[i].bytes);
	slot->queued = slot->queued < from ? slot->queued : from;
}

/* A sender whose clock is ahead may send much: one of them is named now and then. */
static void tell_ahead(struct worker *worker, const struct slot *slot, const struct lane_result *result)
{
	weir_counter_add(&worker->stats.ahead, 1);
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < worker->ahead_due_ms)
		return;
	worker->ahead_due_ms = now_ms + AHEAD_SAID_MS;
	int64_t ahead_s = (result->ahead_ms + LANE_AHEAD_MOST_MS) / 1000;
	char source[2 * WEIR_SOURCE_ID_BYTES + 1], ahead[24];
	for (int i = 0; i < WEIR_SOURCE_ID_BYTES; i++)
		snprintf(source + 2 * i, 3, "%02x", result->source[i]);
	weir_log(worker->options.log, WEIR_LOG_WARNING, "limiter",
	         "partition %u, offset %llu: the clock of who sent it (source %s) is ahead of the brokers' by %s: set it; "
	         "its frames count as sent when they came",
	         slot->partition, (unsigned long long)result->offset, source,
	         weir_format_duration(ahead_s * 1000, ahead, sizeof ahead));
}

/* What an offered message came to; gives whether it is done. */
static bool settle(struct worker *worker, struct slot *slot, enum weir_status status, const struct lane_result *result,
                   struct weir_span message, const struct weir_error *error)
{
	if (status == WEIR_AGAIN) {
		slot->waiting = true;
		worker_pause_slot(worker, slot, true);
		submit_load(worker, slot);
		return false;
	}
	slot->waiting = false;
	if (status == WEIR_NEWER) {
		weir_trouble_on(&worker->trouble, worker->options.log, "limiter",
		                "partition %u waits at offset %llu: %s; run a newer weir", slot->partition,
		                (unsigned long long)result->offset, error->text);
		worker_set_trouble(worker, slot, worker->trouble.text);
		worker_pause_slot(worker, slot, true);
		return false;
	}
	if (result->ahead_ms > 0)
		tell_ahead(worker, slot, result);
	if (status == WEIR_INVALID) {
		worker_bury(worker, slot, message, result->offset, error->text);
		return true;
	}
	worker_publish(worker, slot, result, message);
	weir_counter_add(&worker->stats.frames, 1);
	if (result->command != NULL)
		weir_counter_add(&worker->stats.orders[result->command->kind], 1);
	weir_counter_add(&worker->stats.events, result->judged.events_taken);
	weir_counter_add(&worker->stats.repeated, result->judged.events_repeated);
	shard_sweep(lane_shard(slot->lane), SWEEP_BUCKETS + 2 * result->judged.buckets_made);
	return true;
}

/* A shard that is full of changes takes no more until a checkpoint holds some of them; nor does one that has waited for
 * its checkpoint so long that the log may forget what it would be replayed from. */
static void hold_if_full(struct worker *worker, struct slot *slot)
{
	bool overdue = worker_is_overdue(worker, slot);
	char limit[24];
	if (overdue)
		weir_trouble_on(&worker->age_trouble, worker->options.log, "limiter",
		                "partition %u waits for a checkpoint: the last one is older than %s, half of how long the log "
		                "is kept",
		                slot->partition, weir_format_duration(worker->options.age_limit_ms, limit, sizeof limit));
	slot->full = overdue || shard_is_full(lane_shard(slot->lane));
	if (slot->full)
		worker_pause_slot(worker, slot, true);
}

static void take_message(struct worker *worker, struct slot *slot, const struct weir_message *message)
{
	if (slot->state != WORKER_LIVE)
		return;
	if (slot->paused) { /* what the batch still holds of it */
		enqueue(slot, message);
		return;
	}
	struct lane_result result;
	struct weir_error error;
	enum weir_status status =
		lane_offer(slot->lane, message->payload, message->offset, message->appended_ms, &result, &error);
	if (status != WEIR_AGAIN && status != WEIR_NEWER) {
		settle(worker, slot, status, &result, message->payload, &error);
		hold_if_full(worker, slot);
		return;
	}
	enqueue(slot, message);
	if (status == WEIR_AGAIN)
		lane_keep_message(slot->lane, (struct weir_span){slot->queue[0].bytes, slot->queue[0].length});
	settle(worker, slot, status, &result, message->payload, &error);
}

/* Goes on with the waiting message, and those behind it as far as they can. */
void worker_go_on(struct worker *worker, struct slot *slot)
{
	uint32_t done = 0;
	slot->full = false;
	while (done < slot->queued && worker_works(worker) && !slot->full) {
		struct queued *next = &slot->queue[done];
		struct weir_span message = {.at = next->bytes, .length = next->length};
		struct lane_result result;
		struct weir_error error;
		enum weir_status status =
			slot->waiting ? lane_go_on(slot->lane, &result, &error)
						  : lane_offer(slot->lane, message, next->offset, next->appended_ms, &result, &error);
		if (!settle(worker, slot, status, &result, message, &error))
			break;
		free(next->bytes);
		done++;
		hold_if_full(worker, slot);
	}
	slot->queued -= done;
	memmove(slot->queue, slot->queue + done, slot->queued * sizeof slot->queue[0]);
	if (slot->queued == 0)
		worker_pause_slot(worker, slot, slot->full);
}

void worker_policies_read(struct worker *worker, struct slot *slot)
{
	const struct weir_log *log = worker->options.log;
	if (lane_awaits_policy(slot->lane)) {
		slot->policy_due_ms = weir_monotonic_ms() + WORKER_RETRY_MS;
		weir_trouble_on(&worker->policy_trouble, log, "limiter",
		                "policy %llu is in the log, but not in the store; asking again each second",
		                (unsigned long long)lane_policy_version(slot->lane) + 1);
		worker_set_trouble(worker, slot, worker->policy_trouble.text);
		return;
	}
	if (slot->policy_due_ms != 0) {
		slot->policy_due_ms = 0;
		weir_trouble_off(&worker->policy_trouble, log, "limiter");
		worker_set_trouble(worker, slot, "");
	}
	worker_go_on(worker, slot);
}

void worker_ask_for_policy(struct worker *worker, struct slot *slot, int64_t now_ms)
{
	if (slot->policy_due_ms == 0 || now_ms < slot->policy_due_ms)
		return;
	slot->policy_due_ms = INT64_MAX; /* until there is an answer */
	submit_load(worker, slot);
}

bool worker_receive(struct worker *worker, int timeout_ms)
{
	struct weir_message messages[WORKER_BATCH_MESSAGES];
	messages[0] = (struct weir_message){.partition = UINT32_MAX}; /* a failure may name one */
	size_t count = 0;
	struct weir_error error;
	enum weir_status status =
		worker->bus->receive(worker->consumer, messages, WORKER_BATCH_MESSAGES, timeout_ms, &count, &error);
	if (status == WEIR_IO) {
		weir_trouble_on(&worker->consumer_trouble, worker->options.log, "limiter", "%s; trying again", error.text);
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
		return false;
	}
	if (status != WEIR_OK) {
		worker_stand_at_gap(worker, &messages[0], &error);
		return false;
	}
	if (count == 0) /* which alone does not say that a trouble is over: brokers are asked again in their own time */
		return false;
	weir_trouble_off(&worker->consumer_trouble, worker->options.log, "limiter");
	struct timespec began, ended;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (size_t i = 0; i < count && worker_works(worker); i++) {
		struct slot *slot = worker_slot(worker, messages[i].partition);
		take_message(worker, slot, &messages[i]);
		weir_counter_add(&slot->messages, 1);
		weir_counter_add(&slot->bytes, messages[i].payload.length);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
	weir_histogram_observe(&worker->stats.batch, &weir_latency_scale, seconds);
	return true;
}
