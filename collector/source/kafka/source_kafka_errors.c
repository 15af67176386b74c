/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems, shown for what they concern: the source as a whole until something succeeds, a topic until it has
 * partitions, a partition until something is read of it. And offsets that are not in the log.
 */
#include "collector/source/kafka/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 10000 /* a partition is checked again after this */ };

/* ---- problems ---- */

void kafka_problem(struct kafka_source *source, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	pthread_mutex_lock(&source->mutex);
	source->errors++;
	vsnprintf(source->problem, sizeof source->problem, format, arguments);
	pthread_mutex_unlock(&source->mutex);
	va_end(arguments);
}

void kafka_succeeded(struct kafka_source *source)
{
	if (source->problem[0] == '\0' || source->commit_refused) /* only this thread writes it */
		return;
	pthread_mutex_lock(&source->mutex);
	source->problem[0] = '\0';
	pthread_mutex_unlock(&source->mutex);
	weir_kafka_content(source->kafka);
}

/* Shows a problem of one partition or topic, and counts it. */
static void state_problem(struct kafka_source *source, char problem[KAFKA_PROBLEM_BYTES], const char *words)
{
	pthread_mutex_lock(&source->mutex);
	source->errors++;
	snprintf(problem, KAFKA_PROBLEM_BYTES, "%.*s", KAFKA_PROBLEM_BYTES - 1, words);
	pthread_mutex_unlock(&source->mutex);
}

void kafka_topic_problem(struct kafka_source *source, const char *name, const char *words)
{
	for (size_t i = 0; i < source->config.topic_count; i++)
		if (strcmp(source->config.topics[i], name) == 0)
			state_problem(source, source->topics[i].problem, words);
}

/* The topic that an error without a partition is about, or NULL. librdkafka names it in the text, "... NAME: ...". */
static struct kafka_topic *topic_in(struct kafka_source *source, const char *words)
{
	for (size_t i = 0; i < source->config.topic_count; i++) {
		const char *name = source->config.topics[i], *at = words;
		for (size_t length = strlen(name); (at = strstr(at, name)) != NULL; at += length)
			if (at > words && at[-1] == ' ' && at[length] == ':')
				return &source->topics[i];
	}
	return NULL;
}

void kafka_look_at_topics(struct kafka_source *source)
{
	for (size_t i = 0; i < source->config.topic_count; i++) {
		int32_t count = 0;
		struct weir_error ignored;
		if (source->topics[i].problem[0] == '\0' ||
		    kafka_partitions(source, source->config.topics[i], &count, &ignored) != WEIR_OK || count == 0)
			continue;
		pthread_mutex_lock(&source->mutex);
		source->topics[i].problem[0] = '\0';
		pthread_mutex_unlock(&source->mutex);
	}
}

/* ---- offsets that are not in the log ---- */

/*
 * If the log was trimmed past the next offset, the loss is counted and reading continues where the log begins. An
 * offset beyond the log's end means that it is another log: nothing is read until a person decides, because once that
 * log has grown so far, reading on would skip everything before. But a broker that has just become the leader may not
 * know the last few messages. So the end is checked once more: if it is then the very offset, it was only that, as
 * nothing else was written.
 */
static void mend_offset(struct kafka_source *source, struct kafka_stream *stream, int64_t now_ms)
{
	struct weir_error error;
	int64_t first, next;
	if (kafka_extent(source, stream->topic, stream->partition, &first, &next, &error) != WEIR_OK) {
		if (!stream->stopped)
			state_problem(source, stream->problem, error.text);
		stream->retry_ms = now_ms + LOOK_MS;
		return;
	}
	stream->retry_ms = 0;
	if (stream->stopped ? stream->next != next : stream->next > next) {
		if (!stream->stopped)
			stream->retry_ms = now_ms + LOOK_MS;
		kafka_stop(source, stream);
		return;
	}
	pthread_mutex_lock(&source->mutex);
	stream->stopped = false;
	stream->problem[0] = '\0';
	stream->verifying = stream->verifying && (int64_t)stream->record->low_water > first;
	if (stream->next < first) {
		stream->lost += (uint64_t)(first - stream->next);
		stream->next = first;
	}
	pthread_mutex_unlock(&source->mutex);
	source->commit_due = true;
	if (source->state == KAFKA_READING)
		kafka_assign(source);
}

void kafka_look_again(struct kafka_source *source, int64_t now_ms)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		struct kafka_stream *stream = source->streams[i];
		if (stream->assigned && stream->retry_ms > 0 && now_ms >= stream->retry_ms)
			mend_offset(source, stream, now_ms);
	}
}

/* The partition that an event is about, if it is assigned, or NULL. @param offset  set to the event's */
static struct kafka_stream *stream_of(struct kafka_source *source, rd_kafka_event_t *event, int64_t *offset)
{
	rd_kafka_topic_partition_t *at = rd_kafka_event_topic_partition(event);
	if (at == NULL)
		return NULL;
	struct kafka_stream *stream = kafka_find(source, at->topic, at->partition);
	*offset = at->offset;
	rd_kafka_topic_partition_destroy(at);
	return stream != NULL && stream->assigned ? stream : NULL;
}

/* Notes the log's end. It may be after the last message, as transaction markers are never delivered. */
static void take_end(struct kafka_source *source, struct kafka_stream *stream, int64_t offset)
{
	pthread_mutex_lock(&source->mutex);
	stream->end = offset;
	if (!stream->stopped)
		stream->problem[0] = '\0';
	pthread_mutex_unlock(&source->mutex);
}

/* Shows an error for the partition or topic that it concerns, if any: success with others does not end it there. */
static void take_refusal(struct kafka_source *source, struct kafka_stream *stream, const char *words)
{
	struct kafka_topic *topic = stream == NULL ? topic_in(source, words) : NULL;
	if (stream != NULL && !stream->stopped)
		state_problem(source, stream->problem, words);
	else if (topic != NULL)
		state_problem(source, topic->problem, words);
	else if (stream == NULL)
		kafka_problem(source, "%s", words);
}

void kafka_take_error(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms)
{
	int64_t offset;
	struct kafka_stream *stream = stream_of(source, event, &offset);
	char cause[WEIR_KAFKA_COMPLAINT_BYTES];
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	const char *words = rd_kafka_event_error_string(event);
	switch (code) {
	case RD_KAFKA_RESP_ERR__PARTITION_EOF:
		if (stream != NULL)
			take_end(source, stream, offset);
		break;
	case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
	case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
		if (stream != NULL && !stream->stopped)
			mend_offset(source, stream, now_ms);
		break;
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		kafka_problem(source, "no broker of %s answers: %s", source->config.brokers,
		              weir_kafka_complaint(source->kafka, cause, sizeof cause) ? cause : words);
		break;
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__RESOLVE: break; /* one broker of several: if it was the last, the one above follows */
	default: take_refusal(source, stream, words); break;
	}
}
