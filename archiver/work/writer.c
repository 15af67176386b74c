/* SPDX-License-Identifier: Apache-2.0 */
/* The thread waits for work on its condition variable; its caller waits for the result on the same one. */
#include "archiver/work/writer.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum stage { IDLE, STARTED, DONE, ENDING };

struct writer {
	struct weir_store *store;
	struct batch *batch;
	struct ledger **ledgers;
	size_t given;
	struct writer_result result;
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum stage stage; /* under the lock */
};

static void store(struct writer *writer)
{
	size_t count = writer->given;
	struct writer_result *result = &writer->result;
	*result = (struct writer_result){.ledgers = writer->ledgers, .count = count};
	if (count == 0)
		return;
	struct weir_partition_state *states = weir_alloc(count, sizeof *states);
	struct weir_text *extras = weir_alloc(count, sizeof *extras);
	for (size_t i = 0; i < count; i++)
		ledger_state(writer->ledgers[i], &states[i], &extras[i]);
	const struct weir_archive_batch *batch = batch_fill(writer->batch, writer->ledgers, count);
	int64_t begun_ms = weir_monotonic_ms();
	result->status = writer->store->ops->archive(writer->store, WEIR_STORE_ROLE_ARCHIVER, batch, states, count, NULL,
	                                             NULL, 0, &result->error);
	result->took_ms = weir_monotonic_ms() - begun_ms;
	result->rows = batch->hour_count + batch->decision_count + batch->shadow_count + batch->event_count;
	for (size_t i = 0; i < count; i++)
		weir_text_deinit(&extras[i]);
	free(extras);
	free(states);
}

static void *work(void *context)
{
	struct writer *writer = context;
	pthread_mutex_lock(&writer->lock);
	for (;;) {
		while (writer->stage != STARTED && writer->stage != ENDING)
			pthread_cond_wait(&writer->changed, &writer->lock);
		if (writer->stage == ENDING)
			break;
		pthread_mutex_unlock(&writer->lock);
		store(writer);
		pthread_mutex_lock(&writer->lock);
		writer->stage = DONE;
		pthread_cond_signal(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

static void set_stage(struct writer *writer, enum stage stage)
{
	pthread_mutex_lock(&writer->lock);
	writer->stage = stage;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

enum weir_status writer_new(struct weir_store *store, struct weir_key_hash *hash, bool threaded, uint32_t most,
                            struct writer **out, struct weir_error *error)
{
	struct writer *writer = weir_alloc(1, sizeof *writer);
	writer->store = store;
	writer->batch = batch_new(hash);
	writer->ledgers = weir_alloc(most, sizeof(struct ledger *));
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	int failed = threaded ? pthread_create(&writer->thread, NULL, work, writer) : 0;
	writer->threaded = threaded && failed == 0;
	if (failed != 0) {
		writer_free(writer);
		return weir_fail(error, WEIR_IO, "cannot start a writer thread: %s", weir_errno_words(failed));
	}
	*out = writer;
	return WEIR_OK;
}

void writer_free(struct writer *writer)
{
	if (writer == NULL)
		return;
	if (writer->threaded) {
		set_stage(writer, ENDING);
		pthread_join(writer->thread, NULL);
	}
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	batch_free(writer->batch);
	free(writer->ledgers);
	free(writer);
}

void writer_give(struct writer *writer, struct ledger *ledger)
{
	writer->ledgers[writer->given++] = ledger;
}

void writer_start(struct writer *writer)
{
	if (writer->threaded && writer->given > 0)
		set_stage(writer, STARTED);
}

struct writer_result writer_finish(struct writer *writer)
{
	if (!writer->threaded || writer->given == 0) {
		store(writer);
	} else {
		pthread_mutex_lock(&writer->lock);
		while (writer->stage != DONE)
			pthread_cond_wait(&writer->changed, &writer->lock);
		writer->stage = IDLE;
		pthread_mutex_unlock(&writer->lock);
	}
	writer->given = 0;
	return writer->result;
}
