/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's socket, its buffers and its time.
 *
 * A connection that waits for its client keeps no buffer: it takes one of the server's spare ones when something comes,
 * and gives it back when all was answered. So ten thousand idle connections cost some kilobytes each in the kernel alone.
 * While checks are in flight the bytes of their keys stay where they are: nothing is moved, and no buffer grows.
 */
#include "limiter/check/resp/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { ASKING_FREE_BYTES = 4 * BUFFER_BYTES };

char *buffer_take(struct resp_server *server)
{
	return server->spare_count > 0 ? server->spare[--server->spare_count] : weir_alloc(BUFFER_BYTES, 1);
}

void buffer_give(struct resp_server *server, char *buffer)
{
	if (buffer == NULL)
		return;
	if (server->spare_count < SPARE_BUFFERS)
		server->spare[server->spare_count++] = buffer;
	else
		free(buffer);
}

void connection_open(struct link_connection *base)
{
	struct connection *connection = (struct connection *)base;
	connection->server = (struct resp_server *)base->server;
	connection->id = ++connection->server->next_id;
	connection->protocol = WEIR_RESP2;
	connection->heard_ms = connection->greets_ms = base->opened_ms;
}

static void give_in(struct connection *connection)
{
	if (connection->in_room == BUFFER_BYTES)
		buffer_give(connection->server, connection->in);
	else
		free(connection->in);
	connection->in = NULL;
	connection->in_room = connection->in_start = connection->in_end = 0;
}

static void give_out(struct connection *connection)
{
	if (connection->out.capacity == BUFFER_BYTES) {
		buffer_give(connection->server, connection->out.at);
		connection->out = (struct weir_text){0};
	} else {
		weir_text_deinit(&connection->out);
	}
	connection->sent = 0;
}

void connection_close(struct link_connection *base)
{
	struct connection *connection = (struct connection *)base;
	give_in(connection);
	give_out(connection);
	buffer_give(connection->server, connection->keys);
	buffer_give(connection->server, connection->unquoted);
	weir_text_deinit(&connection->queued);
}

/* @return whether there is room to read into */
static bool make_room(struct connection *connection)
{
	if (connection->in == NULL) {
		connection->in = buffer_take(connection->server);
		connection->in_room = BUFFER_BYTES;
	}
	if (connection->in_end < connection->in_room)
		return true;
	if (connection->slot_count > 0 || connection->in_room >= RESP_COMMAND_MAX_BYTES)
		return false;
	connection->in_room *= 2;
	connection->in = weir_realloc(connection->in, connection->in_room, 1);
	return true;
}

void connection_read(struct link_connection *base)
{
	struct connection *connection = (struct connection *)base;
	while (!base->dead && !base->half_closed && make_room(connection)) {
		size_t room = connection->in_room - connection->in_end;
		ssize_t got = link_connection_read(base, connection->in + connection->in_end, room);
		if (got > 0)
			connection->in_end += (size_t)got;
		if (got <= 0 || !link_pending(&base->link))
			return;
	}
}

static void write_out(struct connection *connection)
{
	struct weir_text *out = &connection->out;
	if (link_connection_write(&connection->base, out->at, out->length, &connection->sent)) {
		give_out(connection);
	} else if (connection->sent > RESP_OUTPUT_MAX_BYTES / 2) {
		out->length -= connection->sent;
		memmove(out->at, out->at + connection->sent, out->length);
		connection->sent = 0;
	}
}

/* Gives back what no check in flight stands in. */
static void give_back(struct connection *connection)
{
	if (connection->slot_count > 0)
		return;
	if (connection->keys != NULL)
		buffer_give(connection->server, connection->keys);
	connection->keys = NULL;
	connection->keys_used = 0;
	buffer_give(connection->server, connection->unquoted);
	connection->unquoted = NULL;
	if (connection->multi == MULTI_NONE && connection->queued.capacity > 0)
		weir_text_deinit(&connection->queued);
	size_t kept = connection->in_end - connection->in_start;
	if (kept == 0) {
		give_in(connection);
	} else if (connection->in_start > 0) {
		memmove(connection->in, connection->in + connection->in_start, kept);
		connection->in_start = 0;
		connection->in_end = kept;
	}
}

/* Of buffers. Checks in flight are answered soon, and stand in some of them; what waits for its client may stay for long. */
static void count_kept(struct connection *connection)
{
	size_t bytes = connection->in_room + (connection->keys != NULL ? BUFFER_BYTES : 0) +
	               (connection->unquoted != NULL ? BUFFER_BYTES : 0) + connection->out.capacity +
	               connection->queued.capacity;
	link_connection_keeps(&connection->base, bytes, connection->slot_count > 0 ? ASKING_FREE_BYTES : BUFFER_BYTES);
}

static bool has_unread(const struct connection *connection)
{
	return connection->out.length > connection->sent;
}

static void watch(struct connection *connection)
{
	bool in = connection->stop == STOP_NONE && !connection->base.half_closed &&
	          (connection->in == NULL || connection->in_end < connection->in_room || connection->slot_count == 0);
	if (in && link_pending(&connection->base.link)) /* there was no room for it */
		link_connection_touch(&connection->base);
	link_connection_watch(&connection->base, in, has_unread(connection));
}

/* Whether its last reply is written and no other can come. */
static bool has_ended(const struct connection *connection)
{
	bool says_no_more =
		connection->stop == STOP_FINISHED || (connection->base.half_closed && connection->stop == STOP_NONE);
	return says_no_more && connection->slot_count == 0 && !has_unread(connection);
}

bool connection_finish(struct link_connection *base)
{
	struct connection *connection = (struct connection *)base;
	if (!base->dead)
		write_out(connection);
	if (connection->stop == STOP_OUTPUT && connection->out.length - connection->sent <= RESP_OUTPUT_MAX_BYTES / 2) {
		connection->stop = STOP_NONE;
		link_connection_touch(base); /* there may be whole commands already */
	} else if (!base->dead && has_ended(connection)) {
		base->dead = true;
	} else if (connection->stop == STOP_ANSWERS && connection->answered) {
		link_connection_touch(base); /* answered since it was run */
	}
	give_back(connection);
	count_kept(connection);
	if (!base->dead)
		watch(connection);
	return connection->slot_count > 0;
}

void connection_look(struct link_connection *base)
{
	const struct connection *connection = (struct connection *)base;
	const struct resp_options *options = &connection->server->options;
	int64_t now_ms = base->server->now_ms;
	bool late = link_connection_is_late(base, has_unread(connection));
	bool greets = (options->user_count > 0 && connection->user == NULL) || link_greets(&base->link);
	bool greets_late = greets && now_ms - connection->greets_ms > options->login_ms;
	bool idle = options->idle_ms > 0 && connection->slot_count == 0 && now_ms - connection->heard_ms > options->idle_ms;
	if (!base->dead && (late || greets_late || idle))
		link_connection_stall(base);
}
