/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server: answers GET and HEAD of known paths from callbacks, or POST and PUT, where bodies are taken.
 *
 * One thread serves all connections; callbacks run on workers: a request waits,
 * apart from the others, until one is free and has answered it. /metrics,
 * /healthz and /readyz, which never wait, share a single one; callbacks that may
 * wait (for a store) are given `workers`.
 *
 * A body is gathered as it comes, up to a bound, before its callback runs; one without an end can be taken in pieces.
 * While a worker has a request its connection is suspended.
 *
 * What a callback leaves to the server: tags (ETag, If-None-Match), gzip, and
 * replies too long to be built whole, which are made part by part as they are
 * read.
 */
#ifndef WEIR_COMMON_HTTP_H
#define WEIR_COMMON_HTTP_H

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/log/metrics.h"

enum {
	WEIR_HTTP_CONNECTIONS_DEFAULT = 64,
	WEIR_HTTP_TIMEOUT_DEFAULT_S = 10, /* an idle connection is closed */
	WEIR_HTTP_WAITING_DEFAULT = 64,
	WEIR_HTTP_REQUEST_DEFAULT_BYTES = 16 * 1024,
	WEIR_HTTP_HEADERS_MAX = 6,
	WEIR_HTTP_HEADER_BYTES = 128,
	WEIR_HTTP_WORKERS_MAX = 64,
	WEIR_HTTP_ADDRESS_MAX_BYTES = 8 * 1024, /* of path and query; longer: 414 */
	WEIR_HTTP_FIELDS_MAX_BYTES = 16 * 1024, /* of the header fields; longer: 431 */
	WEIR_HTTP_STREAMS_MAX = 16,             /* replies in parts at a time; beyond: 503 */
	/* of bodies that are not taken, and replies that are not read yet; beyond, new requests get 503 */
	WEIR_HTTP_HELD_MAX_BYTES = 128 << 20,
	WEIR_HTTP_DROPPED_MAX_BYTES = 64 << 20, /* of a refused body, read so that its sender hears why */
	WEIR_HTTP_BODY_LEAST_RATE = 16,         /* bytes a ms: each gives the sender that much more time than its turn */
	WEIR_HTTP_TURN_DEFAULT_S = 60,
};

struct weir_http_request;

/** Calls each for every query argument, decoded, any bytes; false from it ends that. Value: absent for ?name. */
void weir_http_each_query(const struct weir_http_request *request,
                          bool (*each)(void *context, struct weir_span name, struct weir_span value), void *context);

/** A header field's value, NULL if there is none. Borrowed until the callback returns. */
const char *weir_http_field(const struct weir_http_request *request, const char *name);

/** The host that was asked, with its port: of a target in absolute form its own, else the field Host. NULL: none. Likewise borrowed. */
const char *weir_http_host(const struct weir_http_request *request);

/** The client's address: 4 bytes, or 16; none where it is not known. */
struct weir_span weir_http_peer(const struct weir_http_request *request);

/** "GET", "HEAD", "POST" or "PUT". */
const char *weir_http_method(const struct weir_http_request *request);
/** The path that was asked for. Borrowed until the callback returns. */
const char *weir_http_target(const struct weir_http_request *request);
/** What there is of the body. Borrowed until the callback returns. */
struct weir_span weir_http_body(const struct weir_http_request *request);
/** The same, for a body that has ended: returned, the caller frees. Then there is none any more. */
struct weir_text weir_http_move_body(const struct weir_http_request *request);

/**
 * Takes the body in pieces: the callback runs whenever there are so many bytes, and a last time at the end. For admit().
 */
void weir_http_take_pieces(const struct weir_http_request *request, size_t piece_bytes);
/** Whether the body ends with what there is. Else the reply counts only if its status is a refusal. */
bool weir_http_body_ended(const struct weir_http_request *request);
/** How many bytes of a piece were taken: the rest comes again before the next. At first: all. */
void weir_http_taken(const struct weir_http_request *request, size_t bytes);
/** How many bytes of the body were taken before this piece. */
uint64_t weir_http_taken_before(const struct weir_http_request *request);

struct weir_http_reply {
	unsigned status;          /* 200 at first */
	const char *content_type; /* "text/plain; charset=utf-8" at first; borrowed for as long as the server runs */
	struct weir_text body;    /* empty at first; the server frees it */
	bool tagged;              /* an ETag is made of the body, and If-None-Match heeded */
	bool packed;              /* gzip, where the client takes it and the body is long enough */
	/*
	 * Set, the body is made in parts: called, on a worker, each time that the last part has been sent. WEIR_OK: more
	 * is to come; WEIR_END: that was all; else the connection is cut, so that the client sees that something lacks.
	 */
	enum weir_status (*more)(void *stream, unsigned worker, struct weir_text *part);
	void (*end)(void *stream); /* once, on any thread, whether or not all was sent */
	void *stream;
	unsigned header_count;
	struct {
		const char *name; /* borrowed as content_type is */
		char value[WEIR_HTTP_HEADER_BYTES];
	} headers[WEIR_HTTP_HEADERS_MAX];
};

/** Adds a header field. */
void weir_http_header(struct weir_http_reply *reply, const char *name, const char *format, ...) WEIR_PRINTF(3, 4);

typedef void weir_http_handle(void *context, const struct weir_http_request *request, struct weir_http_reply *reply);

struct weir_http_path {
	const char *path; /* exact: "/metrics"; "*": all that no path before it has */
	weir_http_handle *handle;
	void *context;
};

/*
 * The files of a server that speaks TLS, in PEM form. They are read again when they change: connections that come from then
 * on have the new certificate, and none is cut. A change that cannot serve is said, and the previous one stays.
 */
struct weir_http_tls {
	const char *certificate; /* the server's own, then those that issued it; NULL: the server speaks no TLS */
	const char *key;         /* of the former; without a passphrase */
	const char *client_ca;   /* who must have issued the certificate that a client shows; NULL: it need not show one */
	const char *prefix;      /* of the settings that name these, for errors: "listen."; NULL: none */
};

struct weir_log;

struct weir_http_options {
	const char *host;                   /* a name or address; NULL or "*": every address of the machine */
	uint16_t port;                      /* 0: any free one, see weir_http_port */
	const struct weir_http_path *paths; /* copied; strings and contexts are borrowed while it runs */
	size_t path_count;
	struct weir_http_tls tls;   /* its files are borrowed while it runs */
	const struct weir_log *log; /* for what becomes of its certificate; borrowed likewise; NULL: nothing is said */
	unsigned connections;       /* at most, the last quarter for who comes newly; 0: WEIR_HTTP_CONNECTIONS_DEFAULT */
	unsigned timeout_s;         /* 0: WEIR_HTTP_TIMEOUT_DEFAULT_S */
	unsigned request_bytes;     /* of memory for a connection; 0: WEIR_HTTP_REQUEST_DEFAULT_BYTES */
	unsigned workers;           /* at most WEIR_HTTP_WORKERS_MAX; 0: one, for callbacks that do not wait */
	unsigned turn_s;            /* within it a request comes, and a reply or a part is read, or the connection is cut;
	                     0: WEIR_HTTP_TURN_DEFAULT_S, or timeout_s where no workers are asked for */
	unsigned waiting;           /* requests that may wait for a worker; 0: WEIR_HTTP_WAITING_DEFAULT */
	/* Its paths take POST and PUT with at most such a body; 0: GET and HEAD alone. */
	size_t body_most_bytes;
	/* With the headers, before the body: refuses by setting a status. NULL: nothing is. Runs as refuse() does. */
	weir_http_handle *admit;
	void *admit_context;
	/*
	 * Makes the reply where no path's callback does: its status is set (400, 404, 405, 414, 431, 503) and the words are
	 * what a plain one would say. NULL: plain ones. Runs on the server's thread: it must not wait.
	 */
	void (*refuse)(void *context, const char *words, struct weir_http_reply *reply);
	void *refuse_context;
};

struct weir_http;

/** Which of the workers this callback runs on, from 0. */
unsigned weir_http_worker(const struct weir_http_request *request);

/**
 * When the certificate expires, Unix time.
 *
 * @return WEIR_OK; WEIR_INVALID: as weir_http_tls_check()
 */
WEIR_MUST_USE enum weir_status weir_http_tls_expiry(const struct weir_http_tls *files, int64_t *expires_s,
                                                    struct weir_error *error);

/**
 * Whether a server could start with these files.
 *
 * @param doubts  appended to, in sentences: what clients will refuse, such as an expired certificate
 * @return WEIR_OK, also without any; WEIR_INVALID: the words name the file and what to do
 */
WEIR_MUST_USE enum weir_status weir_http_tls_check(const struct weir_http_tls *files, struct weir_text *doubts,
                                                   struct weir_error *error);

/**
 * @return WEIR_OK; WEIR_INVALID: the host has no address, or the certificate cannot serve; WEIR_IO: the port is taken or
 *         not allowed, or nobody could say which address the host has
 */
WEIR_MUST_USE enum weir_status weir_http_start(const struct weir_http_options *options, struct weir_http **http,
                                               struct weir_error *error);

/** The port that it listens on. */
uint16_t weir_http_port(const struct weir_http *http);

/** When the certificate expires that new connections are served with, Unix time; 0: there is none. */
int64_t weir_http_certificate_expires_s(const struct weir_http *http);

/** Clients that were refused as "client_ca" asks for another certificate: each is said in the log, of many at once one. */
uint64_t weir_http_clients_refused(const struct weir_http *http);

/** Requests that were cut as their bodies hardly came while connections ran out: said in the log, too. */
uint64_t weir_http_slow_cut(const struct weir_http *http);

extern const struct weir_metric_table weir_http_metric_table;
/** Appends the metrics of the server that answers a request. */
void weir_http_metrics(const struct weir_http_request *request, struct weir_text *page);

/** Ends all connections; no callback runs when it returns. NULL is fine. */
void weir_http_stop(struct weir_http *http);

#endif
