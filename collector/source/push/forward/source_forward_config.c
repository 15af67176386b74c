/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward source's configuration.
 *
 *     { "type": "forward", "name": "apps", "listen": "tcp://127.0.0.1:24224", "format": "json" }
 */
#include "collector/source/push/forward/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/bytes/listen_address.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <sys/un.h>

#define AT(member) offsetof(struct forward_config, member)

static json_t *listen_shape(void)
{
	return weir_shape_pattern("^(tcp://.+:[0-9]+|unix:/.+)$");
}

static json_t *follow_shape(void)
{
	return json_pack("{s:b}", "const", 1);
}

static json_t *tags_shape(void)
{
	return weir_shape_list(1, FORWARD_TAGS_MAX, weir_shape_name(0));
}

static const struct weir_json_rule tls_members[] = {
	{.name = "certificate",
     .kind = WEIR_JSON_TEXT,
     .offset = offsetof(struct weir_http_tls, certificate),
     .needed = "give the path of the server's certificate",
     .meaning = "the certificate's file, in PEM form"},
	{.name = "key",
     .kind = WEIR_JSON_TEXT,
     .offset = offsetof(struct weir_http_tls, key),
     .needed = "give the path of the certificate's key",
     .meaning = "the file of its key"},
	{.name = "client_ca",
     .kind = WEIR_JSON_TEXT,
     .offset = offsetof(struct weir_http_tls, client_ca),
     .meaning = "who must have issued the certificate that a sender shows"},
	{.name = NULL},
};

static json_t *tls_shape(void)
{
	return weir_shape_object(tls_members);
}

const struct weir_json_rule forward_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .needed = "give a name such as \"apps\": its spool is kept by it",
     .meaning = "the name by which zones choose it, and its spool is kept"},
	{.name = "listen",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(listen),
     .needed = "give an address such as \"tcp://127.0.0.1:24224\"",
     .meaning = "tcp://ADDRESS:PORT, * is every address; or unix:///PATH",
     .shape = listen_shape},
	SOURCE_FORMAT_RULE,
	{.name = "follow",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(follow),
     .meaning = "must be true: there is no end",
     .shape = follow_shape},
	{.name = "shared_key",
     .meaning = "what senders must know; needed where other machines reach it, unless client_ca or from is set",
     .shape = weir_shape_secret},
	{.name = "user",
     .meaning = "the user whose password senders must know, besides the shared key",
     .shape = weir_shape_text},
	{.name = "password", .meaning = "that user's password", .shape = weir_shape_secret},
	{.name = "tls", .meaning = "the files of its TLS: certificate, key, client_ca", .shape = tls_shape},
	SOURCE_SENDERS_MEMBER,
	{.name = "tags", .meaning = "only these tags are taken; * is any run of characters", .shape = tags_shape},
	{.name = "max_message",
     .kind = WEIR_JSON_SIZE,
     .offset = AT(frame_most),
     .least = FORWARD_FRAME_LEAST_BYTES,
     .most = FORWARD_FRAME_MOST_BYTES,
     .meaning = "the most bytes of one message; it may unpack to 16 times as many"},
	{.name = "spool",
     .kind = WEIR_JSON_SIZE,
     .offset = AT(spool_bytes),
     .least = FORWARD_SPOOL_LEAST_BYTES,
     .most = INT64_C(1) << 40,
     .meaning = "the most bytes on disk that wait to be read; beyond, senders wait"},
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = "connections",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(connections),
     .least = 1,
     .most = FORWARD_CONNECTIONS_MAX,
     .meaning = "the most connections at a time"},
	{.name = "idle_timeout",
     .kind = WEIR_JSON_TIME,
     .offset = AT(idle_ms),
     .least = 1000,
     .most = INT64_C(7) * 86400000,
     .meaning = "close a connection that is silent this long"},
	{.name = NULL},
};

static enum weir_status read_listen(const struct weir_json *json, struct forward_config *config,
                                    struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "listen");
	const char *text = config->listen;
	if (strncmp(text, "unix:", 5) == 0) {
		const char *path = text + 5;
		path += strncmp(path, "//", 2) == 0 ? 2 : 0;
		if (*path != '/' || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
			return weir_json_fail(&at, error,
			                      "is \"%s\"; give a whole path of at most %zu bytes, such as "
			                      "\"unix:///run/weir/forward.sock\"",
			                      text, sizeof((struct sockaddr_un *)0)->sun_path - 1);
		config->socket = weir_copy(path, strlen(path));
		return WEIR_OK;
	}
	if (strncmp(text, "tcp://", 6) == 0 && weir_listen_address(text + 6, &config->host, &config->port) &&
	    config->port != 0)
		return WEIR_OK;
	return weir_json_fail(&at, error,
	                      "is \"%s\"; give \"tcp://127.0.0.1:24224\", \"tcp://[::1]:24224\", \"tcp://*:24224\" "
	                      "or \"unix:///run/weir/forward.sock\"",
	                      text);
}

/* @param opened  NULL: what it names is not looked at */
static enum weir_status read_secret(const struct weir_json *at, char **opened, struct weir_error *error)
{
	return opened != NULL ? weir_json_password(at, opened, error) : weir_json_check_secret(at, error);
}

static enum weir_status read_secrets(const struct weir_json *json, bool opens, struct forward_config *config,
                                     struct weir_error *error)
{
	struct weir_json key = weir_json_member(json, "shared_key"), user = weir_json_member(json, "user");
	struct weir_json password = weir_json_member(json, "password");
	const char *name = NULL;
	enum weir_status status = WEIR_OK;
	if (weir_json_exists(&key))
		status = read_secret(&key, opens ? &config->shared_key : NULL, error);
	if (status == WEIR_OK)
		status = weir_json_string(&user, &name, error);
	if (status == WEIR_OK && weir_json_exists(&user) != weir_json_exists(&password))
		status = weir_json_fail(weir_json_exists(&user) ? &user : &password, error,
		                        "needs the other one: give both \"user\" and \"password\", or neither");
	if (status == WEIR_OK && name != NULL && !weir_json_exists(&key))
		status = weir_json_fail(&user, error, "needs a \"shared_key\", as the protocol asks for it first");
	if (status == WEIR_OK && name != NULL) {
		config->user = weir_copy(name, strlen(name));
		status = read_secret(&password, opens ? &config->password : NULL, error);
	}
	return status;
}

static enum weir_status read_tls(const struct weir_json *json, struct forward_config *config, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "tls");
	if (!weir_json_exists(&at))
		return WEIR_OK;
	if (config->socket != NULL)
		return weir_json_fail(&at, error, "is only for tcp://");
	enum weir_status status = weir_json_known(&at, tls_members, error);
	if (status == WEIR_OK)
		status = weir_json_read(&at, tls_members, &config->tls, error);
	if (status != WEIR_OK)
		return status;
	struct weir_http_tls *tls = &config->tls;
	tls->certificate = config->certificate = weir_copy(tls->certificate, strlen(tls->certificate));
	tls->key = config->key = weir_copy(tls->key, strlen(tls->key));
	if (tls->client_ca != NULL)
		tls->client_ca = config->client_ca = weir_copy(tls->client_ca, strlen(tls->client_ca));
	tls->prefix = "tls.";
	return WEIR_OK;
}

static enum weir_status read_tags(const struct weir_json *json, struct forward_config *config, struct weir_error *error)
{
	struct weir_json list = weir_json_member(json, "tags");
	size_t count = 0;
	enum weir_status status = weir_json_list(&list, 1, FORWARD_TAGS_MAX, &count, error);
	if (status != WEIR_OK || count == 0)
		return status;
	config->tags = weir_alloc(count, sizeof *config->tags);
	for (size_t i = 0; i < count; i++) {
		struct weir_json at = weir_json_element(&list, i);
		const char *text = NULL;
		if ((status = weir_json_string(&at, &text, error)) != WEIR_OK)
			return status;
		struct forward_tag *tag = &config->tags[config->tag_count++];
		tag->text = (struct weir_span){.at = weir_copy(text, strlen(text)), .length = (uint32_t)strlen(text)};
		tag->has_star = strchr(text, '*') != NULL;
		if (tag->has_star)
			wildcard_init(&tag->wildcard, tag->text);
	}
	return WEIR_OK;
}

/* A unix socket's permissions say who may send. */
static enum weir_status read_from(const struct weir_json *json, struct forward_config *config, struct weir_error *error)
{
	struct weir_json from = weir_json_member(json, "from"), key = weir_json_member(json, "shared_key");
	if (config->socket != NULL && weir_json_exists(&from))
		return weir_json_fail(&from, error, "is only for tcp://");
	if (config->socket != NULL)
		return WEIR_OK;
	config->knows_senders = weir_json_exists(&key) || config->client_ca != NULL;
	enum weir_status status = source_senders_read(json, &config->from, error);
	if (status == WEIR_OK)
		status = source_senders_guard(json, &config->from, config->host, "tcp://127.0.0.1:24224", config->knows_senders,
		                              "\"shared_key\" or \"tls\".\"client_ca\"", error);
	return status;
}

bool forward_takes_tag(const struct forward_config *config, struct weir_span tag)
{
	bool taken = config->tag_count == 0;
	for (size_t i = 0; i < config->tag_count && !taken; i++) {
		const struct forward_tag *one = &config->tags[i];
		taken = one->has_star ? wildcard_match(&one->wildcard, tag) : weir_span_equal(one->text, tag);
	}
	return taken;
}

enum weir_status forward_configure(const struct weir_json *json, bool opens, struct forward_config *config,
                                   struct weir_error *error)
{
	*config = (struct forward_config){.follow = true,
	                                  .frame_most = 16 << 20,
	                                  .connections = 1024,
	                                  .idle_ms = 3600000,
	                                  .spool_bytes = INT64_C(1) << 30};
	struct weir_json name = weir_json_member(json, "name"), follow = weir_json_member(json, "follow");
	enum weir_status status = weir_json_read(json, forward_members, config, error);
	if (status == WEIR_OK && !push_source_name_is_good(config->name))
		status = weir_json_fail(&name, error,
		                        "is \"%s\"; use letters, digits, \"-\", \"_\" and \".\": a folder is named by it",
		                        config->name);
	if (status == WEIR_OK && !config->follow)
		status = weir_json_fail(&follow, error, "cannot be false, because a forward source has no end; remove it");
	if (status == WEIR_OK)
		status = read_listen(json, config, error);
	if (status == WEIR_OK)
		status = read_secrets(json, opens, config, error);
	if (status == WEIR_OK)
		status = read_tls(json, config, error);
	if (status == WEIR_OK)
		status = read_from(json, config, error);
	return status == WEIR_OK ? read_tags(json, config, error) : status;
}

static void forget(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void forward_config_deinit(struct forward_config *config)
{
	for (size_t i = 0; i < config->tag_count; i++) {
		if (config->tags[i].has_star)
			wildcard_deinit(&config->tags[i].wildcard);
		free((char *)(uintptr_t)config->tags[i].text.at);
	}
	free(config->tags);
	forget(config->shared_key);
	forget(config->password);
	free(config->user);
	free(config->socket);
	free(config->host);
	free(config->certificate);
	free(config->key);
	free(config->client_ca);
}
