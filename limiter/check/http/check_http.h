/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks by HTTP/1.1: gateways that ask before they serve, and a JSON API.
 *
 * | path | what |
 * |---|---|
 * | /v1/nginx | the request that X-Original-Method and X-Original-URI name |
 * | /v1/forwarded | the one that X-Forwarded-Method, -Uri and -Host name |
 * | /v1/envoy/… | the method of the request itself, and the path behind the prefix |
 * | POST /v1/check | what a JSON text asks |
 *
 * The first three ask each zone that the request is in, and answer 200, or 429 if one of them blocks; `?deny=403` has 403
 * in place of 429, for nginx.
 *
 * One thread, one epoll. A turn reads what has come on all connections, gathers what their requests ask into groups of at
 * most CHECK_GROUP_MAX, has each group judged in one call, and writes to each connection once. A connection has one
 * request at a time; what a client sends behind it waits.
 *
 * Bounds: HTTP_HEAD_MAX_BYTES and HTTP_BODY_MAX_BYTES (http_request.h), CHECK_HTTP_ASKS_MAX of one request,
 * CHECK_HTTP_BUFFERED_MAX_BYTES in all. A request that does not end, a reply that is not read and a connection on which
 * nothing comes at first end their connection.
 *
 * @thread one: the owner's
 */
#ifndef LIMITER_CHECK_HTTP_H
#define LIMITER_CHECK_HTTP_H

#include "limiter/check/link_server.h"

struct check_request;

enum {
	CHECK_HTTP_ASKS_MAX = 256,
	CHECK_HTTP_CHECKS_MAX = 64, /* of one batch */
	CHECK_HTTP_BUFFERED_MAX_BYTES = 256 << 20,
	CHECK_HTTP_CONNECTIONS_MAX = 1 << 20,
};

/* Where nothing can be judged, the reply is 503; or 200, or 429 for a second. */
struct check_http_options {
	struct check_request *request;      /* taken */
	const char *password;               /* borrowed; NULL: whoever connects may ask */
	enum weir_rate_limit_fields fields; /* that a reply has for the client of the gateway */
};

/** @return a server of connections; link_server_free() */
struct link_server *check_http_new(const struct link_options *common, const struct check_http_options *options);
/** The path of requests that are counted; NULL: there are no more. */
const char *check_http_route_name(uint32_t index);

#endif
