/*
 * Partitions as streams, and what they state about themselves.
 *
 * A stream stays when its partition goes: readers and marks that are on their
 * way point to it, and the partition may come back. Its id holds nothing of
 * this collector, so that limiters know the partition's positions whoever
 * reads it.
 */
#include "collector/source_kafka_parts.h"

#include "common/alloc.h"
#include "common/clock.h"
#include "common/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kafka_stream *kafka_find(struct kafka_source *source, const char *topic, int32_t partition)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->partition == partition && strcmp(source->streams[i]->topic, topic) == 0)
			return source->streams[i];
	return NULL;
}

/* Hash of cluster, topic, partition and generation, each ended by a zero. */
static void make_id(const struct kafka_source *source, const char *topic, int32_t partition,
                    uint8_t id[SOURCE_ID_BYTES])
{
	struct weir_text named = {0};
	weir_text_append(&named, "kafka", sizeof "kafka");
	weir_text_append(&named, source->cluster, strlen(source->cluster) + 1);
	weir_text_append(&named, topic, strlen(topic) + 1);
	weir_text_printf(&named, "%" PRId32, partition);
	weir_text_append(&named, "", 1);
	weir_text_printf(&named, "%" PRId64, source->config.generation);
	weir_text_append(&named, "", 1);
	weir_hash128(named.at, named.length, id);
	weir_text_deinit(&named);
}

static struct kafka_stream *add(struct kafka_source *source, const char *topic, int32_t partition)
{
	struct kafka_stream *stream = weir_alloc(1, sizeof *stream);
	struct weir_text name = {0};
	weir_text_printf(&name, "%s:%s/%" PRId32, source->config.name, topic, partition);
	weir_text_append(&name, "", 1);
	stream->stream.name = name.at;
	stream->stream.order = (uint32_t)source->stream_count;
	stream->topic = weir_copy(topic, strlen(topic));
	stream->partition = partition;
	make_id(source, topic, partition, stream->stream.id);
	pthread_mutex_lock(&source->mutex);
	source->streams = weir_realloc(source->streams, source->stream_count + 1, sizeof(struct kafka_stream *));
	source->handles = weir_realloc(source->handles, source->stream_count + 1, sizeof(struct source_stream *));
	source->streams[source->stream_count] = stream;
	source->handles[source->stream_count++] = &stream->stream;
	pthread_mutex_unlock(&source->mutex);
	return stream;
}

struct kafka_stream *kafka_take(struct kafka_source *source, const char *topic, int32_t partition, int64_t offset)
{
	struct kafka_stream *stream = kafka_find(source, topic, partition);
	if (stream == NULL)
		stream = add(source, topic, partition);
	pthread_mutex_lock(&source->mutex);
	stream->assigned = true;
	stream->stopped = false;
	stream->next = stream->end = offset;
	stream->newest_ms = 0;
	pthread_mutex_unlock(&source->mutex);
	stream->handed = stream->safe = offset;
	stream->committed = KAFKA_NO_OFFSET;
	return stream;
}

void kafka_drop_all(struct kafka_source *source)
{
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; i < source->stream_count; i++)
		source->streams[i]->assigned = false;
	pthread_mutex_unlock(&source->mutex);
}

bool kafka_settled(const struct kafka_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->safe < source->streams[i]->handed)
			return false;
	return true;
}

int64_t kafka_low_water(const struct kafka_stream *stream)
{
	return stream->safe >= stream->handed ? stream->next : stream->safe;
}

void kafka_free_streams(struct kafka_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		free(source->streams[i]->stream.name);
		free(source->streams[i]->topic);
		free(source->streams[i]);
	}
	free(source->streams);
	free(source->handles);
}

/* ---- status ---- */

/* How far the log goes is known from its fetches: nothing is asked for. */
static void state_lag(const struct kafka_source *source, const struct kafka_stream *stream,
                      struct source_status *status)
{
	int64_t low, high, place = stream->end > stream->next ? stream->end : stream->next;
	if (rd_kafka_get_watermark_offsets(source->handle, stream->topic, stream->partition, &low, &high) !=
	        RD_KAFKA_RESP_ERR_NO_ERROR ||
	    high <= place)
		return;
	status->lag_records = (uint64_t)(high - place);
	int64_t waited_ms = stream->newest_ms > 0 ? weir_wall_ms() - stream->newest_ms : 0;
	status->lag_ms = waited_ms > 0 ? waited_ms : 0;
}

static void state_stream(const struct kafka_source *source, const struct kafka_stream *stream,
                         struct source_status *status)
{
	*status = (struct source_status){
		.name = stream->stream.name,
		.kind = "kafka",
		.replayable = true,
		.position = (uint64_t)stream->next,
		.counts_records = true,
		.lines = atomic_load_explicit(&stream->stream.lines, memory_order_relaxed),
		.lost_records = stream->lost,
		.skipped = stream->skipped,
	};
	state_lag(source, stream, status);
	if (stream->stopped)
		snprintf(status->problem, sizeof status->problem,
		         "offset %" PRId64 " lies beyond the end of the log: if the topic was made anew, raise \"generation\"",
		         stream->next);
}

size_t kafka_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct kafka_source *source = (struct kafka_source *)(void *)base;
	size_t filled = 1;
	pthread_mutex_lock(&source->mutex);
	if (count > 0) {
		statuses[0] = (struct source_status){
			.name = source->label, .kind = "kafka", .whole = true, .replayable = true, .errors = source->errors};
		snprintf(statuses[0].problem, sizeof statuses[0].problem, "%s", source->problem);
	}
	for (size_t i = 0; i < source->stream_count; i++) {
		if (!source->streams[i]->assigned)
			continue;
		if (filled < count)
			state_stream(source, source->streams[i], &statuses[filled]);
		filled++;
	}
	pthread_mutex_unlock(&source->mutex);
	return filled;
}
