/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was read is begun, what was gathered is judged, what was answered is written. */
#include "limiter/check/http/check_http.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "limiter/check/http/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum { REQUESTS_A_TURN = 16, STALL_MS = 10000 };

static const char no_tls[] =
	"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: 74\r\nConnection: close\r\n\r\n"
	"{\"title\": \"This port speaks TLS\", \"status\": 400, \"detail\": \"ask by https\"}";
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
	                       .durable = server->base.options.durable || ask->durable,
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
	link_server_judge(&server->base, server->asks, count, answers);
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome != CHECK_LATER)
			exchange_take_answer(server->asked[i].connection, server->asked[i].index, &answers[i]);
}

static void answered(struct link_server *base, const struct check_answer *answer)
{
	struct check_http *server = (struct check_http *)base;
	uint32_t index = (uint32_t)(answer->ticket & ((1 << ASK_BITS) - 1));
	uint32_t number = (uint32_t)(answer->ticket >> ASK_BITS & ((1 << PLACE_BITS) - 1));
	assert(number < server->places_used);
	const struct place *place = &server->places[number];
	assert(place->connection != NULL && place->turn == answer->ticket >> (ASK_BITS + PLACE_BITS));
	if (place->connection == NULL)
		return;
	exchange_take_answer(place->connection, index, answer);
	link_connection_touch(&place->connection->base);
}

/* ---- the turn ---- */

/* Requests that wait behind others on their connections get their turn, but not without end. */
static void run_touched(struct check_http *server)
{
	bool more = true;
	for (int i = 0; i < REQUESTS_A_TURN && more; i++) {
		more = false;
		for (struct link_connection *at = server->base.touched; at != NULL; at = at->next_touched)
			more |= http_connection_run((struct http_connection *)at);
		http_ask_gathered(server);
	}
}

static void turn(struct link_server *base, int timeout_ms)
{
	link_server_wait(base, timeout_ms);
	link_server_receive(base);
	run_touched((struct check_http *)base);
	link_server_finish(base);
	link_server_rest(base, 0);
}

/* ---- the server ---- */

static void deinit(struct link_server *base)
{
	struct check_http *server = (struct check_http *)base;
	while (server->spare_count > 0)
		free(server->spare[--server->spare_count]);
	check_request_free(server->options.request);
	free(server->places);
}

static const struct link_protocol protocol = {
	.surface = REFUSAL_HTTP,
	.alpn = "http/1.1",
	.no_tls = {.at = no_tls, .length = sizeof no_tls - 1},
	.too_many = {.at = too_many, .length = sizeof too_many - 1},
	.connection_bytes = sizeof(struct http_connection),
	.stall_ms = STALL_MS,
	.kept_max_bytes = CHECK_HTTP_BUFFERED_MAX_BYTES,
	.open = http_connection_open,
	.read = http_connection_read,
	.finish = http_connection_finish,
	.look = http_connection_look,
	.close = http_connection_close,
	.turn = turn,
	.tick = link_server_look,
	.answered = answered,
	.deinit = deinit,
};

struct link_server *check_http_new(const struct link_options *common, const struct check_http_options *options)
{
	struct check_http *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	link_server_init(&server->base, &protocol, common);
	return &server->base;
}
