/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a pattern names, by SCAN: each key of the server is looked at, so the more there are, the less often. Found ones stay. */
#include "collector/source/redis/internal.h"

#include <stdio.h>
#include <string.h>

enum { SCAN_COUNT = 1000, KEYS_PATIENCE = 1 << 20 };

static bool is_known(const struct redis_source *source, struct weir_span key)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (weir_span_equal(redis_key(source->streams[i]), key))
			return true;
	return false;
}

static enum weir_status take_keys(struct redis_source *source, size_t node, struct weir_error *error)
{
	struct redis_server *server = source->servers[node];
	struct weir_resp_token list, key;
	enum weir_status status = redis_server_next(server, &list, error);
	for (int64_t i = 0; status == WEIR_OK && list.kind == WEIR_RESP_LIST && i < list.number; i++) {
		status = redis_server_next(server, &key, error);
		if (status != WEIR_OK || key.kind != WEIR_RESP_TEXT || key.whole > REDIS_KEY_MAX_BYTES ||
		    is_known(source, key.text))
			continue;
		struct redis_stream *stream = redis_add_stream(source, key.text);
		if (stream == NULL) {
			source->too_many = true;
			continue;
		}
		stream->node = node;
		stream->absent = source->scanned; /* it came since: all of it is new */
		source->look_ms = 0;
	}
	return status;
}

static enum weir_status scan_node(struct redis_source *source, size_t node, const char *pattern,
                                  struct weir_error *error)
{
	struct redis_server *server = source->servers[node];
	char cursor[24] = "0";
	enum weir_status status = WEIR_OK;
	for (int turn = 0; status == WEIR_OK && turn < KEYS_PATIENCE && (turn == 0 || strcmp(cursor, "0") != 0); turn++) {
		struct weir_resp_token token;
		redis_server_command(server, 8);
		redis_server_text(server, "SCAN");
		redis_server_text(server, cursor);
		redis_server_text(server, "MATCH");
		redis_server_text(server, pattern);
		redis_server_text(server, "COUNT");
		redis_server_number(server, SCAN_COUNT);
		redis_server_text(server, "TYPE");
		redis_server_text(server, "stream");
		status = redis_server_next(server, &token, error);
		if (status == WEIR_OK && token.kind == WEIR_RESP_ERROR)
			return redis_refused(source, NULL, token.text, error);
		if (status == WEIR_OK)
			status = redis_server_next(server, &token, error);
		if (status != WEIR_OK)
			return status;
		cursor[0] = '\0';
		strncat(cursor, token.text.at, token.text.length < sizeof cursor ? token.text.length : 0);
		status = take_keys(source, node, error);
	}
	return status;
}

/* Reads one node of a list of slots: a list of its address, its port and more. */
static enum weir_status take_node(struct redis_source *source, bool master, struct weir_error *error)
{
	struct redis_server *server = source->servers[0];
	struct weir_resp_token list, token;
	char at[REDIS_KEY_MAX_BYTES] = "";
	enum weir_status status = redis_server_next(server, &list, error);
	for (int64_t i = 0; status == WEIR_OK && list.kind == WEIR_RESP_LIST && i < list.number; i++) {
		status = redis_server_next(server, &token, error);
		if (status == WEIR_OK && i == 0 && token.kind == WEIR_RESP_TEXT)
			snprintf(at, sizeof at, "%.*s", (int)token.text.length, token.text.at);
		if (status == WEIR_OK && i == 1)
			snprintf(at + strlen(at), sizeof at - strlen(at), ":%lld", (long long)token.number);
		if (status == WEIR_OK)
			status = redis_server_skip(server, &token, error);
	}
	size_t node;
	if (status == WEIR_OK && master)
		source->too_many |= !redis_find_node(source, 0, weir_span_of(at), &node);
	return status;
}

/* Of a cluster, all masters: each has some of the keys. */
static enum weir_status find_nodes(struct redis_source *source, struct weir_error *error)
{
	struct redis_server *server = source->servers[0];
	struct weir_resp_token slots, range, token;
	redis_server_command(server, 2);
	redis_server_text(server, "CLUSTER");
	redis_server_text(server, "SLOTS");
	enum weir_status status = redis_server_next(server, &slots, error); /* an error, where there is no cluster */
	if (status == WEIR_OK && slots.kind == WEIR_RESP_LIST)
		memset(source->named, 0, sizeof source->named);
	for (int64_t i = 0; status == WEIR_OK && slots.kind == WEIR_RESP_LIST && i < slots.number; i++) {
		source->cluster = true;
		status = redis_server_next(server, &range, error);
		for (int64_t k = 0; status == WEIR_OK && k < range.number; k++)
			status = k < 2 ? redis_server_next(server, &token, error) : take_node(source, k == 2, error);
	}
	return status;
}

enum weir_status redis_scan(struct redis_source *source, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	bool any = false;
	source->too_many = false;
	for (size_t i = 0; i < source->config.stream_count && status == WEIR_OK; i++) {
		if (!redis_is_pattern(source->config.streams[i]))
			continue;
		if (!any)
			status = find_nodes(source, error);
		any = true;
		for (size_t node = 0; node < source->server_count && status == WEIR_OK; node++) {
			if (node > 0 && !source->named[node])
				continue; /* it has no slots any more, or is gone */
			status = redis_connect(source, node, error);
			if (status == WEIR_OK)
				status = scan_node(source, node, source->config.streams[i], error);
			if (status == WEIR_IO && node > 0) { /* a node that left: what it had, the others have */
				redis_server_close(source->servers[node]);
				status = WEIR_OK;
			}
		}
	}
	source->scanned |= any && status == WEIR_OK;
	if (any && status == WEIR_OK)
		queue_stopped(&source->queue, source->config.name, false,
		              source->too_many
		                  ? "the patterns of \"streams\" name more than 1024 streams, and the others are not "
		                    "read: give them a source each"
		                  : NULL);
	return status;
}
