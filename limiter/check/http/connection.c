/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's socket, its buffers and its time. One that waits for its client keeps no buffer.
 */
#include "limiter/check/http/internal.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <stdlib.h>

enum {
	PLACES_FIRST = 256,
	PLACE_TURNS = 1 << 28,
	DROPS_MAX_BYTES = 2 << 20, /* a gateway may take a head of 1 MiB, and hand it on */
	DROPS_A_TURN = 16,
	DROPS_MAX_MS = 2000,
};

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

void http_connection_open(struct link_connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	connection->server = (struct check_http *)base->server;
	take_place(connection);
	link_peer(&base->link, connection->peer);
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

void http_connection_close(struct link_connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	give_in(connection);
	give_place(connection);
	weir_text_deinit(&connection->out);
	exchange_deinit(&connection->exchange);
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

static bool is_dropping(const struct http_connection *connection)
{
	return connection->phase >= HTTP_DROPS;
}

/* A client that still sends when its connection is closed may find that it was cut, and never read why it was refused. */
static void drop(struct http_connection *connection)
{
	struct link_connection *base = &connection->base;
	char rest[BUFFER_BYTES];
	for (int i = 0; i < DROPS_A_TURN && !base->dead; i++) {
		ssize_t got = link_read(&base->link, rest, sizeof rest);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		connection->drops -= got > 0 && (size_t)got < connection->drops ? (size_t)got : connection->drops;
		base->dead = connection->drops == 0;
	}
}

void http_connection_read(struct link_connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	if (is_dropping(connection)) {
		drop(connection);
		return;
	}
	while (!base->dead && !base->half_closed && make_room(connection)) {
		size_t room = connection->in_room - connection->in_end;
		ssize_t got = link_connection_read(base, connection->in + connection->in_end, room);
		if (got > 0)
			connection->in_end += (size_t)got;
		if (got <= 0 || !link_pending(&base->link))
			return;
	}
}

bool http_connection_run(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	struct http_request request;
	struct http_refusal refusal;
	if (connection->base.dead || connection->phase != HTTP_SERVES || connection->exchange.busy ||
	    connection->out.length - connection->sent > OUT_MAX_BYTES)
		return false;
	if (link_pending(&connection->base.link)) /* there was no room for it */
		http_connection_read(&connection->base);
	size_t length = connection->in_end - connection->in_start;
	if (length == 0)
		return false;
	if (server->base.stopping) {
		connection->phase = HTTP_ENDS;
		return false;
	}
	switch (http_request_read(connection->in + connection->in_start, length, &request, &refusal)) {
	case WEIR_OK: break;
	case WEIR_AGAIN:
		if (connection->base.partial_ms == 0)
			connection->base.partial_ms = server->base.now_ms;
		if (request.waits && !connection->told_to_go_on)
			weir_text_puts(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
		connection->told_to_go_on |= request.waits;
		return false;
	default:
		weir_counter_add(&server->base.figures.protocol_errors, 1);
		connection->exchange.head_only = connection->exchange.keeps_alive = false;
		connection->exchange.path = NULL;
		reply_refusal(connection, REFUSAL_PROTOCOL, refusal.status, "The request cannot be read", refusal.words);
		connection->in_start = connection->in_end;
		connection->base.partial_ms = 0;
		connection->asked = true; /* so it is not too slow, while its client reads why */
		connection->phase = HTTP_DROPS;
		connection->drops = DROPS_MAX_BYTES;
		return false;
	}
	connection->in_start += request.bytes;
	connection->base.partial_ms = 0;
	connection->told_to_go_on = false;
	connection->asked = true;
	exchange_begin(connection, &request);
	return true;
}

/* ---- writing ---- */

static bool has_unread(const struct http_connection *connection)
{
	return connection->out.length > connection->sent;
}

static void write_out(struct http_connection *connection)
{
	struct weir_text *out = &connection->out;
	if (!link_connection_write(&connection->base, out->at, out->length, &connection->sent))
		return;
	connection->sent = 0;
	weir_text_deinit(out);
}

static void watch(struct http_connection *connection)
{
	bool out = has_unread(connection), reads = connection->phase != HTTP_ENDS;
	bool in = !connection->exchange.busy && reads && !connection->base.half_closed && !out;
	if (in && link_pending(&connection->base.link))
		link_connection_touch(&connection->base);
	link_connection_watch(&connection->base, in, out);
}

/* Whether its last reply is written and no other can come. */
static bool has_ended(const struct http_connection *connection)
{
	bool says_no_more =
		connection->phase != HTTP_SERVES || connection->base.half_closed || connection->server->base.stopping;
	return says_no_more && !connection->exchange.busy && !has_unread(connection);
}

/* Whether a request waits that this turn could not begin any more. */
static bool has_more(const struct http_connection *connection)
{
	return connection->in_end > connection->in_start && connection->base.partial_ms == 0 &&
	       !connection->exchange.busy && connection->phase == HTTP_SERVES && !has_unread(connection);
}

/* Its last reply is written. */
static void say_no_more(struct http_connection *connection)
{
	struct link_connection *base = &connection->base;
	if (!is_dropping(connection) || base->half_closed || base->server->stopping) {
		base->dead = true;
		return;
	}
	if (connection->phase == HTTP_DROPS) {
		link_end_writing(&base->link);
		connection->shut_ms = base->server->now_ms;
	}
	connection->phase = HTTP_SHUT;
}

/* Of buffers. */
static void count_kept(struct http_connection *connection)
{
	const struct exchange *exchange = &connection->exchange;
	link_connection_keeps(&connection->base,
	                      connection->in_room + connection->out.capacity + exchange->keys.capacity +
	                          exchange->asks_room * sizeof *exchange->asks,
	                      BUFFER_BYTES);
}

bool http_connection_finish(struct link_connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	if (!base->dead)
		write_out(connection);
	bool more = !base->dead && has_more(connection);
	if (more && !base->server->stopping)
		link_connection_touch(base);
	else if (!base->dead && has_ended(connection))
		say_no_more(connection);
	if (connection->in_start == connection->in_end && connection->in != NULL)
		give_in(connection);
	count_kept(connection);
	if (!base->dead)
		watch(connection);
	return connection->exchange.busy;
}

void http_connection_look(struct link_connection *base)
{
	const struct http_connection *connection = (struct http_connection *)base;
	int64_t stall_ms = base->server->options.stall_ms;
	bool late = link_connection_is_late(base, has_unread(connection));
	bool never_asked = !connection->asked && base->server->now_ms - base->opened_ms > stall_ms;
	if (connection->phase == HTTP_SHUT && !base->dead && base->server->now_ms - connection->shut_ms > DROPS_MAX_MS) {
		base->dead = true;
		link_connection_touch(base);
	}
	if (!base->dead && (late || never_asked))
		link_connection_stall(base);
}
