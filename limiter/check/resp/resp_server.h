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

#include "common/config/config.h"
#include "common/http/tls_stream.h"
#include "common/log/metrics.h"
#include "limiter/check/check.h"
#include "limiter/check/check_counts.h"
#include "limiter/check/request/check_request.h"
#include "limiter/check/resp/resp_users.h"
#include "limiter/owners/owners.h"

struct refusals;

enum {
	RESP_COMMAND_MAX_BYTES = 1 << 20,
	RESP_GREETING_MAX_BYTES = 16 << 10, /* of a command before a client has logged in */
	RESP_OUTPUT_MAX_BYTES = 1 << 20,
	RESP_BUFFERED_MAX_BYTES = 256 << 20,
	RESP_SLOTS_MAX = 1024,
	RESP_QUEUED_MAX = 1024, /* commands between MULTI and EXEC */
	RESP_QUEUED_MAX_BYTES = 256 << 10,
	RESP_CONNECTIONS_DEFAULT = 10000,
	RESP_STALL_DEFAULT_MS = 30000,
	RESP_LOGIN_DEFAULT_MS = 10000,
	RESP_COMMANDS_MAX = 32,
};

struct resp_options {
	struct check_judge judge;
	const struct resp_user *users; /* borrowed while the server lives; none: whoever connects may ask */
	uint32_t user_count;
	struct owners *owners; /* borrowed likewise; NULL: this server alone, with all slots */
	bool named;            /* this server is where owners_self() says; else where the client has reached it */
	bool redirect;         /* a key that another limiter has is answered with MOVED; else the judge has it answered */
	uint32_t connections;  /* at most; 0: RESP_CONNECTIONS_DEFAULT */
	int64_t idle_ms;       /* after which a connection is closed; 0: never */
	int64_t stall_ms;      /* how long a command may take to come, and a reply to be read; 0: RESP_STALL_DEFAULT_MS */
	int64_t login_ms;      /* how long a client may take to log in, and to greet by TLS; 0: RESP_LOGIN_DEFAULT_MS */
	enum weir_on_unavailable on_unavailable; /* -UNAVAILABLE; or passed, or blocked for a second, with a limit of 0 */
	bool durable;                            /* answers wait for the log's acknowledgement */
	struct check_request *exempt;            /* knows which keys are; taken. NULL: none is */
	struct refusals *refusals;               /* told of what is refused; borrowed. NULL: nobody is */
};

/* What a server counts. Read by any thread. */
struct resp_figures {
	struct weir_counter connections; /* that are open */
	struct weir_counter accepted, refused, failed_logins, protocol_errors;
	struct weir_counter stalled; /* closed: too slow, idle too long, or too much kept for them */
	struct weir_counter buffered_bytes, in_flight;
	struct weir_counter commands[RESP_COMMANDS_MAX]; /* by resp_command_name() */
	struct weir_counter unknown_commands;
	struct weir_counter redirected; /* checks answered with MOVED */
};

struct resp_server;

struct resp_server *resp_server_new(const struct resp_options *options);
/** Closes all connections. What was not answered by then must not be answered any more. NULL is fine. */
void resp_server_free(struct resp_server *server);

/**
 * Takes connections by TCP; may be called for several addresses.
 *
 * @param host    as for weir_listen_socket(), whose status is given
 * @param shared  servers of other threads listen there, too
 * @param tls     borrowed while the server lives; NULL: plain
 * @param bound   set: the port
 */
WEIR_MUST_USE enum weir_status resp_server_listen(struct resp_server *server, const char *host, uint16_t port,
                                                  bool shared, struct weir_http_tls_server *tls, uint16_t *bound,
                                                  struct weir_error *error);

/**
 * Readable when a turn has something to do, be it that time has passed: for the epoll of a thread that waits for more than
 * this. Owned by the server.
 */
int resp_server_descriptor(const struct resp_server *server);
/** Serves what has come, after at most timeout_ms. -1: waits for it. */
void resp_server_turn(struct resp_server *server, int timeout_ms);
/** Of an ask that was told CHECK_LATER, by an ask() that has returned. It is written by the next turn. */
void resp_server_answered(struct resp_server *server, const struct check_answer *answer);
/** Takes no connection and no command any more; connections end as soon as what they asked is answered. */
void resp_server_stop(struct resp_server *server);

const struct resp_figures *resp_server_figures(const struct resp_server *server);
/** How its checks were answered, by zone. @thread any */
const struct check_counts *resp_server_counts(const struct resp_server *server);
/** The name of a command that is counted, lower case; NULL: there are no more. */
const char *resp_command_name(uint32_t index);

#endif
