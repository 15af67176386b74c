/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: its head, its messages, what it asks, its answer.
 *
 * Calls are used again, with their buffers. One whose stream has ended stays until all that it asked is answered, as
 * whoever judges looks at its keys.
 */
#include "limiter/check/grpc/internal.h"

#include "common/base/alloc.h"
#include "common/bytes/secret.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

enum {
	ASKS_AT_FIRST = 4,
	FREE_KEPT = 1024, /* free calls that keep their buffers */
	TIMEOUT_DIGITS_MAX = 8,
	TICKET_ASK_BITS = 8,
	TICKET_CALL_BITS = 16,
};

_Static_assert(CALL_ASKS_MAX == 1 << TICKET_ASK_BITS && GRPC_CALLS_MAX == 1 << TICKET_CALL_BITS, "a ticket has room");

/* ---- calls ---- */

static void count_bytes(struct grpc_call *call)
{
	struct grpc_connection *connection = call->connection;
	size_t bytes = call->in.capacity + call->out.capacity + call->keys.capacity + call->asks_room * sizeof *call->asks +
	               call->state_bytes;
	connection->server->base.buffered += bytes - call->counted;
	connection->held += bytes - call->counted;
	call->counted = bytes;
}

bool call_may_keep(const struct grpc_call *call, size_t bytes)
{
	const struct grpc_connection *connection = call->connection;
	return connection->held + bytes <= GRPC_HELD_MAX_BYTES / 2 &&
	       connection->server->base.buffered + bytes <= GRPC_BUFFERED_MAX_BYTES / 2;
}

void call_keeps(struct grpc_call *call, size_t bytes)
{
	call->state_bytes = bytes;
	count_bytes(call);
}

static struct grpc_call *take_call(struct grpc_server *server)
{
	struct grpc_call *call = server->free_calls;
	if (call != NULL) {
		server->free_calls = call->next;
		server->free_count--;
		return call;
	}
	if (server->calls_made == GRPC_CALLS_MAX)
		return NULL;
	call = weir_alloc(1, sizeof *call);
	call->index = server->calls_made;
	return server->calls[server->calls_made++] = call;
}

struct grpc_call *call_open(struct grpc_connection *connection, int32_t stream)
{
	struct grpc_server *server = connection->server;
	struct grpc_call *call = take_call(server);
	if (call == NULL)
		return NULL;
	call->connection = connection;
	call->stream = stream;
	call->began_ms = server->base.now_ms;
	call->authorised = server->options.password == NULL;
	call->previous = NULL;
	call->next = connection->calls;
	if (connection->calls != NULL)
		connection->calls->previous = call;
	connection->calls = call;
	connection->call_count++;
	weir_counter_set(&server->base.figures.in_flight, weir_counter_read(&server->base.figures.in_flight) + 1);
	return call;
}

static void keep(struct weir_text *text, bool any)
{
	weir_text_clear_to(text, any ? CALL_KEPT_BYTES : 0);
}

static void leave_connection(struct grpc_call *call)
{
	struct grpc_connection *connection = call->connection;
	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		connection->calls = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	connection->call_count--;
	if (connection->call_count == 0 && (connection->base.dead || connection->leaving))
		link_connection_touch(&connection->base);
}

static void stop_waiting(struct grpc_call *call)
{
	struct grpc_server *server = call->connection->server;
	if (!call->waits)
		return;
	call->waits = false;
	if (call->waiting_previous != NULL)
		call->waiting_previous->waiting_next = call->waiting_next;
	else
		server->waiting = call->waiting_next;
	if (call->waiting_next != NULL)
		call->waiting_next->waiting_previous = call->waiting_previous;
}

static void release(struct grpc_call *call)
{
	struct grpc_server *server = call->connection->server;
	bool any = server->free_count < FREE_KEPT;
	stop_waiting(call);
	leave_connection(call);
	server->base.buffered -= call->counted;
	call->connection->held -= call->counted;
	keep(&call->in, any);
	keep(&call->out, any);
	keep(&call->keys, any);
	if (!any || call->asks_room > ASKS_AT_FIRST) {
		free(call->asks);
		call->asks = NULL;
		call->asks_room = 0;
	}
	*call = (struct grpc_call){.index = call->index,
	                           .turn = call->turn + 1,
	                           .in = call->in,
	                           .out = call->out,
	                           .keys = call->keys,
	                           .asks = call->asks,
	                           .asks_room = call->asks_room,
	                           .next = server->free_calls};
	server->free_calls = call;
	server->free_count++;
	weir_counter_set(&server->base.figures.in_flight, weir_counter_read(&server->base.figures.in_flight) - 1);
}

void call_close(struct grpc_call *call)
{
	call->closed = true;
	if (call->method != NULL && call->method->closed != NULL)
		call->method->closed(call);
	if (call->open == 0)
		release(call);
}

void calls_free(struct grpc_server *server)
{
	for (uint32_t i = 0; i < server->calls_made; i++) {
		struct grpc_call *call = server->calls[i];
		weir_text_deinit(&call->in);
		weir_text_deinit(&call->out);
		weir_text_deinit(&call->keys);
		free(call->asks);
		free(call);
	}
	free(server->calls);
}

/* ---- its head ---- */

/* "100m": at most eight digits and a unit. @return false: it is none */
static bool read_timeout(struct weir_span value, int64_t *ms)
{
	static const struct {
		char name;
		int64_t ms, parts; /* of a millisecond */
	} units[] = {{'H', 3600000, 1}, {'M', 60000, 1}, {'S', 1000, 1}, {'m', 1, 1}, {'u', 1, 1000}, {'n', 1, 1000000}};
	int64_t number = 0;
	if (value.length < 2 || value.length > TIMEOUT_DIGITS_MAX + 1)
		return false;
	for (uint32_t i = 0; i + 1 < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
		number = number * 10 + (value.at[i] - '0');
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (units[i].name == value.at[value.length - 1]) {
			*ms = (number * units[i].ms + units[i].parts - 1) / units[i].parts;
			return true;
		}
	return false;
}

static bool is_password(struct weir_span value, const char *password)
{
	static const char scheme[] = "bearer ";
	uint32_t at = sizeof scheme - 1;
	return value.length > at && strncasecmp(value.at, scheme, at) == 0 &&
	       weir_secret_is(weir_span_of(password), (struct weir_span){.at = value.at + at, .length = value.length - at});
}

static bool is_grpc(struct weir_span type)
{
	static const char wanted[] = "application/grpc";
	size_t length = sizeof wanted - 1;
	return type.length >= length && strncasecmp(type.at, wanted, length) == 0 &&
	       (type.length == length || type.at[length] == '+' || type.at[length] == ';');
}

#define IS(span, text) ((span).length == sizeof(text) - 1 && memcmp((span).at, text, sizeof(text) - 1) == 0)

void call_header(struct grpc_call *call, struct weir_span name, struct weir_span value)
{
	enum { OVERHEAD_BYTES = 32 /* HTTP/2 counts as many for each field */ };
	int64_t timeout_ms;
	call->header_bytes += name.length + value.length + OVERHEAD_BYTES;
	if (call->header_bytes > GRPC_HEADERS_MAX_BYTES)
		return; /* it is read to its end, and then refused: other calls of the connection need what it defines */
	if (IS(name, ":path")) {
		call->method = method_find(value);
	} else if (IS(name, ":method")) {
		call->is_post = IS(value, "POST");
	} else if (IS(name, "content-type")) {
		call->is_grpc = is_grpc(value);
	} else if (IS(name, "grpc-timeout")) {
		call->bad_timeout = !read_timeout(value, &timeout_ms);
		if (!call->bad_timeout)
			call->deadline_ms = call->began_ms + timeout_ms;
	} else if (IS(name, "authorization") && call->connection->server->options.password != NULL) {
		call->authorised = is_password(value, call->connection->server->options.password);
	}
}

static void refuse_head(struct grpc_call *call)
{
	call->is_post = call->is_grpc = true; /* what would say so may stand behind what was read */
	call_finish(call, GRPC_RESOURCE_EXHAUSTED, "a call's head has at most 16 KiB, 32 bytes for each field among them");
}

static void refuse_login(struct grpc_call *call)
{
	weir_counter_add(&call->connection->server->base.figures.failed_logins, 1);
	call_finish(call, GRPC_UNAUTHENTICATED, "send the password of checks.password as authorization: Bearer PASSWORD");
}

void call_begin(struct grpc_call *call)
{
	struct link_figures *figures = &call->connection->server->base.figures;
	if (call->method != NULL)
		weir_counter_add(&figures->kinds[method_index(call->method)], 1);
	else
		weir_counter_add(&figures->unknown, 1);
	if (call->header_bytes > GRPC_HEADERS_MAX_BYTES)
		refuse_head(call);
	else if (!call->is_post || !call->is_grpc)
		call_finish(call, GRPC_UNIMPLEMENTED, "this port takes gRPC alone");
	else if (!call->authorised)
		refuse_login(call);
	else
		call->connection->authorised = true;
	if (call->finished)
		return;
	if (call->method == NULL)
		call_finish(call, GRPC_UNIMPLEMENTED, "weir has no such method");
	else if (call->bad_timeout)
		call_finish(call, GRPC_INVALID_ARGUMENT, "grpc-timeout is no time");
	else if (call->connection->server->base.stopping)
		call_finish(call, GRPC_UNAVAILABLE, "weir ends");
}

/* ---- its messages ---- */

static const char too_large[] = "a message has at most 256 KiB";

/* @return WEIR_OK: span is a message; WEIR_AGAIN: there is none yet; WEIR_INVALID: the call is finished */
static enum weir_status next_message(struct grpc_call *call, struct weir_span *message)
{
	size_t rest = call->in.length - call->in_start;
	if (rest < MESSAGE_HEAD_BYTES)
		return WEIR_AGAIN;
	const uint8_t *at = (const uint8_t *)call->in.at + call->in_start;
	size_t length = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
	if (at[0] != 0)
		call_finish(call, GRPC_UNIMPLEMENTED, "weir takes no compressed messages");
	else if (length > GRPC_MESSAGE_MAX_BYTES)
		call_finish(call, GRPC_RESOURCE_EXHAUSTED, too_large);
	if (call->finished)
		return WEIR_INVALID;
	if (rest - MESSAGE_HEAD_BYTES < length)
		return WEIR_AGAIN;
	*message = (struct weir_span){.at = (const char *)at + MESSAGE_HEAD_BYTES, .length = (uint32_t)length};
	call->in_start += MESSAGE_HEAD_BYTES + length;
	return WEIR_OK;
}

static void take_messages(struct grpc_call *call)
{
	struct weir_span message;
	bool ended = false;
	while (!call->finished && next_message(call, &message) == WEIR_OK) {
		call->method->message(call, message);
		ended = true;
	}
	size_t rest = call->in.length - call->in_start;
	if (rest > 0)
		memmove(call->in.at, call->in.at + call->in_start, rest);
	call->in.length = rest;
	call->in_start = 0;
	if (rest == 0)
		call->partial_ms = 0;
	else if (ended || call->partial_ms == 0)
		call->partial_ms = call->connection->server->base.now_ms;
}

void call_data(struct grpc_call *call, const char *bytes, size_t length)
{
	const size_t most = GRPC_MESSAGE_MAX_BYTES + MESSAGE_HEAD_BYTES;
	struct weir_span message;
	if (call->finished || call->ended)
		return;
	if (call->connection->held > GRPC_HELD_MAX_BYTES ||
	    call->connection->server->base.buffered > GRPC_BUFFERED_MAX_BYTES) {
		call_finish(call, GRPC_RESOURCE_EXHAUSTED,
		            "calls hold too much: 32 MiB of a connection at most, 256 MiB in all");
		return;
	}
	while (length > 0 && !call->finished) {
		size_t room = most - call->in.length, some = length < room ? length : room;
		weir_text_append(&call->in, bytes, some);
		bytes += some;
		length -= some;
		if (call->method->streams)
			take_messages(call);
		else if (length > 0)
			call_finish(call, GRPC_RESOURCE_EXHAUSTED, too_large);
	}
	if (!call->finished && !call->method->streams && next_message(call, &message) == WEIR_OK)
		call->in_start = 0; /* it is read when all has come */
	count_bytes(call);
}

void call_end(struct grpc_call *call)
{
	struct weir_span message;
	if (call->ended)
		return;
	call->ended = true;
	if (call->finished)
		return;
	if (call->method->streams) {
		if (call->in.length > 0)
			call_finish(call, GRPC_INVALID_ARGUMENT, "the request ended within a message");
		else if (call->method->ended != NULL)
			call->method->ended(call);
		else
			call_finish(call, GRPC_OK, NULL);
		return;
	}
	enum weir_status status = next_message(call, &message);
	if (status == WEIR_AGAIN || (status == WEIR_OK && call->in_start < call->in.length))
		call_finish(call, GRPC_INVALID_ARGUMENT, "the request is not one whole message");
	else if (status == WEIR_OK)
		call->method->message(call, message);
}

/* ---- its answer ---- */

struct weir_text *call_message_open(struct grpc_call *call)
{
	(void)weir_text_reserve(&call->out, MESSAGE_HEAD_BYTES);
	call->message_at = call->out.length;
	call->out.length += MESSAGE_HEAD_BYTES;
	return &call->out;
}

void call_message_close(struct grpc_call *call)
{
	uint8_t *head = (uint8_t *)call->out.at + call->message_at;
	size_t length = call->out.length - call->message_at - MESSAGE_HEAD_BYTES;
	head[0] = 0;
	head[1] = (uint8_t)(length >> 24);
	head[2] = (uint8_t)(length >> 16);
	head[3] = (uint8_t)(length >> 8);
	head[4] = (uint8_t)length;
	if (call->message_at == 0)
		call->read_ms = call->connection->server->base.now_ms;
	count_bytes(call);
	if (call->method->streams)
		session_answer(call);
}

void call_message_drop(struct grpc_call *call)
{
	call->out.length = call->message_at;
}

/* A question that is wrong. Others of which the time is over, or that cannot be judged now, are none. */
static void tell_refusal(const struct grpc_call *call, enum grpc_status status, const char *words)
{
	enum refusal_reason reason = REFUSAL_ASKED;
	switch (status) {
	case GRPC_OK:
	case GRPC_DEADLINE_EXCEEDED:
	case GRPC_UNAVAILABLE: return;
	case GRPC_INVALID_ARGUMENT: break;
	case GRPC_NOT_FOUND:
	case GRPC_UNIMPLEMENTED: reason = REFUSAL_UNKNOWN; break;
	case GRPC_RESOURCE_EXHAUSTED: reason = REFUSAL_PROTOCOL; break;
	case GRPC_UNAUTHENTICATED: reason = REFUSAL_LOGIN; break;
	}
	link_connection_refuse(&call->connection->base, reason, call->method != NULL ? call->method->name : NULL, words,
	                       NULL);
}

void call_finish(struct grpc_call *call, enum grpc_status status, const char *words)
{
	if (call->finished)
		return;
	call->finished = true;
	call->status = status;
	call->words = words;
	tell_refusal(call, status, words);
	call->began_ms = call->connection->server->base.now_ms; /* of being read */
	session_answer(call);
}

/* ---- what it asks ---- */

bool call_ask(struct grpc_call *call, const struct call_ask *ask, const struct weir_zone *zone, struct weir_span key)
{
	if (call->ask_count == CALL_ASKS_MAX)
		return false;
	if (call->ask_count == call->asks_room) {
		call->asks_room = call->asks_room == 0 ? ASKS_AT_FIRST : 2 * call->asks_room;
		call->asks = weir_realloc(call->asks, call->asks_room, sizeof *call->asks);
	}
	struct call_ask *mine = &call->asks[call->ask_count++];
	*mine = *ask;
	mine->key = (uint32_t)call->keys.length;
	mine->key_length = key.length;
	weir_text_append(&call->keys, key.at, key.length);
	weir_text_reserve(&call->keys, 1); /* so that an empty one has an address, too */
	memcpy(mine->zone, zone->name, strlen(zone->name) + 1);
	return true;
}

static void send_ask(struct grpc_call *call, uint32_t index)
{
	struct grpc_server *server = call->connection->server;
	const struct call_ask *mine = &call->asks[index];
	if (server->ask_count == CHECK_GROUP_MAX)
		grpc_server_ask(server);
	uint64_t ticket =
		(uint64_t)call->turn << (TICKET_CALL_BITS + TICKET_ASK_BITS) | (uint64_t)call->index << TICKET_ASK_BITS | index;
	server->asks[server->ask_count] =
		(struct check_ask){.zone = weir_span_of(mine->zone),
	                       .key = {.at = call->keys.at + mine->key, .length = mine->key_length},
	                       .cost = mine->cost,
	                       .peek = mine->peek,
	                       .tries = mine->tries,
	                       .bundle = mine->bundle != 0 ? server->bundles : 0,
	                       .durable = server->base.options.durable,
	                       .ticket = ticket};
	server->asked[server->ask_count].call = call;
	server->asked[server->ask_count++].index = index;
	call->open++;
}

/* A bundle begins: it has a number of its own among all calls', and is judged in one group. */
static void begin_bundle(struct grpc_call *call, uint32_t first)
{
	struct grpc_server *server = call->connection->server;
	uint32_t count = 1;
	while (first + count < call->ask_count && call->asks[first + count].bundle == call->asks[first].bundle)
		count++;
	assert(count <= CHECK_BUNDLE_MAX);
	if (server->ask_count + count > CHECK_GROUP_MAX)
		grpc_server_ask(server);
	if (++server->bundles == 0) /* means: of none */
		server->bundles = 1;
}

/* One of what it waited for has come. */
static void settle(struct grpc_call *call)
{
	if (--call->open > 0)
		return;
	stop_waiting(call);
	if (call->closed)
		release(call);
	else if (!call->finished)
		call->method->answered(call);
}

void call_asks_send(struct grpc_call *call)
{
	call->open++; /* it is not answered before all are asked */
	for (uint32_t i = 0, bundle = 0; i < call->ask_count; i++) {
		if (call->asks[i].bundle != 0 && call->asks[i].bundle != bundle)
			begin_bundle(call, i);
		bundle = call->asks[i].bundle;
		send_ask(call, i);
	}
	settle(call);
}

void call_take_answer(struct grpc_call *call, uint32_t index, const struct check_answer *answer)
{
	assert(index < call->ask_count && call->open > 0);
	struct check_counts *counts = call->connection->server->base.counts;
	call->asks[index].answer = *answer;
	check_counts_add(counts, check_counts_named(counts, call->asks[index].zone), answer->outcome);
	settle(call);
}

struct grpc_call *call_of_ticket(struct grpc_server *server, uint64_t ticket, uint32_t *index)
{
	uint32_t number = (uint32_t)(ticket >> TICKET_ASK_BITS) & (GRPC_CALLS_MAX - 1);
	uint32_t turn = (uint32_t)(ticket >> (TICKET_CALL_BITS + TICKET_ASK_BITS));
	*index = (uint32_t)ticket & (CALL_ASKS_MAX - 1);
	if (number >= server->calls_made)
		return NULL;
	struct grpc_call *call = server->calls[number];
	return call->connection != NULL && call->turn == turn && call->open > 0 ? call : NULL;
}

void call_wait(struct grpc_call *call)
{
	struct grpc_server *server = call->connection->server;
	if (call->waits || call->deadline_ms == 0 || call->finished)
		return;
	call->waits = true;
	call->waiting_previous = NULL;
	call->waiting_next = server->waiting;
	if (server->waiting != NULL)
		server->waiting->waiting_previous = call;
	server->waiting = call;
}

void calls_expire(struct grpc_server *server)
{
	for (struct grpc_call *call = server->waiting, *next; call != NULL; call = next) {
		next = call->waiting_next;
		if (server->base.now_ms < call->deadline_ms)
			continue;
		stop_waiting(call);
		if (call->closed || call->finished)
			continue;
		weir_counter_add(&server->base.figures.late, 1);
		call_finish(call, GRPC_DEADLINE_EXCEEDED, "no answer in the time of grpc-timeout");
	}
}
