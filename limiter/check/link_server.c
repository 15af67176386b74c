/* SPDX-License-Identifier: Apache-2.0 */
/* The turn and the life of connections: which there are, which are touched in a turn, when they end and are freed. */
#include "limiter/check/link_server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ACCEPTED_A_TURN = 64, LOOK_MS = 1000 };

/* ---- connections ---- */

static void count_connections(struct link_server *server, uint32_t count)
{
	server->connection_count = count;
	weir_counter_set(&server->figures.connections, count);
}

static void open_connection(struct link_server *server, int fd, struct weir_http_tls_server *tls)
{
	const struct link_protocol *protocol = server->protocol;
	struct link_connection *connection = weir_alloc(1, protocol->connection_bytes);
	*connection = (struct link_connection){.server = server,
	                                       .link = link_open(fd, tls, protocol->alpn, protocol->no_tls),
	                                       .next = server->connections,
	                                       .watched_in = true,
	                                       .opened_ms = server->now_ms,
	                                       .written_ms = server->now_ms};
	if (server->connections != NULL)
		server->connections->previous = connection;
	server->connections = connection;
	count_connections(server, server->connection_count + 1);
	protocol->open(connection);
	if (!link_loop_add(&server->loop, &connection->link, connection))
		connection->dead = true;
	link_connection_touch(connection);
}

static void free_connection(struct link_connection *connection)
{
	struct link_server *server = connection->server;
	connection->touched = true; /* nobody looks at it again */
	server->protocol->close(connection);
	link_close(&connection->link);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	server->buffered -= connection->counted;
	count_connections(server, server->connection_count - 1);
	free(connection);
}

static void finish(struct link_connection *connection)
{
	bool held = connection->server->protocol->finish(connection);
	if (!connection->dead)
		return;
	link_close(&connection->link);
	if (held || connection->touched)
		return; /* whoever judges may still look at its keys; or the next turn frees it */
	free_connection(connection);
}

ssize_t link_connection_read(struct link_connection *connection, void *room, size_t bytes)
{
	const struct link_server *server = connection->server;
	ssize_t got = link_read(&connection->link, room, bytes);
	connection->half_closed = got == 0;
	if (got < 0 && errno != EAGAIN && errno != EINTR) {
		connection->dead = true;
		refusals_tell_no_tls(server->options.refusals, server->protocol->surface, &connection->link);
	}
	return got;
}

bool link_connection_write(struct link_connection *connection, const char *bytes, size_t length, size_t *sent)
{
	while (*sent < length) {
		ssize_t put = link_write(&connection->link, bytes + *sent, length - *sent);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			connection->dead = true;
		if (put <= 0)
			return false;
		*sent += (size_t)put;
		connection->written_ms = connection->server->now_ms;
		if (*sent < length && connection->link.tls == NULL)
			return false; /* the kernel has no more room */
	}
	connection->written_ms = connection->server->now_ms;
	return true;
}

void link_connection_watch(struct link_connection *connection, bool in, bool out)
{
	out |= in && link_wants_write(&connection->link); /* else nobody would have it go on */
	if (in == connection->watched_in && out == connection->watched_out)
		return;
	link_loop_watch(&connection->server->loop, &connection->link, connection, in, out);
	connection->watched_in = in;
	connection->watched_out = out;
}

void link_connection_keeps(struct link_connection *connection, size_t bytes, size_t free_bytes)
{
	struct link_server *server = connection->server;
	server->buffered += bytes - connection->counted;
	connection->counted = bytes;
	if (server->buffered > server->protocol->kept_max_bytes && bytes > free_bytes && !connection->dead) {
		connection->dead = true;
		weir_counter_add(&server->figures.stalled, 1);
	}
}

bool link_connection_is_late(const struct link_connection *connection, bool unread)
{
	int64_t now_ms = connection->server->now_ms, stall_ms = connection->server->options.stall_ms;
	return (unread && now_ms - connection->written_ms > stall_ms) ||
	       (connection->partial_ms != 0 && now_ms - connection->partial_ms > stall_ms);
}

void link_connection_stall(struct link_connection *connection)
{
	weir_counter_add(&connection->server->figures.stalled, 1);
	connection->dead = true;
	link_connection_touch(connection);
}

void link_connection_refuse(const struct link_connection *connection, enum refusal_reason reason, const char *by,
                            const char *what, const char *detail)
{
	const struct link_server *server = connection->server;
	refusals_tell(server->options.refusals, server->protocol->surface, reason, &connection->link, by, what, detail);
}

/* ---- the turn ---- */

void link_server_wait(struct link_server *server, int timeout_ms)
{
	server->event_count = link_loop_wait(&server->loop, server->events, server->touched != NULL ? 0 : timeout_ms);
	server->now_ms = weir_monotonic_ms();
}

static void accept_some(struct link_server *server, struct link_listener *listener)
{
	const struct weir_span *too_many = &server->protocol->too_many;
	for (int i = 0; i < ACCEPTED_A_TURN; i++) {
		int fd = link_accept(&server->loop.listeners, listener);
		if (fd < 0)
			return;
		if (server->connection_count < server->options.connections) {
			weir_counter_add(&server->figures.accepted, 1);
			open_connection(server, fd, listener->tls);
			continue;
		}
		weir_counter_add(&server->figures.refused, 1);
		link_refuse(listener, fd, too_many->at, too_many->length);
	}
}

static void take_event(struct link_server *server, const struct epoll_event *event)
{
	struct link_connection *connection = event->data.ptr;
	switch (link_event_of(&server->loop, event)) {
	case LINK_EVENT_NONE: return;
	case LINK_EVENT_TIME: server->protocol->tick(server); return;
	case LINK_EVENT_LISTENER: accept_some(server, link_listener_of(event->data.u64)); return;
	case LINK_EVENT_CONNECTION: break;
	}
	link_connection_touch(connection);
	if (link_event_ends(event, connection->watched_in))
		connection->dead = true;
	else if (connection->watched_in)
		server->protocol->read(connection);
}

void link_server_receive(struct link_server *server)
{
	for (int i = 0; i < server->event_count; i++)
		take_event(server, &server->events[i]);
}

void link_server_finish(struct link_server *server)
{
	struct link_connection *touched = server->touched;
	server->touched = NULL;
	for (struct link_connection *at = touched; at != NULL; at = at->next_touched)
		at->touched = false;
	for (struct link_connection *at = touched, *next; at != NULL; at = next) {
		next = at->next_touched;
		finish(at);
	}
}

void link_server_rest(struct link_server *server, int64_t soon_ms)
{
	weir_counter_set(&server->figures.buffered_bytes, server->buffered);
	if (soon_ms == 0 && (server->connections != NULL || link_listeners_wait(&server->loop.listeners)))
		soon_ms = LOOK_MS;
	link_loop_tick(&server->loop, soon_ms);
	if (server->touched != NULL)
		link_loop_wake(&server->loop);
}

void link_server_look(struct link_server *server)
{
	for (struct link_connection *at = server->connections; at != NULL; at = at->next)
		server->protocol->look(at);
	link_listeners_look(&server->loop.listeners);
}

/* ---- the server ---- */

void link_server_init(struct link_server *server, const struct link_protocol *protocol,
                      const struct link_options *options)
{
	server->protocol = protocol;
	server->options = *options;
	if (options->connections == 0)
		server->options.connections = LINK_CONNECTIONS_DEFAULT;
	if (options->stall_ms == 0)
		server->options.stall_ms = protocol->stall_ms;
	server->counts = check_counts_new();
	server->failed = link_loop_open(&server->loop);
	server->now_ms = weir_monotonic_ms();
}

enum weir_status link_server_opened(const struct link_server *server, struct weir_error *error)
{
	return server->failed == 0 ? WEIR_OK
	                           : weir_fail(error, WEIR_IO, "cannot create the file descriptors for checks: %s",
	                                       weir_errno_words(server->failed));
}

enum weir_status link_server_listen(struct link_server *server, const char *host, uint16_t port, bool shared,
                                    struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	enum weir_status status = link_server_opened(server, error);
	return status == WEIR_OK ? link_listen(&server->loop.listeners, host, port, shared, tls, bound, error) : status;
}

void link_server_turn(struct link_server *server, int timeout_ms)
{
	server->protocol->turn(server, timeout_ms);
}

void link_server_answered(struct link_server *server, const struct check_answer *answer)
{
	server->protocol->answered(server, answer);
	link_loop_wake(&server->loop);
}

void link_server_stop(struct link_server *server)
{
	server->stopping = true;
	link_listeners_close(&server->loop.listeners);
	for (struct link_connection *at = server->connections; at != NULL; at = at->next) {
		link_connection_touch(at);
		if (server->protocol->leave != NULL)
			server->protocol->leave(at);
	}
	link_loop_wake(&server->loop);
}

void link_server_end(struct link_server *server)
{
	for (struct link_connection *at = server->connections; at != NULL; at = at->next) {
		at->dead = true;
		link_close(&at->link);
	}
}

void link_server_free(struct link_server *server)
{
	if (server == NULL)
		return;
	for (struct link_connection *at = server->connections, *next; at != NULL; at = next) {
		next = at->next;
		free_connection(at);
	}
	server->protocol->deinit(server);
	check_counts_free(server->counts);
	link_loop_close(&server->loop);
	free(server);
}

static void serve(void *context)
{
	link_server_turn(context, 0);
}

static void answered(void *context, const struct check_answer *answer)
{
	link_server_answered(context, answer);
}

static void stop(void *context)
{
	link_server_stop(context);
}

static void end(void *context)
{
	link_server_end(context);
}

static void free_server(void *context)
{
	link_server_free(context);
}

struct check_surface link_server_surface(struct link_server *server)
{
	return (struct check_surface){.context = server,
	                              .descriptor = server->loop.epoll,
	                              .serve = serve,
	                              .answered = answered,
	                              .stop = stop,
	                              .end = end,
	                              .free = free_server};
}
