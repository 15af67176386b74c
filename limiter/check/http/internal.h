/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: connections, and the request that each has at a time. */
#ifndef LIMITER_CHECK_HTTP_INTERNAL_H
#define LIMITER_CHECK_HTTP_INTERNAL_H

#include "common/json/json_writer.h"
#include "common/policy/policy.h"
#include "limiter/check/http/check_http.h"
#include "limiter/check/http/http_request.h"
#include "limiter/check/link_server.h"
#include "limiter/check/request/check_request.h"

enum {
	BUFFER_BYTES = 16 << 10,
	IN_MAX_BYTES = HTTP_HEAD_MAX_BYTES + HTTP_BODY_MAX_BYTES,
	OUT_MAX_BYTES = 256 << 10, /* that a client has not read yet: then nothing more is read from it */
	ASKS_KEPT = 8,             /* room that a connection keeps */
	REASON_BYTES = 200,
};

/* One ask of a request. */
struct http_ask {
	char zone[WEIR_ZONE_NAME_MAX_BYTES + 1];
	uint32_t key, key_length; /* in the exchange's keys */
	int64_t cost;
	bool peek, shadow, durable, exempt;
	bool one_field; /* its zone's key has one: a JSON text has that value, as a caller gives it */
	struct check_answer answer;
};

/* One check of a JSON text: the asks that it became. */
struct json_check {
	uint32_t first, count; /* of the exchange's asks */
	bool by_fields;
};

enum exchange_form { EXCHANGE_GATEWAY, EXCHANGE_JSON };

/* A request that is being answered. */
struct exchange {
	bool busy;
	bool keeps_alive, is_1_0, head_only;
	enum exchange_form form;
	int denies;       /* 429 or 403 */
	const char *path; /* that it is asked by: a constant; NULL: none that is known */
	struct http_ask *asks;
	uint32_t ask_count, asks_room;
	uint32_t open; /* asks that are not answered */
	struct weir_text keys;
	struct json_check *checks; /* of a JSON text; NULL otherwise */
	uint32_t check_count;
	bool batch; /* the text has "checks" */
};

/* How far a connection is from its end. It goes on to a later one alone. */
enum http_phase {
	HTTP_SERVES,
	HTTP_ENDS, /* its last reply is made: it ends when that is written */
	HTTP_DROPS, /* the same of a refusal: what comes behind the request is read and dropped, so that its client reads why */
	HTTP_SHUT, /* that refusal is written, and nothing more is; what comes is dropped still */
};

struct http_connection {
	struct link_connection base;
	struct check_http *server;
	uint32_t place; /* in the server's places */
	enum http_phase phase;
	size_t drops;    /* in HTTP_DROPS and HTTP_SHUT: how many bytes more */
	int64_t shut_ms; /* since when it is in HTTP_SHUT, whatever it sends */
	bool asked;
	bool told_to_go_on; /* its client, with the body of the request that is read */
	char peer[WEIR_ADDRESS_TEXT_BYTES];

	char *in; /* NULL: nothing is kept */
	size_t in_room, in_start, in_end;
	struct weir_text out;
	size_t sent; /* of out */

	struct exchange exchange;
};

/* Where a connection is found by its number in a ticket. */
struct place {
	struct http_connection *connection; /* NULL: free */
	uint32_t turn;                      /* how often it was used */
	uint32_t next_free;
};

struct check_http {
	struct link_server base;
	struct check_http_options options;
	int64_t date_s;
	char date[32]; /* of now, as in a reply */

	char *spare[64]; /* buffers of BUFFER_BYTES */
	uint32_t spare_count;

	struct place *places;
	uint32_t places_used, places_room, free_place; /* free_place: 1 + the first free one; 0: none */

	struct check_ask asks[CHECK_GROUP_MAX];
	struct {
		struct http_connection *connection;
		uint32_t index;
	} asked[CHECK_GROUP_MAX];
	uint32_t ask_count;
};

/* ---- check_http.c ---- */

/** Has the gathered asks judged. */
void http_ask_gathered(struct check_http *server);
/** "Fri, 27 Nov 2026 02:20:00 GMT". */
const char *http_date(struct check_http *server);

/* ---- connection.c: sockets, buffers, time ---- */

/* As struct link_protocol has them. */
void http_connection_open(struct link_connection *base);
void http_connection_read(struct link_connection *base);
bool http_connection_finish(struct link_connection *base);
void http_connection_look(struct link_connection *base);
void http_connection_close(struct link_connection *base);
/** Begins the next request, if there is a whole one. @return false: there is none, or it must wait */
bool http_connection_run(struct http_connection *connection);

/* ---- exchange.c: from a request to its asks, and from their answers to a reply ---- */

/** Answers a request, or hands over what it asks. */
void exchange_begin(struct http_connection *connection, const struct http_request *request);
/** Adds an ask, whose key is copied. @return false: there are too many */
bool exchange_add(struct exchange *exchange, const struct weir_zone *zone, struct weir_span key, int64_t cost,
                  bool peek);
/** The same of what cannot be judged, in no zone, as there is no policy that can be used. Not for exchange_send(). */
bool exchange_add_unjudged(struct exchange *exchange);
/** Hands over what was added; replies at once if that is nothing. */
void exchange_send(struct http_connection *connection);
/** @param answer  not CHECK_LATER */
void exchange_take_answer(struct http_connection *connection, uint32_t index, const struct check_answer *answer);
/** Forgets the request: ready for the next one. */
void exchange_clear(struct exchange *exchange);
/** Forgets what the request asks, but not what it is. */
void exchange_begin_anew(struct exchange *exchange);
void exchange_deinit(struct exchange *exchange);
/** The path that a target begins with; NULL: there is none that is known. @param index  set to its number */
const char *route_of(struct weir_span target, uint32_t *index);

/* ---- reply.c ---- */

/** An answer to a gateway's request. */
void reply_verdict(struct http_connection *connection);
/** A refusal with words, as application/problem+json. */
void reply_problem(struct http_connection *connection, int status, const char *title, const char *words);
/** The same of a question that is wrong, which is counted and told of, too. The route of what was read is in the exchange. */
void reply_refusal(struct http_connection *connection, enum refusal_reason reason, int status, const char *title,
                   const char *words);
/** A JSON text. */
void reply_json(struct http_connection *connection, int status, struct weir_span body);

/* ---- json_check.c: POST /v1/check ---- */

void json_check_begin(struct http_connection *connection, struct weir_span body);
void json_check_reply(struct http_connection *connection);

#endif
