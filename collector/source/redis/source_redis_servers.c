/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where streams are: one server, of several addresses the one that is a master; or the nodes of a cluster, which say of
 * each key where it is (MOVED, ASK).
 */
#include "collector/source/redis/internal.h"

#include "common/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BESIDE_LINE_BYTES = 1 << 10 };

static void wipe(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* The server at an address, with the configuration's login in the place of the address's own. */
static enum weir_status open_server(struct redis_source *source, struct redis_server *server,
                                    const struct weir_redis_url *url, struct weir_error *error)
{
	struct weir_redis_url login = *url;
	char *password = NULL;
	enum weir_status status = weir_json_secret(&source->config.password, &password, error);
	if (source->config.user != NULL)
		login.user = (char *)(uintptr_t)source->config.user;
	if (password != NULL)
		login.password = password;
	if (status == WEIR_OK)
		status = redis_server_open(server, &login, error);
	wipe(password);
	return status;
}

static struct redis_server *add_server(struct redis_source *source)
{
	struct redis_server *server = weir_alloc(1, sizeof *server);
	size_t most = (size_t)source->config.line_max;
	redis_server_init(server, &source->queue, (uint32_t)(most + BESIDE_LINE_BYTES));
	return source->servers[source->server_count++] = server;
}

enum weir_status redis_connect(struct redis_source *source, size_t node, struct weir_error *error)
{
	if (source->server_count == 0)
		(void)add_server(source);
	struct redis_server *server = source->servers[node];
	if (server->link != NULL)
		return WEIR_OK;
	if (node > 0) /* told by another: of a cluster */
		return open_server(source, server, &source->nodes[node], error);
	enum weir_status status = WEIR_IO;
	for (size_t i = 0; i < source->config.url_count && status != WEIR_OK; i++) {
		status = open_server(source, server, &source->urls[source->url_next], error);
		if (status != WEIR_OK)
			source->url_next = (source->url_next + 1) % source->config.url_count;
	}
	return status;
}

void redis_disconnect(struct redis_source *source)
{
	for (size_t i = 0; i < source->server_count; i++)
		redis_server_close(source->servers[i]);
}

/* ---- clusters ---- */

bool redis_find_node(struct redis_source *source, size_t teller, struct weir_span at, size_t *node)
{
	const char *colon = memrchr(at.at, ':', at.length);
	const struct weir_redis_url *base = &source->urls[source->url_next];
	if (colon == NULL || at.length > REDIS_KEY_MAX_BYTES)
		return false;
	long port = strtol(colon + 1, NULL, 10); /* a line's end is behind it */
	size_t length = (size_t)(colon - at.at);
	const char *told = teller > 0 ? source->nodes[teller].host : base->host;
	char *host = length > 0 ? weir_copy(at.at, length) : weir_copy(told, strlen(told));
	if (port <= 0 || port > UINT16_MAX) {
		free(host);
		return false;
	}
	if (base->port == port && strcmp(base->host, host) == 0) {
		free(host);
		*node = 0;
		return true;
	}
	for (*node = 1; *node < source->server_count; ++*node)
		if (source->nodes[*node].port == port && strcmp(source->nodes[*node].host, host) == 0)
			break;
	if (*node < REDIS_NODES_MAX)
		source->named[*node] = true;
	if (*node < source->server_count || source->server_count == REDIS_NODES_MAX) {
		free(host);
		return *node < source->server_count;
	}
	source->nodes[*node] = *base;
	source->nodes[*node].host = host;
	source->nodes[*node].port = (uint16_t)port;
	(void)add_server(source);
	return true;
}

void redis_forget_nodes(struct redis_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		source->streams[i]->node = source->streams[i]->asked_node = 0;
		source->streams[i]->asking = false;
	}
	for (; source->server_count > 1; source->server_count--) {
		redis_server_deinit(source->servers[source->server_count - 1]);
		free(source->servers[source->server_count - 1]);
		free(source->nodes[source->server_count - 1].host);
	}
}

enum weir_status redis_reach(struct redis_source *source, struct redis_stream *stream, struct weir_error *error)
{
	stream->asked_node = stream->node;
	return redis_lost(source, stream, redis_connect(source, stream->node, error));
}

enum weir_status redis_lost(struct redis_source *source, struct redis_stream *stream, enum weir_status status)
{
	if (status != WEIR_IO || stream->asked_node == 0)
		return status;
	redis_server_close(source->servers[stream->asked_node]);
	stream->node = 0;
	stream->asking = false;
	return WEIR_INVALID;
}

static bool begins(struct weir_span words, const char *with)
{
	size_t length = strlen(with);
	return words.length >= length && memcmp(words.at, with, length) == 0;
}

/* "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381" */
static bool follow(struct redis_source *source, struct redis_stream *stream, struct weir_span words)
{
	const char *end = words.at + words.length, *slot = memchr(words.at, ' ', words.length);
	const char *at = slot != NULL ? memchr(slot + 1, ' ', (size_t)(end - slot - 1)) : NULL;
	if (at == NULL)
		return false;
	source->cluster = true;
	stream->asking = begins(words, "ASK ");
	return redis_find_node(source, stream->asked_node,
	                       (struct weir_span){.at = at + 1, .length = (uint32_t)(end - at - 1)}, &stream->node);
}

/* ---- what a refusal means ---- */

static const struct {
	const char *begins, *words;
	bool stream; /* it concerns one stream alone */
} refusals[] = {
	{"NOAUTH", "needs a login: set \"password\", and \"user\" if it has users", false},
	{"WRONGPASS", "does not take the login: set \"user\" and \"password\" anew", false},
	{"NOPERM", "does not allow this user to read it: it needs XREAD, XINFO and XGROUP on the key", true},
	{"WRONGTYPE", "holds no stream under this key", true},
	{"READONLY", "is a replica, and takes no position: give its master's address in \"url\"", false},
	{"LOADING", "is reading its data from disk, and answers when it is done", false},
	{"MASTERDOWN", "is a replica that has lost its master", false},
	{"CLUSTERDOWN", "is in a cluster that lacks nodes", false},
	{"OOM", "is at its \"maxmemory\", and keeps no position: raise it, or trim streams", true},
	{"MISCONF", "cannot write to its disk, and keeps no position", true},
	{"BUSY ", "runs a script that does not end", false},
	{"ERR no such key", "has no such key: it is read from its beginning once it is there", true},
};

enum weir_status redis_refused(struct redis_source *source, struct redis_stream *stream, struct weir_span words,
                               struct weir_error *error)
{
	const struct redis_server *server = source->servers[stream != NULL ? stream->asked_node : 0];
	if (stream != NULL && (begins(words, "MOVED ") || begins(words, "ASK ")))
		return follow(source, stream, words) ? WEIR_AGAIN
		                                     : weir_fail(error, WEIR_IO,
		                                                 "%s: the cluster has too many nodes, or says "
		                                                 "where none is",
		                                                 server->name);
	if (begins(words, "CROSSSLOT")) {
		source->cluster = true;
		return WEIR_AGAIN;
	}
	if (stream != NULL)
		stream->gone = begins(words, "ERR no such key");
	if (stream != NULL && stream->gone)
		stream->absent = true;
	int shown = (int)(words.length < 120 ? words.length : 120);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (begins(words, refusals[i].begins))
			return weir_fail(error, refusals[i].stream && stream != NULL ? WEIR_INVALID : WEIR_IO, "%s %s (%.*s)",
			                 server->name, refusals[i].words, shown, words.at);
	return weir_fail(error, stream != NULL ? WEIR_INVALID : WEIR_IO, "%s: %.*s", server->name, shown, words.at);
}
