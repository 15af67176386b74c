/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks by the protocol of Redis: WEIR.CHECK, WEIR.PEEK, WEIR.ALLOW and CL.THROTTLE, and what Redis clients say beside
 * that when they connect, look for a cluster or ask who is there.
 *
 * One thread, one epoll. A turn reads what has come on all connections, gathers their checks into groups of at most
 * CHECK_GROUP_MAX, has each group judged in one call, and writes once to each connection. Replies keep the order of their
 * commands: a check has a slot from when it is read, and slots are emptied from the front. Of what is answered later
 * (CHECK_LATER) only further checks overtake nothing but wait beside it; any other command waits until all is answered.
 *
 * Nothing is allocated for a command. Bounds: RESP_COMMAND_MAX_BYTES a command, RESP_OUTPUT_MAX_BYTES that a client has
 * not read yet (then nothing more is read from it), RESP_SLOTS_MAX checks of a connection in flight, RESP_BUFFERED_MAX_BYTES
 * in all; a command that does not end, a reply that is not read and a client that does not log in end their connection.
 *
 * @thread one: the owner's
 */
#ifndef LIMITER_RESP_SERVER_H
#define LIMITER_RESP_SERVER_H

#include "limiter/check/link_server.h"
#include "limiter/check/request/check_request.h"
#include "limiter/check/resp/resp_users.h"
#include "limiter/owners/owners.h"

enum {
	RESP_COMMAND_MAX_BYTES = 1 << 20,
	RESP_GREETING_MAX_BYTES = 16 << 10, /* of a command before a client has logged in */
	RESP_OUTPUT_MAX_BYTES = 1 << 20,
	RESP_BUFFERED_MAX_BYTES = 256 << 20,
	RESP_SLOTS_MAX = 1024,
	RESP_QUEUED_MAX = 1024, /* commands between MULTI and EXEC */
	RESP_QUEUED_MAX_BYTES = 256 << 10,
	RESP_LOGIN_DEFAULT_MS = 10000,
};

/* What the servers of a process have counted. */
struct resp_totals {
	uint32_t servers;
	uint64_t connections, accepted, refused, commands, in_flight, buffered_bytes;
};

/* Where nothing can be judged, the answer is -UNAVAILABLE; or passed, or blocked for a second, with a limit of 0. */
struct resp_options {
	const struct resp_user *users; /* borrowed while the server lives; none: whoever connects may ask */
	uint32_t user_count;
	struct owners *owners; /* borrowed likewise; NULL: this server alone, with all slots */
	bool named;            /* this server is where owners_self() says; else where the client has reached it */
	bool redirect;         /* a key that another limiter has is answered with MOVED; else the judge has it answered */
	int64_t idle_ms;       /* after which a connection is closed; 0: never */
	int64_t login_ms;      /* how long a client may take to log in, and to greet by TLS; 0: RESP_LOGIN_DEFAULT_MS */
	struct check_request *exempt; /* knows which keys are; taken. NULL: none is */
	/** Adds up all servers of the process, for INFO. @param totals  zeros. NULL: this server tells of itself alone */
	void (*sum)(void *context, struct resp_totals *totals);
	void *sum_context;
};

/** @return a server of connections; link_server_free() */
struct link_server *resp_server_new(const struct link_options *common, const struct resp_options *options);
/** Adds what a server has counted. @thread any */
void resp_server_add(const struct link_server *server, struct resp_totals *totals);
/** The name of a command that is counted, lower case; NULL: there are no more. */
const char *resp_command_name(uint32_t index);

#endif
