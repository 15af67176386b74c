/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as lines: taken from the consumer's queue, many of one partition in a
 * chunk.
 *
 * A message is one record (source_message.h). Messages without a line in them
 * (tombstones, blank ones) are skipped and counted.
 */
#include "collector/source/kafka/internal.h"

#include "collector/source/source_message.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	CHUNK_BYTES = 256 << 10,
	CHUNK_LINES = 4096,
	MESSAGES = 4 * CHUNK_LINES, /* messages taken per chunk, even if all are skipped: other sources wait meanwhile */
};

static const uint64_t one = 1; /* what is written to an eventfd */

static const struct weir_kafka_property properties[] = {
	{"enable.auto.commit", "false", false},
	{"enable.auto.offset.store", "false", false},
	{"auto.offset.reset", "error", false},
	{"allow.auto.create.topics", "false", false},
	{"enable.partition.eof", "true", false}, /* reported only after a fetch that returned nothing: rare */
	{"partition.assignment.strategy", "range", false},
	{NULL, NULL, false},
};

static struct kafka_source *kafka_of(struct source *source)
{
	return (struct kafka_source *)(void *)source;
}

/* ---- messages ---- */

/* The event of the next message, or NULL. Handles other events that come before it. */
static rd_kafka_event_t *next_message(struct kafka_source *source, int64_t now_ms)
{
	rd_kafka_event_t *event = source->pending;
	source->pending = NULL;
	if (event != NULL)
		return event;
	while (event == NULL && source->state != KAFKA_GIVING) {
		event = rd_kafka_queue_poll(source->queue, 0);
		if (event == NULL || (rd_kafka_event_type(event) == RD_KAFKA_EVENT_FETCH && source->state == KAFKA_READING))
			break;
		kafka_take_news(source, event, now_ms); /* also drops messages of a previous assignment */
		event = NULL;
	}
	source->message = event != NULL ? rd_kafka_event_message_next(event) : NULL;
	return event;
}

static struct kafka_stream *stream_of(struct kafka_source *source, const rd_kafka_message_t *message)
{
	struct kafka_stream *last = source->last;
	const char *topic = rd_kafka_topic_name(message->rkt);
	if (last != NULL && last->partition == message->partition && strcmp(last->topic, topic) == 0)
		return last;
	source->last = kafka_find(source, topic, message->partition);
	return source->last;
}

static void note(struct kafka_source *source, struct kafka_stream *stream, const rd_kafka_message_t *message,
                 bool skipped)
{
	rd_kafka_timestamp_type_t type;
	int64_t put_ms = rd_kafka_message_timestamp(message, &type);
	pthread_mutex_lock(&source->mutex);
	stream->next = message->offset + 1;
	stream->newest_ms = type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? put_ms : 0;
	stream->skipped += skipped;
	if (!stream->stopped)
		stream->problem[0] = '\0';
	pthread_mutex_unlock(&source->mutex);
	if (skipped)
		return;
	stream->handed = stream->next;
	kafka_note_mark(stream, message);
}

/*
 * Takes one message into the chunk.
 *
 * @return whether it is done with; false: it must wait for the next chunk
 */
static bool take_message(struct kafka_source *source, const rd_kafka_message_t *message, struct source_chunk *chunk)
{
	struct kafka_stream *stream = stream_of(source, message);
	struct weir_span line = source_message_line(message->payload, message->len);
	if (stream == NULL || !stream->assigned || stream->stopped)
		return true;
	if ((stream->verifying && !kafka_verify(source, stream, message)) || message->offset < stream->next)
		return true;
	if (line.length == 0) {
		note(source, stream, message, true);
		source->commit_due = true;
		return true;
	}
	bool too_long = line.length > (uint64_t)source->config.line_max;
	if (source->position_count > 0 && (chunk->stream != &stream->stream || too_long))
		return false;
	chunk->stream = &stream->stream;
	chunk->too_long = too_long;
	if (too_long) {
		chunk->tail.length = source_message_put_long(&source->lines, line, (size_t)source->config.line_max);
		chunk->skipped = line.length - (uint64_t)source->config.line_max + 1; /* its newline counts, too */
	} else {
		source_message_put(&source->lines, line);
	}
	source->positions[source->position_count++] = (uint64_t)message->offset + 1;
	note(source, stream, message, false);
	return true;
}

static void gather(struct kafka_source *source, struct source_chunk *chunk, int64_t now_ms)
{
	rd_kafka_event_t *event;
	weir_text_clear(&source->lines);
	source->position_count = 0;
	int taken = 0;
	for (; taken < MESSAGES && source->position_count < CHUNK_LINES && source->lines.length < CHUNK_BYTES &&
	       !chunk->too_long && (event = next_message(source, now_ms)) != NULL;
	     taken++) {
		const rd_kafka_message_t *message = source->message;
		if (message != NULL && message->err == RD_KAFKA_RESP_ERR_NO_ERROR && !take_message(source, message, chunk)) {
			source->pending = event;
			break;
		}
		rd_kafka_event_destroy(event);
	}
	if (taken == MESSAGES) /* there may be more, and the queue does not signal those again */
		(void)!write(source->fd, &one, sizeof one);
	chunk->written_ms = weir_wall_ms();
	chunk->data = source->lines.at;
	chunk->length = source->lines.length - chunk->tail.length;
	if (chunk->tail.length > 0)
		chunk->tail.at = chunk->data + chunk->length;
	chunk->positions = source->positions;
}

/* ---- the interface ---- */

static enum weir_status kafka_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                      struct weir_error *error)
{
	(void)asked;
	struct kafka_source *source = kafka_of(base);
	int64_t now_ms = weir_monotonic_ms();
	uint64_t ignored;
	*chunk = (struct source_chunk){0};
	if (source->once)
		return weir_fail(error, WEIR_IO, "%s has no end, so it cannot be read with --once", source->label);
	/* Reset the eventfd before the queue is read: what comes later sets it again. */
	(void)!read(source->fd, &ignored, sizeof ignored);
	kafka_serve(source, now_ms);
	gather(source, chunk, now_ms);
	if (chunk->length == 0)
		return WEIR_AGAIN;
	kafka_succeeded(source);
	return WEIR_OK;
}

static size_t kafka_streams(struct source *base, struct source_stream ***streams)
{
	*streams = kafka_of(base)->handles;
	return kafka_of(base)->stream_count;
}

static int kafka_fd(const struct source *base)
{
	return ((const struct kafka_source *)(const void *)base)->fd;
}

static void kafka_acknowledge(struct source *base, struct source_stream *handle, uint64_t position)
{
	struct kafka_stream *stream = (struct kafka_stream *)(void *)handle;
	if ((int64_t)position > stream->safe)
		stream->safe = (int64_t)position;
	kafka_remember(kafka_of(base), stream);
	kafka_of(base)->commit_due = true;
}

static enum weir_status kafka_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                     struct weir_error *error)
{
	(void)stream;
	return position == 0
	           ? WEIR_OK
	           : weir_fail(error, WEIR_INVALID, "%s continues at its consumer group's offset and nowhere else",
	                       kafka_of(base)->label);
}

static void kafka_free(struct source *base)
{
	struct kafka_source *source = kafka_of(base);
	if (source->ends != NULL)
		kafka_ends_stop(source->ends);
	if (source->handle != NULL)
		kafka_leave(source);
	if (source->ends != NULL)
		kafka_ends_free(source->ends);
	weir_kafka_free(source->kafka);
	kafka_free_streams(source);
	if (source->fd >= 0)
		close(source->fd);
	weir_text_deinit(&source->lines);
	free(source->positions);
	free(source->cluster);
	free(source->label);
	pthread_mutex_destroy(&source->mutex);
	free(source);
}

static enum weir_status join(struct kafka_source *source, struct weir_error *error)
{
	char words[256];
	rd_kafka_conf_t *conf = weir_kafka_conf(source->kafka, properties);
	(void)rd_kafka_conf_set(conf, "group.id", source->config.group, words, sizeof words);
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_OFFSET_COMMIT);
	enum weir_status status = weir_kafka_open(source->kafka, RD_KAFKA_CONSUMER, conf, &source->handle, error);
	if (status != WEIR_OK)
		return status;
	rd_kafka_poll_set_consumer(source->handle);
	source->queue = rd_kafka_queue_get_consumer(source->handle);
	source->replies = rd_kafka_queue_new(source->handle);
	rd_kafka_queue_io_event_enable(source->queue, source->fd, &one, sizeof one);
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new((int)source->config.topic_count);
	for (size_t i = 0; i < source->config.topic_count; i++)
		rd_kafka_topic_partition_list_add(topics, source->config.topics[i], RD_KAFKA_PARTITION_UA);
	rd_kafka_resp_err_t code = rd_kafka_subscribe(source->handle, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_INVALID, "%s: %s", source->label, rd_kafka_err2str(code));
}

/* "kafka:app-logs,..." */
static char *label_of(const struct kafka_config *config)
{
	struct weir_text label = {0};
	weir_text_printf(&label, "%s:%s%s", config->name, config->topics[0], config->topic_count > 1 ? ",..." : "");
	weir_text_append(&label, "", 1);
	return label.at;
}

static struct kafka_topic *topics_of(const struct kafka_config *config)
{
	struct kafka_topic *topics = weir_alloc(config->topic_count, sizeof *topics);
	for (size_t i = 0; i < config->topic_count; i++) {
		struct weir_text name = {0};
		weir_text_printf(&name, "%s:%s", config->name, config->topics[i]);
		weir_text_append(&name, "", 1);
		topics[i].name = name.at;
	}
	return topics;
}

static enum weir_status kafka_new(const struct weir_json *config, const struct source_context *context,
                                  struct source **made, struct weir_error *error)
{
	struct kafka_config read_config;
	struct weir_kafka *kafka;
	enum weir_status status = kafka_configure(&read_config, config, context, &kafka, error);
	if (status != WEIR_OK)
		return status;
	struct kafka_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &source_kafka_ops;
	source->config = read_config;
	source->kafka = kafka;
	source->once = context->once;
	source->memory = context->memory;
	source->label = label_of(&read_config);
	source->topics = topics_of(&read_config);
	source->fd = -1;
	pthread_mutex_init(&source->mutex, NULL);
	if (!source->once) {
		source->positions = weir_alloc(CHUNK_LINES, sizeof *source->positions);
		source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		status = source->fd >= 0
		             ? join(source, error)
		             : weir_fail(error, WEIR_IO, "cannot create a file descriptor: %s", weir_errno_words(errno));
		if (status == WEIR_OK)
			status = kafka_ends_new(source, &source->ends, error);
	}
	if (status == WEIR_OK)
		*made = &source->source;
	else
		kafka_free(&source->source);
	return status;
}

/* "topics app-logs, audit at 127.0.0.1:9092" */
static void kafka_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json topics = weir_json_member(config, "topics"), brokers = weir_json_member(config, "brokers");
	weir_text_puts(place, json_array_size(topics.value) > 1 ? "topics " : "topic ");
	source_words_list(place, &topics);
	weir_text_puts(place, " at ");
	source_words_list(place, &brokers);
	weir_text_puts(manner, "followed from its consumer group's offset");
	source_words_start(manner, config);
}

static const struct source_metric *const metrics[] = {
	&source_metric_offset,
	&source_metric_lag_seconds,
	&source_metric_lag_bytes,
	&source_metric_lag_records,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_bytes,
	&source_metric_lost_records,
	&source_metric_problem,
	&source_metric_replayable,
	&source_metric_guarantee,
	&source_metric_skipped,
	NULL,
};

const struct source_ops source_kafka_ops = {
	.type = "kafka",
	.members = kafka_members,
	.endless = true,
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = kafka_new,
	.apart = kafka_apart,
	.describe = kafka_describe,
	.collect = kafka_collect,
	.streams = kafka_streams,
	.fd = kafka_fd,
	.acknowledge = kafka_acknowledge,
	.resume = kafka_resume,
	.status = kafka_status,
	.free = kafka_free,
};
