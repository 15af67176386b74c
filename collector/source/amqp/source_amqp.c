/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue as a source.
 *
 * A stream queue is attached to one message before the next one. If that is not there, the queue was made anew, or went
 * back: its messages would be taken for old ones, so none is taken until somebody has said what it is. Acknowledging a
 * stream's message only asks for more; where reading goes on is in the collector's memory. Where it begins at the end, the
 * end is looked for first, by a consumer that takes nothing: the memory has it before a message is read.
 *
 * Any other queue has no positions. What was taken is acknowledged when it is safe downstream, so a message that is lost
 * on the way is given again: then as a message of its own, as nothing in it says that it was here before.
 */
#include "collector/source/amqp/internal.h"

#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Tenths of a second without a message. A server gathers all that it sends ahead before it sends the first of it. */
enum { EMPTY = 10, QUIET = 50, MISSING = 100, FIRST_QUIET = 600 };
enum { FULL_NS = 20000000, END_MS = 1000 };

struct amqp_source {
	struct queue_source queue; /* first */
	struct amqp_config config;
	char *label; /* "logs", or "NAME:logs" */
	uint8_t id[SOURCE_ID_BYTES];
	size_t turn; /* which of the servers is tried */
	/* Of the present connection. */
	struct amqp_client *client;
	struct queue_stream *stream;
	uint64_t base;  /* position of what was taken before this consumer's first message */
	uint64_t tag;   /* of the newest message taken */
	uint64_t acked; /* tag up to which all is acknowledged */
	bool verified;  /* a stream's message before the first is there */
};

/* ---- one message ---- */

static enum weir_status fail_anew(const struct amqp_source *source, struct weir_error *error)
{
	return weir_fail(
		error, WEIR_IO,
		"queue %s no longer has the message of offset %" PRIu64
		", which was read last: it was made anew, or went back. Nothing of it is read; raise \"generation\" to "
		"read it from its beginning",
		source->config.queue, source->base - 1);
}

static enum weir_status fail_kind(const struct amqp_source *source, bool is_stream, struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "queue %s is %s: %s", source->config.queue,
	                 is_stream ? "a stream queue" : "no stream queue",
	                 is_stream ? "set \"stream\" to true" : "remove \"stream\"");
}

/* Compares a stream's message with what is expected next. @return WEIR_OK: it is to be taken; WEIR_AGAIN: it was read */
static enum weir_status expect(struct amqp_source *source, uint64_t offset, struct weir_error *error)
{
	uint64_t place = queue_place(source->stream);
	if (!source->verified && offset + 1 < place)
		return fail_anew(source, error);
	if (!source->verified)
		queue_succeeded(&source->queue);
	source->verified = true;
	if (offset < place)
		return WEIR_AGAIN;
	if (offset > place && place > 0)
		queue_note_lost(&source->queue, source->stream, offset - place,
		                "up to %" PRIu64 " messages from offset %" PRIu64
		                " on are lost: they were removed before they were read",
		                offset - place, place);
	return WEIR_OK;
}

/* @return WEIR_END: the source ends */
static enum weir_status take(struct amqp_source *source, const struct amqp_message *message, struct weir_error *error)
{
	struct queue_source *queue = &source->queue;
	uint64_t position = queue_place(source->stream) + 1;
	if (message->has_offset != source->config.stream)
		return fail_kind(source, message->has_offset, error);
	source->tag = message->tag;
	if (source->config.stream) {
		enum weir_status status = expect(source, message->offset, error);
		if (status != WEIR_OK)
			return status == WEIR_AGAIN ? WEIR_OK : status;
		position = message->offset + 1;
	}
	if (message->again && !source->config.stream)
		queue_note_again(queue, source->stream);
	return queue_put(queue, source->stream, message->data.at, message->data.length, position, message->put_ms)
	           ? WEIR_OK
	           : WEIR_END;
}

/* ---- the queue ---- */

/* Acknowledges what is safe; of a stream what is taken, in quarters of what the server sends ahead, and when it is quiet. */
static enum weir_status settle(struct amqp_source *source, bool now, struct weir_error *error)
{
	uint64_t safe = queue_safe(source->stream), tag = safe > source->base ? safe - source->base : 0;
	if (source->config.stream)
		tag = now || source->tag - source->acked >= (uint64_t)source->config.prefetch / 4 ? source->tag : 0;
	if (tag <= source->acked)
		return WEIR_OK;
	source->acked = tag;
	return amqp_client_acknowledge(source->client, tag, error);
}

static enum weir_status count(struct amqp_source *source, struct weir_error *error)
{
	uint64_t waiting = 0, place = queue_place(source->stream);
	enum weir_status status = amqp_client_count(source->client, source->config.queue, &waiting, error);
	if (status != WEIR_OK)
		return status;
	if (!source->config.stream)
		waiting += place;
	queue_note_end(&source->queue, source->stream, waiting > place ? waiting : place);
	return WEIR_OK;
}

/*
 * Nothing came within a tenth of a second. A question to a server that gathers waits behind that, and where its answer is
 * late, the connection is done and all of it would begin again: so before the first message nothing is asked for long.
 */
static enum weir_status pass_time(struct amqp_source *source, int quiet, struct weir_error *error)
{
	bool is_missing = !source->verified && quiet >= MISSING;
	enum weir_status status = WEIR_OK;
	if (is_missing || (source->verified && quiet % (source->tag > 0 ? QUIET : FIRST_QUIET) == 0))
		status = count(source, error);
	return is_missing && status == WEIR_OK ? fail_anew(source, error) : status;
}

/* The batches are full: what the server sends stays in the socket, and it is told that this side lives. */
static enum weir_status stand_by(struct amqp_source *source, struct weir_error *error)
{
	queue_flush(&source->queue);
	nanosleep(&(struct timespec){.tv_nsec = FULL_NS}, NULL);
	return amqp_client_beat(source->client, error);
}

static enum weir_status follow_queue(struct amqp_source *source, struct weir_error *error)
{
	struct queue_source *queue = &source->queue;
	struct amqp_message message;
	enum weir_status status = WEIR_OK;
	int quiet = 0;
	while (status == WEIR_OK && !queue_ending(queue)) {
		bool more = amqp_client_has_more(source->client);
		status = settle(source, quiet > 0, error);
		if (status == WEIR_OK && !queue_has_room(queue)) {
			status = stand_by(source, error);
			continue;
		}
		if (!more)
			queue_flush(queue);
		if (status == WEIR_OK)
			status = amqp_client_next(source->client, &message, error);
		quiet = status == WEIR_AGAIN ? quiet + 1 : 0;
		if (status == WEIR_AGAIN)
			status = pass_time(source, quiet, error);
		else if (status == WEIR_OK)
			status = take(source, &message, error);
	}
	if (status == WEIR_OK || status == WEIR_END)
		status = settle(source, true, error);
	return status == WEIR_OK ? WEIR_END : status;
}

static enum weir_status consume(struct amqp_source *source, enum amqp_begin begin, uint64_t offset,
                                struct weir_error *error)
{
	const struct amqp_config *config = &source->config;
	enum weir_status status =
		amqp_client_consume(source->client, config->queue, config->prefetch, begin, offset, error);
	if (status != WEIR_OK && strstr(error->text, "x-stream-offset") != NULL)
		return fail_kind(source, false, error);
	return status;
}

/*
 * The position of a stream queue's newest message, 0 of one that never had any. The server sends what it stored last, and
 * what comes meanwhile: the end is where it pauses, or what has come within a second.
 */
static enum weir_status find_end(struct amqp_source *source, uint64_t *end, struct weir_error *error)
{
	struct amqp_message message;
	uint64_t count = 0;
	int64_t end_ms = 0;
	enum weir_status status = amqp_client_count(source->client, source->config.queue, &count, error);
	if (status == WEIR_OK)
		status = consume(source, AMQP_LAST, 0, error);
	for (int quiet = 0; status == WEIR_OK && (*end == 0 || weir_monotonic_ms() < end_ms);) {
		if (queue_ending(&source->queue))
			return WEIR_END;
		status = amqp_client_next(source->client, &message, error);
		if (status == WEIR_OK && !message.has_offset)
			return fail_kind(source, false, error);
		if (status == WEIR_OK) {
			end_ms = *end == 0 ? weir_monotonic_ms() + END_MS : end_ms;
			*end = message.offset + 1;
		}
		if (status == WEIR_OK && !amqp_client_has_more(source->client))
			status = amqp_client_acknowledge(source->client, message.tag, error);
		if (status != WEIR_AGAIN)
			continue;
		status = WEIR_OK;
		quiet++;
		if (*end > 0 || (count == 0 && quiet == EMPTY))
			break;
		if (quiet == MISSING)
			return weir_fail(error, WEIR_IO, "queue %s has messages, and its server sends none: its end is not known",
			                 source->config.queue);
	}
	return status;
}

/* @param end  as of find_end(), if reading is to begin there */
static enum weir_status read_queue(struct amqp_source *source, uint64_t end, struct weir_error *error)
{
	const struct amqp_config *config = &source->config;
	struct queue_found found = {
		.label = source->label,
		.guarantee = config->stream ? SOURCE_EXACTLY_ONCE : SOURCE_AT_LEAST_ONCE,
		.fleeting = !config->stream,
		.last = end,
	};
	uint64_t waiting;
	memcpy(found.id, source->id, SOURCE_ID_BYTES);
	enum weir_status status = amqp_client_count(source->client, config->queue, &waiting, error);
	if (status != WEIR_OK)
		return status;
	status = queue_find(&source->queue, &found, &source->stream, error);
	if (status != WEIR_OK)
		return status;
	source->base = queue_place(source->stream);
	source->tag = source->acked = 0;
	source->verified = !config->stream || source->base == 0;
	enum amqp_begin begin = !config->stream ? AMQP_NO_STREAM : source->base > 0 ? AMQP_OFFSET : AMQP_FIRST;
	status = consume(source, begin, source->base > 0 ? source->base - 1 : 0, error);
	if (status != WEIR_OK)
		return status;
	if (source->verified) {
		queue_note_end(&source->queue, source->stream, source->base + (config->stream ? 0 : waiting));
		queue_succeeded(&source->queue);
	}
	return follow_queue(source, error);
}

static enum weir_status open_client(struct amqp_source *source, const struct amqp_place *place,
                                    struct weir_error *error)
{
	const struct amqp_config *config = &source->config;
	char *password = NULL;
	enum weir_status status = weir_json_secret(&config->password, &password, error);
	struct amqp_login login = {
		.host = place->host,
		.port = place->port,
		.tls = place->tls,
		.vhost = config->vhost,
		.user = config->user,
		.password = password != NULL ? password : "guest",
		.ca = config->ca,
		.certificate = config->certificate,
		.key = config->key,
	};
	source->client = NULL;
	if (status == WEIR_OK)
		status = amqp_client_open(&login, &source->client, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s:%d", place->host, place->port);
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(password);
	return status;
}

static enum weir_status amqp_run(struct queue_source *queue, struct weir_error *error)
{
	struct amqp_source *source = (struct amqp_source *)(void *)queue;
	const struct amqp_config *config = &source->config;
	const struct amqp_place *place = &config->places[source->turn++ % config->place_count];
	uint64_t end = 0;
	enum weir_status status = open_client(source, place, error);
	bool from_end = config->stream && config->start == SOURCE_FROM_END && !queue->once;
	if (status == WEIR_OK && from_end && source->stream == NULL) {
		status = find_end(source, &end, error);
		amqp_client_close(source->client, status != WEIR_IO);
		source->client = NULL;
		if (status == WEIR_OK)
			status = open_client(source, place, error);
	}
	if (status == WEIR_OK)
		status = read_queue(source, end, error);
	amqp_client_close(source->client, status == WEIR_END);
	return status;
}

/* ---- the interface ---- */

/* A stream's id: hash of name, virtual host, queue and generation, each ended by a zero. Another queue's is a new one. */
static void make_id(struct amqp_source *source)
{
	const struct amqp_config *config = &source->config;
	const char *name = config->name != NULL ? config->name : "amqp";
	struct weir_text named = {0};
	if (!config->stream && getrandom(source->id, SOURCE_ID_BYTES, 0) != SOURCE_ID_BYTES)
		abort(); /* does not happen: 16 random bytes are always available */
	if (!config->stream)
		return;
	weir_text_append(&named, "amqp", sizeof "amqp");
	weir_text_append(&named, name, strlen(name) + 1);
	weir_text_append(&named, config->vhost, strlen(config->vhost) + 1);
	weir_text_append(&named, config->queue, strlen(config->queue) + 1);
	weir_text_printf(&named, "%" PRId64, config->generation);
	weir_text_append(&named, "", 1);
	weir_hash128(named.at, named.length, source->id);
	weir_text_deinit(&named);
}

static void amqp_free(struct source *base)
{
	struct amqp_source *source = (struct amqp_source *)(void *)base;
	queue_stop(&source->queue);
	queue_deinit(&source->queue);
	free(source->label);
	free(source);
}

static enum weir_status amqp_new(const struct weir_json *config, const struct source_context *context,
                                 struct source **made, struct weir_error *error)
{
	static const struct queue_reader reader = {amqp_run};
	struct amqp_source *source = weir_alloc(1, sizeof *source);
	struct weir_text label = {0};
	enum weir_status status = amqp_configure(&source->config, config, context, error);
	if (status != WEIR_OK) {
		free(source);
		return status;
	}
	if (source->config.name != NULL)
		weir_text_printf(&label, "%s:", source->config.name);
	weir_text_puts(&label, source->config.queue);
	weir_text_append(&label, "", 1);
	source->label = label.at;
	make_id(source);
	source->queue.line_max = (size_t)source->config.line_max;
	source->queue.start = (enum source_at_start)source->config.start;
	status = queue_init(&source->queue, &source_amqp_ops, &reader, SOURCE_AMQP_PREFIX, source->label, context, error);
	if (status == WEIR_OK)
		status = queue_start(&source->queue, error);
	if (status == WEIR_OK)
		*made = &source->queue.source;
	else
		amqp_free(&source->queue.source);
	return status;
}

static enum weir_status amqp_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                     struct weir_error *error)
{
	const struct queue_source *queue = (const struct queue_source *)(const void *)base;
	if (queue->once)
		return weir_fail(error, WEIR_IO, "%s has no end, so it cannot be read with --once", queue->label);
	return queue_collect(base, asked, chunk, error);
}

/* "queue logs at amqp://127.0.0.1:5672" */
static void amqp_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json queue = weir_json_member(config, "queue"), url = weir_json_member(config, "url");
	struct weir_json stream = weir_json_member(config, "stream");
	weir_text_puts(place, json_is_true(stream.value) ? "stream queue " : "queue ");
	source_words_list(place, &queue);
	weir_text_puts(place, " at ");
	source_words_list(place, &url);
	weir_text_puts(manner, json_is_true(stream.value) ? "followed" : "consumed");
	if (json_is_true(stream.value))
		source_words_start(manner, config);
}

static const struct weir_metric again_row = {
	"weir_source_redelivered_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Messages of a queue that it had given to a consumer before. Those that were judged then are judged twice."};

static bool again(const struct source_status *status, double *value)
{
	*value = (double)status->own[SOURCE_OWN_AGAIN];
	return true;
}

static const struct source_metric again_metric = {&again_row, again, false, false, NULL};

static const struct source_metric *const metrics[] = {
	&source_metric_offset,
	&source_metric_lag_seconds,
	&source_metric_lag_records,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_records,
	&source_metric_skipped,
	&source_metric_problem,
	&source_metric_replayable,
	&source_metric_guarantee,
	&again_metric,
	NULL,
};

const struct source_ops source_amqp_ops = {
	.type = "amqp",
	.members = amqp_members,
	.endless = true,
	.replayable = true,
	.guarantee = SOURCE_AT_LEAST_ONCE,
	.metrics = metrics,
	.create = amqp_new,
	.apart = amqp_apart,
	.describe = amqp_describe,
	.collect = amqp_collect,
	.streams = queue_streams,
	.fd = queue_fd,
	.acknowledge = queue_acknowledge,
	.resume = queue_resume,
	.status = queue_status,
	.free = amqp_free,
};
