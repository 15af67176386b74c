/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in, verdicts out, in the partition's order. A message that needs
 * evicted segments, or a policy, is copied into a queue, like those of the same
 * batch after it, and the bus delivers no more of that partition until the queue
 * is done.
 */
#include "limiter/worker/partition_base.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hex.h"

#include <stdlib.h>
#include <string.h>

enum {
	SWEEP_BUCKETS = 256, /* housekeeping per frame, plus two buckets for each that was made */
	READ_SEGMENTS = 16,  /* at a time: while some are brought into memory, the next ones are read */
};

/* ---- the queue ---- */

static void enqueue(struct partition *partition, const struct weir_message *message)
{
	partition->queue[partition->queued++] = (struct queued){
		.offset = message->offset,
		.appended_ms = message->appended_ms,
		.length = message->payload.length,
		.bytes = weir_copy(message->payload.at, message->payload.length),
	};
}

void partition_cut_queue(struct partition *partition, uint32_t from)
{
	for (uint32_t i = from; i < partition->queued; i++)
		free(partition->queue[i].bytes);
	partition->queued = partition->queued < from ? partition->queued : from;
}

/* Asks for what the waiting message needs: segments, or otherwise a policy. */
static void submit_load(struct partition *partition)
{
	uint32_t count;
	const uint32_t *missing = lane_missing(partition->lane, &count);
	for (uint32_t at = 0; at < count; at += READ_SEGMENTS) {
		uint32_t left = count - at;
		struct checkpoint_job *job =
			partition_load_job(partition, missing + at, left < READ_SEGMENTS ? left : READ_SEGMENTS);
		job->more = left > READ_SEGMENTS;
		partition_submit(partition, job);
	}
	if (count > 0)
		return;
	struct checkpoint_job *job = partition_job(partition, CHECKPOINT_POLICIES);
	job->registry = partition->tools->core->options.registry;
	job->awaited = lane_awaited_policy(partition->lane);
	partition_submit(partition, job);
}

/* ---- the result of a message ---- */

enum { SOURCE_WORDS_BYTES = 2 * WEIR_SOURCE_ID_BYTES + 1 };

static const char *name_source(const uint8_t *source, char words[SOURCE_WORDS_BYTES])
{
	*weir_hex_put(words, source, WEIR_SOURCE_ID_BYTES) = '\0';
	return words;
}

static void log_ahead(const struct partition *partition, const struct lane_result *result)
{
	struct worker_core *core = partition->tools->core;
	if (partition->counting)
		weir_counter_add(&core->stats.ahead, 1);
	int64_t ahead_s = (result->ahead_ms + WEIR_FRAME_AHEAD_MOST_MS) / 1000;
	char source[SOURCE_WORDS_BYTES], ahead[WEIR_AGE_BYTES];
	weir_notice_log(
		&core->ahead, core->options.log, WEIR_LOG_WARNING, "limiter",
		"the clock of a sender (source %s) is %s ahead of the brokers' (partition %u, offset %llu). Its frames "
		"are judged by the time of their arrival. Set the clock of that machine: a collector's, or a limiter's that answers "
		"checks (runbook: clock)",
		name_source(result->source, source), weir_age(ahead_s * 1000, ahead), partition->number,
		(unsigned long long)result->offset);
}

/*
 * Two collectors have one identity. Not where nobody else can write the log: there it is one that ended again and again, and
 * read again what it had not saved.
 */
static void note_shared(const struct partition *partition, const struct lane_result *result)
{
	struct worker_core *core = partition->tools->core;
	char source[SOURCE_WORDS_BYTES];
	if (core->options.standalone)
		return;
	weir_counter_add(&core->stats.shared, 1);
	weir_notice_log(
		&core->shared, core->options.log, WEIR_LOG_WARNING, "limiter",
		"two collectors have one identity: source %s goes back and forth (partition %u, offset %llu). Events of one are "
		"dropped as repeated ones of the other, and are not judged unless both read the same files. End the one whose "
		"state directory was copied (runbook: duplicate-collector)",
		name_source(result->source, source), partition->number, (unsigned long long)result->offset);
}

static void note_newer(struct partition *partition, uint64_t offset, const struct weir_error *error)
{
	struct weir_error words;
	(void)weir_fail(&words, WEIR_NEWER,
	                "it waits at offset %llu: %s. Nothing is judged in it meanwhile, and nothing is lost. Upgrade this "
	                "limiter (runbook: what-may-be-restarted)",
	                (unsigned long long)offset, error->text);
	partition_say_stopped(partition, partition->checkpointing.taken.epoch, words.text);
}

static void count_result(struct worker_stats *stats, const struct lane_result *result)
{
	weir_counter_add(&stats->frames, 1);
	if (result->command != NULL)
		weir_counter_add(&stats->overrides[result->command->kind], 1);
	weir_counter_add(&stats->events, result->judged.events_taken);
	weir_counter_add(&stats->repeated, result->judged.events_repeated);
}

/*
 * Whether the partition must wait for a checkpoint: its shard is full of changes, or its last checkpoint is so old that
 * the log may soon drop the messages that would be replayed from there.
 */
static bool is_full(const struct partition *partition)
{
	return shard_is_full(lane_shard(partition->lane)) ||
	       checkpointing_is_overdue(&partition->checkpointing, partition->lane,
	                                atomic_load(&partition->tools->core->age_limit_ms));
}

/*
 * The partition's state after a message was offered. LIVE, HELD: the message is done, and the next one may come, or
 * must wait. LOADING, HALTED: the message itself waits.
 */
static enum partition_state settle(struct partition *partition, enum weir_status status,
                                   const struct lane_result *result, struct weir_span message,
                                   const struct weir_error *error)
{
	const struct partition_tools *tools = partition->tools;
	if (status == WEIR_AGAIN)
		return PARTITION_LOADING;
	if (status == WEIR_NEWER) {
		note_newer(partition, result->offset, error);
		return PARTITION_HALTED;
	}
	if (result->ahead_ms > 0)
		log_ahead(partition, result);
	if (status == WEIR_INVALID) {
		output_dead_letter(tools->output, partition->number, message, result->offset, error->text, partition->counting);
	} else {
		output_result(tools->output, partition->number, result, message);
		if (partition->counting)
			count_result(&tools->core->stats, result);
		if (partition->counting && result->judged.is_shared)
			note_shared(partition, result);
		shard_sweep(lane_shard(partition->lane), SWEEP_BUCKETS + 2 * result->judged.buckets_made);
	}
	partition_counted(partition, result->number);
	return is_full(partition) ? PARTITION_HELD : PARTITION_LIVE;
}

void partition_take_message(struct partition *partition, const struct weir_message *message)
{
	weir_counter_add(&partition->messages, 1);
	weir_counter_add(&partition->bytes, message->payload.length);
	if (partition->state != PARTITION_LIVE) {
		if (partition_state_receives(partition->state)) /* it is from the batch that made the partition wait */
			enqueue(partition, message);
		return;
	}
	struct lane_result result;
	struct weir_error error;
	partition_count_from(partition, message->offset);
	enum weir_status status =
		lane_offer(partition->lane, message->payload, message->offset, message->appended_ms, &result, &error);
	enum partition_state next = settle(partition, status, &result, message->payload, &error);
	if (next == PARTITION_LIVE)
		return;
	partition_go(partition, next);
	if (next == PARTITION_HELD)
		return;
	enqueue(partition, message);
	if (next == PARTITION_LOADING) {
		lane_keep_message(partition->lane, (struct weir_span){partition->queue[0].bytes, partition->queue[0].length});
		submit_load(partition);
	}
}

/* ---- continuing ---- */

/* Offers the queued messages, until one waits or the next one must. @return the partition's state after that */
static enum partition_state offer_queued(struct partition *partition)
{
	bool waits = partition_state_loads(partition->state);
	enum partition_state next = PARTITION_LIVE;
	uint32_t done = 0;
	while (done < partition->queued && next == PARTITION_LIVE && publisher_works(partition->tools->publisher)) {
		struct queued *first = &partition->queue[done];
		struct weir_span message = {.at = first->bytes, .length = first->length};
		struct lane_result result;
		struct weir_error error;
		partition_count_from(partition, first->offset);
		enum weir_status status =
			waits ? lane_go_on(partition->lane, &result, &error)
				  : lane_offer(partition->lane, message, first->offset, first->appended_ms, &result, &error);
		waits = false;
		next = settle(partition, status, &result, message, &error);
		if (next == PARTITION_LOADING || next == PARTITION_HALTED)
			break;
		free(first->bytes);
		done++;
	}
	partition->queued -= done;
	memmove(partition->queue, partition->queue + done, partition->queued * sizeof partition->queue[0]);
	/* If nothing can be published, the rest waits too: the worker drops the partition, or ends. */
	return next == PARTITION_LIVE && partition->queued > 0 ? PARTITION_HELD : next;
}

void partition_resume(struct partition *partition)
{
	if (!publisher_works(partition->tools->publisher))
		return;
	enum partition_state next = offer_queued(partition);
	if (partition->state == PARTITION_FINISHING && next != PARTITION_LOADING)
		partition_go(partition, PARTITION_LEAVING);
	else if (partition->state != PARTITION_FINISHING && partition->state != next)
		partition_go(partition, next);
	if (next == PARTITION_LOADING)
		submit_load(partition);
}

void partition_policies_read(struct partition *partition)
{
	if (lane_awaits_policy(partition->lane)) {
		struct weir_error words;
		bool first = partition->policy_due_ms == 0;
		partition->policy_due_ms = weir_monotonic_ms() + WORKER_RETRY_MS;
		(void)weir_fail(
			&words, WEIR_AGAIN,
			"policy %llu is in the log but not in the store. Nothing is judged in it meanwhile. The store is "
			"asked each second, and so is the policy topic, which does not have it either: apply the policy again "
			"(runbook: store-failed-over)",
			(unsigned long long)lane_policy_version(partition->lane) + 1);
		if (first)
			partition_say_stopped(partition, partition->checkpointing.taken.epoch, words.text);
		return;
	}
	if (partition->policy_due_ms != 0) {
		partition->policy_due_ms = 0;
		partition_say_stopped(partition, partition->checkpointing.taken.epoch, "");
	}
	partition_resume(partition);
}

void partition_ask_for_policy(struct partition *partition, int64_t now_ms)
{
	if (partition->policy_due_ms == 0 || now_ms < partition->policy_due_ms)
		return;
	partition->policy_due_ms = INT64_MAX; /* not again until the answer has come */
	submit_load(partition);
}
