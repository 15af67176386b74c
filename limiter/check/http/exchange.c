/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to its asks, and from their answers to a reply.
 *
 * Which headers say what was asked for depends on the path alone: a gateway passes on what its client wrote, so a header
 * that this gateway does not set itself may be anyone's.
 */
#include "limiter/check/http/internal.h"

#include "common/base/alloc.h"
#include "common/bytes/secret.h"

#include <assert.h>
#include <stdlib.h>

enum route { ROUTE_NGINX, ROUTE_FORWARDED, ROUTE_ENVOY, ROUTE_CHECK, ROUTE_COUNT };

static const char *const routes[ROUTE_COUNT] = {
	[ROUTE_NGINX] = "/v1/nginx",
	[ROUTE_FORWARDED] = "/v1/forwarded",
	[ROUTE_ENVOY] = "/v1/envoy",
	[ROUTE_CHECK] = "/v1/check",
};

static_assert((int)ROUTE_COUNT <= (int)LINK_KINDS_MAX, "each is counted");

const char *check_http_route_name(uint32_t index)
{
	return index < ROUTE_COUNT ? routes[index] : NULL;
}

const char *route_of(struct weir_span target, uint32_t *index)
{
	for (uint32_t i = 0; i < ROUTE_COUNT; i++) {
		uint32_t length = (uint32_t)strlen(routes[i]);
		if (target.length < length || memcmp(target.at, routes[i], length) != 0)
			continue;
		char behind = target.length > length ? target.at[length] : '\0';
		if (behind != '\0' && behind != '?' && (behind != '/' || i != ROUTE_ENVOY))
			continue;
		*index = i;
		return routes[i];
	}
	return NULL;
}

/* ---- who may ask ---- */

static bool may_ask(const struct http_connection *connection, const struct http_request *request)
{
	static const char bearer[] = "Bearer ";
	const char *password = connection->server->options.password;
	struct weir_span own = http_request_header(request, "x-weir-password");
	struct weir_span given = http_request_header(request, "authorization");
	if (password == NULL || (own.at != NULL && weir_secret_is(weir_span_of(password), own)))
		return true;
	uint32_t length = sizeof bearer - 1;
	if (given.length < length || !http_name_is((struct weir_span){.at = given.at, .length = length}, "bearer "))
		return false;
	return weir_secret_is(weir_span_of(password),
	                      (struct weir_span){.at = given.at + length, .length = given.length - length});
}

/* ---- asks ---- */

bool exchange_add(struct exchange *exchange, const struct weir_zone *zone, struct weir_span key, int64_t cost,
                  bool peek)
{
	if (exchange->ask_count == CHECK_HTTP_ASKS_MAX)
		return false;
	if (exchange->ask_count == exchange->asks_room) {
		exchange->asks_room = exchange->asks_room > 0 ? 2 * exchange->asks_room : ASKS_KEPT;
		exchange->asks = weir_realloc(exchange->asks, exchange->asks_room, sizeof *exchange->asks);
	}
	struct http_ask *ask = &exchange->asks[exchange->ask_count++];
	*ask = (struct http_ask){.key = (uint32_t)exchange->keys.length,
	                         .key_length = key.length,
	                         .cost = cost,
	                         .peek = peek,
	                         .shadow = zone->mode == WEIR_SHADOW};
	memcpy(ask->zone, zone->name, strlen(zone->name) + 1);
	weir_text_append(&exchange->keys, key.at, key.length);
	weir_text_reserve(&exchange->keys, 1); /* so that an empty one has an address, too */
	return true;
}

bool exchange_add_unjudged(struct exchange *exchange)
{
	const struct weir_zone none = {.name = (char *)(uintptr_t) ""};
	if (!exchange_add(exchange, &none, weir_span_of(""), 1, false))
		return false;
	exchange->asks[exchange->ask_count - 1].answer =
		(struct check_answer){.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_LOADING, .retry_after_ms = -1};
	return true;
}

void exchange_deinit(struct exchange *exchange)
{
	free(exchange->asks);
	free(exchange->checks);
	weir_text_deinit(&exchange->keys);
	*exchange = (struct exchange){0};
}

void exchange_clear(struct exchange *exchange)
{
	if (exchange->asks_room > ASKS_KEPT || exchange->keys.capacity > BUFFER_BYTES) {
		exchange_deinit(exchange);
		return;
	}
	exchange_begin_anew(exchange);
}

void exchange_begin_anew(struct exchange *exchange)
{
	free(exchange->checks);
	exchange->checks = NULL;
	exchange->check_count = exchange->ask_count = 0;
	weir_text_clear(&exchange->keys);
}

void exchange_take_answer(struct http_connection *connection, uint32_t index, const struct check_answer *answer)
{
	struct exchange *exchange = &connection->exchange;
	if (answer != NULL) {
		struct check_counts *counts = connection->server->base.counts;
		exchange->asks[index].answer = *answer;
		check_counts_add(counts, check_counts_named(counts, exchange->asks[index].zone), answer->outcome);
	}
	if (--exchange->open > 0)
		return;
	exchange->busy = false;
	if (!connection->base.dead && exchange->form == EXCHANGE_JSON)
		json_check_reply(connection);
	else if (!connection->base.dead)
		reply_verdict(connection);
	exchange_clear(exchange);
}

/* ---- a gateway's request ---- */

struct subject {
	struct weir_span method, target, host;
};

static const struct weir_span nothing = {.at = "", .length = 0};

/* A host that the gateway does not tell is none, and not that of the question itself. */
static struct subject subject_of(enum route route, const struct http_request *request)
{
	struct subject subject = {.method = request->method, .host = request->authority};
	if (subject.host.length == 0)
		subject.host = http_request_header(request, "host");
	if (route == ROUTE_NGINX) {
		subject.method = http_request_header(request, "x-original-method");
		subject.target = http_request_header(request, "x-original-uri");
	} else if (route == ROUTE_FORWARDED) {
		subject.method = http_request_header(request, "x-forwarded-method");
		subject.target = http_request_header(request, "x-forwarded-uri");
		subject.host = http_request_header(request, "x-forwarded-host");
	} else {
		uint32_t prefix = (uint32_t)strlen(routes[ROUTE_ENVOY]);
		subject.target =
			(struct weir_span){.at = request->target.at + prefix, .length = request->target.length - prefix};
	}
	return subject;
}

/*
 * A method of `-` is one that clients can send to nginx: it is no field, as in a line of its log, and its request is asked about as
 * any other.
 */
static struct weir_span told(struct weir_span value)
{
	return check_request_is_none(value) ? nothing : value;
}

static void set_fields(struct check_request *fields, const struct subject *subject, const struct http_request *request)
{
	check_request_set(fields, weir_span_of("method"), told(subject->method));
	check_request_set(fields, weir_span_of("path"), told(subject->target));
	check_request_set(fields, weir_span_of("target"), told(subject->target));
	check_request_header(fields, weir_span_of("host"), subject->host.length > 0 ? subject->host : nothing);
	/* Of several the last counts, which the gateway wrote. */
	for (uint32_t i = request->header_count; i > 0; i--)
		check_request_header(fields, request->headers[i - 1].name, request->headers[i - 1].value);
}

/*
 * The hops, of all fields of the name as of one list (RFC 9110, 5.3): a proxy may write a field of its own behind the one that
 * it got, as HAProxy does. Where none of them says anything, there is no list.
 *
 * @param room  HTTP_HEAD_MAX_BYTES, for what is joined
 */
static struct weir_span hops_of(const struct check_request *fields, const struct http_request *request, char *room)
{
	const char *name = check_request_hops_header(fields);
	char lower[WEIR_FIELD_NAME_MAX_BYTES + 1];
	size_t length = 0;
	for (; name[length] != '\0' && length + 1 < sizeof lower; length++) {
		char c = name[length];
		lower[length] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
	}
	lower[length] = '\0';
	uint32_t count = 0, used = 0;
	bool any = false;
	for (uint32_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		if (!http_name_is(header->name, lower))
			continue;
		any |= !check_request_is_none(header->value);
		if (count++ > 0)
			room[used++] = ','; /* no more than its name and colon took */
		if (header->value.length > 0)
			memcpy(room + used, header->value.at, header->value.length);
		used += header->value.length;
	}
	if (!any)
		return nothing;
	return count > 1 ? (struct weir_span){.at = room, .length = used} : http_request_header(request, lower);
}

/* A request in zones that nobody can name yet is one that cannot be judged. */
static void reply_without_policy(struct http_connection *connection, const char *why)
{
	struct exchange *exchange = &connection->exchange;
	if (connection->base.server->options.on_unavailable == WEIR_ON_UNAVAILABLE_ERROR ||
	    !exchange_add_unjudged(exchange))
		reply_problem(connection, 503, "There is no policy that can be used", why);
	else
		reply_verdict(connection);
	exchange_clear(exchange);
}

/* @return false: it is answered */
static bool find_zones(struct http_connection *connection, enum route route, const struct http_request *request)
{
	struct check_request *fields = connection->server->options.request;
	const struct subject subject = subject_of(route, request);
	struct check_found found[CHECK_REQUEST_ZONES_MAX];
	struct weir_error error;
	char room[HTTP_HEAD_MAX_BYTES];
	uint32_t count;
	if (subject.method.length == 0 || subject.target.length == 0) {
		reply_refusal(connection, REFUSAL_SUBJECT, 400, "The gateway does not say what is asked for",
		              route == ROUTE_NGINX ? "it must set X-Original-Method and X-Original-URI"
		                                   : "it must set X-Forwarded-Method and X-Forwarded-Uri");
		return false;
	}
	if (check_request_begin(fields, link_server_policy(connection->base.server), &error) != WEIR_OK) {
		reply_without_policy(connection, error.text);
		return false;
	}
	set_fields(fields, &subject, request);
	if (!check_request_client(fields, hops_of(fields, request, room), weir_span_of(connection->peer))) {
		reply_refusal(
			connection, REFUSAL_CLIENT, 400, "The gateway does not say who asks",
			"a hop that counts is no address: set checks.client_ip, or have the gateway write the header anew");
		return false;
	}
	bool all = check_request_find(fields, found, &count) == WEIR_OK;
	for (uint32_t i = 0; all && i < count; i++)
		all = exchange_add(&connection->exchange, found[i].zone, found[i].key, 1, false);
	if (!all) {
		reply_refusal(connection, REFUSAL_ASKED, 500, "The request is in too many zones",
		              "a request is in at most 64 zones");
		exchange_clear(&connection->exchange);
	}
	return all;
}

/* "?deny=403". @return false: it is another query, and answered */
static bool read_query(struct http_connection *connection, struct weir_span target)
{
	const char *question = memchr(target.at, '?', target.length);
	connection->exchange.denies = 429;
	if (question == NULL)
		return true;
	struct weir_span query = {.at = question + 1, .length = (uint32_t)(target.at + target.length - question - 1)};
	if (weir_span_equal(query, weir_span_of("deny=403")))
		connection->exchange.denies = 403;
	else if (!weir_span_equal(query, weir_span_of("deny=429"))) {
		reply_refusal(connection, REFUSAL_UNKNOWN, 400, "Unknown query", "deny=403 and deny=429 are known");
		return false;
	}
	return true;
}

static void begin_gateway(struct http_connection *connection, enum route route, const struct http_request *request)
{
	connection->exchange.form = EXCHANGE_GATEWAY;
	connection->exchange.denies = 429;
	/* Caddy hands on its client's query, if it is not told otherwise; Envoy's is of what is asked for. */
	if (route == ROUTE_NGINX && !read_query(connection, request->target))
		return;
	if (find_zones(connection, route, request))
		exchange_send(connection);
}

void exchange_begin(struct http_connection *connection, const struct http_request *request)
{
	struct check_http *server = connection->server;
	struct exchange *exchange = &connection->exchange;
	uint32_t route;
	exchange->keeps_alive = request->keeps_alive;
	exchange->is_1_0 = request->is_1_0;
	exchange->head_only = weir_span_equal(request->method, weir_span_of("HEAD"));
	exchange->path = route_of(request->target, &route);
	if (exchange->path == NULL) {
		weir_counter_add(&server->base.figures.unknown, 1);
		exchange->keeps_alive = false; /* whoever does not know what to ask holds no connection */
		reply_refusal(connection, REFUSAL_UNKNOWN, 404, "Unknown path",
		              "/v1/nginx, /v1/forwarded, /v1/envoy and /v1/check are known");
		return;
	}
	weir_counter_add(&server->base.figures.kinds[route], 1);
	if (!may_ask(connection, request)) {
		weir_counter_add(&server->base.figures.failed_logins, 1);
		exchange->keeps_alive = false;
		reply_refusal(connection, REFUSAL_LOGIN, 401, "The password is wrong or missing",
		              "send checks.password as \"Authorization: Bearer PASSWORD\" or \"X-Weir-Password: PASSWORD\"");
		return;
	}
	if (route != ROUTE_CHECK) {
		begin_gateway(connection, (enum route)route, request);
		return;
	}
	exchange->form = EXCHANGE_JSON;
	if (weir_span_equal(request->method, weir_span_of("POST")))
		json_check_begin(connection, request->body);
	else
		reply_refusal(connection, REFUSAL_UNKNOWN, 405, "Wrong method", "send POST with a JSON text");
}
