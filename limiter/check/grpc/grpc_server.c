/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was gathered is judged, what was answered is written. */
#include "limiter/check/grpc/grpc_server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "limiter/check/grpc/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { ACCEPTED_A_TURN = 64, LOOK_MS = 1000, DEADLINE_MS = 10, ROOM_BYTES = 64 << 10 };

/* SETTINGS without any; GOAWAY behind no stream, ENHANCE_YOUR_CALM. */
static const char too_many[] = "\0\0\0\4\0\0\0\0\0"
							   "\0\0\x36\7\0\0\0\0\0\0\0\0\0\0\0\0\xb"
							   "too many connections: raise checks.connections";

struct grpc_server *grpc_server_new(const struct grpc_options *options)
{
	struct grpc_server *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	server->counts = check_counts_new();
	link_loop_open(&server->loop);
	server->calls = weir_alloc(GRPC_CALLS_MAX, sizeof *server->calls);
	server->room = weir_alloc(ROOM_BYTES, 1);
	server->now_ms = weir_monotonic_ms();
	if (server->options.connections == 0)
		server->options.connections = GRPC_CONNECTIONS_DEFAULT;
	if (server->options.stall_ms == 0)
		server->options.stall_ms = GRPC_STALL_DEFAULT_MS;
	if (server->options.greeting_ms == 0)
		server->options.greeting_ms = GRPC_GREETING_DEFAULT_MS;
	session_prepare(server);
	return server;
}

void grpc_server_free(struct grpc_server *server)
{
	if (server == NULL)
		return;
	while (server->connections != NULL)
		grpc_connection_free(server->connections);
	calls_free(server);
	check_counts_free(server->counts);
	session_unprepare(server);
	link_loop_close(&server->loop);
	free(server->spare);
	free(server->room);
	free(server);
}

enum weir_status grpc_server_listen(struct grpc_server *server, const char *host, uint16_t port, bool shared,
                                    struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	return link_listen(&server->loop.listeners, host, port, shared, tls, bound, error);
}

int grpc_server_descriptor(const struct grpc_server *server)
{
	return server->loop.epoll;
}

const struct check_counts *grpc_server_counts(const struct grpc_server *server)
{
	return server->counts;
}

const struct grpc_figures *grpc_server_figures(const struct grpc_server *server)
{
	return &server->figures;
}

/* Calls without an end are ended. */
static void end_streams(struct grpc_connection *connection)
{
	for (struct grpc_call *call = connection->calls; call != NULL; call = call->next)
		if (!call->closed && call->method != NULL && call->method->streams)
			call_finish(call, GRPC_UNAVAILABLE, "weir ends");
}

void grpc_server_stop(struct grpc_server *server)
{
	server->stopping = true;
	link_listeners_close(&server->loop.listeners);
	for (struct grpc_connection *at = server->connections; at != NULL; at = at->next) {
		grpc_connection_touch(at);
		if (at->session == NULL)
			continue;
		at->leaving = true;
		session_leave(at);
		end_streams(at);
	}
	link_loop_wake(&server->loop);
}

/* ---- asks ---- */

void grpc_server_ask(struct grpc_server *server)
{
	struct check_answer answers[CHECK_GROUP_MAX];
	uint32_t count = server->ask_count;
	if (count == 0)
		return;
	server->ask_count = 0;
	server->options.judge.ask(server->options.judge.context, server->asks, count, answers);
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome == CHECK_LATER)
			call_wait(server->asked[i].call);
		else
			call_take_answer(server->asked[i].call, server->asked[i].index, &answers[i]);
}

void grpc_server_answered(struct grpc_server *server, const struct check_answer *answer)
{
	uint32_t index;
	struct grpc_call *call = call_of_ticket(server, answer->ticket, &index);
	assert(call != NULL);
	if (call == NULL)
		return;
	call_take_answer(call, index, answer);
	link_loop_wake(&server->loop);
}

/* ---- the turn ---- */

static void accept_some(struct grpc_server *server, struct link_listener *listener)
{
	for (int i = 0; i < ACCEPTED_A_TURN; i++) {
		int fd = link_accept(&server->loop.listeners, listener);
		if (fd < 0)
			return;
		if (server->connection_count < server->options.connections) {
			weir_counter_add(&server->figures.accepted, 1);
			grpc_connection_touch(grpc_connection_open(server, fd, listener->tls));
			continue;
		}
		weir_counter_add(&server->figures.refused, 1);
		link_refuse(listener, fd, too_many, sizeof too_many - 1);
	}
}

/* Ticks while there are connections, or listeners that wait for descriptors; faster while deadlines are waited for. */
static void set_timer(struct grpc_server *server)
{
	int64_t tick_ms = 0;
	if (server->waiting != NULL)
		tick_ms = DEADLINE_MS;
	else if (server->connections != NULL || link_listeners_wait(&server->loop.listeners))
		tick_ms = LOOK_MS;
	link_loop_tick(&server->loop, tick_ms);
}

/* Looks at all connections, once in a while. Not by the timer alone, as that is set anew whenever calls begin to wait. */
static void look(struct grpc_server *server)
{
	if (server->now_ms < server->look_ms)
		return;
	server->look_ms = server->now_ms + LOOK_MS;
	grpc_server_ask(server); /* so that no call ends while calls are gone through */
	for (struct grpc_connection *at = server->connections; at != NULL; at = at->next)
		grpc_connection_look(at);
	link_listeners_look(&server->loop.listeners);
}

static void take_event(struct grpc_server *server, const struct epoll_event *event)
{
	struct grpc_connection *connection = event->data.ptr;
	switch (link_event_of(&server->loop, event)) {
	case LINK_EVENT_NONE: return;
	case LINK_EVENT_TIME: calls_expire(server); return;
	case LINK_EVENT_LISTENER: accept_some(server, link_listener_of(event->data.u64)); return;
	case LINK_EVENT_CONNECTION: break;
	}
	grpc_connection_touch(connection);
	if (link_event_ends(event, connection->watched_in))
		connection->dead = true;
	else if (connection->watched_in)
		grpc_connection_read(connection);
}

/* Reads on where bytes are left that no epoll tells of. */
static void read_pending(struct grpc_server *server)
{
	for (struct grpc_connection *at = server->touched; at != NULL; at = at->next_touched)
		if (at->pending && !at->dead) {
			at->pending = false;
			grpc_connection_read(at);
		}
}

static void finish_touched(struct grpc_server *server)
{
	struct grpc_connection *touched = server->touched;
	server->touched = NULL;
	for (struct grpc_connection *at = touched; at != NULL; at = at->next_touched)
		at->touched = false;
	for (struct grpc_connection *at = touched, *next; at != NULL; at = next) {
		next = at->next_touched;
		grpc_connection_finish(at);
	}
}

void grpc_server_turn(struct grpc_server *server, int timeout_ms)
{
	struct epoll_event events[LINK_EVENTS];
	int count = link_loop_wait(&server->loop, events, server->touched != NULL ? 0 : timeout_ms);
	server->now_ms = weir_monotonic_ms();
	read_pending(server);
	for (int i = 0; i < count; i++)
		take_event(server, &events[i]);
	look(server);
	grpc_server_ask(server);
	finish_touched(server);
	weir_counter_set(&server->figures.buffered_bytes, server->buffered);
	set_timer(server);
	if (server->touched != NULL)
		link_loop_wake(&server->loop);
}
