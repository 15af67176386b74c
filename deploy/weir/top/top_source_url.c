/* SPDX-License-Identifier: Apache-2.0 */
/* An archiver's API over HTTP: one connection, kept open. */
#include "deploy/weir/top/top_source.h"

#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/http_client/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	CONNECT_MS = 5000,
	ANSWER_MS = 20000,
	BODY_MAX_BYTES = 16 << 20,
	TOO_MANY = 429,
	TRIES = 10,
	NAP_MS = 100,
	NAPS = 10,
};

struct url_source {
	struct top_source source;
	struct weir_http_client *client;
	char *authorization; /* owned; NULL: none */
};

/* The whole address; false: there is no room for it, or a value cannot be written. */
static bool put_address(struct url_source *source, const char *path, const struct api_argument *arguments, size_t count,
                        struct weir_text *text)
{
	size_t length = strlen(source->source.name);
	while (length > 0 && source->source.name[length - 1] == '/')
		length--;
	weir_text_append(text, source->source.name, length);
	weir_text_puts(text, path);
	for (size_t i = 0; i < count; i++) {
		weir_text_printf(text, "%s%s=", i == 0 ? "?" : "&", arguments[i].name);
		if (!weir_http_client_escape(source->client, text, arguments[i].value))
			return false;
	}
	weir_text_append(text, "", 1);
	return true;
}

/* {"error": {"parameter": "zone", "message": "unknown: …"}} in words. */
static enum weir_status refused(const struct url_source *source, const struct weir_http_answer *got,
                                struct weir_error *error)
{
	json_t *answer = json_loadb(got->body.at, got->body.length, JSON_ALLOW_NUL, NULL);
	const json_t *fault = json_object_get(answer, "error");
	const char *parameter = json_string_value(json_object_get(fault, "parameter"));
	const char *message = json_string_value(json_object_get(fault, "message"));
	long code = got->code;
	enum weir_status status = code == TOO_MANY || code >= 500 ? WEIR_IO : WEIR_INVALID;
	if (message == NULL)
		status = weir_fail(error, status, "%s answered with status %ld: is it an archiver's API?", source->source.name,
		                   code);
	else
		status = weir_fail(error, status, "%s: %s%s%s", source->source.name, parameter != NULL ? parameter : "",
		                   parameter != NULL ? ": " : "", message);
	json_decref(answer);
	return status;
}

/* Whoever asked too often (archiver.api_rate) waits a second. */
static void rest(void)
{
	for (int i = 0; i < NAPS && !*weir_stop_flag(); i++)
		nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
}

static enum weir_status get_url(struct top_source *base, const char *path, const struct api_argument *arguments,
                                size_t count, struct weir_text *body, struct weir_error *error)
{
	struct url_source *source = (struct url_source *)base;
	struct weir_text address = {0};
	struct weir_http_answer answer = {0};
	enum weir_status status = WEIR_OK;
	if (!put_address(source, path, arguments, count, &address))
		status = weir_fail(error, WEIR_INVALID, "too long");
	const struct weir_http_call call = {.address = address.at, .headers = {source->authorization}};
	for (int tries = 0; status == WEIR_OK && tries < TRIES && (tries == 0 || answer.code == TOO_MANY); tries++) {
		if (tries > 0)
			rest();
		weir_text_clear(&answer.body);
		status = weir_http_client_call(source->client, &call, &answer, error);
	}
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s", base->name);
	else if (answer.code != 200)
		status = refused(source, &answer, error);
	else
		weir_text_append(body, answer.body.at, answer.body.length);
	weir_text_deinit(&answer.body);
	weir_text_deinit(&address);
	return status;
}

static void close_url(struct top_source *base)
{
	struct url_source *source = (struct url_source *)base;
	weir_http_client_free(source->client);
	free(source->authorization);
	free(source);
}

enum weir_status top_source_url(const char *url, const char *token, const char *ca_path, struct top_source **source,
                                struct weir_error *error)
{
	const struct weir_http_client_options options = {.connect_ms = CONNECT_MS,
	                                                 .answer_ms = ANSWER_MS,
	                                                 .body_most_bytes = BODY_MAX_BYTES,
	                                                 .agent = "weir-top/" WEIR_VERSION,
	                                                 .ca_file = ca_path,
	                                                 .stop = weir_stop_flag()};
	struct weir_text field = {0};
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return weir_fail(error, WEIR_INVALID, "%s: expected http://HOST:PORT or https://HOST:PORT", url);
	struct url_source *made = weir_alloc(1, sizeof *made);
	made->source = (struct top_source){get_url, close_url, url};
	enum weir_status status = weir_http_client_new(&options, &made->client, error);
	if (status != WEIR_OK) {
		free(made);
		return status;
	}
	if (token != NULL) {
		weir_text_printf(&field, "Authorization: Bearer %s", token);
		weir_text_append(&field, "", 1);
		made->authorization = field.at; /* taken */
	}
	*source = &made->source;
	return WEIR_OK;
}
