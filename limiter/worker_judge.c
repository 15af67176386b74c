/*
 * Messages in, verdicts out. A message that needs evicted segments is copied,
 * with what the batch still holds of its partition, and the bus is told to
 * deliver no more of that partition until it has gone on.
 */
#include "limiter/worker_inner.h"

#include "common/alloc.h"
#include "common/clock.h"
#include "limiter/decision.h"

#include <stdlib.h>
#include <string.h>

enum {
	DELIVERIES_AT_ONCE = 256,
	SWEEP_BUCKETS = 256, /* housekeeping a frame, beside one bucket an event */
	RETRY_NS = 100000000,
};

void worker_take_deliveries(struct worker *worker, int timeout_ms)
{
	struct weir_delivery deliveries[DELIVERIES_AT_ONCE];
	size_t count = worker->bus->poll(worker->producer, deliveries, DELIVERIES_AT_ONCE, timeout_ms);
	for (size_t i = 0; i < count; i++) {
		if (deliveries[i].status != WEIR_OK) {
			struct weir_error error;
			worker_fail(worker,
			            weir_fail(&error, deliveries[i].status, "the bus did not take a message of %s, partition %u",
			                      weir_topic_name(deliveries[i].topic), deliveries[i].partition),
			            &error);
			return;
		}
		worker_slot(worker, deliveries[i].partition)->acknowledged[deliveries[i].topic]++;
	}
}

static void publish(struct worker *worker, struct slot *slot, enum weir_topic topic, struct weir_span key,
                    struct weir_span payload)
{
	uint32_t partition = lane_partition(slot->lane);
	struct weir_error error;
	enum weir_status status;
	int64_t end_ms = 0; /* while it is to stop: when it gives up */
	while ((status = worker->bus->send(worker->producer, topic, partition, key, payload, 0, &error)) == WEIR_FULL &&
	       worker->status == WEIR_OK) {
		worker_take_deliveries(worker, WORKER_IDLE_WAIT_MS);
		if (!atomic_load(&worker->stop))
			continue;
		if (end_ms == 0)
			end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			worker_fail(worker,
			            weir_fail(&error, WEIR_IO,
			                      "the bus takes no more of %s, partition %u: it is judged again by the "
			                      "next start",
			                      weir_topic_name(topic), partition),
			            &error);
	}
	if (status == WEIR_OK)
		slot->sent[topic]++;
	else
		worker_fail(worker, status, &error);
}

static struct weir_span span_of_text(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

static void publish_decision(struct worker *worker, struct slot *slot, const struct weir_zone *zone,
                             struct weir_span key)
{
	weir_text_clear(&worker->key);
	decision_message_key(&worker->key, zone, key);
	publish(worker, slot, zone->mode == WEIR_SHADOW ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS,
	        span_of_text(&worker->key), span_of_text(&worker->text));
	weir_counter_add(&worker->stats.decisions, 1);
}

static void publish_result(struct worker *worker, struct slot *slot, const struct lane_result *result,
                           struct weir_span message)
{
	uint32_t partition = lane_partition(slot->lane);
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		const struct shard_decision *decision = &result->judged.decisions[i];
		weir_text_clear(&worker->text);
		decision_json(&worker->text, partition, decision);
		publish_decision(worker, slot, decision->zone->zone, decision->key);
	}
	for (uint32_t i = 0; i < result->lifted_count; i++) {
		weir_text_clear(&worker->text);
		decision_lift_json(&worker->text, partition, result->offset, i, result->lifted[i], result->at_ms);
		publish_decision(worker, slot, result->lifted[i], (struct weir_span){.at = "", .length = 0});
	}
	if (result->frame == NULL || !worker->options.config->archiver.enabled)
		return;
	uint32_t pairs = result->judged.pair_count;
	weir_text_clear(&worker->judged);
	char *out = weir_text_reserve(&worker->judged, message.length + 8 + (pairs + 1) / 2);
	size_t length = weir_frame_judged(message, result->offset, result->judged.verdicts, pairs, out);
	publish(worker, slot, WEIR_TOPIC_JUDGED, (struct weir_span){0},
	        (struct weir_span){.at = out, .length = (uint32_t)length});
}

static void enqueue(struct slot *slot, struct weir_span message, uint64_t offset)
{
	slot->queue[slot->queued++] =
		(struct queued){.offset = offset, .length = message.length, .bytes = weir_copy(message.at, message.length)};
}

static void submit_load(struct worker *worker, struct slot *slot)
{
	uint32_t count;
	const uint32_t *missing = lane_missing(slot->lane, &count);
	struct keeper_job *job = weir_alloc(1, sizeof *job);
	job->kind = KEEPER_LOAD;
	job->partition = lane_partition(slot->lane);
	job->replies = &worker->replies;
	job->epoch = slot->stored.epoch;
	job->segments = weir_alloc(count, sizeof *job->segments);
	memcpy(job->segments, missing, count * sizeof *job->segments);
	job->segment_count = count;
	keeper_submit(worker->options.loader, job);
}

void worker_pause_slot(struct worker *worker, struct slot *slot, bool paused)
{
	if (slot->paused == paused)
		return;
	worker->bus->pause(worker->consumer, lane_partition(slot->lane), paused);
	slot->paused = paused;
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
		                "partition %u waits at offset %llu: %s; run a newer weir", lane_partition(slot->lane),
		                (unsigned long long)result->offset, error->text);
		worker_pause_slot(worker, slot, true);
		return false;
	}
	if (status == WEIR_INVALID) {
		weir_log(worker->options.log, WEIR_LOG_WARNING, "limiter", "partition %u, offset %llu: passed over: %s",
		         lane_partition(slot->lane), (unsigned long long)result->offset, error->text);
		weir_counter_add(&worker->stats.malformed, 1);
		return true;
	}
	publish_result(worker, slot, result, message);
	weir_counter_add(&worker->stats.frames, 1);
	weir_counter_add(&worker->stats.events, result->judged.events_taken);
	weir_counter_add(&worker->stats.repeated, result->judged.events_repeated);
	shard_sweep(lane_shard(slot->lane), SWEEP_BUCKETS + result->judged.events_taken);
	return true;
}

/* A shard that is full of changes takes no more until a checkpoint holds some of them. */
static void hold_if_full(struct worker *worker, struct slot *slot)
{
	slot->full = shard_is_full(lane_shard(slot->lane));
	if (slot->full)
		worker_pause_slot(worker, slot, true);
}

static void take_message(struct worker *worker, struct slot *slot, struct weir_span message, uint64_t offset)
{
	if (slot->paused) { /* what the batch still holds of it */
		enqueue(slot, message, offset);
		return;
	}
	struct lane_result result;
	struct weir_error error;
	enum weir_status status = lane_offer(slot->lane, message, offset, &result, &error);
	if (status != WEIR_AGAIN && status != WEIR_NEWER) {
		settle(worker, slot, status, &result, message, &error);
		hold_if_full(worker, slot);
		return;
	}
	enqueue(slot, message, offset);
	if (status == WEIR_AGAIN)
		lane_keep_message(slot->lane, (struct weir_span){slot->queue[0].bytes, slot->queue[0].length});
	settle(worker, slot, status, &result, message, &error);
}

/* Goes on with the waiting message, and those behind it as far as they can. */
void worker_go_on(struct worker *worker, struct slot *slot)
{
	uint32_t done = 0;
	slot->full = false;
	while (done < slot->queued && worker->status == WEIR_OK && !slot->full) {
		struct queued *next = &slot->queue[done];
		struct weir_span message = {.at = next->bytes, .length = next->length};
		struct lane_result result;
		struct weir_error error;
		enum weir_status status = slot->waiting ? lane_go_on(slot->lane, &result, &error)
		                                        : lane_offer(slot->lane, message, next->offset, &result, &error);
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

bool worker_receive(struct worker *worker, int timeout_ms)
{
	struct weir_message messages[WORKER_BATCH_MESSAGES];
	size_t count = 0;
	struct weir_error error;
	enum weir_status status =
		worker->bus->receive(worker->consumer, messages, WORKER_BATCH_MESSAGES, timeout_ms, &count, &error);
	if (status == WEIR_IO) {
		weir_trouble_on(&worker->trouble, worker->options.log, "limiter", "%s; trying again", error.text);
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
		return false;
	}
	if (status != WEIR_OK) {
		worker_fail(worker, status, &error);
		return false;
	}
	if (count == 0)
		return false;
	struct timespec began, ended;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (size_t i = 0; i < count && worker->status == WEIR_OK; i++)
		take_message(worker, worker_slot(worker, messages[i].partition), messages[i].payload, messages[i].offset);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
	weir_histogram_observe(&worker->stats.batch, &weir_latency_scale, seconds);
	return true;
}
