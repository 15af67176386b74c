/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archiver's API over HTTP, by libcurl: one connection, kept open. The one
 * place that knows libcurl.
 */
#include "deploy/weir/top/top_source.h"

#include "common/base/alloc.h"
#include "common/base/stop.h"

#include <curl/curl.h>
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
	CURL *curl;
	struct curl_slist *fields;
	struct weir_text *body; /* of the question that is asked */
	char words[CURL_ERROR_SIZE];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct url_source *source = context;
	if (source->body->length + size * count > BODY_MAX_BYTES)
		return 0;
	weir_text_append(source->body, bytes, size * count);
	return size * count;
}

/* Whoever has pressed Ctrl-C waits for no answer. */
static int go_on(void *context, curl_off_t to_come, curl_off_t come, curl_off_t to_go, curl_off_t gone)
{
	(void)context, (void)to_come, (void)come, (void)to_go, (void)gone;
	return *weir_stop_flag();
}

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
		/* A length of 0 would stand for a string's own. */
		char *value = arguments[i].value.length == 0
		                  ? NULL
		                  : curl_easy_escape(source->curl, arguments[i].value.at, (int)arguments[i].value.length);
		weir_text_printf(text, "%s%s=%s", i == 0 ? "?" : "&", arguments[i].name, value != NULL ? value : "");
		bool escaped = value != NULL || arguments[i].value.length == 0;
		curl_free(value);
		if (!escaped)
			return false;
	}
	weir_text_append(text, "", 1);
	return true;
}

/* {"error": {"parameter": "zone", "message": "unknown: …"}} in words. */
static enum weir_status refused(const struct url_source *source, long code, struct weir_error *error)
{
	json_t *answer = json_loadb(source->body->at, source->body->length, 0, NULL);
	const json_t *fault = json_object_get(answer, "error");
	const char *parameter = json_string_value(json_object_get(fault, "parameter"));
	const char *message = json_string_value(json_object_get(fault, "message"));
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

/* Asks once. @param code  the answer's, where there is one */
static enum weir_status ask(struct url_source *source, const char *address, long *code, struct weir_error *error)
{
	source->words[0] = '\0';
	curl_easy_setopt(source->curl, CURLOPT_URL, address);
	CURLcode done = curl_easy_perform(source->curl);
	const char *why = source->words[0] != '\0' ? source->words : curl_easy_strerror(done);
	if (done == CURLE_URL_MALFORMAT || done == CURLE_UNSUPPORTED_PROTOCOL)
		return weir_fail(error, WEIR_INVALID, "%s: %s", source->source.name, why);
	if (done != CURLE_OK || curl_easy_getinfo(source->curl, CURLINFO_RESPONSE_CODE, code) != CURLE_OK)
		return weir_fail(error, WEIR_IO, "%s: %s", source->source.name, why);
	return WEIR_OK;
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
	long code = 0;
	size_t before = body->length;
	enum weir_status status = WEIR_OK;
	source->body = body;
	if (!put_address(source, path, arguments, count, &address))
		status = weir_fail(error, WEIR_INVALID, "%s: too long", base->name);
	for (int tries = 0; status == WEIR_OK && tries < TRIES && (tries == 0 || code == TOO_MANY); tries++) {
		if (tries > 0)
			rest();
		body->length = before;
		status = ask(source, address.at, &code, error);
	}
	if (status == WEIR_OK && code != 200)
		status = refused(source, code, error);
	weir_text_deinit(&address);
	return status;
}

static void close_url(struct top_source *base)
{
	struct url_source *source = (struct url_source *)base;
	curl_slist_free_all(source->fields);
	curl_easy_cleanup(source->curl);
	free(source);
	curl_global_cleanup();
}

static bool set_options(struct url_source *source, const char *token)
{
	CURL *curl = source->curl;
	if (token != NULL) {
		struct weir_text field = {0};
		weir_text_printf(&field, "Authorization: Bearer %s", token);
		weir_text_append(&field, "", 1);
		source->fields = curl_slist_append(NULL, field.at);
		weir_text_deinit(&field);
		if (source->fields == NULL)
			return false;
	}
	return curl_easy_setopt(curl, CURLOPT_HTTPHEADER, source->fields) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, source->words) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "") == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_USERAGENT, "weir-top/" WEIR_VERSION) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEDATA, source) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, go_on) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
}

enum weir_status top_source_url(const char *url, const char *token, struct top_source **source,
                                struct weir_error *error)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return weir_fail(error, WEIR_INVALID, "%s: expected http://HOST:PORT or https://HOST:PORT", url);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return weir_fail(error, WEIR_IO, "cannot initialize libcurl");
	struct url_source *made = weir_alloc(1, sizeof *made);
	made->source = (struct top_source){get_url, close_url, url};
	made->curl = curl_easy_init();
	if (made->curl == NULL || !set_options(made, token)) {
		close_url(&made->source);
		return weir_fail(error, WEIR_IO, "cannot initialize libcurl");
	}
	*source = &made->source;
	return WEIR_OK;
}
