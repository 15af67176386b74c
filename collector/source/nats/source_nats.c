/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream as a source: read in the order of its sequence numbers, all of it, whatever subjects are wanted.
 *
 * As all numbers come, one that does not was removed before it was read: such a gap is counted exactly. A server's filter
 * would hide it. Whatever goes wrong, the connection is made anew. With each, and while nothing comes, the stream is asked
 * what it is: its moment of creation tells whether it is still the same.
 */
#include "collector/source/nats/internal.h"

#include "collector/source/nats/nats_subject.h"
#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET = 50 }; /* tenths of a second without a message, after which the stream is looked at */

struct nats_source {
	struct queue_source queue; /* first */
	struct nats_config config;
	char *label; /* "LOGS", or "NAME:LOGS" */
	struct nats_back back;
	struct queue_stream *read; /* what was read last; NULL: nothing was */
	int64_t created_ns;        /* of that stream: Unix time */
	int64_t put_ms; /* when its newest message that was taken was put, Unix ms, which the memory keeps; 0: none was */
};

/* ---- the connection ---- */

struct secrets {
	char *password, *token, *seed;
};

static enum weir_status open_secrets(const struct nats_config *config, struct secrets *secrets,
                                     struct weir_error *error)
{
	enum weir_status status = weir_json_secret(&config->password, &secrets->password, error);
	if (status == WEIR_OK)
		status = weir_json_secret(&config->token, &secrets->token, error);
	return status == WEIR_OK ? weir_json_secret(&config->seed, &secrets->seed, error) : status;
}

static void wipe(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static enum weir_status read_stream(struct nats_source *source, struct nats_client *client, struct weir_error *error);

static enum weir_status nats_run(struct queue_source *queue, struct weir_error *error)
{
	struct nats_source *source = (struct nats_source *)(void *)queue;
	const struct nats_config *config = &source->config;
	struct secrets secrets = {0};
	struct nats_client *client = NULL;
	enum weir_status status = open_secrets(config, &secrets, error);
	struct nats_login login = {
		.urls = config->urls,
		.url_count = config->url_count,
		.name = source->label,
		.user = config->user,
		.password = secrets.password,
		.token = secrets.token,
		.nkey = config->nkey,
		.seed = secrets.seed,
		.credentials = config->credentials,
		.ca = config->ca,
		.certificate = config->certificate,
		.key = config->key,
		.tls = config->ca != NULL || config->certificate != NULL || strncmp(config->urls[0], "tls:", 4) == 0,
	};
	if (status == WEIR_OK)
		status = nats_client_open(&login, &client, error);
	if (status == WEIR_OK)
		do
			status = read_stream(source, client, error);
		while (status == WEIR_ANEW);
	else if (strstr(error->text, config->urls[0]) == NULL)
		weir_error_prefix(error, "%s", config->urls[0]);
	nats_client_close(client);
	wipe(secrets.password);
	wipe(secrets.token);
	wipe(secrets.seed);
	return status;
}

/* ---- the stream ---- */

/* Hash of the source's name, the stream's, its creation and the subjects, each ended by a zero. */
static void make_id(const struct nats_source *source, int64_t created_ns, uint8_t id[SOURCE_ID_BYTES])
{
	struct weir_text named = {0};
	const char *name = source->config.name != NULL ? source->config.name : "nats";
	weir_text_append(&named, "nats", sizeof "nats");
	weir_text_append(&named, name, strlen(name) + 1);
	weir_text_append(&named, source->config.stream, strlen(source->config.stream) + 1);
	weir_text_printf(&named, "%" PRId64, created_ns);
	weir_text_append(&named, "", 1);
	for (size_t i = 0; i < source->config.subject_count; i++)
		weir_text_append(&named, source->config.subjects[i], strlen(source->config.subjects[i]) + 1);
	weir_hash128(named.at, named.length, id);
	weir_text_deinit(&named);
}

uint64_t nats_went_back(struct nats_back *back, uint64_t place, uint64_t last, bool newer)
{
	/* messages of numbers that were read already only bring it nearer: nothing more is lost by them */
	bool known = back->place == place;
	uint64_t before = known && back->last < place ? back->last : place;
	bool anew = !known && newer && last < place;
	*back = (struct nats_back){.place = last < place ? place : 0, .last = anew ? 0 : last};
	return anew ? place : last < before ? before - last : 0;
}

/*
 * Compares what the stream has with what was read of it. What was removed before it was read is lost. A stream that ends
 * before that has lost messages itself, or was restored: the numbers of its next messages were read already, with other
 * messages, and limiters know them as such. A server that lost its count begins with 1 again: what is there may be new.
 */
static bool compare(struct nats_source *source, struct queue_stream *stream, const struct nats_extent *extent)
{
	struct queue_source *queue = &source->queue;
	bool newer = source->put_ms > 0 && extent->last_ms > source->put_ms;
	uint64_t place = queue_place(stream), gone = nats_went_back(&source->back, place, extent->last, newer);
	if (gone > 0)
		queue_note_lost(queue, stream, gone,
		                "the stream ends with number %" PRIu64 ", and was read to %" PRIu64
		                ": its server has lost messages or was restored; up to %" PRIu64
		                " new ones are not judged, as their numbers were",
		                extent->last, place, newer ? place : place - extent->last);
	if (extent->first <= place + 1)
		return true;
	if (place > 0)
		queue_note_lost(queue, stream, extent->first - place - 1,
		                "up to %" PRIu64 " messages after number %" PRIu64
		                " are lost: they were removed before they were read",
		                extent->first - place - 1, place);
	return queue_pass(queue, stream, extent->first - 1);
}

static bool is_wanted(const struct nats_config *config, struct weir_span subject)
{
	for (size_t i = 0; i < config->subject_count; i++)
		if (nats_subject_fits(config->subjects[i], subject))
			return true;
	return config->subject_count == 0;
}

/* The memory has when the newest message was put beside its number. */
static void set_put(struct nats_source *source, struct queue_stream *stream, int64_t put_ms)
{
	source->read = stream;
	source->put_ms = put_ms;
	queue_set_number(stream, QUEUE_NUMBER, put_ms > 0 ? (uint64_t)put_ms : 0);
}

/* @return false: the source ends */
static bool take(struct nats_source *source, struct queue_stream *stream, const struct nats_message *message)
{
	struct queue_source *queue = &source->queue;
	uint64_t place = queue_place(stream);
	if (message->sequence <= place)
		return true;
	set_put(source, stream, message->put_ms);
	if (message->sequence > place + 1)
		queue_note_lost(queue, stream, message->sequence - place - 1,
		                "%" PRIu64 " messages after number %" PRIu64
		                " are lost: the server has them no more, or cannot read them",
		                message->sequence - place - 1, place);
	if (!is_wanted(&source->config, message->subject))
		return queue_pass(queue, stream, message->sequence);
	return queue_put(queue, stream, message->data.at, message->data.length, message->sequence, message->put_ms);
}

/*
 * Looks where a quiet stream is. A server gives nothing from a message on that it cannot read itself (one above 32 MiB is
 * damaged to it): that one is lost, and reading goes on behind it. Nothing is passed over that the server says it has.
 *
 * @return WEIR_ANEW: it is another stream by now
 */
static enum weir_status look(struct nats_source *source, struct nats_client *client, struct queue_stream *stream,
                             struct weir_error *error)
{
	const char *name = source->config.stream;
	struct nats_extent extent;
	bool has;
	enum weir_status status = nats_client_extent(client, name, &extent, error);
	if (status != WEIR_OK)
		return status;
	if (extent.created_ns != source->created_ns)
		return WEIR_ANEW;
	if (!compare(source, stream, &extent))
		return WEIR_END;
	uint64_t next = queue_place(stream) + 1;
	queue_note_end(&source->queue, stream, extent.last);
	if (next > extent.last)
		return WEIR_OK;
	status = nats_client_has(client, name, next, &has, error);
	if (status == WEIR_OK && has)
		return weir_fail(error, WEIR_IO, "the server has message %" PRIu64 " of stream %s, and does not send it", next,
		                 name);
	if (status != WEIR_OK)
		return status;
	queue_note_lost(&source->queue, stream, 1,
	                "message %" PRIu64 " is lost: the server has it no more, or cannot read it", next);
	if (!queue_pass(&source->queue, stream, next))
		return WEIR_END;
	return nats_client_consume(client, name, next + 1, error);
}

/* Takes messages until something fails, or with `once` to the end that the stream had. */
static enum weir_status follow_stream(struct nats_source *source, struct nats_client *client,
                                      struct queue_stream *stream, uint64_t last, struct weir_error *error)
{
	struct queue_source *queue = &source->queue;
	struct nats_message message;
	enum weir_status status = WEIR_OK;
	int quiet = 0; /* how often in a row nothing came within 100 ms */
	while (status == WEIR_OK && !queue_ending(queue) && !(queue->once && queue_place(stream) >= last)) {
		if (!nats_client_has_more(client))
			queue_flush(queue);
		status = nats_client_next(client, &message, error);
		quiet = status == WEIR_AGAIN ? quiet + 1 : 0;
		if (status == WEIR_AGAIN)
			status = quiet % QUIET == 0 ? look(source, client, stream, error) : WEIR_OK;
		else if (status == WEIR_OK)
			status = take(source, stream, &message) ? WEIR_OK : WEIR_END;
		if (status == WEIR_OK && quiet == 0 && (!nats_client_has_more(client) || message.sequence % 1024 == 0))
			queue_note_end(queue, stream, message.sequence + message.pending);
	}
	return status == WEIR_OK ? WEIR_END : status;
}

static enum weir_status read_stream(struct nats_source *source, struct nats_client *client, struct weir_error *error)
{
	struct nats_extent extent;
	enum weir_status status = nats_client_extent(client, source->config.stream, &extent, error);
	if (status != WEIR_OK)
		return status;
	struct queue_found found = {.label = source->label, .guarantee = SOURCE_EXACTLY_ONCE, .last = extent.last};
	make_id(source, extent.created_ns, found.id);
	struct queue_stream *stream;
	status = queue_find(&source->queue, &found, &stream, error);
	if (status != WEIR_OK)
		return status;
	source->created_ns = extent.created_ns;
	if (stream != source->read)
		set_put(source, stream, (int64_t)queue_remembered(stream, QUEUE_NUMBER));
	if (!compare(source, stream, &extent))
		return WEIR_END;
	queue_note_end(&source->queue, stream, extent.last);
	if (source->queue.once && queue_place(stream) >= extent.last)
		return WEIR_END;
	status = nats_client_consume(client, source->config.stream, queue_place(stream) + 1, error);
	if (status != WEIR_OK)
		return status;
	queue_succeeded(&source->queue);
	return follow_stream(source, client, stream, extent.last, error);
}

/* ---- the interface ---- */

static void nats_free(struct source *base)
{
	struct nats_source *source = (struct nats_source *)(void *)base;
	queue_stop(&source->queue);
	queue_deinit(&source->queue);
	free(source->label);
	free(source);
}

static enum weir_status nats_new(const struct weir_json *config, const struct source_context *context,
                                 struct source **made, struct weir_error *error)
{
	static const struct queue_reader reader = {nats_run};
	struct nats_config read_config;
	struct weir_text label = {0};
	enum weir_status status = nats_configure(&read_config, config, context, error);
	if (status != WEIR_OK)
		return status;
	struct nats_source *source = weir_alloc(1, sizeof *source);
	source->config = read_config;
	if (read_config.name != NULL)
		weir_text_printf(&label, "%s:", read_config.name);
	weir_text_puts(&label, read_config.stream);
	weir_text_append(&label, "", 1);
	source->label = label.at;
	source->queue.once = !read_config.follow;
	source->queue.line_max = (size_t)read_config.line_max;
	source->queue.start = (enum source_at_start)read_config.start;
	status = queue_init(&source->queue, &source_nats_ops, &reader, SOURCE_NATS_PREFIX, source->label, context, error);
	if (status == WEIR_OK)
		status = queue_start(&source->queue, error);
	if (status == WEIR_OK)
		*made = &source->queue.source;
	else
		nats_free(&source->queue.source);
	return status;
}

/* "stream LOGS at nats://127.0.0.1:4222" */
static void nats_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json stream = weir_json_member(config, "stream"), url = weir_json_member(config, "url");
	struct weir_json subjects = weir_json_member(config, "subjects");
	weir_text_puts(place, "stream ");
	source_words_list(place, &stream);
	if (weir_json_exists(&subjects))
		weir_text_puts(place, ", subjects ");
	source_words_list(place, &subjects);
	weir_text_puts(place, " at ");
	source_words_list(place, &url);
	source_words_manner(manner, config, true);
}

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
	NULL,
};

const struct source_ops source_nats_ops = {
	.type = "nats",
	.members = nats_members,
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = nats_new,
	.apart = nats_apart,
	.describe = nats_describe,
	.collect = queue_collect,
	.streams = queue_streams,
	.fd = queue_fd,
	.acknowledge = queue_acknowledge,
	.resume = queue_resume,
	.status = queue_status,
	.free = nats_free,
};
