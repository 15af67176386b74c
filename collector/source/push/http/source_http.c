/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP source: a listener before a spool.
 *
 * Requests are served on the listener's threads, whatever the source's own thread does: while the bus is away, the spool
 * fills, and then senders are told to wait.
 */
#include "collector/source/push/http/source_http.h"

#include "collector/source/push/http/internal.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

/*
 * A worker waits with its request for the disk, so as many share an fsync. The turn is how long a body of no length may
 * take; each of its bytes prolongs it (WEIR_HTTP_BODY_LEAST_RATE).
 */
enum { WORKERS = 32, IDLE_S = 60, TURN_S = 30, REQUEST_BYTES = 64 << 10 };

static struct http_source *http_of(struct source *source)
{
	return (struct http_source *)(void *)source;
}

static enum weir_status listen_on(struct http_source *source, const struct source_context *context,
                                  struct weir_error *error)
{
	const struct http_config *config = &source->config;
	const struct weir_http_path every = {.path = "*", .handle = http_handle, .context = source};
	struct weir_http_options options = {
		.host = config->host,
		.port = config->port,
		.paths = &every,
		.path_count = 1,
		.tls = {.certificate = config->certificate, .key = config->key, .client_ca = config->client_ca},
		.log = context->log,
		.connections = (unsigned)config->connections,
		.timeout_s = IDLE_S,
		.request_bytes = REQUEST_BYTES,
		.turn_s = TURN_S,
		.workers = WORKERS,
		.waiting = (unsigned)config->connections,
		.body_most_bytes = (size_t)config->body_most_bytes,
		.admit = http_begin,
		.admit_context = source,
	};
	return weir_http_start(&options, &source->http, error);
}

static void http_free(struct source *base)
{
	struct http_source *source = http_of(base);
	if (source->base.spool != NULL)
		push_spool_stop(source->base.spool); /* answers those who wait for it */
	weir_http_stop(source->http);
	push_source_deinit(&source->base);
	http_config_deinit(&source->config);
	sem_destroy(&source->decoders);
	free(source);
}

/* What would keep it from listening, where nothing listens now: a token or a certificate that is not there. */
static void look_ahead(struct http_source *source, const struct weir_json *json)
{
	struct http_config *config = &source->config;
	const struct weir_http_tls tls = {
		.certificate = config->certificate, .key = config->key, .client_ca = config->client_ca};
	struct weir_error error;
	enum weir_status status = http_open_tokens(config, json, &error);
	push_source_look_ahead(&source->base, status, &tls, &error);
}

static enum weir_status http_new(const struct weir_json *json, const struct source_context *context,
                                 struct source **made, struct weir_error *error)
{
	struct http_source *source = weir_alloc(1, sizeof *source);
	struct http_config *config = &source->config;
	sem_init(&source->decoders, 0, HTTP_DECODERS_MOST);
	enum weir_status status = http_configure(config, json, !context->once, error);
	const struct push_source_options options = {
		.name = config->name, .spool_bytes = config->spool_bytes, .line_max = config->line_max};
	if (status != WEIR_OK) {
		http_config_deinit(config);
		sem_destroy(&source->decoders);
		free(source);
		return status;
	}
	status = push_source_init(&source->base, &source_http_ops, &options, context, error);
	if (status == WEIR_OK && !context->once)
		status = listen_on(source, context, error);
	else if (status == WEIR_OK)
		look_ahead(source, json);
	if (status == WEIR_OK)
		*made = &source->base.source;
	else
		http_free(&source->base.source);
	return status;
}

/* Those that were refused before they came to be requests. */
static uint64_t cut_off(const struct weir_http *http)
{
	return weir_http_clients_refused(http) + weir_http_slow_cut(http);
}

static size_t http_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct http_source *source = http_of(base);
	size_t there = push_source_status(base, statuses, count);
	if (there > 0 && count > 0)
		statuses[0].own[PUSH_REFUSED] = atomic_load_explicit(&source->refused, memory_order_relaxed) +
		                                (source->http != NULL ? cut_off(source->http) : 0);
	return there;
}

/* Two spools of one name would be one, and two listeners cannot have one address. */
static enum weir_status http_apart(const struct weir_json *config, const struct weir_json *other,
                                   struct weir_error *error)
{
	static const char *const members[] = {"name", "listen"};
	for (int i = 0; i < 2; i++) {
		struct weir_json own = weir_json_member(config, members[i]);
		if (weir_json_same(config, other, members[i]))
			return weir_json_fail(&own, error, "is also that of another http source: give each its own");
	}
	return WEIR_OK;
}

static void http_doubt(const struct source *base, struct weir_text *words)
{
	const struct http_config *config = &((const struct http_source *)(const void *)base)->config;
	source_senders_doubt(&config->from, config->host, http_knows_senders(config), words);
}

static void http_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json listen = weir_json_member(config, "listen"), path = weir_json_member(config, "path");
	struct weir_json tls = weir_json_member(config, "tls");
	weir_text_puts(place, weir_json_exists(&tls) ? "https://" : "http://");
	source_words_list(place, &listen);
	weir_text_puts(place, json_is_string(path.value) ? json_string_value(path.value) : "/ingest");
	weir_text_puts(manner,
	               "listened to; what is answered is on disk. Batches with an id come once, others perhaps again");
}

const struct source_ops source_http_ops = {
	.type = "http",
	.members = http_members,
	.endless = true,
	.replayable = true,
	.count_left = push_source_count_left,
	.check_spool = push_spool_check,
	.guarantee = SOURCE_AT_LEAST_ONCE,
	.metrics = push_source_metrics,
	.create = http_new,
	.apart = http_apart,
	.describe = http_describe,
	.doubt = http_doubt,
	.collect = push_source_collect,
	.streams = push_source_streams,
	.fd = push_source_fd,
	.acknowledge = push_source_acknowledge,
	.resume = push_source_resume,
	.status = http_status,
	.free = http_free,
};
