/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was read is begun, what was gathered is judged, what was answered is written. */
#include "limiter/check/http/check_http.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "limiter/check/http/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum { ACCEPTED_A_TURN = 64, LOOK_MS = 1000, REQUESTS_A_TURN = 16 };

static const char too_many[] =
	"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: 86\r\n"
	"Connection: close\r\n\r\n{\"title\": \"Too many connections\", \"status\": 503, \"detail\": \"raise checks.connections\"}";

/* A ticket: the turn of a place, its number, and which of the request's asks it is. */
enum { ASK_BITS = 8, PLACE_BITS = 20 };

static_assert(CHECK_HTTP_ASKS_MAX <= 1 << ASK_BITS, "an ask has its number in a ticket");
static_assert(CHECK_HTTP_CONNECTIONS_MAX <= 1 << PLACE_BITS, "so has a connection");

const char *http_date(struct check_http *server)
{
	int64_t now_s = weir_wall_ms() / 1000;
	time_t time = (time_t)now_s;
	struct tm parts;
	if (now_s != server->date_s && gmtime_r(&time, &parts) != NULL &&
	    strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0)
		server->date_s = now_s;
	return server->date;
}

/* Ticks while there are connections, or listeners that wait for descriptors. */
static void set_timer(struct check_http *server)
{
	bool ticks = server->connections != NULL || link_listeners_wait(&server->loop.listeners);
	link_loop_tick(&server->loop, ticks ? LOOK_MS : 0);
}

struct check_http *check_http_new(const struct check_http_options *options)
{
	struct check_http *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	server->counts = check_counts_new();
	link_loop_open(&server->loop);
	server->now_ms = weir_monotonic_ms();
	if (server->options.connections == 0)
		server->options.connections = CHECK_HTTP_CONNECTIONS_DEFAULT;
	if (server->options.stall_ms == 0)
		server->options.stall_ms = CHECK_HTTP_STALL_DEFAULT_MS;
	return server;
}

void check_http_free(struct check_http *server)
{
	if (server == NULL)
		return;
	while (server->connections != NULL)
		http_connection_free(server->connections);
	while (server->spare_count > 0)
		free(server->spare[--server->spare_count]);
	check_request_free(server->options.request);
	check_counts_free(server->counts);
	link_loop_close(&server->loop);
	free(server->places);
	free(server);
}

enum weir_status check_http_listen(struct check_http *server, const char *host, uint16_t port, bool shared,
                                   struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	return link_listen(&server->loop.listeners, host, port, shared, tls, bound, error);
}

int check_http_descriptor(const struct check_http *server)
{
	return server->loop.epoll;
}

const struct check_counts *check_http_counts(const struct check_http *server)
{
	return server->counts;
}

const struct check_http_figures *check_http_figures(const struct check_http *server)
{
	return &server->figures;
}

void check_http_stop(struct check_http *server)
{
	server->stopping = true;
	link_listeners_close(&server->loop.listeners);
	for (struct http_connection *at = server->connections; at != NULL; at = at->next)
		http_connection_touch(at);
	link_loop_wake(&server->loop);
}

/* ---- asks ---- */

static uint64_t ticket_of(const struct check_http *server, const struct http_connection *connection, uint32_t index)
{
	uint64_t turn = server->places[connection->place].turn;
	return (turn << PLACE_BITS | connection->place) << ASK_BITS | index;
}

static void add_ask(struct check_http *server, struct http_connection *connection, uint32_t index)
{
	const struct exchange *exchange = &connection->exchange;
	const struct http_ask *ask = &exchange->asks[index];
	server->asked[server->ask_count].connection = connection;
	server->asked[server->ask_count].index = index;
	server->asks[server->ask_count++] =
		(struct check_ask){.zone = weir_span_of(ask->zone),
	                       .key = {.at = exchange->keys.at + ask->key, .length = ask->key_length},
	                       .cost = ask->cost,
	                       .peek = ask->peek,
	                       .exempt = ask->exempt,
	                       .durable = server->options.durable || ask->durable,
	                       .ticket = ticket_of(server, connection, index)};
}

void exchange_send(struct http_connection *connection)
{
	struct check_http *server = connection->server;
	struct exchange *exchange = &connection->exchange;
	exchange->busy = true;
	exchange->open = exchange->ask_count + 1; /* until all are handed over */
	for (uint32_t i = 0; i < exchange->ask_count; i++) {
		if (server->ask_count == CHECK_GROUP_MAX)
			http_ask_gathered(server);
		add_ask(server, connection, i);
	}
	exchange_take_answer(connection, UINT32_MAX, NULL);
}

void http_ask_gathered(struct check_http *server)
{
	struct check_answer answers[CHECK_GROUP_MAX];
	uint32_t count = server->ask_count;
	if (count == 0)
		return;
	server->ask_count = 0;
	server->options.judge.ask(server->options.judge.context, server->asks, count, answers);
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome != CHECK_LATER)
			exchange_take_answer(server->asked[i].connection, server->asked[i].index, &answers[i]);
}

void check_http_answered(struct check_http *server, const struct check_answer *answer)
{
	uint32_t index = (uint32_t)(answer->ticket & ((1 << ASK_BITS) - 1));
	uint32_t number = (uint32_t)(answer->ticket >> ASK_BITS & ((1 << PLACE_BITS) - 1));
	assert(number < server->places_used);
	const struct place *place = &server->places[number];
	assert(place->connection != NULL && place->turn == answer->ticket >> (ASK_BITS + PLACE_BITS));
	if (place->connection == NULL)
		return;
	exchange_take_answer(place->connection, index, answer);
	http_connection_touch(place->connection);
	link_loop_wake(&server->loop);
}

/* ---- the turn ---- */

static void accept_some(struct check_http *server, struct link_listener *listener)
{
	for (int i = 0; i < ACCEPTED_A_TURN; i++) {
		int fd = link_accept(&server->loop.listeners, listener);
		if (fd < 0)
			return;
		if (server->connection_count < server->options.connections) {
			weir_counter_add(&server->figures.accepted, 1);
			http_connection_touch(http_connection_open(server, fd, listener->tls));
			continue;
		}
		weir_counter_add(&server->figures.refused, 1);
		link_refuse(listener, fd, too_many, sizeof too_many - 1);
	}
}

static void look_at_all(struct check_http *server)
{
	for (struct http_connection *at = server->connections; at != NULL; at = at->next)
		http_connection_look(at);
	link_listeners_look(&server->loop.listeners);
}

static void take_event(struct check_http *server, const struct epoll_event *event)
{
	struct http_connection *connection = event->data.ptr;
	switch (link_event_of(&server->loop, event)) {
	case LINK_EVENT_NONE: return;
	case LINK_EVENT_TIME: look_at_all(server); return;
	case LINK_EVENT_LISTENER: accept_some(server, link_listener_of(event->data.u64)); return;
	case LINK_EVENT_CONNECTION: break;
	}
	http_connection_touch(connection);
	if (link_event_ends(event, connection->watched_in))
		connection->dead = true;
	else if (connection->watched_in)
		http_connection_read(connection);
}

/* Requests that wait behind others on their connections get their turn, but not without end. */
static void run_touched(struct check_http *server)
{
	bool more = true;
	for (int i = 0; i < REQUESTS_A_TURN && more; i++) {
		more = false;
		for (struct http_connection *at = server->touched; at != NULL; at = at->next_touched)
			more |= http_connection_run(at);
		http_ask_gathered(server);
	}
	struct http_connection *touched = server->touched;
	server->touched = NULL;
	for (struct http_connection *at = touched; at != NULL; at = at->next_touched)
		at->touched = false;
	for (struct http_connection *at = touched, *next; at != NULL; at = next) {
		next = at->next_touched;
		http_connection_finish(at);
	}
}

void check_http_turn(struct check_http *server, int timeout_ms)
{
	struct epoll_event events[LINK_EVENTS];
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
