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

#include <errno.h>
#include <stdlib.h>

static const char no_tls[] = "-ERR Protocol error: this port speaks TLS\r\n";

enum { MANY_BYTES = 4 * BUFFER_BYTES };

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

void connection_touch(struct connection *connection)
{
	if (connection->touched)
		return;
	connection->touched = true;
	connection->next_touched = connection->server->touched;
	connection->server->touched = connection;
}

struct connection *connection_open(struct resp_server *server, int fd, struct weir_http_tls_server *tls)
{
	struct connection *connection = weir_alloc(1, sizeof *connection);
	*connection = (struct connection){.server = server,
	                                  .link = link_open(fd, tls, NULL, weir_span_of(no_tls)),
	                                  .next = server->connections,
	                                  .watched_in = true,
	                                  .id = ++server->next_id,
	                                  .protocol = WEIR_RESP2,
	                                  .opened_ms = server->now_ms,
	                                  .heard_ms = server->now_ms,
	                                  .written_ms = server->now_ms};
	if (server->connections != NULL)
		server->connections->previous = connection;
	server->connections = connection;
	server->connection_count++;
	weir_counter_set(&server->figures.connections, server->connection_count);
	if (!link_loop_add(&server->loop, &connection->link, connection))
		connection->dead = true;
	return connection;
}

static void count_buffers(struct connection *connection)
{
	struct resp_server *server = connection->server;
	size_t bytes = connection->in_room + (connection->keys != NULL ? BUFFER_BYTES : 0) +
	               (connection->unquoted != NULL ? BUFFER_BYTES : 0) + connection->out.capacity +
	               connection->queued.capacity;
	server->buffered += bytes - connection->counted;
	connection->counted = bytes;
	if (server->buffered > RESP_BUFFERED_MAX_BYTES && bytes > MANY_BYTES && !connection->dead) {
		connection->dead = true;
		weir_counter_add(&server->figures.stalled, 1);
	}
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

void connection_free(struct connection *connection)
{
	struct resp_server *server = connection->server;
	link_close(&connection->link);
	give_in(connection);
	give_out(connection);
	buffer_give(server, connection->keys);
	buffer_give(server, connection->unquoted);
	weir_text_deinit(&connection->queued);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	server->buffered -= connection->counted;
	server->connection_count--;
	weir_counter_set(&server->figures.connections, server->connection_count);
	free(connection);
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

void connection_read(struct connection *connection)
{
	while (!connection->dead && !connection->half_closed && make_room(connection)) {
		char *at = connection->in + connection->in_end;
		size_t room = connection->in_room - connection->in_end;
		ssize_t got = link_read(&connection->link, at, room);
		connection->half_closed = got == 0;
		if (got < 0 && errno != EAGAIN && errno != EINTR) {
			connection->dead = true;
			refusals_tell_no_tls(connection->server->options.refusals, REFUSAL_RESP, &connection->link);
		}
		if (got > 0)
			connection->in_end += (size_t)got;
		if (got <= 0 || !link_pending(&connection->link))
			return;
	}
}

static void write_out(struct connection *connection)
{
	size_t rest = connection->out.length - connection->sent;
	while (rest > 0) {
		const char *at = connection->out.at + connection->sent;
		ssize_t put = link_write(&connection->link, at, rest);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			connection->dead = true;
		if (put <= 0)
			break;
		connection->sent += (size_t)put;
		connection->written_ms = connection->server->now_ms;
		bool whole = (size_t)put == rest;
		rest -= (size_t)put;
		if (!whole && connection->link.tls == NULL)
			break;
	}
	if (rest == 0) {
		connection->written_ms = connection->server->now_ms;
		give_out(connection);
	} else if (connection->sent > RESP_OUTPUT_MAX_BYTES / 2) {
		memmove(connection->out.at, connection->out.at + connection->sent, rest);
		connection->out.length = rest;
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

static void watch(struct connection *connection)
{
	bool in = connection->stop == STOP_NONE && !connection->half_closed &&
	          (connection->in == NULL || connection->in_end < connection->in_room || connection->slot_count == 0);
	bool out = connection->out.length > connection->sent || link_wants_write(&connection->link);
	if (in && link_pending(&connection->link)) /* there was no room for it */
		connection_touch(connection);
	if (in == connection->watched_in && out == connection->watched_out)
		return;
	link_loop_watch(&connection->server->loop, &connection->link, connection, in, out);
	connection->watched_in = in;
	connection->watched_out = out;
}

/* Whether its last reply is written and no other can come. */
static bool has_ended(const struct connection *connection)
{
	bool says_no_more = connection->stop == STOP_FINISHED || (connection->half_closed && connection->stop == STOP_NONE);
	return says_no_more && connection->slot_count == 0 && connection->out.length == connection->sent;
}

void connection_finish(struct connection *connection)
{
	if (!connection->dead)
		write_out(connection);
	if (connection->stop == STOP_OUTPUT && connection->out.length - connection->sent <= RESP_OUTPUT_MAX_BYTES / 2) {
		connection->stop = STOP_NONE;
		connection_touch(connection); /* there may be whole commands already */
	} else if (!connection->dead && has_ended(connection)) {
		connection->dead = true;
	} else if (connection->stop == STOP_ANSWERS && connection->answered) {
		connection_touch(connection); /* answered since it was run */
	}
	give_back(connection);
	count_buffers(connection);
	if (!connection->dead) {
		watch(connection);
		return;
	}
	link_close(&connection->link);
	if (connection->slot_count > 0)
		return; /* whoever judges may still look at its keys */
	if (connection->touched)
		return; /* the next turn frees it */
	connection_free(connection);
}

void connection_look(struct connection *connection)
{
	const struct resp_options *options = &connection->server->options;
	int64_t now_ms = connection->server->now_ms;
	bool logs_in = options->user_count > 0 && connection->user == NULL;
	bool greets = link_greets(&connection->link);
	bool reads_late = connection->out.length > connection->sent && now_ms - connection->written_ms > options->stall_ms;
	bool writes_late = connection->partial_ms != 0 && now_ms - connection->partial_ms > options->stall_ms;
	bool greets_late = (logs_in || greets) && now_ms - connection->opened_ms > options->login_ms;
	bool idle = options->idle_ms > 0 && connection->slot_count == 0 && now_ms - connection->heard_ms > options->idle_ms;
	if (connection->dead || !(reads_late || writes_late || greets_late || idle))
		return;
	weir_counter_add(&connection->server->figures.stalled, 1);
	connection->dead = true;
	connection_touch(connection);
}
