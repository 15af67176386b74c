/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the decisions topics of the bus as lines, a stream for each of their partitions.
 *
 * A stream's id says topic and partition, and a line's position is the decision's version: both are equal in every
 * collector and at every start. Reading begins with the oldest decision that is there, and what is not newer than the
 * last one of its stream is passed over: what was acknowledged before this start, what a limiter published again after a
 * crash, reminders. What was sent and not acknowledged has a position that limiters have taken already.
 */
#include "collector/source/decisions/source_decisions.h"

#include "collector/source/decisions/decision_line.h"
#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/bus.h"
#include "common/bytes/hash.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPICS = 2, MESSAGES = 512, RETRY_MS = 1000, GENERATION_MAX = 1000000000 };

static const enum weir_topic topics[TOPICS] = {WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW};

/* What was handed out up to here is behind it in the topic. */
struct mark {
	uint64_t position, next;
};

struct decisions_stream {
	struct source_stream stream;
	struct source_memory_stream *record; /* NULL: nothing of it was acknowledged yet */
	uint64_t newest;                     /* position of the newest line handed out */
	uint64_t next;                       /* in the topic, behind the newest message taken */
	struct mark *marks;                  /* not acknowledged yet, ascending */
	size_t mark_count, mark_room;
	bool assigned;
};

/* One topic. */
struct feed {
	struct weir_consumer *consumer;
	struct decisions_stream *streams; /* by partition */
	struct weir_message *messages;    /* received; borrowed until the next receive */
	size_t count, taken;
	int64_t retry_ms;
};

struct decisions_config {
	int64_t generation; /* grows when the topics were created anew, and their positions began again */
};

struct decisions_source {
	struct source source;
	struct decisions_config config;
	struct source_memory *memory;            /* borrowed; NULL: nothing is remembered */
	struct weir_bus *bus;                    /* NULL: there is nothing to read */
	const struct weir_policy *const *policy; /* the one in force */
	struct feed feeds[TOPICS];
	struct source_stream **handles;
	size_t handle_count;
	struct weir_text lines;
	uint64_t positions[MESSAGES];
	size_t position_count;
	bool failing;                /* the bus did not answer last time */
	pthread_mutex_t mutex;       /* of the status */
	struct source_status status; /* of all streams */
};

static struct decisions_source *decisions_of(struct source *source)
{
	return (struct decisions_source *)(void *)source;
}

/* @param words  "": there is none any more */
static void state_problem(struct decisions_source *source, const char *words)
{
	if (*words == '\0' && !source->failing)
		return;
	source->failing = *words != '\0';
	pthread_mutex_lock(&source->mutex);
	source->status.errors += *words != '\0';
	snprintf(source->status.problem, sizeof source->status.problem, "%.255s", words);
	pthread_mutex_unlock(&source->mutex);
}

/* ---- the bus ---- */

/* Begins with the oldest message of each partition that is not read yet. */
static enum weir_status assign(struct decisions_source *source, struct feed *feed, enum weir_topic topic,
                               struct weir_error *error)
{
	const struct weir_bus_ops *ops = source->bus->ops;
	enum weir_status status = WEIR_OK;
	if (feed->consumer == NULL)
		status = ops->consumer_new(source->bus, topic, SOURCE_DECISIONS_READER, &feed->consumer, error);
	for (uint32_t i = 0; i < source->bus->partitions && status == WEIR_OK; i++) {
		struct decisions_stream *stream = &feed->streams[i];
		uint64_t first, next;
		if (stream->assigned)
			continue;
		status = ops->extent(source->bus, topic, i, &first, &next, error);
		if (status == WEIR_OK)
			status = ops->assign(feed->consumer, i, first > stream->next || next < stream->next ? first : stream->next,
			                     error);
		stream->assigned = status == WEIR_OK;
	}
	return status;
}

/*
 * What is deleted before it was read is lost; the rest is read on. A topic that was made anew is read from its beginning:
 * versions grow all the same, so what is new in it is taken.
 */
static void take_gap(struct feed *feed, const struct weir_bus_ops *ops, bool anew)
{
	uint32_t partition = feed->messages[0].partition;
	ops->unassign(feed->consumer, partition);
	feed->streams[partition].assigned = false;
	if (anew)
		feed->streams[partition].next = 0;
}

/* Whether there are messages. */
static bool receive(struct decisions_source *source, struct feed *feed, enum weir_topic topic)
{
	struct weir_error error;
	if (feed->taken < feed->count)
		return true;
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < feed->retry_ms)
		return false;
	feed->count = feed->taken = 0;
	enum weir_status status = assign(source, feed, topic, &error);
	if (status == WEIR_OK) {
		status = source->bus->ops->receive(feed->consumer, feed->messages, MESSAGES, 0, &feed->count, &error);
		if (status == WEIR_INVALID || status == WEIR_ANEW)
			take_gap(feed, source->bus->ops, status == WEIR_ANEW);
	}
	if (status == WEIR_OK) {
		state_problem(source, "");
		return feed->count > 0;
	}
	feed->count = 0;
	feed->retry_ms = now_ms + RETRY_MS;
	state_problem(source, error.text);
	return false;
}

/* ---- lines ---- */

/* Takes what lies next of one partition. */
static void gather(struct decisions_source *source, struct feed *feed, struct source_chunk *chunk)
{
	uint32_t partition = feed->messages[feed->taken].partition;
	struct decisions_stream *stream = &feed->streams[partition];
	weir_text_clear(&source->lines);
	source->position_count = 0;
	for (; feed->taken < feed->count && feed->messages[feed->taken].partition == partition; feed->taken++) {
		const struct weir_message *message = &feed->messages[feed->taken];
		uint64_t position;
		size_t before = source->lines.length;
		stream->next = message->offset + 1;
		if (!decision_line_put(&source->lines, message, *source->policy, &position))
			continue;
		if (position <= stream->newest) {
			source->lines.length = before;
			continue;
		}
		stream->newest = position;
		source->positions[source->position_count++] = position;
	}
	*chunk = (struct source_chunk){.stream = &stream->stream,
	                               .data = source->lines.at,
	                               .length = source->lines.length,
	                               .positions = source->positions};
	if (source->position_count == 0)
		return;
	if (stream->mark_count == stream->mark_room) {
		stream->mark_room = stream->mark_room == 0 ? 16 : 2 * stream->mark_room;
		stream->marks = weir_realloc(stream->marks, stream->mark_room, sizeof *stream->marks);
	}
	stream->marks[stream->mark_count++] = (struct mark){.position = stream->newest, .next = stream->next};
}

static enum weir_status decisions_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                          struct weir_error *error)
{
	(void)asked;
	(void)error;
	struct decisions_source *source = decisions_of(base);
	*chunk = (struct source_chunk){0};
	if (source->bus == NULL)
		return WEIR_END;
	for (int i = 0; i < TOPICS; i++)
		while (receive(source, &source->feeds[i], topics[i])) {
			gather(source, &source->feeds[i], chunk);
			if (chunk->length > 0)
				return WEIR_OK;
		}
	return WEIR_AGAIN;
}

static size_t decisions_streams(struct source *base, struct source_stream ***streams)
{
	*streams = decisions_of(base)->handles;
	return decisions_of(base)->handle_count;
}

static int decisions_fd(const struct source *base)
{
	(void)base;
	return -1;
}

static void decisions_acknowledge(struct source *base, struct source_stream *handle, uint64_t position)
{
	struct decisions_source *source = decisions_of(base);
	struct decisions_stream *stream = (struct decisions_stream *)(void *)handle;
	size_t done = 0;
	while (done < stream->mark_count && stream->marks[done].position <= position)
		done++;
	if (done == 0)
		return;
	uint64_t next = stream->marks[done - 1].next;
	if (stream->record == NULL && source->memory != NULL)
		stream->record = source_memory_add(source->memory, stream->stream.name);
	if (stream->record != NULL)
		source_memory_acknowledge(source->memory, stream->record, position);
	stream->mark_count -= done;
	memmove(stream->marks, stream->marks + done, stream->mark_count * sizeof *stream->marks);
	for (int i = 0; i < TOPICS; i++) {
		struct feed *feed = &source->feeds[i];
		if (stream >= feed->streams && stream < feed->streams + source->bus->partitions)
			source->bus->ops->consumed(feed->consumer, (uint32_t)(stream - feed->streams), next);
	}
}

static enum weir_status decisions_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                         struct weir_error *error)
{
	(void)base;
	return position == 0
	           ? WEIR_OK
	           : weir_fail(error, WEIR_INVALID, "%s: begins with what is there and nowhere else", stream->name);
}

static size_t decisions_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct decisions_source *source = decisions_of(base);
	uint64_t lines = 0;
	for (size_t i = 0; i < source->handle_count; i++)
		lines += atomic_load_explicit(&source->handles[i]->lines, memory_order_relaxed);
	if (count > 0) {
		pthread_mutex_lock(&source->mutex);
		statuses[0] = source->status;
		pthread_mutex_unlock(&source->mutex);
		statuses[0].name = WEIR_SOURCE_DECISIONS;
		statuses[0].lines = lines;
	}
	return 1;
}

static void decisions_free(struct source *base)
{
	struct decisions_source *source = decisions_of(base);
	for (int i = 0; i < TOPICS; i++) {
		struct feed *feed = &source->feeds[i];
		if (feed->consumer != NULL)
			source->bus->ops->consumer_free(feed->consumer);
		for (uint32_t k = 0; feed->streams != NULL && k < source->bus->partitions; k++) {
			free(feed->streams[k].stream.name);
			free(feed->streams[k].marks);
		}
		free(feed->streams);
		free(feed->messages);
	}
	free(source->handles);
	weir_text_deinit(&source->lines);
	pthread_mutex_destroy(&source->mutex);
	free(source);
}

static void make_stream(struct decisions_source *source, enum weir_topic topic, uint32_t partition,
                        struct decisions_stream *stream)
{
	char name[96];
	int length = snprintf(name, sizeof name, SOURCE_DECISIONS_PREFIX "%s/%u", weir_topic_name(topic), partition);
	if (source->config.generation > 1)
		length += snprintf(name + length, sizeof name - (size_t)length, "/%" PRId64, source->config.generation);
	stream->stream.name = weir_copy(name, (size_t)length);
	stream->stream.order = (uint32_t)source->handle_count;
	weir_hash128(name, (size_t)length, stream->stream.id);
	stream->stream.is_common = true;
	if (source->memory != NULL)
		stream->record = source_memory_find(source->memory, name);
	if (stream->record != NULL)
		stream->newest = stream->record->low_water;
	source->handles[source->handle_count++] = &stream->stream;
}

static const struct weir_json_rule members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "generation",
     .kind = WEIR_JSON_NUMBER,
     .offset = offsetof(struct decisions_config, generation),
     .least = 1,
     .most = GENERATION_MAX,
     .meaning = "raise it when the topics of a cluster were recreated"},
	{.name = NULL},
};

static enum weir_status decisions_new(const struct weir_json *config, const struct source_context *context,
                                      struct source **made, struct weir_error *error)
{
	struct decisions_config read_config = {.generation = 1};
	enum weir_status status = weir_json_read(config, members, &read_config, error);
	if (status != WEIR_OK)
		return status;
	struct decisions_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &source_decisions_ops;
	source->config = read_config;
	source->bus = context->once ? NULL : context->bus;
	source->policy = context->policy;
	source->memory = context->memory;
	source->status.whole = true;
	source->status.no_lag_time = true;
	pthread_mutex_init(&source->mutex, NULL);
	uint32_t partitions = source->bus != NULL ? source->bus->partitions : 0;
	source->handles = weir_alloc((size_t)TOPICS * partitions + 1, sizeof(struct source_stream *));
	for (int i = 0; i < TOPICS && partitions > 0; i++) {
		source->feeds[i].streams = weir_alloc(partitions, sizeof *source->feeds[i].streams);
		source->feeds[i].messages = weir_alloc(MESSAGES, sizeof(struct weir_message));
		for (uint32_t k = 0; k < partitions; k++)
			make_stream(source, topics[i], k, &source->feeds[i].streams[k]);
	}
	*made = &source->source;
	return WEIR_OK;
}

/* One is enough: it reads all. */
static enum weir_status decisions_apart(const struct weir_json *config, const struct weir_json *other,
                                        struct weir_error *error)
{
	(void)other;
	return weir_json_fail(config, error, "there is a source of weir's decisions already, and it reads all of them");
}

static void decisions_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	(void)config;
	weir_text_puts(place, "weir's own decisions");
	weir_text_puts(manner, "followed, for zones that name it; --once takes its own");
}

static const struct source_metric *const metrics[] = {
	&source_metric_lines,      &source_metric_errors,    &source_metric_problem,
	&source_metric_replayable, &source_metric_guarantee, NULL,
};

const struct source_ops source_decisions_ops = {
	.type = "decisions",
	.own_name = WEIR_SOURCE_DECISIONS,
	.own_format = "json",
	.own_fields = decision_line_fields,
	.members = members,
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = decisions_new,
	.apart = decisions_apart,
	.describe = decisions_describe,
	.collect = decisions_collect,
	.streams = decisions_streams,
	.fd = decisions_fd,
	.acknowledge = decisions_acknowledge,
	.resume = decisions_resume,
	.status = decisions_status,
	.free = decisions_free,
};
