/*
 * Storing: all that live partitions hold, in one transaction.
 *
 * The store's share of the time is bounded: after a commit that took long the
 * next one waits three times as long, so that the larger its work, the fewer
 * rows an event costs.
 *
 * A commit whose answer is lost may have been made. It is tried again with the
 * same rows, which the store knows by their checkpoints; more rows under the
 * same checkpoints it would take for stored. So nothing is received until the
 * store has answered.
 */
#include "archiver/archiver_parts.h"

#include "common/alloc.h"
#include "common/clock.h"

#include <stdlib.h>

enum { RETRY_MS = 1000, REST_TIMES = 3, KEEP_PERIOD_MS = 600000, KEEP_STEP_MS = 100, KEEP_RETRY_MS = 10000 };

static void set(struct weir_counter *gauge, uint64_t value)
{
	atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

/* Bytes that what is not stored takes, and rows. */
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

/* The ledgers that have something; how many. */
static size_t changed_ledgers(const struct archiver *archiver, struct ledger **ledgers)
{
	size_t count = 0;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++)
		if (archiver->partitions[i].ledger != NULL && archiver->partitions[i].ledger->changed)
			ledgers[count++] = archiver->partitions[i].ledger;
	return count;
}

static void stored(struct archiver *archiver, struct ledger *const *ledgers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ledger *ledger = ledgers[i];
		bus_of(archiver)->consumed(archiver->judged, ledger->partition, ledger->judged_next);
		bus_of(archiver)->consumed(archiver->decisions, ledger->partition, ledger->decisions_next);
		ledger_stored(ledgers[i]);
	}
	set(&archiver->stats.oldest_ms, 0);
}

/* One try with what these ledgers hold. */
static enum weir_status try_to_store(struct archiver *archiver, struct ledger *const *ledgers, size_t count,
                                     struct weir_error *error)
{
	struct weir_partition_state *states = weir_alloc(count, sizeof *states);
	struct weir_text *extras = weir_alloc(count, sizeof *extras);
	for (size_t i = 0; i < count; i++)
		ledger_state(ledgers[i], &states[i], &extras[i]);
	const struct weir_archive_batch *batch = batch_fill(archiver->batch, ledgers, count);
	int64_t begun_ms = weir_monotonic_ms();
	enum weir_status status = archiver->store->ops->archive(archiver->store, WEIR_STORE_ROLE_ARCHIVER, batch, states,
	                                                        count, NULL, NULL, 0, error);
	int64_t now_ms = weir_monotonic_ms(), took_ms = now_ms - begun_ms,
			least_ms = archiver->options.config->archiver.interval_ms;
	if (status == WEIR_OK) {
		weir_counter_add(&archiver->stats.commits, 1);
		weir_counter_add(&archiver->stats.rows, batch->hour_count + batch->decision_count + batch->event_count);
		weir_histogram_observe(&archiver->stats.commit, &weir_latency_scale, (double)took_ms / 1000);
		archiver->due_ms = now_ms + (took_ms * REST_TIMES > least_ms ? took_ms * REST_TIMES : least_ms);
		stored(archiver, ledgers, count);
	}
	for (size_t i = 0; i < count; i++)
		weir_text_deinit(&extras[i]);
	free(extras);
	free(states);
	return status;
}

/* Partitions that have another owner by now go; whether any did. */
static bool drop_fenced(struct archiver *archiver)
{
	struct weir_partition_state state;
	bool any = false;
	for (uint32_t i = 0; i < archiver->options.bus->partitions; i++) {
		const struct ledger *ledger = archiver->partitions[i].ledger;
		if (ledger == NULL ||
		    archiver->store->ops->look(archiver->store, WEIR_STORE_ROLE_ARCHIVER, i, &state, NULL) != WEIR_OK ||
		    state.epoch == ledger->epoch)
			continue;
		weir_log(archiver->options.log, WEIR_LOG_INFO, "archiver", "partition %u has another archiver by now", i);
		weir_counter_add(&archiver->stats.fenced, 1);
		archiver_drop(archiver, i, archiver->options.share != NULL ? PARTITION_EMPTY : PARTITION_STUCK);
		/* Whoever took it late may be about to give it up: where the group still says that it is ours, it is taken back. */
		archiver->retake_ms = weir_monotonic_ms() + RETRY_MS;
		any = true;
	}
	return any;
}

bool archiver_store(struct archiver *archiver)
{
	struct ledger **ledgers = weir_alloc(archiver->options.bus->partitions, sizeof(struct ledger *));
	struct weir_error error;
	size_t count;
	enum weir_status status = WEIR_OK;
	while ((count = changed_ledgers(archiver, ledgers)) > 0) {
		status = try_to_store(archiver, ledgers, count, &error);
		if (status != WEIR_FENCED || !drop_fenced(archiver))
			break;
		status = WEIR_OK; /* of what is left */
	}
	free(ledgers);
	archiver->unsettled = status != WEIR_OK;
	if (status == WEIR_OK) {
		weir_trouble_off(&archiver->store_trouble, archiver->options.log, "archiver");
		return true;
	}
	weir_trouble_on(&archiver->store_trouble, archiver->options.log, "archiver", "%s; trying again", error.text);
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

void archiver_keep_if_due(struct archiver *archiver)
{
	struct weir_error error;
	bool more = false;
	if (weir_monotonic_ms() < archiver->keep_due_ms)
		return;
	enum weir_status status = archiver->store->ops->keep(archiver->store, archiver->options.config->archiver.keep_ms,
	                                                     weir_wall_ms(), &more, &error);
	if (status == WEIR_OK)
		weir_trouble_off(&archiver->keep_trouble, archiver->options.log, "archiver");
	else if (status != WEIR_AGAIN)
		weir_trouble_on(&archiver->keep_trouble, archiver->options.log, "archiver", "old rows stay: %s; trying again",
		                error.text);
	archiver->keep_due_ms = weir_monotonic_ms() + (status != WEIR_OK ? KEEP_RETRY_MS
	                                               : more            ? KEEP_STEP_MS
	                                                                 : KEEP_PERIOD_MS);
}
