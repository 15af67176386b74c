/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a request of HTTP/1.1 or 1.0 in place: RFC 9112, strictly, as a gateway writes it. What two readers could take
 * for different requests is refused: lines that end without CR, folded lines, spaces before a colon, lengths that differ,
 * bodies in chunks.
 */
#ifndef LIMITER_HTTP_REQUEST_H
#define LIMITER_HTTP_REQUEST_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	HTTP_HEADERS_MAX = 100,
	HTTP_HEAD_MAX_BYTES = 32 << 10, /* a gateway that takes lines of 8 KiB has a target, a host and an agent of such */
	HTTP_BODY_MAX_BYTES = 64 << 10,
};

struct http_header {
	struct weir_span name, value; /* value without the blanks around it */
};

struct http_request {
	struct weir_span method, target, body; /* target: path and query, or "*" */
	struct weir_span authority; /* of a target in absolute form: it counts, and Host does not. Absent: there is none */
	struct http_header headers[HTTP_HEADERS_MAX];
	uint32_t header_count;
	bool keeps_alive; /* the connection goes on behind the reply */
	bool is_1_0;      /* HTTP/1.0: a reply must say that the connection goes on */
	bool waits;       /* of WEIR_AGAIN: its client sends the body when it is told to (Expect: 100-continue) */
	size_t bytes;     /* of the whole */
};

/* Why a request is refused. */
struct http_refusal {
	int status; /* 400, 411, 413 or 431: a gateway takes what is above 499 for a weir that is away */
	const char *words;
};

/**
 * @param request  its spans point into bytes
 * @return WEIR_OK; WEIR_AGAIN: more must arrive; WEIR_INVALID: it is refused, as soon as its beginning can be that of none, and where the
 * next one begins is not known
 */
WEIR_MUST_USE enum weir_status http_request_read(const char *bytes, size_t length, struct http_request *request,
                                                 struct http_refusal *refusal);

/** Whether a header has the name, in any case. @param lower  in lower case */
bool http_name_is(struct weir_span name, const char *lower);
/** The last header of the name; absent: there is none. */
struct weir_span http_request_header(const struct http_request *request, const char *lower);

#endif
