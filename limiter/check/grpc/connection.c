/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's socket, what is to be written to it, and its time.
 *
 * While something could not be written, nothing is read: what it would ask for could not be answered either.
 */
#include "limiter/check/grpc/internal.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <stdlib.h>

/* SETTINGS without any; GOAWAY behind no stream, INADEQUATE_SECURITY. */
static const char no_tls[] = "\0\0\0\4\0\0\0\0\0"
							 "\0\0\x1c\7\0\0\0\0\0\0\0\0\0\0\0\0\xc"
							 "this port speaks TLS";
static const char no_http2[] =
	"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: 169\r\nConnection: close\r\n\r\n"
	"{\"title\": \"This port speaks gRPC\", \"status\": 400, \"detail\": \"that is HTTP/2 from the first byte: HTTP/1.1 is asked at listen.check_http, Redis' protocol at listen.resp\"}";

enum { READ_BYTES = 64 << 10, READS_A_TURN = 4 };

void grpc_connection_touch(struct grpc_connection *connection)
{
	if (connection->touched)
		return;
	connection->touched = true;
	connection->next_touched = connection->server->touched;
	connection->server->touched = connection;
}

struct grpc_connection *grpc_connection_open(struct grpc_server *server, int fd, struct weir_http_tls_server *tls)
{
	struct grpc_connection *connection = weir_alloc(1, sizeof *connection);
	*connection = (struct grpc_connection){
		.server = server,
		.link = link_open(fd, tls, "h2", (struct weir_span){.at = no_tls, .length = sizeof no_tls - 1}),
		.next = server->connections,
		.watched_in = true,
		.authorised = server->options.password == NULL,
		.opened_ms = server->now_ms,
		.written_ms = server->now_ms};
	if (server->connections != NULL)
		server->connections->previous = connection;
	server->connections = connection;
	server->connection_count++;
	weir_counter_set(&server->figures.connections, server->connection_count);
	session_open(connection);
	if (!link_loop_add(&server->loop, &connection->link, connection))
		connection->dead = true;
	return connection;
}

static void give_out(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	if (connection->out == NULL)
		return;
	server->buffered -= OUT_BYTES;
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
	server->buffered += OUT_BYTES;
}

void grpc_connection_free(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	connection->touched = true; /* nobody looks at it again */
	session_close(connection);
	link_close(&connection->link);
	give_out(connection);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	server->connection_count--;
	weir_counter_set(&server->figures.connections, server->connection_count);
	free(connection);
}

void grpc_connection_read(struct grpc_connection *connection)
{
	struct grpc_server *server = connection->server;
	for (int i = 0; i < READS_A_TURN && !connection->dead; i++) {
		ssize_t got = link_read(&connection->link, server->room, READ_BYTES);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
			connection->dead = true;
			refusals_tell_no_tls(server->options.refusals, REFUSAL_GRPC, &connection->link);
			return;
		}
		if (got < 0)
			return;
		connection->spoke = true;
		if (!session_receive(connection, server->room, (size_t)got)) {
			connection->failed = true;
			return;
		}
		if (got < READ_BYTES && !link_pending(&connection->link))
			return;
	}
	if (link_pending(&connection->link)) { /* the next turn goes on */
		connection->pending = true;
		grpc_connection_touch(connection);
	}
}

/* @return false: it could not be written whole */
static bool write_some(struct grpc_connection *connection)
{
	while (connection->sent < connection->out_length) {
		ssize_t put = link_write(&connection->link, connection->out + connection->sent,
		                         connection->out_length - connection->sent);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			connection->dead = true;
		if (put <= 0)
			return false;
		connection->sent += (size_t)put;
		connection->written_ms = connection->server->now_ms;
	}
	connection->out_length = connection->sent = 0;
	connection->written_ms = connection->server->now_ms;
	return true;
}

static void write_all(struct grpc_connection *connection)
{
	bool more = true;
	while (more && !connection->dead) {
		take_out(connection);
		if (!write_some(connection))
			return;
		if (!session_send(connection))
			connection->dead = true;
		more = connection->out_length > 0;
	}
	give_out(connection);
}

static void watch(struct grpc_connection *connection)
{
	bool writes = connection->out_length > connection->sent;
	bool in = !writes && !connection->failed, out = writes || link_wants_write(&connection->link);
	if (in == connection->watched_in && out == connection->watched_out)
		return;
	link_loop_watch(&connection->server->loop, &connection->link, connection, in, out);
	connection->watched_in = in;
	connection->watched_out = out;
}

void grpc_connection_finish(struct grpc_connection *connection)
{
	bool speaks = connection->spoke || connection->failed || connection->leaving;
	if (connection->strange && !connection->dead) {
		(void)!link_write(&connection->link, no_http2, sizeof no_http2 - 1);
		connection->dead = true;
	}
	if (connection->session != NULL && speaks && !connection->dead) {
		write_all(connection);
		bool written = connection->out_length == connection->sent;
		if (written && (connection->failed || session_is_over(connection)))
			connection->dead = true;
	}
	if (!connection->dead) {
		watch(connection);
		return;
	}
	session_close(connection);
	link_close(&connection->link);
	if (connection->call_count > 0 || connection->touched)
		return; /* whoever judges may still look at its keys; or the next turn frees it */
	grpc_connection_free(connection);
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
		if (call_stalls(call, server->now_ms, server->options.stall_ms)) {
			weir_counter_add(&server->figures.stalled, 1);
			session_reset(call);
		} else if (!call->closed && !call->finished && call->method != NULL && call->method->look != NULL) {
			call->method->look(call);
		}
	}
}

void grpc_connection_look(struct grpc_connection *connection)
{
	const struct grpc_options *options = &connection->server->options;
	int64_t now_ms = connection->server->now_ms;
	bool read_late = connection->out_length > connection->sent && now_ms - connection->written_ms > options->stall_ms;
	bool written_late = connection->partial_ms != 0 && now_ms - connection->partial_ms > options->stall_ms;
	bool greets_late = !connection->greeted && now_ms - connection->opened_ms > options->greeting_ms;
	bool logs_in_late = !connection->authorised && now_ms - connection->opened_ms > options->greeting_ms;
	connection->frames = 0;
	if (connection->dead)
		return;
	if (read_late || written_late || greets_late) {
		weir_counter_add(&connection->server->figures.stalled, 1);
		connection->dead = true;
		grpc_connection_touch(connection);
		return;
	}
	if (logs_in_late && !connection->failed) { /* it is told, so that a client of ours that is idle connects anew */
		weir_counter_add(&connection->server->figures.stalled, 1);
		session_leave(connection);
		connection->failed = true;
		grpc_connection_touch(connection);
		return;
	}
	look_at_calls(connection);
}
