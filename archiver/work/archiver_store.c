/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storing: all rows of live partitions, each writer's partitions in one
 * transaction.
 *
 * Storing takes a bounded part of the time: after a commit that took long, the
 * next one waits three times as long. So the slower the store, the larger the
 * batches, and the fewer rows are written per event.
 *
 * A commit whose answer is lost may have been made. It is retried with the same
 * rows, which the store recognises by their checkpoints. If rows were added under
 * the same checkpoints, the store would take them for stored. So nothing is
 * received until the store has answered, and a partition keeps its writer until
 * then.
 */
#include "archiver/work/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { RETRY_MS = 1000, REST_TIMES = 3 };

static void set(struct weir_counter *gauge, uint64_t value)
{
	atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

void archiver_note_store(struct archiver *archiver, enum weir_status status, const struct weir_error *error)
{
	bool failed = status == WEIR_IO || status == WEIR_INVALID;
	weir_counter_add(&archiver->stats.store_tries, 1);
	weir_counter_add(&archiver->stats.store_failures, failed);
	set(&archiver->stats.store_fails, failed);
	if (!failed)
		return;
	pthread_mutex_lock(&archiver->reasons.lock);
	snprintf(archiver->reasons.store, sizeof archiver->reasons.store, "%s", error->text);
	pthread_mutex_unlock(&archiver->reasons.lock);
}

/* The memory of rows that are not stored yet. @param rows  set to their number */
static size_t count_waiting(const struct archiver *archiver, size_t *rows)
{
	size_t bytes = 0;
	*rows = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		const struct ledger *ledger = archiver->partitions[i].ledger;
		if (ledger == NULL)
			continue;
		bytes += ledger_bytes(ledger);
		*rows += ledger_size(ledger);
	}
	return bytes;
}

/* Deals the partitions out to the writers in turn, as all have about equally many rows. */
static void give_writers(struct archiver *archiver)
{
	uint32_t next = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		if (archiver->partitions[i].ledger != NULL && archiver->partitions[i].ledger->changed)
			archiver->partitions[i].writer = next++ % archiver->options.writers;
}

static void stored(struct archiver *archiver, const struct writer_result *result)
{
	weir_counter_add(&archiver->stats.commits, 1);
	weir_counter_add(&archiver->stats.rows, result->rows);
	weir_histogram_observe(&archiver->stats.commit, &weir_latency_scale, (double)result->took_ms / 1000);
	for (size_t i = 0; i < result->count; i++) {
		struct ledger *ledger = result->ledgers[i];
		const struct ledger_position *at = ledger->positions;
		bus_of(archiver)->consumed(archiver->judged, ledger->partition, at[WEIR_TOPIC_JUDGED].next);
		bus_of(archiver)->consumed(archiver->decisions, ledger->partition, at[WEIR_TOPIC_DECISIONS].next);
		bus_of(archiver)->consumed(archiver->shadow, ledger->partition, at[WEIR_TOPIC_SHADOW].next);
		ledger_stored(ledger);
	}
}

/*
 * One attempt of every writer. If several fail, another error takes precedence over WEIR_FENCED.
 *
 * @param given  set to how many partitions they were given; 0: the store was not asked
 */
static enum weir_status try_to_store(struct archiver *archiver, size_t *given, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	int64_t took_ms = 0, least_ms = archiver->options.config->archiver.interval_ms;
	size_t count = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		if (archiver->partitions[i].ledger != NULL && archiver->partitions[i].ledger->changed)
			writer_give(archiver->writers[archiver->partitions[i].writer], archiver->partitions[i].ledger);
	for (uint32_t i = archiver->options.writers; i-- > 0;)
		writer_start(archiver->writers[i]);
	for (uint32_t i = 0; i < archiver->options.writers; i++) {
		struct writer_result result = writer_finish(archiver->writers[i]);
		if (result.status == WEIR_OK && result.count > 0)
			stored(archiver, &result);
		if (result.status != WEIR_OK && (status == WEIR_OK || status == WEIR_FENCED)) {
			status = result.status;
			*error = result.error;
		}
		took_ms = result.took_ms > took_ms ? result.took_ms : took_ms;
		count += result.count;
	}
	*given = count;
	if (status == WEIR_OK && count > 0) /* otherwise due_ms stays, so that what comes after a pause is stored at once */
		archiver->due_ms = weir_monotonic_ms() + (took_ms * REST_TIMES > least_ms ? took_ms * REST_TIMES : least_ms);
	return status;
}

/*
 * Drops partitions that have another owner, and those of which the store has lost rows, as a server may have been
 * replaced by one that lagged behind. @return whether any was dropped
 */
static bool drop_fenced(struct archiver *archiver)
{
	struct weir_partition_state state;
	bool any = false;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		const struct ledger *ledger = archiver->partitions[i].ledger;
		if (ledger == NULL ||
		    archiver->store->ops->inspect(archiver->store, WEIR_STORE_ROLE_ARCHIVER, i, &state, NULL) != WEIR_OK ||
		    (state.epoch == ledger->epoch && state.checkpoint >= ledger->checkpoint))
			continue;
		if (state.epoch == ledger->epoch)
			weir_fault_raise(
				&archiver->lost_fault, archiver->options.log, "archiver",
				"the store has lost the latest rows of partition %u. They are archived again, each once, as "
				"far as the topics keep them. If no failover was planned, look whether the store was restored "
				"from a copy, or a replica lags (runbook: store-failed-over)",
				i);
		else
			weir_notice_log(&archiver->moved, archiver->options.log, WEIR_LOG_INFO, "archiver",
			                "partition %u now has another archiver, as is usual after a restart. Taking it back if it "
			                "stays assigned to this one; nothing is lost",
			                i);
		weir_counter_add(&archiver->stats.fenced, 1);
		archiver_drop(archiver, i, archiver->options.standalone ? PARTITION_PARKED : PARTITION_EMPTY);
		/* The other process may have taken it by mistake, and drop it soon: if it is still ours, it is taken back. */
		archiver->retake_ms = weir_monotonic_ms() + RETRY_MS;
		any = true;
	}
	return any;
}

/*
 * With nothing to store, nobody learns by storing that the store is back, as where the partitions that waited for it were
 * given to others. Those that are to be taken ask by themselves.
 */
static void ask_store(struct archiver *archiver)
{
	struct weir_error error;
	struct weir_partition_state state;
	int64_t now_ms = weir_monotonic_ms();
	if (weir_counter_read(&archiver->stats.store_fails) == 0 || archiver->retake_ms != 0 || now_ms < archiver->ask_ms)
		return;
	enum weir_status status =
		archiver->store->ops->inspect(archiver->store, WEIR_STORE_ROLE_ARCHIVER, 0, &state, &error);
	archiver_note_store(archiver, status, &error);
	archiver->ask_ms = now_ms + RETRY_MS;
	if (status == WEIR_OK)
		weir_fault_over(&archiver->store_fault, archiver->options.log, "archiver", "the store answers again");
	else
		archiver_store_fails(archiver, &error);
}

bool archiver_store(struct archiver *archiver)
{
	struct weir_error error;
	enum weir_status status;
	size_t given;
	if (!archiver->unsettled)
		give_writers(archiver);
	do
		status = try_to_store(archiver, &given, &error);
	while (status == WEIR_FENCED && drop_fenced(archiver));
	archiver->unsettled = status != WEIR_OK;
	if (status == WEIR_OK)
		set(&archiver->stats.oldest_ms, 0);
	if (given == 0) {
		ask_store(archiver);
		return true;
	}
	archiver_note_store(archiver, status, &error);
	if (status == WEIR_OK) {
		weir_fault_over(&archiver->store_fault, archiver->options.log, "archiver", "the store takes rows again");
		weir_fault_over(&archiver->lost_fault, archiver->options.log, "archiver", "rows are stored again");
		return true;
	}
	archiver_store_fails(archiver, &error);
	archiver->retry_ms = weir_monotonic_ms() + RETRY_MS;
	archiver->failure = error;
	return false;
}

void archiver_store_if_due(struct archiver *archiver)
{
	size_t rows, bytes = count_waiting(archiver, &rows);
	int64_t now_ms = weir_monotonic_ms();
	set(&archiver->stats.waiting_rows, rows);
	set(&archiver->stats.waiting_bytes, bytes);
	if (now_ms < archiver->retry_ms)
		return;
	if (now_ms >= archiver->due_ms || (int64_t)bytes >= archiver->options.config->archiver.memory_bytes / 2)
		(void)archiver_store(archiver);
}
