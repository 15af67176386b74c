/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The amqp source's configuration.
 *
 *     { "type": "amqp", "url": "amqp://127.0.0.1:5672", "queue": "logs", "stream": true, "format": "json" }
 */
#include "collector/source/amqp/internal.h"

#include "collector/source/source_words.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <string.h>

enum {
	LINE_MAX_BYTES = 64 << 10,
	NAME_MAX_BYTES = 200,
	QUEUE_MAX_BYTES = 255,
	GENERATION_MAX = 1000000,
	PREFETCH = 50000,
	STREAM_PREFETCH =
		5000, /* it need not hold what a second brings, as a stream's messages are acknowledged when taken */
	PORT = 5672,
	TLS_PORT = 5671,
};

#define AT(member) offsetof(struct amqp_config, member)

static json_t *urls_shape(void)
{
	return weir_shape_some(AMQP_URLS_MAX, weir_shape_pattern("^amqps?://[^@/]+$"));
}

static json_t *name_shape(void)
{
	return weir_shape_name(0);
}

const struct weir_json_rule amqp_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "the name by which the queue appears; it is part of a stream queue's identity",
     .shape = name_shape},
	{.name = "url",
     .needed = "give a server of the cluster, such as \"amqp://127.0.0.1:5672\"",
     .meaning = "servers, tried one after another: amqp://HOST:PORT, or amqps://HOST:PORT",
     .shape = urls_shape},
	{.name = "queue",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(queue),
     .needed = "name a queue, such as \"logs\"",
     .meaning = "the queue, which must exist",
     .shape = name_shape},
	{.name = "stream",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(stream),
     .meaning = "it is a stream queue: read by its offsets, exactly once"},
	{.name = "vhost", .kind = WEIR_JSON_TEXT, .offset = AT(vhost), .meaning = "the virtual host", .shape = name_shape},
	{.name = "user", .kind = WEIR_JSON_TEXT, .offset = AT(user), .meaning = "the user to log in as"},
	{.name = "password", .meaning = "of the user", .shape = weir_shape_secret},
	{.name = "ca",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(ca),
     .meaning = "PEM file of the authorities that servers' certificates are checked against; amqps:// needs it"},
	{.name = "certificate",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(certificate),
     .meaning = "PEM file of the certificate to show the server"},
	{.name = "key", .kind = WEIR_JSON_TEXT, .offset = AT(key), .meaning = "PEM file of that certificate's key"},
	{.name = "generation",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(generation),
     .least = 1,
     .most = GENERATION_MAX,
     .meaning = "raise it when a stream queue was recreated, because offsets start again"},
	{.name = "prefetch",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(prefetch),
     .least = 1,
     .most = AMQP_PREFETCH_MOST,
     .meaning = "how many messages the server sends before the first of them is acknowledged"},
	SOURCE_FORMAT_RULE,
	{.name = "start",
     .kind = WEIR_JSON_WORD,
     .offset = AT(start),
     .words = source_starts,
     .meaning = "where to begin in a stream queue at the very first start; \"beginning\" by default"},
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = NULL},
};

/* "amqps://[::1]:5671" */
static enum weir_status read_url(const struct weir_json *at, struct amqp_place *place, struct weir_error *error)
{
	const char *url = "";
	enum weir_status status = weir_json_string(at, &url, error);
	if (status != WEIR_OK)
		return status;
	if (strchr(url, '@') != NULL)
		return weir_json_fail(at, error, "must not have a login in it: use \"user\" and \"password\"");
	place->tls = strncmp(url, "amqps://", 8) == 0;
	place->port = place->tls ? TLS_PORT : PORT;
	const char *host = place->tls ? url + 8 : strncmp(url, "amqp://", 7) == 0 ? url + 7 : "";
	bool bracketed = *host == '[';
	const char *end = bracketed ? strchr(++host, ']') : host + strcspn(host, ":");
	const char *port = end != NULL ? end + bracketed : "";
	size_t length = end != NULL ? (size_t)(end - host) : 0;
	if (*port == ':') {
		char *rest;
		long number = strtol(port + 1, &rest, 10);
		place->port = *rest == '\0' && number > 0 && number < 65536 ? (int)number : 0;
	} else if (*port != '\0') {
		length = 0;
	}
	if (length == 0 || length >= sizeof place->host || place->port == 0 || strcspn(host, "/ \t") < length)
		return weir_json_fail(at, error,
		                      "must be amqp://HOST:PORT or amqps://HOST:PORT; a virtual host goes into \"vhost\"");
	memcpy(place->host, host, length);
	place->host[length] = '\0';
	return WEIR_OK;
}

static enum weir_status read_urls(struct amqp_config *config, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "url");
	enum weir_status status = weir_json_one_or_more(&at, AMQP_URLS_MAX, &config->place_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->place_count; i++) {
		struct weir_json url = weir_json_one_of(&at, i);
		status = read_url(&url, &config->places[i], error);
	}
	return status;
}

static enum weir_status check_names(const struct amqp_config *config, const struct weir_json *json,
                                    struct weir_error *error)
{
	struct weir_json queue = weir_json_member(json, "queue"), name = weir_json_member(json, "name");
	if (*config->queue == '\0' || strlen(config->queue) > QUEUE_MAX_BYTES)
		return weir_json_fail(&queue, error, "must have 1 to %d bytes", QUEUE_MAX_BYTES);
	if (config->name != NULL && (*config->name == '\0' || strlen(config->name) > NAME_MAX_BYTES))
		return weir_json_fail(&name, error, "must have 1 to %d bytes", NAME_MAX_BYTES);
	return WEIR_OK;
}

/* Refuses what goes together with nothing else that is given. */
static enum weir_status check_pairs(const struct amqp_config *config, const struct weir_json *json,
                                    struct weir_error *error)
{
	struct weir_json ca = weir_json_member(json, "ca"), start = weir_json_member(json, "start");
	struct weir_json generation = weir_json_member(json, "generation");
	enum weir_status status = weir_json_check_secret(&config->password, error);
	for (size_t i = 0; status == WEIR_OK && i < config->place_count; i++)
		if (config->places[i].tls && config->ca == NULL)
			status = weir_json_fail(&ca, error,
			                        "is missing; name the PEM file of the authorities that signed the servers' "
			                        "certificates");
	if (status != WEIR_OK)
		return status;
	if ((config->certificate != NULL) != (config->key != NULL))
		return weir_json_fail(json, error, "needs both \"certificate\" and \"key\", or none of them");
	if (!config->stream && weir_json_exists(&start))
		return weir_json_fail(&start, error,
		                      "is for stream queues: other queues give what they have; remove it, or set "
		                      "\"stream\" to true");
	if (!config->stream && weir_json_exists(&generation))
		return weir_json_fail(&generation, error, "is for stream queues: remove it, or set \"stream\" to true");
	return WEIR_OK;
}

/* A queue has no header line, and another consumer would not have seen it. */
static enum weir_status check_format(const struct weir_json *json, struct weir_error *error)
{
	struct weir_json format = weir_json_member(json, "format"), header = weir_json_member(&format, "header");
	if (!json_is_true(header.value))
		return WEIR_OK;
	return weir_json_fail(&header, error, "is for files: a queue has no header line; list the columns");
}

enum weir_status amqp_configure(struct amqp_config *config, const struct weir_json *json,
                                const struct source_context *context, struct weir_error *error)
{
	struct weir_json type = weir_json_member(json, "type");
	*config = (struct amqp_config){
		.vhost = "/",
		.user = "guest",
		.generation = 1,
		.line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES,
		.password = weir_json_member(json, "password"),
	};
	if (!amqp_built_in())
		return weir_json_fail(&type, error, "is \"amqp\", but this program was built without librabbitmq");
	enum weir_status status = weir_json_read(json, amqp_members, config, error);
	if (status == WEIR_OK && config->prefetch == 0)
		config->prefetch = config->stream ? STREAM_PREFETCH : PREFETCH;
	if (status == WEIR_OK)
		status = read_urls(config, json, error);
	if (status == WEIR_OK)
		status = check_names(config, json, error);
	if (status == WEIR_OK)
		status = check_pairs(config, json, error);
	return status == WEIR_OK ? check_format(json, error) : status;
}

enum weir_status amqp_apart(const struct weir_json *config, const struct weir_json *other, struct weir_error *error)
{
	if (!weir_json_same(config, other, "queue") || !weir_json_same(config, other, "vhost") ||
	    !weir_json_same(config, other, "name"))
		return WEIR_OK;
	return weir_json_fail(config, error, "reads the same queue as another source: give each its own \"name\"");
}
