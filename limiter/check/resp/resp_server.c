/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was read is run, what was gathered is judged, what was answered is written. */
#include "limiter/check/resp/resp_server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "limiter/check/resp/internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTED_A_TURN = 64, LOOK_MS = 1000, ID_BYTES = 20 };

static const char too_many[] = "-ERR max number of clients reached: raise checks.connections\r\n";

/* The servers of a process, one a thread, are one node: they have one id. */
static void make_id(struct resp_server *server)
{
	uint8_t hash[16];
	char process[HOST_NAME_MAX + 32];
	int length = snprintf(process, sizeof process, "%d ", (int)getpid());
	(void)gethostname(process + length, sizeof process - (size_t)length - 1);
	process[sizeof process - 1] = '\0';
	weir_hash128(process, strlen(process), hash);
	for (size_t i = 0; i < ID_BYTES; i++)
		snprintf(server->id + 2 * i, 3, "%02x", hash[i % sizeof hash]);
}

/* Ticks while there are connections, or listeners that wait for descriptors. */
static void set_timer(struct resp_server *server)
{
	bool ticks = server->connections != NULL || link_listeners_wait(&server->loop.listeners);
	link_loop_tick(&server->loop, ticks ? LOOK_MS : 0);
}

struct resp_server *resp_server_new(const struct resp_options *options)
{
	struct resp_server *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	link_loop_open(&server->loop);
	server->slots = weir_alloc(SLOTS_MAX, sizeof *server->slots);
	server->counts = check_counts_new();
	server->started_ms = server->now_ms = weir_monotonic_ms();
	if (server->options.connections == 0)
		server->options.connections = RESP_CONNECTIONS_DEFAULT;
	if (server->options.stall_ms == 0)
		server->options.stall_ms = RESP_STALL_DEFAULT_MS;
	if (server->options.login_ms == 0)
		server->options.login_ms = RESP_LOGIN_DEFAULT_MS;
	make_id(server);
	return server;
}

void resp_server_stop(struct resp_server *server)
{
	server->stopping = true;
	link_listeners_close(&server->loop.listeners);
	for (struct connection *at = server->connections; at != NULL; at = at->next)
		connection_touch(at);
	link_loop_wake(&server->loop);
}

void resp_server_free(struct resp_server *server)
{
	if (server == NULL)
		return;
	while (server->connections != NULL)
		connection_free(server->connections);
	while (server->spare_count > 0)
		free(server->spare[--server->spare_count]);
	link_loop_close(&server->loop);
	free(server->slots);
	check_counts_free(server->counts);
	check_request_free(server->options.exempt);
	free(server);
}

enum weir_status resp_server_listen(struct resp_server *server, const char *host, uint16_t port, bool shared,
                                    struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	return link_listen(&server->loop.listeners, host, port, shared, tls, bound, error);
}

int resp_server_descriptor(const struct resp_server *server)
{
	return server->loop.epoll;
}

const struct check_counts *resp_server_counts(const struct resp_server *server)
{
	return server->counts;
}

const struct resp_figures *resp_server_figures(const struct resp_server *server)
{
	return &server->figures;
}

static void accept_some(struct resp_server *server, struct link_listener *listener)
{
	for (int i = 0; i < ACCEPTED_A_TURN; i++) {
		int fd = link_accept(&server->loop.listeners, listener);
		if (fd < 0)
			return;
		if (server->connection_count < server->options.connections) {
			weir_counter_add(&server->figures.accepted, 1);
			connection_touch(connection_open(server, fd, listener->tls));
			continue;
		}
		weir_counter_add(&server->figures.refused, 1);
		link_refuse(listener, fd, too_many, sizeof too_many - 1);
	}
}

static void look_at_all(struct resp_server *server)
{
	for (struct connection *at = server->connections; at != NULL; at = at->next)
		connection_look(at);
	link_listeners_look(&server->loop.listeners);
}

static void take_event(struct resp_server *server, const struct epoll_event *event)
{
	struct connection *connection = event->data.ptr;
	switch (link_event_of(&server->loop, event)) {
	case LINK_EVENT_NONE: return;
	case LINK_EVENT_TIME: look_at_all(server); return;
	case LINK_EVENT_LISTENER: accept_some(server, link_listener_of(event->data.u64)); return;
	case LINK_EVENT_CONNECTION: break;
	}
	connection_touch(connection);
	if (link_event_ends(event, connection->watched_in))
		connection->dead = true;
	else if (connection->watched_in)
		connection_read(connection);
}

/* Connections that wait for a slot of which others have all. */
static void wake_starved(struct resp_server *server)
{
	if (!server->starved || server->free_slots == NULL)
		return;
	server->starved = false;
	for (struct connection *at = server->connections; at != NULL; at = at->next)
		if (at->stop == STOP_ANSWERS && at->slot_count == 0)
			connection_touch(at);
}

static void run_touched(struct resp_server *server)
{
	for (struct connection *at = server->touched; at != NULL; at = at->next_touched)
		connection_run(at);
	server_ask(server);
	struct connection *touched = server->touched;
	server->touched = NULL;
	for (struct connection *at = touched; at != NULL; at = at->next_touched)
		at->touched = false;
	for (struct connection *at = touched, *next; at != NULL; at = next) {
		next = at->next_touched;
		connection_finish(at);
	}
}

void resp_server_turn(struct resp_server *server, int timeout_ms)
{
	struct epoll_event events[LINK_EVENTS];
	wake_starved(server);
	int count = link_loop_wait(&server->loop, events, server->touched != NULL ? 0 : timeout_ms);
	server->now_ms = weir_monotonic_ms();
	for (int i = 0; i < count; i++)
		take_event(server, &events[i]);
	run_touched(server);
	weir_counter_set(&server->figures.buffered_bytes, server->buffered);
	set_timer(server);
	if (server->touched != NULL)
		link_loop_wake(&server->loop);
}
