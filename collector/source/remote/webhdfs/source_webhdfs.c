/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind's configuration, and what it is to the others.
 *
 *     { "type": "webhdfs", "url": ["http://nn1:9870", "http://nn2:9870"], "path": "/logs/access.log.*" }
 *
 *     url         the NameNodes, or an HttpFS; the one that is active is found
 *     path        absolute paths or globs of files, each part of which may have wildcards
 *     user        who asks, without Kerberos
 *     negotiate   asks by Kerberos (SPNEGO), as the ticket or KRB5_CLIENT_KTNAME of weir's process says
 *     token       a delegation token, in place of both
 *     ca          a file of certificates that are trusted in place of the system's
 *     unfinished  "skip" or "read": names that begin with . or _, end in .tmp, ._COPYING_, .inprogress
 *
 * and those of all remote files (remote.h).
 */
#include "collector/source/remote/webhdfs/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/json/json_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE_MAX_BYTES = 64 << 10,
	POLL_MS = 1000,
	LATE_MS = 25 * 3600 * 1000,
	CONNECT_MS = 5000,
	ANSWER_MS = 300000,
	STALL_MS = 20000,
};

/* What a configuration says, but for the lists and secrets. */
struct webhdfs_config {
	struct remote_settings settings;
	const char *user, *ca;
	bool negotiate;
	int unfinished;
};

#define AT(member) offsetof(struct webhdfs_config, member)

static const char *const unfinished_words[] = {"skip", "read", NULL};

static json_t *url_shape(void)
{
	return weir_shape_some(WEBHDFS_NAMENODES_MOST, weir_shape_name(0));
}

static json_t *path_shape(void)
{
	return weir_shape_some(WEBHDFS_PATHS_MOST, weir_shape_name(0));
}

static const struct weir_json_rule members[] = {
	REMOTE_MEMBERS(struct webhdfs_config, settings),
	{.name = "url",
     .needed = "give the NameNodes' addresses, such as [\"http://nn1:9870\", \"http://nn2:9870\"]",
     .meaning = "the addresses of the NameNodes, or of an HttpFS",
     .shape = url_shape},
	{.name = "path",
     .needed = "give an absolute path or a glob, such as \"/logs/access.log.*\"",
     .meaning = "absolute paths or globs of files",
     .shape = path_shape},
	{.name = "user", .kind = WEIR_JSON_TEXT, .offset = AT(user), .meaning = "who asks, without Kerberos"},
	{.name = "negotiate",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(negotiate),
     .meaning = "ask by Kerberos (SPNEGO), with the ticket or KRB5_CLIENT_KTNAME of weir's process"},
	{.name = "token",
     .meaning = "a delegation token: a string, {\"file\": PATH} or {\"env\": NAME}",
     .shape = weir_shape_secret},
	{.name = "ca",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(ca),
     .meaning = "a file of certificates that are trusted in place of the system's"},
	{.name = "unfinished",
     .kind = WEIR_JSON_WORD,
     .offset = AT(unfinished),
     .words = unfinished_words,
     .meaning = "files whose names begin with . or _, or end in .tmp, ._COPYING_ or .inprogress; \"skip\" by default"},
	{.name = NULL},
};

/* ---- the configuration ---- */

struct text_list {
	char **list;
	size_t *count;
	size_t most;
};

static enum weir_status add_text(const struct text_list *texts, const struct weir_json *at,
                                 enum weir_status (*check)(const struct weir_json *at, const char *text,
                                                           struct weir_error *error),
                                 struct weir_error *error)
{
	const char *text = "";
	enum weir_status status = weir_json_string(at, &text, error);
	if (status == WEIR_OK)
		status = check(at, text, error);
	if (status != WEIR_OK)
		return status;
	size_t length = strlen(text);
	while (length > 1 && text[length - 1] == '/')
		length--;
	texts->list[(*texts->count)++] = weir_copy(text, length);
	return WEIR_OK;
}

static enum weir_status add_texts(const struct text_list *texts, const struct weir_json *at,
                                  enum weir_status (*check)(const struct weir_json *at, const char *text,
                                                            struct weir_error *error),
                                  struct weir_error *error)
{
	size_t count;
	enum weir_status status = weir_json_one_or_more(at, texts->most, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = weir_json_one_of(at, i);
		status = add_text(texts, &element, check, error);
	}
	return status;
}

static enum weir_status check_url(const struct weir_json *at, const char *text, struct weir_error *error)
{
	const char *host = strstr(text, "://");
	if (!weir_http_address_meant(text) || host == NULL || strchr(text, '?') != NULL)
		return weir_json_fail(at, error, "must be an address such as \"http://nn1:9870\"");
	if (weir_http_address_has_account(text))
		return weir_json_fail(at, error, "must have no account: give \"user\", \"negotiate\" or \"token\"");
	size_t length = strcspn(host + 3, "/");
	if (length == 0 || host[3 + length + strspn(host + 3 + length, "/")] != '\0')
		return weir_json_fail(at, error, "must be an address without a path, such as \"http://nn1:9870\"");
	return WEIR_OK;
}

static enum weir_status check_path(const struct weir_json *at, const char *text, struct weir_error *error)
{
	if (text[0] != '/' || strlen(text) >= WEBHDFS_NAME_MOST)
		return weir_json_fail(at, error, "must be an absolute path or a glob, such as \"/logs/access.log.*\"");
	if (strstr(text, "**") != NULL)
		return weir_json_fail(at, error,
		                      "has \"**\", which would mean no more than \"*\": list a glob for each level, such as "
		                      "[\"/logs/*\", \"/logs/*/*\"]");
	if (text[strspn(text, "/")] == '\0')
		return weir_json_fail(at, error, "names the root folder; name its files, such as \"/logs/*\"");
	return WEIR_OK;
}

static enum weir_status read_lists(struct webhdfs *kind, const struct weir_json *config, struct weir_error *error)
{
	const struct text_list urls = {kind->urls, &kind->url_count, WEBHDFS_NAMENODES_MOST};
	const struct text_list paths = {kind->paths, &kind->path_count, WEBHDFS_PATHS_MOST};
	struct weir_json url = weir_json_member(config, "url"), path = weir_json_member(config, "path");
	enum weir_status status = add_texts(&urls, &url, check_url, error);
	return status == WEIR_OK ? add_texts(&paths, &path, check_path, error) : status;
}

static enum weir_status read_account(struct webhdfs *kind, const struct webhdfs_config *parsed,
                                     const struct weir_json *config, struct weir_error *error)
{
	struct weir_json token = weir_json_member(config, "token"), negotiate = weir_json_member(config, "negotiate");
	int ways = (parsed->user != NULL) + parsed->negotiate + weir_json_exists(&token);
	if (ways > 1)
		return weir_json_fail(weir_json_exists(&token) ? &token : &negotiate, error,
		                      "stands beside another of \"user\", \"negotiate\" and \"token\": give one of them");
	if (parsed->user != NULL)
		kind->user = weir_copy(parsed->user, strlen(parsed->user));
	if (parsed->ca != NULL)
		kind->ca = weir_copy(parsed->ca, strlen(parsed->ca));
	kind->negotiate = parsed->negotiate;
	return weir_json_exists(&token) ? weir_json_secret(&token, &kind->token, error) : WEIR_OK;
}

static enum weir_status configure(struct webhdfs *kind, const struct weir_json *config,
                                  const struct source_context *context, struct weir_error *error)
{
	struct webhdfs_config parsed = {
		.settings = {.follow = true,
	                 .poll_ms = POLL_MS,
	                 .late_ms = LATE_MS,
	                 .line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES}};
	enum weir_status status = weir_json_read(config, members, &parsed, error);
	if (status == WEIR_OK)
		status = read_lists(kind, config, error);
	if (status == WEIR_OK)
		status = read_account(kind, &parsed, config, error);
	kind->settings = parsed.settings;
	kind->unfinished = parsed.unfinished;
	return status;
}

/* "nn1:9870,nn2:9870 /logs/access.log.*". Returned. */
static char *make_label(const struct webhdfs *kind)
{
	struct weir_text label = {0};
	for (size_t i = 0; i < kind->url_count; i++)
		weir_text_printf(&label, "%s%s", i > 0 ? "," : "", strstr(kind->urls[i], "://") + 3);
	for (size_t i = 0; i < kind->path_count; i++)
		weir_text_printf(&label, " %s", kind->paths[i]);
	weir_text_append(&label, "", 1);
	return label.at;
}

/* ---- the interface ---- */

static void webhdfs_free(void *context)
{
	struct webhdfs *kind = context;
	for (size_t i = 0; i < WEBHDFS_CLIENTS; i++)
		weir_http_client_free(kind->clients[i]);
	pthread_cond_destroy(&kind->freed);
	pthread_mutex_destroy(&kind->mutex);
	for (size_t i = 0; i < kind->url_count; i++)
		free(kind->urls[i]);
	for (size_t i = 0; i < kind->path_count; i++)
		free(kind->paths[i]);
	for (size_t i = 0; i < kind->folder_count; i++)
		free(kind->folders[i].path);
	for (size_t i = 0; i < WEBHDFS_PLACES; i++)
		free(kind->places[i].address);
	free(kind->folders);
	free(kind->places);
	free(kind->user);
	free(kind->token);
	free(kind->ca);
	free(kind);
}

static const struct remote_ops ops = {
	.noun = "file",
	.rising = true,
	.at_once = WEBHDFS_CLIENTS,
	.list = webhdfs_list,
	.read = webhdfs_read,
	.free = webhdfs_free,
};

static enum weir_status webhdfs_new(const struct weir_json *config, const struct source_context *context,
                                    struct source **made, struct weir_error *error)
{
	struct webhdfs *kind = weir_alloc(1, sizeof *kind);
	pthread_mutex_init(&kind->mutex, NULL);
	pthread_cond_init(&kind->freed, NULL);
	kind->places = weir_alloc(WEBHDFS_PLACES, sizeof *kind->places);
	enum weir_status status = configure(kind, config, context, error);
	const struct weir_http_client_options options = {.connect_ms = CONNECT_MS,
	                                                 .answer_ms = ANSWER_MS,
	                                                 .stall_ms = STALL_MS,
	                                                 .body_most_bytes = WEBHDFS_ANSWER_MOST_BYTES,
	                                                 .agent = "weir",
	                                                 .ca_file = kind->ca,
	                                                 .cookies = true,
	                                                 .stop = &kind->stop};
	for (size_t i = 0; status == WEIR_OK && i < WEBHDFS_CLIENTS; i++)
		status = weir_http_client_new(&options, &kind->clients[i], error);
	if (status != WEIR_OK) {
		webhdfs_free(kind);
		return status;
	}
	char *label = make_label(kind);
	status = remote_source_new(&source_webhdfs_ops, &ops, kind, &kind->settings, label, &kind->stop, config, context,
	                           made, error);
	free(label);
	return status;
}

static void webhdfs_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json url = weir_json_member(config, "url"), path = weir_json_member(config, "path");
	source_words_list(place, &path);
	weir_text_puts(place, " of ");
	source_words_list(place, &url);
	source_words_manner(manner, config, true);
}

const struct source_ops source_webhdfs_ops = {
	.type = "webhdfs",
	.members = members,
	.create = webhdfs_new,
	.describe = webhdfs_describe,
	REMOTE_SOURCE_OPS,
};
