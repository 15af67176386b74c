/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the HTTP server share. libmicrohttpd's header is met here.
 *
 * An exchange is one request and its reply. It belongs to the server's thread,
 * but while its connection is suspended: then to the pool, and to the worker
 * that has taken it.
 */
#ifndef WEIR_COMMON_HTTP_INTERNAL_H
#define WEIR_COMMON_HTTP_INTERNAL_H

#include "common/bytes/gzip.h"
#include "common/http/http.h"
#include "common/http/tls_stream.h"

#include <microhttpd.h>

struct weir_http_pool;
struct weir_http_tls_pair;

struct weir_http {
	struct MHD_Daemon *daemon;
	struct weir_http_path *paths;
	size_t path_count;
	uint16_t port;
	void (*refuse)(void *context, const char *words, struct weir_http_reply *reply);
	void *refuse_context;
	size_t body_most_bytes;
	weir_http_handle *admit;
	void *admit_context;
	struct weir_http_pool *pool;
	struct weir_http_tls_server *tls; /* NULL: plain */
	const struct weir_log *log;       /* NULL: nothing is said */
};

/* A connection; it is cut when its time is over. */
struct weir_http_client {
	int fd;
	int64_t turn_ms;
	_Atomic int64_t deadline_ms;     /* monotonic */
	_Atomic bool heard;              /* its request is whole: it waits for its reply, or takes it */
	bool cut;                        /* to make room */
	_Atomic bool brings;             /* a body of it was admitted and comes */
	_Atomic uint64_t brought;        /* bytes of bodies */
	uint64_t swept;                  /* of these, at the last sweep; the pool's, as is the next */
	unsigned slow;                   /* sweeps in a row between which hardly any came */
	bool spoke;                      /* it has sent a byte; the server's thread */
	struct weir_http_tls_pair *pair; /* it is served by; NULL: plain */
	struct weir_http_tls_server *tls;
	const char *refusal; /* why its certificate was refused; NULL: it was not */
	struct weir_http_client *previous, *next;
};

struct weir_http_exchange {
	struct weir_http *http;
	struct MHD_Connection *connection;
	struct weir_http_client *client; /* NULL: its descriptor is not known */
	const char *target;              /* the path; borrowed from libmicrohttpd for as long as the exchange lives */
	char *host;                      /* of a target in absolute form; NULL: it has none */
	bool misnamed;                   /* a target in absolute form is none */
	const char *method;              /* likewise */
	const struct weir_http_path *path;
	struct weir_http_reply reply;
	bool answered; /* the reply is made */
	/* of a request with a body */
	struct weir_text body;
	size_t piece_bytes; /* 0: it is taken whole */
	size_t taken;       /* of the piece, by the callback */
	uint64_t before;    /* bytes of the pieces that were taken before it */
	bool ended;         /* nothing more of it comes */
	_Atomic bool away;  /* the pool has it: its rest stays where it is */
	uint64_t dropped;   /* bytes of it that nobody wants, as it was refused */
	size_t body_held;   /* bytes that the pool counts for it */
	char tag[24];       /* "": none */
	/* of a reply in parts: its body is the part that is being sent */
	struct weir_gzip *gzip; /* NULL: not packed */
	size_t sent;            /* of the part */
	bool all_made, broken;
	bool counted; /* among the pool's streams */
	size_t held;  /* bytes that the pool counts for it */
	struct weir_http_exchange *next;
};

struct weir_http_request {
	struct weir_http_exchange *exchange;
	unsigned worker;
};

/* ---- http_framing.c ---- */

/**
 * Whether a request's headers could be read as another request by a proxy before this server.
 *
 * @param version  of the protocol, as the client says it
 * @return words for the client; NULL: they could not
 * @thread the server's
 */
const char *weir_http_framing_fault(struct MHD_Connection *connection, const char *version);

/* ---- http_reply.c ---- */

/** Makes the reply of a refusal. */
void weir_http_refuse(struct weir_http_exchange *exchange, unsigned status, const char *words);
/** Tags and packs what a callback has made. */
void weir_http_finish(struct weir_http_exchange *exchange);
/** Makes the next part, which is not empty unless it is the last. @thread the worker */
void weir_http_next_part(struct weir_http_exchange *exchange, unsigned worker);
/** Hands the reply over to libmicrohttpd. @thread the server's */
enum MHD_Result weir_http_send(struct weir_http_exchange *exchange);

/* ---- http_pool.c ---- */

/**
 * @param options  with no default left open
 * @param failed   set to the error of a thread that could not be started: the pool can only be ended; 0: all are there
 */
struct weir_http_pool *weir_http_pool_start(struct weir_http *http, const struct weir_http_options *options,
                                            int *failed);
/** Ends the workers; those who wait are answered with 503. Nobody is taken in any more. */
void weir_http_pool_quiet(struct weir_http_pool *pool);
/** After libmicrohttpd's end. */
void weir_http_pool_free(struct weir_http_pool *pool);
/** Suspends the connection until a worker has answered. @return false: too many wait, or too much is held */
bool weir_http_pool_take(struct weir_http_exchange *exchange);
/** Suspends it until the next part is made. @return false: the pool has ended */
bool weir_http_pool_again(struct weir_http_exchange *exchange);
/** Counts a body's bytes. @return false: too much is held */
bool weir_http_pool_hold(struct weir_http_exchange *exchange, size_t bytes);
/** Takes an exchange's end into account. */
void weir_http_pool_forget(struct weir_http_exchange *exchange);

/** A connection begins, and ends. */
struct weir_http_client *weir_http_pool_join(struct weir_http_pool *pool, int fd);
void weir_http_pool_leave(struct weir_http_pool *pool, struct weir_http_client *client);
/** How many requests were cut as their bodies hardly came. */
uint64_t weir_http_pool_slow_cut(struct weir_http_pool *pool);
/** Gives who sends more time. NULL is fine. */
void weir_http_client_reward(struct weir_http_client *client, size_t bytes);
/** Gives it a whole turn again. NULL is fine. */
void weir_http_client_extend(struct weir_http_client *client);

/* ---- http_tls.c ---- */

enum { WEIR_HTTP_TLS_OPTIONS = 3 };

/** What libmicrohttpd is started with: WEIR_HTTP_TLS_OPTIONS of them. */
void weir_http_tls_options(struct MHD_OptionItem *options);
/** A connection begins, and ends. @param session  GnuTLS's @thread the server's */
void weir_http_tls_join(struct weir_http_tls_server *tls, struct weir_http_client *client, void *session);
void weir_http_tls_leave(struct weir_http_tls_server *tls, struct weir_http_client *client);
/** Unix time. @thread any */
int64_t weir_http_tls_expires_s(struct weir_http_tls_server *tls);

#endif
