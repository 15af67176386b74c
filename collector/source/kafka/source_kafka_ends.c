/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the partitions end, asked every few seconds.
 *
 * Fetches say it too, but not while there are none: brokers that throttle this collector answer fetches late and empty,
 * so by those alone it would be behind with nothing. Brokers hold up all that comes over the connection that they throttle,
 * hence the handle of its own; and an answer may take its time, hence the thread.
 */
#include "collector/source/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"

#include <stdlib.h>

enum { EACH_MS = 5000, END_MS = 2000 };

struct kafka_ends {
	struct kafka_source *source; /* its mutex guards the streams, and `stopping` */
	rd_kafka_t *handle;          /* NULL: not opened yet */
	pthread_t thread;
	pthread_cond_t wake;
	bool stopping;
};

/* The partitions that are read here. The caller holds the mutex. */
static rd_kafka_topic_partition_list_t *list_read(const struct kafka_source *source)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->stream_count + 1);
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct kafka_stream *stream = source->streams[i];
		if (stream->assigned && !stream->stopped)
			rd_kafka_topic_partition_list_add(list, stream->topic, stream->partition)->offset = RD_KAFKA_OFFSET_END;
	}
	return list;
}

static bool is_open(struct kafka_ends *ends)
{
	struct weir_kafka *kafka = ends->source->kafka;
	struct weir_error ignored; /* the source's own handle says what is wrong */
	return ends->handle != NULL ||
	       weir_kafka_open(kafka, RD_KAFKA_CONSUMER, weir_kafka_conf(kafka, NULL), &ends->handle, &ignored) == WEIR_OK;
}

/* Asks once. The caller holds the mutex, which is released meanwhile. */
static void ask_ends(struct kafka_ends *ends)
{
	struct kafka_source *source = ends->source;
	rd_kafka_topic_partition_list_t *list = list_read(source);
	pthread_mutex_unlock(&source->mutex);
	if (list->cnt > 0 && is_open(ends))
		(void)rd_kafka_offsets_for_times(ends->handle, list, KAFKA_ASK_MS); /* each has its own error */
	pthread_mutex_lock(&source->mutex);
	for (int i = 0; i < list->cnt; i++) {
		const rd_kafka_topic_partition_t *at = &list->elems[i];
		struct kafka_stream *stream = kafka_find(source, at->topic, at->partition);
		if (at->err == RD_KAFKA_RESP_ERR_NO_ERROR && at->offset >= 0)
			stream->told_end = at->offset;
	}
	rd_kafka_topic_partition_list_destroy(list);
}

static void *run(void *context)
{
	struct kafka_ends *ends = context;
	pthread_mutex_lock(&ends->source->mutex);
	while (!ends->stopping) {
		struct weir_deadline deadline = weir_deadline_in_ms(EACH_MS);
		while (!ends->stopping && weir_condition_wait(&ends->wake, &ends->source->mutex, &deadline))
			continue;
		if (!ends->stopping)
			ask_ends(ends);
	}
	pthread_mutex_unlock(&ends->source->mutex);
	return NULL;
}

enum weir_status kafka_ends_new(struct kafka_source *source, struct kafka_ends **made, struct weir_error *error)
{
	struct kafka_ends *ends = weir_alloc(1, sizeof *ends);
	ends->source = source;
	weir_condition_init(&ends->wake);
	if (pthread_create(&ends->thread, NULL, run, ends) != 0) {
		pthread_cond_destroy(&ends->wake);
		free(ends);
		return weir_fail(error, WEIR_IO, "cannot start a thread");
	}
	*made = ends;
	return WEIR_OK;
}

void kafka_ends_stop(struct kafka_ends *ends)
{
	pthread_mutex_lock(&ends->source->mutex);
	ends->stopping = true;
	pthread_cond_signal(&ends->wake);
	pthread_mutex_unlock(&ends->source->mutex);
}

void kafka_ends_free(struct kafka_ends *ends)
{
	pthread_join(ends->thread, NULL);
	if (ends->handle != NULL)
		weir_kafka_end(ends->handle, END_MS);
	pthread_cond_destroy(&ends->wake);
	free(ends);
}
