/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a partition, the offsets are remembered whose blocks end later than all before them: while the first of them is in
 * force, what stands behind it is held back with it. Ends are rounded up to STEP_MS, so that there is at most one a step.
 *
 * What is trimmed does not come back. So a clock that was set forward is not believed at once, and after one that was set
 * back all is read again that the log has. What this reader has said it is done with stays so: that is in the log only as
 * long as the file is there.
 */
#include "deploy/weir/run/blocks_kept.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/clock_step.h"
#include "deploy/gateways/table/decision_record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH_MESSAGES = 256, WAIT_MS = 200, STEP_MS = 16000, TRIM_PERIOD_MS = 1000, DOUBT_MS = 3600000 };

struct kept_block {
	uint64_t offset;
	int64_t until_ms; /* Unix ms */
};

/* A ring. */
struct kept_partition {
	struct kept_block *blocks;
	uint32_t first, count, room;
	uint64_t next; /* of the topic */
};

struct blocks_kept {
	struct weir_bus *bus;
	const struct weir_log *log;
	struct weir_consumer *consumer;
	struct kept_partition *partitions;
	struct weir_fault fault;
	struct weir_clock_step clock;
	int64_t trim_due_ms; /* monotonic */
	bool anew;           /* the log is to be read from its start */
	_Atomic bool stop;
	pthread_t thread;
};

static struct kept_block *block_at(const struct kept_partition *partition, uint32_t place)
{
	return &partition->blocks[(partition->first + place) % partition->room];
}

static void push(struct kept_partition *partition, struct kept_block block)
{
	if (partition->count > 0 && block_at(partition, partition->count - 1)->until_ms >= block.until_ms)
		return;
	if (partition->count == partition->room) {
		uint32_t room = partition->room > 0 ? 2 * partition->room : 16;
		struct kept_block *blocks = weir_alloc(room, sizeof *blocks);
		for (uint32_t i = 0; i < partition->count; i++)
			blocks[i] = *block_at(partition, i);
		free(partition->blocks);
		*partition =
			(struct kept_partition){.blocks = blocks, .count = partition->count, .room = room, .next = partition->next};
	}
	partition->count++;
	*block_at(partition, partition->count - 1) = block;
}

static void take(struct blocks_kept *kept, const struct weir_message *message, int64_t now_ms)
{
	struct kept_partition *partition = &kept->partitions[message->partition];
	struct decision_record record;
	struct weir_error error;
	partition->next = message->offset + 1;
	if (decision_record_parse(message, &record, &error) != WEIR_OK || record.lift || record.until_ms <= now_ms)
		return;
	int64_t most_ms = record.by_operator ? now_ms + 2 * BLOCKS_REMIND_MS : INT64_MAX - STEP_MS;
	int64_t until_ms = record.until_ms < most_ms ? record.until_ms : most_ms;
	push(partition, (struct kept_block){message->offset, (until_ms / STEP_MS + 1) * STEP_MS});
}

static void trim(struct blocks_kept *kept, int64_t now_ms)
{
	for (uint32_t i = 0; i < kept->bus->partitions; i++) {
		struct kept_partition *partition = &kept->partitions[i];
		while (partition->count > 0 && block_at(partition, 0)->until_ms <= now_ms) {
			partition->first = (partition->first + 1) % partition->room;
			partition->count--;
		}
		kept->bus->ops->consumed(kept->consumer, i,
		                         partition->count > 0 ? block_at(partition, 0)->offset : partition->next);
	}
}

/* @return WEIR_OK; WEIR_IO: try again */
static enum weir_status read_from_start(struct blocks_kept *kept, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < kept->bus->partitions && status == WEIR_OK; i++) {
		struct kept_partition *partition = &kept->partitions[i];
		uint64_t next;
		status = kept->bus->ops->extent(kept->bus, WEIR_TOPIC_DECISIONS, i, &partition->next, &next, error);
		if (status == WEIR_OK)
			status = kept->bus->ops->assign(kept->consumer, i, partition->next, error);
		partition->count = 0;
	}
	kept->anew = status != WEIR_OK;
	return status;
}

/* While it is read from the start again, it is held for no longer than its other readers hold it. */
static bool was_trimmed(const struct blocks_kept *kept, uint32_t number)
{
	uint64_t first, next;
	struct weir_error ignored;
	return kept->bus->ops->extent(kept->bus, WEIR_TOPIC_DECISIONS, number, &first, &next, &ignored) == WEIR_OK &&
	       first > kept->partitions[number].next;
}

static void look_at_clock(struct blocks_kept *kept)
{
	int64_t step_ms = weir_clock_step_take(&kept->clock), now_ms = weir_monotonic_ms();
	if (step_ms > 0 && kept->trim_due_ms <= now_ms + TRIM_PERIOD_MS)
		kept->trim_due_ms = now_ms + DOUBT_MS;
	if (step_ms >= 0)
		return;
	kept->anew = true;
	kept->trim_due_ms = now_ms + TRIM_PERIOD_MS;
}

static void *work(void *context)
{
	struct blocks_kept *kept = context;
	struct weir_message messages[BATCH_MESSAGES];
	struct weir_error error;
	messages[0].partition = 0;
	while (!atomic_load(&kept->stop)) {
		size_t count = 0;
		enum weir_status status = kept->anew ? read_from_start(kept, &error) : WEIR_OK;
		if (status == WEIR_OK)
			status = kept->bus->ops->receive(kept->consumer, messages, BATCH_MESSAGES, WAIT_MS, &count, &error);
		if (status == WEIR_OK)
			weir_fault_clear(&kept->fault, kept->log, "decisions");
		else if (status == WEIR_INVALID && !kept->anew && was_trimmed(kept, messages[0].partition))
			kept->anew = true;
		else
			weir_fault_raise_at(
				&kept->fault, kept->log, WEIR_LOG_ERROR, "decisions",
				"cannot read decisions: %s. New blocks do not reach the gateways' lists meanwhile; the log keeps them. "
				"Trying again at once (runbook: gateway-not-blocking)",
				error.text);
		for (size_t i = 0; i < count && status == WEIR_OK; i++)
			take(kept, &messages[i], weir_wall_ms());
		int64_t now_ms = weir_wall_ms(); /* of before the look, so that no step comes between */
		look_at_clock(kept);
		if (!kept->anew && weir_monotonic_ms() >= kept->trim_due_ms) {
			trim(kept, now_ms);
			kept->trim_due_ms = weir_monotonic_ms() + TRIM_PERIOD_MS;
		}
		if (status != WEIR_OK)
			nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
	}
	return NULL;
}

static void release(struct blocks_kept *kept)
{
	if (kept->consumer != NULL)
		kept->bus->ops->consumer_free(kept->consumer);
	for (uint32_t i = 0; i < kept->bus->partitions; i++)
		free(kept->partitions[i].blocks);
	free(kept->partitions);
	free(kept);
}

enum weir_status blocks_kept_start(struct weir_bus *bus, const struct weir_log *log, struct blocks_kept **out,
                                   struct weir_error *error)
{
	struct blocks_kept *kept = weir_alloc(1, sizeof *kept);
	kept->bus = bus;
	kept->log = log;
	kept->partitions = weir_alloc(bus->partitions, sizeof *kept->partitions);
	enum weir_status status = bus->ops->consumer_new(bus, WEIR_TOPIC_DECISIONS, "blocks", &kept->consumer, error);
	weir_clock_step_begin(&kept->clock);
	if (status == WEIR_OK)
		status = read_from_start(kept, error);
	if (status == WEIR_OK && pthread_create(&kept->thread, NULL, work, kept) != 0)
		status = weir_fail(error, WEIR_IO, "cannot start a thread");
	if (status != WEIR_OK) {
		release(kept);
		return status;
	}
	*out = kept;
	return WEIR_OK;
}

void blocks_kept_stop(struct blocks_kept *kept)
{
	if (kept == NULL)
		return;
	atomic_store(&kept->stop, true);
	pthread_join(kept->thread, NULL);
	release(kept);
}
