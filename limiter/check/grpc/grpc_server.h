/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks by gRPC: envoy.service.ratelimit.v3.RateLimitService, grpc.health.v1.Health, and whatever else the table of
 * methods has (method.c).
 *
 * One thread, one epoll. A turn reads what has come on all connections, gathers what their calls ask into groups of at most
 * CHECK_GROUP_MAX, has each group judged in one call, and writes to each connection once. A call whose answers come later
 * (CHECK_LATER) waits for them until its deadline (grpc-timeout), and others overtake it.
 *
 * HTTP/2 is libnghttp2's, which nothing outside of session.c sees. Bounds: GRPC_STREAMS_MAX calls of a connection at a
 * time, and twice as many that wait for answers although their streams were reset; GRPC_CALLS_MAX of all connections;
 * GRPC_HEADERS_MAX_BYTES, GRPC_MESSAGE_MAX_BYTES; GRPC_HELD_MAX_BYTES of messages and quotas' buckets of a connection,
 * GRPC_BUFFERED_MAX_BYTES in all; GRPC_FRAMES_MAX a second that ask nothing; a client that does not read is not read from.
 * A message that does not end, an answer that is not read and a greeting that does not come end their connection or their
 * stream, as does a password that is not shown.
 *
 * @thread one: the owner's
 */
#ifndef LIMITER_GRPC_SERVER_H
#define LIMITER_GRPC_SERVER_H

#include "limiter/check/link_server.h"
#include "limiter/check/request/check_request.h"

enum {
	GRPC_STREAMS_MAX = 1000,
	GRPC_CALLS_MAX = 1 << 16,
	GRPC_HEADERS_MAX_BYTES = 16 << 10,
	GRPC_MESSAGE_MAX_BYTES =
		256 << 10,                    /* Envoy takes 60 KiB of fields from its client: four descriptors may have them */
	GRPC_UNREAD_MAX_BYTES = 64 << 10, /* of a call's answers: then no more are made */
	GRPC_HELD_MAX_BYTES = 32 << 20,
	GRPC_BUFFERED_MAX_BYTES = 256 << 20,
	GRPC_FRAMES_MAX =
		20000, /* PING, SETTINGS, RST_STREAM, empty DATA, unknown ones, of a connection in a second; and KiB of them */
	GRPC_GREETING_DEFAULT_MS = 10000,
};

/* Where nothing can be judged, the answer is status 14; or OK, or OVER_LIMIT, without a limit. */
struct grpc_options {
	struct check_request *request; /* which zones a descriptor is in; taken */
	const char *password; /* borrowed; must come as `authorization: Bearer PASSWORD`; NULL: whoever connects may ask */
	int64_t greeting_ms;  /* how long a client may take to begin, TLS and the password included; 0: the default */
	enum weir_rate_limit_fields fields; /* that an answer has for the client of the gateway */
};

/** @return a server of connections, whose clients by TLS must offer "h2", if they offer any; link_server_free() */
struct link_server *grpc_server_new(const struct link_options *common, const struct grpc_options *options);
/** The name of a method that is counted, "RateLimitService/ShouldRateLimit"; NULL: there are no more. */
const char *grpc_method_name(uint32_t index);

#endif
