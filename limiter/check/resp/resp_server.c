/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was read is run, what was gathered is judged, what was answered is written. */
#include "limiter/check/resp/resp_server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "common/http/listen_socket.h"
#include "limiter/check/resp/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, ACCEPTED_A_TURN = 64, LOOK_MS = 1000, ID_BYTES = 20 };

static const char too_many[] = "-ERR max number of clients reached: raise \"connections\"\r\n";

/* This server by itself: an id that no other has, and all slots. */
static void stand_alone(struct resp_server *server)
{
	unsigned char id[ID_BYTES];
	if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
		memset(id, 0, sizeof id);
	for (size_t i = 0; i < sizeof id; i++)
		snprintf(server->alone.id + 2 * i, 3, "%02x", id[i]);
	server->alone.last_slot = WEIR_SLOTS - 1;
	server->options.nodes = (struct resp_nodes){.at = &server->alone, .count = 1};
}

struct resp_server *resp_server_new(const struct resp_options *options)
{
	struct resp_server *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		abort(); /* out of descriptors before anything is served */
	server->slots = weir_alloc(SLOTS_MAX, sizeof *server->slots);
	server->started_ms = server->now_ms = server->looked_ms = weir_monotonic_ms();
	if (server->options.connections == 0)
		server->options.connections = RESP_CONNECTIONS_DEFAULT;
	if (server->options.nodes.count == 0)
		stand_alone(server);
	return server;
}

void resp_server_free(struct resp_server *server)
{
	if (server == NULL)
		return;
	while (server->connections != NULL)
		connection_free(server->connections);
	for (struct listener *listener = server->listeners, *next; listener != NULL; listener = next) {
		next = listener->next;
		close(listener->fd);
		free(listener);
	}
	while (server->spare_count > 0)
		free(server->spare[--server->spare_count]);
	close(server->epoll);
	free(server->slots);
	free(server);
}

/* Its lowest bit tells a listener from a connection. */
static struct epoll_event event_of(struct listener *listener)
{
	return (struct epoll_event){.events = EPOLLIN, .data.u64 = (uintptr_t)listener | 1};
}

enum weir_status resp_server_listen(struct resp_server *server, const char *host, uint16_t port, bool shared,
                                    struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	int fd;
	enum weir_status status = weir_listen_socket(host, port, shared, &fd, bound, error);
	if (status != WEIR_OK)
		return status;
	struct listener *listener = weir_alloc(1, sizeof *listener);
	*listener = (struct listener){.fd = fd, .tls = tls, .next = server->listeners};
	struct epoll_event event = event_of(listener);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		status = weir_fail(error, WEIR_IO, "cannot wait for connections: %s", strerror(errno));
		close(fd);
		free(listener);
		return status;
	}
	server->listeners = listener;
	return WEIR_OK;
}

int resp_server_descriptor(const struct resp_server *server)
{
	return server->epoll;
}

bool resp_server_is_busy(const struct resp_server *server)
{
	return server->touched != NULL;
}

const struct resp_figures *resp_server_figures(const struct resp_server *server)
{
	return &server->figures;
}

/* Out of descriptors or memory: connections wait in the kernel until some have ended. */
static void pause_listener(struct resp_server *server, struct listener *listener)
{
	listener->paused = epoll_ctl(server->epoll, EPOLL_CTL_DEL, listener->fd, NULL) == 0;
}

static void accept_some(struct resp_server *server, struct listener *listener)
{
	for (int i = 0; i < ACCEPTED_A_TURN; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				pause_listener(server, listener);
			return;
		}
		if (server->connection_count < server->options.connections) {
			weir_counter_add(&server->figures.accepted, 1);
			connection_touch(connection_open(server, fd, listener->tls));
			continue;
		}
		weir_counter_add(&server->figures.refused, 1);
		if (listener->tls == NULL)
			(void)!send(fd, too_many, sizeof too_many - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
}

static void take_event(struct resp_server *server, const struct epoll_event *event)
{
	if ((event->data.u64 & 1) != 0) {
		accept_some(server, (struct listener *)(uintptr_t)(event->data.u64 & ~UINT64_C(1)));
		return;
	}
	struct connection *connection = event->data.ptr;
	connection_touch(connection);
	if ((event->events & EPOLLERR) != 0 || ((event->events & EPOLLHUP) != 0 && !connection->watched_in))
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

static void look_at_all(struct resp_server *server)
{
	server->looked_ms = server->now_ms;
	for (struct connection *at = server->connections; at != NULL; at = at->next)
		connection_look(at);
	for (struct listener *at = server->listeners; at != NULL; at = at->next) {
		struct epoll_event event = event_of(at);
		if (at->paused)
			at->paused = epoll_ctl(server->epoll, EPOLL_CTL_ADD, at->fd, &event) != 0;
		if (at->tls != NULL)
			weir_http_tls_look(at->tls);
	}
}

void resp_server_turn(struct resp_server *server, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	wake_starved(server);
	if (server->touched != NULL)
		timeout_ms = 0;
	else if (server->connections != NULL && (timeout_ms < 0 || timeout_ms > LOOK_MS))
		timeout_ms = LOOK_MS; /* to end those who are too slow */
	int count = epoll_wait(server->epoll, events, EVENTS, timeout_ms);
	server->now_ms = weir_monotonic_ms();
	for (int i = 0; i < count; i++)
		take_event(server, &events[i]);
	run_touched(server);
	weir_counter_set(&server->figures.buffered_bytes, server->buffered);
	if (server->now_ms - server->looked_ms >= LOOK_MS)
		look_at_all(server);
}
