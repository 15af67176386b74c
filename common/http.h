/*
 * A small HTTP server: answers GET and HEAD of known paths from callbacks.
 *
 * For /metrics, /healthz, /readyz and what a role adds. One thread serves all
 * connections; a callback runs on it and fills a text buffer, so it must not
 * wait.
 */
#ifndef WEIR_COMMON_HTTP_H
#define WEIR_COMMON_HTTP_H

#include "common/status.h"
#include "common/text.h"

enum {
	WEIR_HTTP_CONNECTIONS_DEFAULT = 64,
	WEIR_HTTP_TIMEOUT_DEFAULT_S = 10, /* an idle connection is closed */
};

struct weir_http_request;

/** A query argument's value, decoded; NULL where there is none ("" for ?name). Borrowed until the callback returns. */
const char *weir_http_query(const struct weir_http_request *request, const char *name);

struct weir_http_reply {
	unsigned status;          /* 200 at first */
	const char *content_type; /* "text/plain; charset=utf-8" at first; borrowed for as long as the server runs */
	struct weir_text body;    /* empty at first; the server frees it */
};

typedef void weir_http_handle(void *context, const struct weir_http_request *request, struct weir_http_reply *reply);

struct weir_http_path {
	const char *path; /* exact: "/metrics" */
	weir_http_handle *handle;
	void *context;
};

struct weir_http_options {
	const char *host;                   /* a name or address; NULL or "*": every address of the machine */
	uint16_t port;                      /* 0: any free one, see weir_http_port */
	const struct weir_http_path *paths; /* copied; strings and contexts are borrowed while it runs */
	size_t path_count;
	unsigned connections; /* at most; 0: WEIR_HTTP_CONNECTIONS_DEFAULT */
	unsigned timeout_s;   /* 0: WEIR_HTTP_TIMEOUT_DEFAULT_S */
};

struct weir_http;

/**
 * Reads where to listen: "127.0.0.1:9464", "[::1]:9464", "localhost:9464", ":9464" or "*:9464".
 *
 * @param host  returned, the caller frees: "*" for every address
 * @return false: it is none of these, and nothing is returned
 */
bool weir_http_address(const char *text, char **host, uint16_t *port);

/** @return WEIR_OK; WEIR_INVALID: the host has no address; WEIR_IO: the port is taken or not allowed */
WEIR_MUST_USE enum weir_status weir_http_start(const struct weir_http_options *options, struct weir_http **http,
                                               struct weir_error *error);

/** The port that it listens on. */
uint16_t weir_http_port(const struct weir_http *http);

/** Ends all connections; no callback runs when it returns. NULL is fine. */
void weir_http_stop(struct weir_http *http);

#endif
