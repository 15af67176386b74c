/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's socket, its buffers and its time. One that waits for its client keeps no buffer.
 */
#include "limiter/check/http/internal.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static const char no_tls[] =
	"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: 74\r\nConnection: close\r\n\r\n"
	"{\"title\": \"This port speaks TLS\", \"status\": 400, \"detail\": \"ask by https\"}";

enum { PLACES_FIRST = 256, PLACE_TURNS = 1 << 28 };

void http_connection_touch(struct http_connection *connection)
{
	if (connection->touched)
		return;
	connection->touched = true;
	connection->next_touched = connection->server->touched;
	connection->server->touched = connection;
}

static void take_place(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	if (server->free_place != 0) {
		connection->place = server->free_place - 1;
		server->free_place = server->places[connection->place].next_free;
	} else {
		if (server->places_used == server->places_room) {
			server->places_room = server->places_room > 0 ? 2 * server->places_room : PLACES_FIRST;
			server->places = weir_realloc(server->places, server->places_room, sizeof *server->places);
		}
		connection->place = server->places_used++;
		server->places[connection->place] = (struct place){0};
	}
	server->places[connection->place].connection = connection;
}

static void give_place(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	struct place *place = &server->places[connection->place];
	*place = (struct place){.turn = (place->turn + 1) % PLACE_TURNS, .next_free = server->free_place};
	server->free_place = connection->place + 1;
}

struct http_connection *http_connection_open(struct check_http *server, int fd, struct weir_http_tls_server *tls)
{
	struct http_connection *connection = weir_alloc(1, sizeof *connection);
	*connection = (struct http_connection){.server = server,
	                                       .link = link_open(fd, tls, "http/1.1", weir_span_of(no_tls)),
	                                       .next = server->connections,
	                                       .watched_in = true,
	                                       .opened_ms = server->now_ms,
	                                       .written_ms = server->now_ms};
	take_place(connection);
	link_peer(&connection->link, connection->peer);
	if (server->connections != NULL)
		server->connections->previous = connection;
	server->connections = connection;
	server->connection_count++;
	weir_counter_set(&server->figures.connections, server->connection_count);
	if (!link_loop_add(&server->loop, &connection->link, connection))
		connection->dead = true;
	return connection;
}

static void give_in(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	if (connection->in_room == BUFFER_BYTES && server->spare_count < sizeof server->spare / sizeof *server->spare)
		server->spare[server->spare_count++] = connection->in;
	else
		free(connection->in);
	connection->in = NULL;
	connection->in_room = connection->in_start = connection->in_end = 0;
}

void http_connection_free(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	link_close(&connection->link);
	give_in(connection);
	give_place(connection);
	weir_text_deinit(&connection->out);
	exchange_deinit(&connection->exchange);
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

static void count_buffers(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	const struct exchange *exchange = &connection->exchange;
	size_t bytes = connection->in_room + connection->out.capacity + exchange->keys.capacity +
	               exchange->asks_room * sizeof *exchange->asks;
	server->buffered += bytes - connection->counted;
	connection->counted = bytes;
	if (server->buffered > CHECK_HTTP_BUFFERED_MAX_BYTES && bytes > BUFFER_BYTES && !connection->dead) {
		connection->dead = true;
		weir_counter_add(&server->figures.stalled, 1);
	}
}

/* ---- reading ---- */

/* @return whether there is room to read into */
static bool make_room(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	if (connection->in == NULL) {
		connection->in = server->spare_count > 0 ? server->spare[--server->spare_count] : weir_alloc(BUFFER_BYTES, 1);
		connection->in_room = BUFFER_BYTES;
	}
	if (connection->in_start > 0 && connection->in_end == connection->in_room) {
		connection->in_end -= connection->in_start;
		memmove(connection->in, connection->in + connection->in_start, connection->in_end);
		connection->in_start = 0;
	}
	if (connection->in_end < connection->in_room)
		return true;
	if (connection->in_room >= IN_MAX_BYTES)
		return false;
	connection->in_room = 2 * connection->in_room < IN_MAX_BYTES ? 2 * connection->in_room : IN_MAX_BYTES;
	connection->in = weir_realloc(connection->in, connection->in_room, 1);
	return true;
}

void http_connection_read(struct http_connection *connection)
{
	while (!connection->dead && !connection->half_closed && make_room(connection)) {
		size_t room = connection->in_room - connection->in_end;
		ssize_t got = link_read(&connection->link, connection->in + connection->in_end, room);
		connection->half_closed = got == 0;
		if (got < 0 && errno != EAGAIN && errno != EINTR) {
			connection->dead = true;
			refusals_tell_no_tls(connection->server->options.refusals, REFUSAL_HTTP, &connection->link);
		}
		if (got > 0)
			connection->in_end += (size_t)got;
		if (got <= 0 || !link_pending(&connection->link))
			return;
	}
}

bool http_connection_run(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	struct http_request request;
	struct http_refusal refusal;
	if (connection->dead || connection->closing || connection->exchange.busy ||
	    connection->out.length - connection->sent > OUT_MAX_BYTES)
		return false;
	if (link_pending(&connection->link)) /* there was no room for it */
		http_connection_read(connection);
	size_t length = connection->in_end - connection->in_start;
	if (length == 0)
		return false;
	if (server->stopping) {
		connection->closing = true;
		return false;
	}
	switch (http_request_read(connection->in + connection->in_start, length, &request, &refusal)) {
	case WEIR_OK: break;
	case WEIR_AGAIN:
		if (connection->partial_ms == 0)
			connection->partial_ms = server->now_ms;
		if (request.waits && !connection->told_to_go_on)
			weir_text_puts(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
		connection->told_to_go_on |= request.waits;
		return false;
	default:
		weir_counter_add(&server->figures.protocol_errors, 1);
		connection->exchange.head_only = connection->exchange.keeps_alive = false;
		connection->exchange.path = NULL;
		reply_refusal(connection, REFUSAL_PROTOCOL, refusal.status, "The request cannot be read", refusal.words);
		return false;
	}
	connection->in_start += request.bytes;
	connection->partial_ms = 0;
	connection->told_to_go_on = false;
	connection->asked = true;
	exchange_begin(connection, &request);
	return true;
}

/* ---- writing ---- */

static void write_out(struct http_connection *connection)
{
	while (connection->sent < connection->out.length) {
		ssize_t put = link_write(&connection->link, connection->out.at + connection->sent,
		                         connection->out.length - connection->sent);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			connection->dead = true;
		if (put <= 0)
			return;
		connection->sent += (size_t)put;
		connection->written_ms = connection->server->now_ms;
	}
	connection->written_ms = connection->server->now_ms;
	connection->sent = 0;
	weir_text_deinit(&connection->out);
}

static void watch(struct http_connection *connection)
{
	bool writes = connection->out.length > connection->sent;
	bool in = !connection->exchange.busy && !connection->closing && !connection->half_closed && !writes;
	bool out = writes || link_wants_write(&connection->link);
	if (in && link_pending(&connection->link))
		http_connection_touch(connection);
	if (in == connection->watched_in && out == connection->watched_out)
		return;
	link_loop_watch(&connection->server->loop, &connection->link, connection, in, out);
	connection->watched_in = in;
	connection->watched_out = out;
}

/* Whether its last reply is written and no other can come. */
static bool has_ended(const struct http_connection *connection)
{
	bool says_no_more = connection->closing || connection->half_closed || connection->server->stopping;
	return says_no_more && !connection->exchange.busy && connection->out.length == connection->sent;
}

/* Whether a request waits that this turn could not begin any more. */
static bool has_more(const struct http_connection *connection)
{
	return connection->in_end > connection->in_start && connection->partial_ms == 0 && !connection->exchange.busy &&
	       !connection->closing && connection->out.length == connection->sent;
}

void http_connection_finish(struct http_connection *connection)
{
	if (!connection->dead)
		write_out(connection);
	bool more = !connection->dead && has_more(connection);
	if (more && !connection->server->stopping)
		http_connection_touch(connection);
	else if (!connection->dead && has_ended(connection))
		connection->dead = true;
	if (connection->in_start == connection->in_end && connection->in != NULL)
		give_in(connection);
	count_buffers(connection);
	if (!connection->dead) {
		watch(connection);
		return;
	}
	link_close(&connection->link);
	if (connection->exchange.busy || connection->touched)
		return; /* whoever judges may still look at its keys; or the next turn frees it */
	http_connection_free(connection);
}

void http_connection_look(struct http_connection *connection)
{
	int64_t now_ms = connection->server->now_ms, stall_ms = connection->server->options.stall_ms;
	bool read_late = connection->out.length > connection->sent && now_ms - connection->written_ms > stall_ms;
	bool written_late = connection->partial_ms != 0 && now_ms - connection->partial_ms > stall_ms;
	bool never_asked = !connection->asked && now_ms - connection->opened_ms > stall_ms;
	if (connection->dead || !(read_late || written_late || never_asked))
		return;
	weir_counter_add(&connection->server->figures.stalled, 1);
	connection->dead = true;
	http_connection_touch(connection);
}
