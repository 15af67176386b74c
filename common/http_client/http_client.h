/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks servers by HTTP, one question at a time, over a connection that is kept.
 *
 * Bounded in time and in what an answer may hold. Certificates are verified; redirections are not followed. What an
 * error says names no address, as an address may be a secret: the caller adds what may be shown.
 *
 * @thread each client belongs to one
 */
#ifndef WEIR_COMMON_HTTP_CLIENT_H
#define WEIR_COMMON_HTTP_CLIENT_H

#include "common/base/text.h"
#include "common/bytes/http_address.h"

#include <stdatomic.h>

enum { WEIR_HTTP_HEADERS_MAX = 16, WEIR_HTTP_ETAG_BYTES = 160, WEIR_HTTP_LOCATION_BYTES = 8192 };

struct weir_http_client;

struct weir_http_client_options {
	int64_t connect_ms, answer_ms; /* the latter of all of it */
	size_t body_most_bytes;        /* of an answer */
	const char *agent;             /* borrowed, as all here, until the client is freed */
	const char *ca_file;           /* certificates that are trusted in place of the system's; NULL */
	bool any_host;                 /* one of ca_file's may be of another host: that of a server of this machine */
	int64_t stall_ms;              /* gives up where no byte comes for so long; 0: only answer_ms counts */
	bool cookies;                  /* keeps those that servers set, and shows them again: as SPNEGO's session needs */
	bool path_as_is;               /* "/../" and "/./" in a path are sent as they stand */
	const _Atomic bool *stop;      /* ends waiting; NULL */
};

struct weir_http_call {
	const char *method; /* NULL: GET, or POST where there is a body */
	const char *address;
	const char *headers[WEIR_HTTP_HEADERS_MAX]; /* "Name: value", ended by NULL */
	struct weir_span body;                      /* at NULL: none */
	const char *aws_scope;   /* "aws:amz:REGION:SERVICE": signed by AWS's version 4; NULL: it is not */
	const char *aws_account; /* "KEY:SECRET" for that */
	bool negotiate;          /* by SPNEGO, with the tickets of this process's user or KRB5_CLIENT_KTNAME */
	int body_fd;             /* the body of an answer of 2xx is written there, not into memory; 0: it is not */
	uint64_t body_fd_most;   /* bytes that it takes */
};

struct weir_http_answer {
	long
		code; /* 0: the call failed before there was one; what is here of an answer is there where its body failed, too */
	int64_t retry_after_ms;          /* -1: it does not say */
	char etag[WEIR_HTTP_ETAG_BYTES]; /* what it calls this state of the document; "": nothing, or it is too long */
	struct weir_text body;           /* what is there already stays before it; the caller frees */
	char location[WEIR_HTTP_LOCATION_BYTES]; /* where it redirects to, whole; "": nowhere, or it is too long */
	int64_t last_modified_ms;                /* Unix ms; 0: it does not say */
	uint64_t body_fd_bytes;                  /* how many were written to the descriptor, also where the call fails */
	bool body_fd_full;                       /* the call failed as more came than it takes */
	bool refused; /* the call failed before anything was asked: nobody answers at the address */
};

WEIR_MUST_USE enum weir_status weir_http_client_new(const struct weir_http_client_options *options,
                                                    struct weir_http_client **client, struct weir_error *error);
/** NULL is fine. */
void weir_http_client_free(struct weir_http_client *client);

/**
 * Asks once.
 *
 * @return WEIR_OK: there is an answer, whatever its code; WEIR_INVALID: the address is none; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_http_client_call(struct weir_http_client *client, const struct weir_http_call *call,
                                                     struct weir_http_answer *answer, struct weir_error *error);

/* A server's certificate, as far as it shows one. */
struct weir_http_certificate {
	bool shown;        /* it speaks TLS */
	int64_t expires_s; /* Unix time; 0: not known */
	char refusal[256]; /* why it is not trusted, in words; "": it is */
};

/**
 * Begins TLS with any server, of HTTP or not, looks at its certificate, and leaves.
 *
 * @param ca_file  as in weir_http_client_options
 * @return WEIR_OK; WEIR_IO: nobody answers there, or not in that time
 */
WEIR_MUST_USE enum weir_status weir_http_client_look(const char *host, unsigned port, const char *ca_file,
                                                     int64_t wait_ms, struct weir_http_certificate *certificate,
                                                     struct weir_error *error);

/** Appends a value as an address holds it. @return false: it is too long */
bool weir_http_client_escape(struct weir_http_client *client, struct weir_text *text, struct weir_span value);

#endif
