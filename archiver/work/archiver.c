/* SPDX-License-Identifier: Apache-2.0 */
/* The thread: partitions, messages, storing, in turn; and its start and end. */
#include "archiver/work/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 20, DRAIN_LIMIT_MS = 30000, LAST_TRIES = 5 };

static enum weir_status open_writer(struct archiver *archiver, uint32_t number, struct weir_error *error)
{
	const struct archiver_options *options = &archiver->options;
	struct weir_store *store;
	enum weir_status status =
		(number > 0 ? options->open_another : options->open_store)(options->context, &store, error);
	if (status != WEIR_OK)
		return status;
	status = writer_new(store, options->hash, number > 0, options->bus->partitions, &archiver->writers[number], error);
	if (status == WEIR_OK)
		archiver->stores[number] = store;
	else
		store->ops->close(store);
	return status;
}

/* The first writer stores in this thread. The others only add speed: if the server refuses connections, fewer do. */
static enum weir_status open_writers(struct archiver *archiver, struct weir_error *error)
{
	uint32_t wanted = archiver->options.writers, opened = 0;
	archiver->stores = weir_alloc(wanted, sizeof(struct weir_store *));
	archiver->writers = weir_alloc(wanted, sizeof(struct writer *));
	enum weir_status status = WEIR_OK;
	while (opened < wanted && (status = open_writer(archiver, opened, error)) == WEIR_OK)
		opened++;
	if (opened == 0 || status == WEIR_END)
		return status;
	if (opened < wanted)
		weir_log(archiver->options.log, WEIR_LOG_WARNING, "archiver",
		         "storing over %u connections instead of archiver.threads (%u): the archive may lag, and nothing is "
		         "lost. The store: %s",
		         opened, wanted, error->text);
	archiver->options.writers = opened;
	archiver->store = archiver->stores[0];
	return WEIR_OK;
}

static void close_writers(struct archiver *archiver)
{
	for (uint32_t i = 0; archiver->writers != NULL && i < archiver->options.writers && archiver->writers[i] != NULL;
	     i++) {
		writer_free(archiver->writers[i]);
		archiver->stores[i]->ops->close(archiver->stores[i]);
	}
	free(archiver->writers);
	free(archiver->stores);
}

static enum weir_status open_all(struct archiver *archiver, struct weir_error *error)
{
	struct weir_bus *bus = archiver->options.bus;
	enum weir_status status = open_writers(archiver, error);
	if (status == WEIR_OK) {
		archiver_note_store(archiver, WEIR_OK, NULL);
		status = bus->ops->consumer_new(bus, WEIR_TOPIC_JUDGED, "archiver", &archiver->judged, error);
	}
	if (status == WEIR_OK)
		status = bus->ops->consumer_new(bus, WEIR_TOPIC_DECISIONS, "archiver", &archiver->decisions, error);
	if (status == WEIR_OK)
		status = bus->ops->consumer_new(bus, WEIR_TOPIC_SHADOW, "archiver", &archiver->shadow, error);
	return status;
}

static void close_all(struct archiver *archiver)
{
	/* The consumer that is made last: where it is, all are. */
	for (uint32_t i = 0; archiver->shadow != NULL && i < archiver->options.bus->partitions; i++)
		archiver_drop(archiver, i, PARTITION_EMPTY);
	if (archiver->judged != NULL)
		bus_of(archiver)->consumer_free(archiver->judged);
	if (archiver->decisions != NULL)
		bus_of(archiver)->consumer_free(archiver->decisions);
	if (archiver->shadow != NULL)
		bus_of(archiver)->consumer_free(archiver->shadow);
	close_writers(archiver);
}

/* False while memory is full, or the last attempt to store has failed: messages then stay in the topics. */
static bool may_receive(const struct archiver *archiver)
{
	return !archiver->unsettled &&
	       (int64_t)weir_counter_read(&archiver->stats.waiting_bytes) < archiver->options.config->archiver.memory_bytes;
}

static void turn(struct archiver *archiver)
{
	archiver_follow_assignment(archiver);
	if (may_receive(archiver))
		archiver_receive(archiver, WAIT_MS);
	else
		nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
	archiver_tell_places(archiver);
	archiver_tell_partitions(archiver);
	archiver_store_if_due(archiver);
	archiver_keep_if_due(archiver);
}

/* Reads what the topics have now. */
static void drain(struct archiver *archiver)
{
	struct weir_error error;
	int64_t end_ms = weir_monotonic_ms() + DRAIN_LIMIT_MS;
	uint64_t *ends = archiver_ends(archiver, &error);
	if (ends == NULL) {
		weir_log(archiver->options.log, WEIR_LOG_WARNING, "archiver",
		         "%s: what the topics have beyond what was read is archived by the next start", error.text);
		return;
	}
	while (!archiver_caught_up(archiver, ends) && weir_monotonic_ms() < end_ms)
		turn(archiver);
	if (!archiver_caught_up(archiver, ends))
		weir_log(archiver->options.log, WEIR_LOG_WARNING, "archiver",
		         "what the topics have beyond what was read in %d s is archived by the next start",
		         DRAIN_LIMIT_MS / 1000);
	archiver_tell_unread_shadow(archiver, ends + (size_t)2 * archiver->options.bus->partitions);
	free(ends);
}

static void store_last(struct archiver *archiver)
{
	for (int tries = 0; tries < LAST_TRIES; tries++) {
		if (archiver_store(archiver))
			return;
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	archiver->status = archiver->failure.status; /* the topics still have it: the next start reads it again */
}

static void *work(void *context)
{
	struct archiver *archiver = context;
	archiver->status = open_all(archiver, &archiver->failure);
	if (archiver->status == WEIR_OK) {
		archiver->due_ms = weir_monotonic_ms() + archiver->options.config->archiver.interval_ms;
		while (!atomic_load(&archiver->stop))
			turn(archiver);
		if (atomic_load(&archiver->drain))
			drain(archiver);
		store_last(archiver);
	} else if (archiver->status == WEIR_END) {
		archiver->status = WEIR_OK; /* it was asked to stop while it waited for its store */
	}
	atomic_store(&archiver->ended, true);
	return NULL;
}

static void free_all(struct archiver *archiver)
{
	free(archiver->partitions);
	free(archiver->places);
	weir_partition_faults_deinit(&archiver->faults);
	free(archiver->reasons.parked);
	pthread_mutex_destroy(&archiver->reasons.lock);
	weir_frame_reader_free(archiver->reader);
	histories_free(archiver->histories);
	free(archiver);
}

enum weir_status archiver_start(const struct archiver_options *options, struct archiver **out, struct weir_error *error)
{
	struct archiver *archiver = weir_alloc(1, sizeof *archiver);
	archiver->options = *options;
	archiver->partitions = weir_alloc(options->bus->partitions, sizeof *archiver->partitions);
	archiver->places = weir_alloc(options->bus->partitions, sizeof *archiver->places);
	weir_partition_faults_init(&archiver->faults, options->bus->partitions, options->log, "archiver");
	archiver->reasons.parked = weir_alloc(options->bus->partitions, sizeof *archiver->reasons.parked);
	pthread_mutex_init(&archiver->reasons.lock, NULL);
	archiver->reader = weir_frame_reader_new();
	archiver->histories = histories_new();
	int failed = pthread_create(&archiver->thread, NULL, work, archiver);
	if (failed != 0) {
		free_all(archiver);
		return weir_fail(error, WEIR_IO, "cannot start the archiver's thread: %s", weir_errno_words(failed));
	}
	*out = archiver;
	return WEIR_OK;
}

void archiver_stop(struct archiver *archiver, bool with_drain)
{
	atomic_store(&archiver->drain, with_drain);
	atomic_store(&archiver->stop, true);
}

bool archiver_ended(const struct archiver *archiver)
{
	return atomic_load(&archiver->ended);
}

enum weir_status archiver_join(struct archiver *archiver, struct weir_error *error)
{
	pthread_join(archiver->thread, NULL);
	enum weir_status status = archiver->status;
	if (status != WEIR_OK)
		*error = archiver->failure;
	close_all(archiver);
	free_all(archiver);
	return status;
}

const struct archiver_stats *archiver_stats(const struct archiver *archiver)
{
	return &archiver->stats;
}

bool archiver_parked(struct archiver *archiver, uint32_t partition, char text[ARCHIVER_REASON_BYTES])
{
	pthread_mutex_lock(&archiver->reasons.lock);
	memcpy(text, archiver->reasons.parked[partition], ARCHIVER_REASON_BYTES);
	pthread_mutex_unlock(&archiver->reasons.lock);
	return text[0] != '\0';
}

bool archiver_store_failed(struct archiver *archiver, char text[ARCHIVER_REASON_BYTES])
{
	if (weir_counter_read(&archiver->stats.store_fails) == 0)
		return false;
	pthread_mutex_lock(&archiver->reasons.lock);
	memcpy(text, archiver->reasons.store, ARCHIVER_REASON_BYTES);
	pthread_mutex_unlock(&archiver->reasons.lock);
	return true;
}
