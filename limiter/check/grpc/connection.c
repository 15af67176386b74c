/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's socket, what is to be written to it, and its time.
 *
 * While something could not be written, nothing is read: what it would ask for could not be answered either.
 */
#include "limiter/check/grpc/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>

static const char no_http2[] =
	"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: 169\r\nConnection: close\r\n\r\n"
	"{\"title\": \"This port speaks gRPC\", \"status\": 400, \"detail\": \"that is HTTP/2 from the first byte: HTTP/1.1 is asked at listen.check_http, Redis' protocol at listen.resp\"}";

enum { READ_BYTES = 64 << 10, READS_A_TURN = 4 };

void grpc_connection_open(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	connection->server = (struct grpc_server *)base->server;
	connection->authorised = connection->server->options.password == NULL;
	session_open(connection);
}

static bool has_unread(const struct grpc_connection *connection)
{
	return connection->out_length > connection->sent;
}

static void give_out(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	if (connection->out == NULL)
		return;
	server->base.buffered -= OUT_BYTES;
	if (server->spare == NULL)
		server->spare = connection->out;
	else
		free(connection->out);
	connection->out = NULL;
	connection->out_length = connection->sent = 0;
}

static void take_out(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	if (connection->out != NULL)
		return;
	connection->out = server->spare != NULL ? server->spare : weir_alloc(OUT_BYTES, 1);
	server->spare = NULL;
	server->base.buffered += OUT_BYTES;
}

void grpc_connection_close(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	session_close(connection);
	give_out(connection);
}

void grpc_connection_read(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	char *room = connection->server->room;
	for (int i = 0; i < READS_A_TURN && !base->dead; i++) {
		ssize_t got = link_connection_read(base, room, READ_BYTES);
		base->dead |= base->half_closed;
		if (got <= 0)
			return;
		connection->spoke = true;
		if (!session_receive(connection, room, (size_t)got)) {
			connection->failed = true;
			return;
		}
		if (got < READ_BYTES && !link_pending(&base->link))
			return;
	}
	if (link_pending(&base->link)) { /* the next turn goes on */
		connection->pending = true;
		link_connection_touch(base);
	}
}

/* @return false: it could not be written whole */
static bool write_some(struct grpc_connection *connection)
{
	if (!link_connection_write(&connection->base, connection->out, connection->out_length, &connection->sent))
		return false;
	connection->out_length = connection->sent = 0;
	return true;
}

static void write_all(struct grpc_connection *connection)
{
	bool more = true;
	while (more && !connection->base.dead) {
		take_out(connection);
		if (!write_some(connection))
			return;
		if (!session_send(connection))
			connection->base.dead = true;
		more = connection->out_length > 0;
	}
	give_out(connection);
}

bool grpc_connection_finish(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	bool speaks = connection->spoke || connection->failed || connection->leaving;
	if (connection->strange && !base->dead) {
		(void)!link_write(&base->link, no_http2, sizeof no_http2 - 1);
		base->dead = true;
	}
	if (connection->session != NULL && speaks && !base->dead) {
		write_all(connection);
		if (!has_unread(connection) && (connection->failed || session_is_over(connection)))
			base->dead = true;
	}
	bool out = has_unread(connection);
	if (base->dead)
		session_close(connection);
	else
		link_connection_watch(base, !out && !connection->failed, out);
	return connection->call_count > 0;
}

/* Calls without an end are ended. */
void grpc_connection_leave(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	if (connection->session == NULL)
		return;
	connection->leaving = true;
	session_leave(connection);
	for (struct grpc_call *call = connection->calls; call != NULL; call = call->next)
		if (!call->closed && call->method != NULL && call->method->streams)
			call_finish(call, GRPC_UNAVAILABLE, "weir ends");
}

/* ---- time ---- */

static bool call_stalls(const struct grpc_call *call, int64_t now_ms, int64_t stall_ms)
{
	bool streams = call->method != NULL && call->method->streams;
	int64_t since_ms = streams ? call->partial_ms : call->began_ms;
	bool comes_late = !call->ended && since_ms != 0 && now_ms - since_ms > stall_ms;
	bool read_late = call->finished && now_ms - call->began_ms > stall_ms;
	bool is_not_read = call->out.length > call->sent && !call->finished && now_ms - call->read_ms > stall_ms;
	return !call->closed && (comes_late || read_late || is_not_read);
}

static void look_at_calls(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	for (struct grpc_call *call = connection->calls, *next; call != NULL; call = next) {
		next = call->next;
		if (call_stalls(call, server->base.now_ms, server->base.options.stall_ms)) {
			weir_counter_add(&server->base.figures.stalled, 1);
			session_reset(call);
		} else if (!call->closed && !call->finished && call->method != NULL && call->method->look != NULL) {
			call->method->look(call);
		}
	}
}

void grpc_connection_look(struct link_connection *base)
{
	struct grpc_connection *connection = (struct grpc_connection *)base;
	bool late = link_connection_is_late(base, has_unread(connection));
	bool begins_late = base->server->now_ms - base->opened_ms > connection->server->options.greeting_ms;
	connection->frames = 0;
	if (base->dead)
		return;
	if (late || (!connection->greeted && begins_late)) {
		link_connection_stall(base);
		return;
	}
	if (!connection->authorised && begins_late && !connection->failed) {
		weir_counter_add(&base->server->figures.stalled, 1);
		session_leave(connection); /* it is told, so that a client of ours that is idle connects anew */
		connection->failed = true;
		link_connection_touch(base);
		return;
	}
	look_at_calls(connection);
}
