/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nats source's configuration.
 *
 *     { "type": "nats", "url": "nats://127.0.0.1:4222", "stream": "LOGS", "subjects": ["logs.>"], "format": "json" }
 */
#include "collector/source/nats/internal.h"

#include "collector/source/nats/nats_subject.h"
#include "collector/source/source_words.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10, NAME_MAX_BYTES = 200 };

#define AT(member) offsetof(struct nats_config, member)

static json_t *urls_shape(void)
{
	return weir_shape_some(NATS_URLS_MAX, weir_shape_pattern("^(nats|tls)://[^@/]+$"));
}

static json_t *stream_shape(void)
{
	return weir_shape_pattern("^[^ .*>/\\\\]+$");
}

static json_t *subjects_shape(void)
{
	return weir_shape_list(1, NATS_SUBJECTS_MAX, weir_shape_name(NATS_SUBJECT_BYTES));
}

static json_t *name_shape(void)
{
	return weir_shape_name(0);
}

const struct weir_json_rule nats_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "the name by which the stream appears; it is part of its identity",
     .shape = name_shape},
	{.name = "url",
     .needed = "give a server of the cluster, such as \"nats://127.0.0.1:4222\"",
     .meaning = "servers: nats://HOST:PORT, or tls://HOST:PORT",
     .shape = urls_shape},
	{.name = "stream",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(stream),
     .needed = "name a stream, such as \"LOGS\"",
     .meaning = "the JetStream stream",
     .shape = stream_shape},
	{.name = "subjects",
     .meaning = "only messages of these subjects; \"*\" stands for one token, \">\" for the rest",
     .shape = subjects_shape},
	{.name = "user", .kind = WEIR_JSON_TEXT, .offset = AT(user), .meaning = "the user to log in as"},
	{.name = "password", .meaning = "of the user", .shape = weir_shape_secret},
	{.name = "token", .meaning = "the token to log in with", .shape = weir_shape_secret},
	{.name = "nkey", .kind = WEIR_JSON_TEXT, .offset = AT(nkey), .meaning = "the public key to log in with: \"U...\""},
	{.name = "seed", .meaning = "of that key: \"SU...\"", .shape = weir_shape_secret},
	{.name = "credentials",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(credentials),
     .meaning = "the path of a .creds file to log in with"},
	{.name = "ca",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(ca),
     .meaning = "PEM file of the authorities that servers' certificates are checked against; makes the connection TLS"},
	{.name = "certificate",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(certificate),
     .meaning = "PEM file of the certificate to show the server"},
	{.name = "key", .kind = WEIR_JSON_TEXT, .offset = AT(key), .meaning = "PEM file of that certificate's key"},
	SOURCE_FORMAT_RULE,
	SOURCE_START_RULE(AT(start)),
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = "follow", .kind = WEIR_JSON_FLAG, .offset = AT(follow), .meaning = "wait for more messages at the end"},
	{.name = NULL},
};

static enum weir_status read_url(const struct weir_json *at, const char **url, struct weir_error *error)
{
	*url = "";
	enum weir_status status = weir_json_string(at, url, error);
	const char *host = strncmp(*url, "nats://", 7) == 0 ? *url + 7 : strncmp(*url, "tls://", 6) == 0 ? *url + 6 : NULL;
	if (status == WEIR_OK && strchr(*url, '@') != NULL)
		return weir_json_fail(at, error, "must not have a login in it: use \"user\" and \"password\", or \"token\"");
	if (status == WEIR_OK && (host == NULL || *host == '\0' || strpbrk(host, "/ \t") != NULL))
		return weir_json_fail(at, error, "must be nats://HOST:PORT or tls://HOST:PORT");
	return status;
}

static enum weir_status read_urls(struct nats_config *config, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "url");
	enum weir_status status = weir_json_one_or_more(&at, NATS_URLS_MAX, &config->url_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->url_count; i++) {
		struct weir_json url = weir_json_one_of(&at, i);
		status = read_url(&url, &config->urls[i], error);
	}
	return status;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum weir_status read_subjects(struct nats_config *config, const struct weir_json *json,
                                      struct weir_error *error)
{
	struct weir_json subjects = weir_json_member(json, "subjects");
	enum weir_status status = weir_json_list(&subjects, 1, NATS_SUBJECTS_MAX, &config->subject_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->subject_count; i++) {
		struct weir_json at = weir_json_element(&subjects, i);
		config->subjects[i] = "";
		status = weir_json_string(&at, &config->subjects[i], error);
		if (status == WEIR_OK && !nats_subject_valid(config->subjects[i]))
			status = weir_json_fail(&at, error,
			                        "is no subject: tokens with dots between, such as \"logs.*.nginx\" or "
			                        "\"logs.>\"");
	}
	if (status == WEIR_OK && config->subject_count > 0)
		qsort(config->subjects, config->subject_count, sizeof *config->subjects, by_bytes);
	return status;
}

/* Refuses two logins, or half a login. */
static enum weir_status check_login(struct nats_config *config, const struct weir_json *json, struct weir_error *error)
{
	int ways = (config->user != NULL) + weir_json_exists(&config->token) + (config->nkey != NULL) +
	           (config->credentials != NULL);
	enum weir_status status = weir_json_check_secret(&config->password, error);
	if (status == WEIR_OK)
		status = weir_json_check_secret(&config->token, error);
	if (status == WEIR_OK)
		status = weir_json_check_secret(&config->seed, error);
	if (status != WEIR_OK)
		return status;
	if (ways > 1)
		return weir_json_fail(json, error,
		                      "can log in one way: give one of \"user\", \"token\", \"nkey\", \"credentials\"");
	if (weir_json_exists(&config->password) && config->user == NULL)
		return weir_json_fail(&config->password, error, "needs a \"user\" beside it");
	if ((config->nkey != NULL) != weir_json_exists(&config->seed))
		return weir_json_fail(json, error, "needs both \"nkey\", the public key, and \"seed\", or none of them");
	if ((config->certificate != NULL) != (config->key != NULL))
		return weir_json_fail(json, error, "needs both \"certificate\" and \"key\", or none of them");
	return WEIR_OK;
}

static enum weir_status check_names(const struct nats_config *config, const struct weir_json *json,
                                    struct weir_error *error)
{
	struct weir_json stream = weir_json_member(json, "stream"), name = weir_json_member(json, "name");
	size_t length = strlen(config->stream);
	if (length == 0 || length > NAME_MAX_BYTES || strcspn(config->stream, " .*>/\\\t\r\n") != length)
		return weir_json_fail(&stream, error,
		                      "is no name of a stream: 1 to %d bytes without '.', '*', '>', '/', '\\' "
		                      "and blanks",
		                      NAME_MAX_BYTES);
	if (config->name != NULL && (*config->name == '\0' || strlen(config->name) > NAME_MAX_BYTES))
		return weir_json_fail(&name, error, "must have 1 to %d bytes", NAME_MAX_BYTES);
	return WEIR_OK;
}

/* A stream has no header line, and another collector would not have seen it. */
static enum weir_status check_format(const struct weir_json *json, struct weir_error *error)
{
	struct weir_json format = weir_json_member(json, "format"), header = weir_json_member(&format, "header");
	if (!json_is_true(header.value))
		return WEIR_OK;
	return weir_json_fail(&header, error, "is for files: a stream has no header line; list the columns");
}

enum weir_status nats_configure(struct nats_config *config, const struct weir_json *json,
                                const struct source_context *context, struct weir_error *error)
{
	struct weir_json type = weir_json_member(json, "type");
	*config = (struct nats_config){
		.follow = true,
		.line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES,
		.password = weir_json_member(json, "password"),
		.token = weir_json_member(json, "token"),
		.seed = weir_json_member(json, "seed"),
	};
	if (!nats_built_in())
		return weir_json_fail(&type, error, "is \"nats\", but this program was built without libnats");
	enum weir_status status = weir_json_read(json, nats_members, config, error);
	if (status == WEIR_OK)
		status = read_urls(config, json, error);
	if (status == WEIR_OK)
		status = check_names(config, json, error);
	if (status == WEIR_OK)
		status = read_subjects(config, json, error);
	if (status == WEIR_OK)
		status = check_login(config, json, error);
	return status == WEIR_OK ? check_format(json, error) : status;
}

enum weir_status nats_apart(const struct weir_json *config, const struct weir_json *other, struct weir_error *error)
{
	if (!weir_json_same(config, other, "stream") || !weir_json_same(config, other, "name"))
		return WEIR_OK;
	return weir_json_fail(config, error,
	                      "reads the same stream as another source: give each its own \"name\", or list "
	                      "all subjects in one");
}
