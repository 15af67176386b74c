/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP source's configuration. */
#include "collector/source/push/http/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/bytes/listen_address.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 1024, CONNECTIONS_MOST = 65536 };

#define MIB (INT64_C(1) << 20)
#define BODY_MOST_BYTES (64 * MIB) /* two of them at a time: see WEIR_HTTP_HELD_MAX_BYTES */
#define AT(member) offsetof(struct http_config, member)

static const struct weir_json_rule tls_members[] = {
	{.name = "certificate",
     .kind = WEIR_JSON_TEXT,
     .needed = "give the file of the server's certificate",
     .meaning = "a PEM file: the server's certificate, then those that issued it; read again when it changes"},
	{.name = "key",
     .kind = WEIR_JSON_TEXT,
     .offset = sizeof(char *),
     .needed = "give the file of the certificate's key",
     .meaning = "a PEM file, without a passphrase"},
	{.name = "client_ca",
     .kind = WEIR_JSON_TEXT,
     .offset = 2 * sizeof(char *),
     .meaning = "who must have issued the certificate that a sender shows"},
	{.name = NULL},
};

static json_t *tokens_shape(void)
{
	return weir_shape_some(HTTP_TOKENS_MOST, weir_shape_secret());
}

static json_t *tls_shape(void)
{
	return weir_shape_object(tls_members);
}

static json_t *follow_shape(void)
{
	return json_pack("{s:b}", "const", 1);
}

const struct weir_json_rule http_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .needed = "give it a name, such as \"edge\": its spool is called by it",
     .meaning = "names its spool; zones name it so in \"sources\". Letters, digits, `-` `_` `.`"},
	{.name = "listen",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(listen),
     .needed = "give an address such as \"127.0.0.1:8089\"",
     .meaning = "ADDRESS:PORT; * is every address"},
	{.name = "path", .kind = WEIR_JSON_TEXT, .offset = AT(asked_path), .meaning = "where lines and JSON are taken"},
	SOURCE_FORMAT_RULE,
	{.name = "token", .meaning = "what senders must show; a list: one of them", .shape = tokens_shape},
	SOURCE_SENDERS_MEMBER,
	{.name = "tls", .meaning = "its certificate; without it, HTTP is plain", .shape = tls_shape},
	{.name = "follow",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(follow),
     .meaning = "must be true: there is no end",
     .shape = follow_shape},
	{.name = "max_body",
     .kind = WEIR_JSON_SIZE,
     .offset = AT(body_most_bytes),
     .least = 1024,
     .most = BODY_MOST_BYTES,
     .meaning = "the largest body, packed and unpacked; a larger one is answered with 413"},
	{.name = "spool",
     .kind = WEIR_JSON_SIZE,
     .offset = AT(spool_bytes),
     .least = PUSH_SPOOL_LEAST_BYTES,
     .most = INT64_C(1) << 44,
     .meaning = "disk for what is not read yet; when it is full, senders get 503"},
	{.name = "connections",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(connections),
     .least = 4,
     .most = CONNECTIONS_MOST,
     .meaning = "the most connections at a time"},
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = NULL},
};

/* Whether the tokens are said well. */
static enum weir_status check_tokens(const struct weir_json *json, struct http_config *config, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "token");
	size_t count = json_is_array(at.value) ? json_array_size(at.value) : weir_json_exists(&at);
	if (json_is_array(at.value) && (count == 0 || count > HTTP_TOKENS_MOST))
		return weir_json_fail(&at, error, "must list 1 to %d tokens", HTTP_TOKENS_MOST);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json one = weir_json_one_of(&at, i);
		status = weir_json_check_secret(&one, error);
	}
	config->token_count = count;
	return status;
}

enum weir_status http_open_tokens(struct http_config *config, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "token");
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < config->token_count && status == WEIR_OK; i++) {
		struct weir_json one = weir_json_one_of(&at, i);
		status = weir_json_password(&one, &config->tokens[i], error);
	}
	return status;
}

static enum weir_status read_tls(const struct weir_json *json, struct http_config *config, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "tls");
	const char *files[3] = {NULL};
	if (!weir_json_exists(&at))
		return WEIR_OK;
	if (!json_is_object(at.value))
		return weir_json_fail(&at, error, "must be an object such as {\"certificate\": \"a.pem\", \"key\": \"b.pem\"}");
	enum weir_status status = weir_json_known(&at, tls_members, error);
	if (status == WEIR_OK)
		status = weir_json_read(&at, tls_members, files, error);
	if (status != WEIR_OK)
		return status;
	config->certificate = weir_copy(files[0], strlen(files[0]));
	config->key = weir_copy(files[1], strlen(files[1]));
	config->client_ca = files[2] != NULL ? weir_copy(files[2], strlen(files[2])) : NULL;
	return WEIR_OK;
}

bool http_knows_senders(const struct http_config *config)
{
	return config->token_count > 0 || config->client_ca != NULL;
}

/* What the members have to do with one another. */
static enum weir_status check(const struct weir_json *json, struct http_config *config, struct weir_error *error)
{
	struct weir_json name = weir_json_member(json, "name"), listen = weir_json_member(json, "listen");
	struct weir_json path = weir_json_member(json, "path"), follow = weir_json_member(json, "follow");
	struct weir_json body = weir_json_member(json, "max_body");
	if (!push_source_name_is_good(config->name))
		return weir_json_fail(&name, error, "must have 1 to 64 letters, digits, - _ and ., and not begin with a dot");
	if (!weir_listen_address(config->listen, &config->host, &config->port) || config->port == 0)
		return weir_json_fail(&listen, error, "is \"%s\"; give an address and a port, such as \"127.0.0.1:8089\"",
		                      config->listen);
	if (config->asked_path[0] != '/' || strpbrk(config->asked_path, "?#* ") != NULL)
		return weir_json_fail(&path, error, "must begin with / and have no ? # * or space");
	if (!config->follow)
		return weir_json_fail(&follow, error, "cannot be false, because an http source has no end; remove it");
	if (config->body_most_bytes > config->spool_bytes / 4)
		return weir_json_fail(weir_json_exists(&body) ? &body : json, error,
		                      "\"max_body\" must be at most a quarter of \"spool\"");
	config->path = weir_copy(config->asked_path, strlen(config->asked_path));
	enum weir_status status = source_senders_read(json, &config->from, error);
	if (status == WEIR_OK)
		status = source_senders_guard(json, &config->from, config->host, "127.0.0.1:8089", http_knows_senders(config),
		                              "\"token\" or \"tls\".\"client_ca\"", error);
	return status;
}

enum weir_status http_configure(struct http_config *config, const struct weir_json *json, bool secrets,
                                struct weir_error *error)
{
	*config = (struct http_config){.asked_path = "/ingest",
	                               .follow = true,
	                               .body_most_bytes = 16 * MIB,
	                               .spool_bytes = 1024 * MIB,
	                               .connections = CONNECTIONS};
	enum weir_status status = weir_json_read(json, http_members, config, error);
	if (status == WEIR_OK)
		status = check_tokens(json, config, error);
	if (status == WEIR_OK && secrets)
		status = http_open_tokens(config, json, error);
	if (status == WEIR_OK)
		status = read_tls(json, config, error);
	if (status == WEIR_OK)
		status = check(json, config, error);
	return status;
}

void http_config_deinit(struct http_config *config)
{
	for (size_t i = 0; i < HTTP_TOKENS_MOST; i++)
		free(config->tokens[i]);
	free(config->host);
	free(config->path);
	free(config->certificate);
	free(config->key);
	free(config->client_ca);
}
