/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of one queue, on a connection of its own. Only its .c uses librabbitmq.
 *
 * The library has no threads, and reads a message from the socket when it is asked for one: what is not taken stays there,
 * and on the server, which sends at most `prefetch` messages ahead of their acknowledgement.
 *
 * @thread one owner, whose calls may wait for the time of a connection
 */
#ifndef COLLECTOR_AMQP_CLIENT_H
#define COLLECTOR_AMQP_CLIENT_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { AMQP_PREFETCH_MOST = 65535 };

struct amqp_client;

/* How to connect. What is NULL is not used. Borrowed. */
struct amqp_login {
	const char *host;
	int port;
	const char *vhost, *user, *password;
	bool tls;
	const char *ca, *certificate, *key;
};

/* Where a stream queue is read from; AMQP_LAST: from some message of those that were stored together last. */
enum amqp_begin { AMQP_NO_STREAM, AMQP_FIRST, AMQP_LAST, AMQP_OFFSET };

struct amqp_message {
	struct weir_span data; /* borrowed until the next call */
	uint64_t tag;          /* by which it is acknowledged: 1, 2, … of this consumer */
	bool again;            /* the server gave it to somebody before */
	bool has_offset;       /* it is one of a stream queue */
	uint64_t offset;
	int64_t put_ms; /* Unix ms, of its sender; 0: it does not say */
};

/** Whether this program was built with librabbitmq. */
bool amqp_built_in(void);

/** Connects. @return WEIR_OK; WEIR_IO: no server, or it refuses the login, in words */
WEIR_MUST_USE enum weir_status amqp_client_open(const struct amqp_login *login, struct amqp_client **client,
                                                struct weir_error *error);
/** @param well  it works: the server is told, within a second */
void amqp_client_close(struct amqp_client *client, bool well);

/**
 * Asks how many messages a queue has that no consumer was sent; a stream queue, how many it has in all, seconds late.
 *
 * @return WEIR_OK; WEIR_IO in words: no such queue, not allowed
 */
WEIR_MUST_USE enum weir_status amqp_client_count(struct amqp_client *client, const char *queue, uint64_t *count,
                                                 struct weir_error *error);
/** Has the server send a queue's messages. @param offset  where AMQP_OFFSET begins */
WEIR_MUST_USE enum weir_status amqp_client_consume(struct amqp_client *client, const char *queue, int64_t prefetch,
                                                   enum amqp_begin begin, uint64_t offset, struct weir_error *error);
/** Whether something is here already, so that amqp_client_next() need not wait. */
bool amqp_client_has_more(struct amqp_client *client);
/** The next message. @return WEIR_OK; WEIR_AGAIN: none within 100 ms; WEIR_IO: the server ended it, or is gone */
WEIR_MUST_USE enum weir_status amqp_client_next(struct amqp_client *client, struct amqp_message *message,
                                                struct weir_error *error);
/** Acknowledges all messages up to one. */
WEIR_MUST_USE enum weir_status amqp_client_acknowledge(struct amqp_client *client, uint64_t tag,
                                                       struct weir_error *error);
/** Tells the server that this side lives, while nothing is asked for: once in a few seconds. */
WEIR_MUST_USE enum weir_status amqp_client_beat(struct amqp_client *client, struct weir_error *error);

#endif
