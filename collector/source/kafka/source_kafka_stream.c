/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions as streams, and their statuses.
 *
 * A stream is kept when its partition is revoked: readers and pending marks point
 * to it, and the partition may come back. Its id does not depend on the collector,
 * so that limiters recognise the partition's positions, whoever reads it.
 *
 * Brokers forget a group's offsets with the topic, and after some days without
 * commits. So this collector also remembers the last message of each partition that
 * was acknowledged. If the partition still has it, reading continues there. If it
 * has another one, or none, the topic was recreated: its positions would be taken
 * for old ones, and nothing is read.
 */
#include "collector/source/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/mark.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERIFY_BEHIND = 10000 /* messages that are fetched again at most, to verify a topic */ };

struct kafka_stream *kafka_find(const struct kafka_source *source, const char *topic, int32_t partition)
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

/* What is remembered of a stream; NULL: there are too many to remember. It is named by its id, which has all it is. */
static struct source_memory_stream *record_of(const struct kafka_source *source, const struct kafka_stream *stream)
{
	char name[sizeof SOURCE_KAFKA_PREFIX + 2 * SOURCE_ID_BYTES] = SOURCE_KAFKA_PREFIX;
	(void)weir_hex_put(name + sizeof SOURCE_KAFKA_PREFIX - 1, stream->stream.id, SOURCE_ID_BYTES);
	struct source_memory_stream *record = source_memory_find(source->memory, name);
	return record != NULL ? record : source_memory_add(source->memory, name);
}

static int64_t hash_of(const rd_kafka_message_t *message)
{
	rd_kafka_timestamp_type_t type;
	struct weir_span payload = {.at = message->payload, .length = (uint32_t)message->len};
	int64_t put_ms = rd_kafka_message_timestamp(message, &type);
	uint64_t hash = weir_mark_of(payload, (uint64_t)message->offset, put_ms).hash + (uint64_t)put_ms * 31;
	return (int64_t)(hash >> 1);
}

void kafka_note_mark(struct kafka_stream *stream, const rd_kafka_message_t *message)
{
	if (stream->record == NULL || stream->marked_at != KAFKA_NO_OFFSET)
		return; /* one at a time: as soon as it is acknowledged, the next */
	stream->marked_at = message->offset;
	stream->mark = hash_of(message);
}

void kafka_remember(struct kafka_source *source, struct kafka_stream *stream)
{
	if (stream->marked_at == KAFKA_NO_OFFSET || stream->safe <= stream->marked_at)
		return;
	stream->record->low_water = (uint64_t)stream->marked_at + 1;
	stream->record->forgotten_ns = stream->mark;
	stream->marked_at = KAFKA_NO_OFFSET;
	source_memory_changed(source->memory);
}

int64_t kafka_fetch_offset(const struct kafka_stream *stream)
{
	int64_t marked = stream->verifying ? (int64_t)stream->record->low_water - 1 : stream->next;
	return marked < stream->next ? marked : stream->next;
}

bool kafka_verify(struct kafka_source *source, struct kafka_stream *stream, const rd_kafka_message_t *message)
{
	int64_t marked = (int64_t)stream->record->low_water - 1;
	if (message->offset < marked)
		return true;
	stream->verifying = false;
	if (message->offset > marked || hash_of(message) == stream->record->forgotten_ns)
		return true;
	kafka_stop(source, stream);
	kafka_assign(source);
	return false;
}

/*
 * Whether the message that is remembered lies where it can be fetched once more: before the offset where the partition
 * begins, and not far. *offset: where the group has forgotten its own, the one that is remembered.
 */
static bool is_to_verify(const struct kafka_stream *stream, enum kafka_begin begin, int64_t *offset)
{
	int64_t remembered = stream->record != NULL ? (int64_t)stream->record->low_water : 0;
	if (remembered == 0 || begin == KAFKA_STOPPED)
		return false;
	if (begin == KAFKA_NEW && remembered > *offset)
		*offset = remembered;
	return remembered <= *offset && *offset - remembered <= VERIFY_BEHIND;
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
	stream->stream.is_common = true; /* of several groups */
	stream->marked_at = KAFKA_NO_OFFSET;
	if (source->memory != NULL)
		stream->record = record_of(source, stream);
	pthread_mutex_lock(&source->mutex);
	source->streams = weir_realloc(source->streams, source->stream_count + 1, sizeof(struct kafka_stream *));
	source->handles = weir_realloc(source->handles, source->stream_count + 1, sizeof(struct source_stream *));
	source->streams[source->stream_count] = stream;
	source->handles[source->stream_count++] = &stream->stream;
	pthread_mutex_unlock(&source->mutex);
	return stream;
}

void kafka_stop(struct kafka_source *source, struct kafka_stream *stream)
{
	pthread_mutex_lock(&source->mutex);
	stream->stopped = true;
	snprintf(stream->problem, sizeof stream->problem,
	         "offset %" PRId64 " is not in this log: the topic was recreated; to read it from its beginning, raise "
	         "\"generation\" (runbook: topic-recreated)",
	         stream->next);
	pthread_mutex_unlock(&source->mutex);
	source->commit_due = true; /* so that the group knows too */
}

/*
 * A stopped stream stays stopped while its offset is the same. A stream is also stopped if the group had an offset and
 * has forgotten it, as it does when a topic is deleted: the log is then another one.
 */
void kafka_take(struct kafka_source *source, const rd_kafka_topic_partition_t *at, enum kafka_begin begin)
{
	struct kafka_stream *stream = kafka_find(source, at->topic, at->partition);
	bool held = stream != NULL, forgotten = held && begin == KAFKA_NEW && stream->committed > at->offset;
	if (!held)
		stream = add(source, at->topic, at->partition);
	int64_t offset = forgotten ? stream->next : at->offset;
	bool verifying = !forgotten && is_to_verify(stream, begin, &offset);
	bool stopped = begin == KAFKA_STOPPED || forgotten || (stream->stopped && offset == stream->next);
	pthread_mutex_lock(&source->mutex);
	stream->assigned = true;
	stream->stopped = false;
	stream->next = stream->end = offset;
	stream->told_end = KAFKA_NO_OFFSET;
	stream->newest_ms = 0;
	stream->problem[0] = '\0';
	pthread_mutex_unlock(&source->mutex);
	stream->handed = stream->safe = offset;
	stream->committed = begin == KAFKA_NEW ? KAFKA_NO_OFFSET : offset;
	stream->marked = stream->marking = begin == KAFKA_STOPPED;
	stream->retry_ms = 0;
	stream->verifying = verifying && !stopped;
	stream->marked_at = KAFKA_NO_OFFSET;
	if (stopped)
		kafka_stop(source, stream);
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
	for (size_t i = 0; i < source->config.topic_count && source->topics != NULL; i++)
		free(source->topics[i].name);
	free(source->topics);
	free(source->streams);
	free(source->handles);
}

/* ---- status ---- */

/*
 * Reads the lag without asking a broker: the log's end is known from fetches, or from when it was last asked for, the age
 * from the newest record read.
 */
static void state_lag(const struct kafka_source *source, const struct kafka_stream *stream,
                      struct source_status *status)
{
	int64_t low, high, place = stream->end > stream->next ? stream->end : stream->next;
	status->no_lag_time = true;
	if (rd_kafka_get_watermark_offsets(source->handle, stream->topic, stream->partition, &low, &high) !=
	    RD_KAFKA_RESP_ERR_NO_ERROR)
		high = -1;
	high = stream->told_end > high ? stream->told_end : high;
	if (high < 0)
		return;
	status->counts_records = true;
	status->lag_records = high > place ? (uint64_t)(high - place) : 0;
	status->no_lag_time = status->lag_records > 0 && stream->newest_ms == 0;
	if (status->lag_records == 0 || stream->newest_ms == 0)
		return;
	int64_t waited_ms = weir_wall_ms() - stream->newest_ms;
	status->lag_ms = waited_ms > 0 ? waited_ms : 0;
}

static void state_counts(const struct kafka_stream *stream, struct source_status *status)
{
	*status = (struct source_status){
		.name = stream->stream.name,
		.position = (uint64_t)stream->next,
		.lines = atomic_load_explicit(&stream->stream.lines, memory_order_relaxed),
		.lost_records = stream->lost,
		.own = {[SOURCE_OWN_SKIPPED] = stream->skipped},
	};
}

static void state_stream(const struct kafka_source *source, const struct kafka_stream *stream,
                         struct source_status *status)
{
	state_counts(stream, status);
	state_lag(source, stream, status);
	snprintf(status->problem, sizeof status->problem, "%s", stream->problem);
}

/* Adds a status for each topic with a problem. @return how many statuses there are */
static size_t state_topics(const struct kafka_source *source, struct source_status *statuses, size_t count,
                           size_t filled)
{
	for (size_t i = 0; i < source->config.topic_count && source->topics != NULL; i++) {
		const struct kafka_topic *topic = &source->topics[i];
		if (topic->problem[0] == '\0')
			continue;
		if (filled < count) {
			statuses[filled] = (struct source_status){.name = topic->name, .whole = true};
			snprintf(statuses[filled].problem, sizeof statuses[filled].problem, "%s", topic->problem);
		}
		filled++;
	}
	return filled;
}

size_t kafka_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct kafka_source *source = (struct kafka_source *)(void *)base;
	size_t filled = 1;
	pthread_mutex_lock(&source->mutex);
	if (count > 0) {
		statuses[0] = (struct source_status){.name = source->label, .whole = true, .errors = source->errors};
		snprintf(statuses[0].problem, sizeof statuses[0].problem, "%s", source->problem);
	}
	filled = state_topics(source, statuses, count, filled);
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct kafka_stream *stream = source->streams[i];
		if (!stream->assigned && stream->lost == 0)
			continue;
		if (filled < count && stream->assigned)
			state_stream(source, stream, &statuses[filled]);
		else if (filled < count)
			state_counts(stream, &statuses[filled]); /* another has it now; what was lost here stays told */
		filled++;
	}
	pthread_mutex_unlock(&source->mutex);
	return filled;
}
