/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of a JetStream stream, read in order from a sequence number on. Only its .c uses libnats.
 *
 * libnats has threads of its own, which read the socket and fill a queue. The server's flow control bounds that: at most
 * 32 MiB, and one message, are under way. A connection that breaks is not mended by the library: the caller opens
 * another, and so asks again what the stream is. The consumer is the server's shortest-lived: without acknowledgements,
 * in memory, gone seconds after the connection.
 *
 * @thread one owner, whose calls may wait for the time of a connection
 */
#ifndef COLLECTOR_NATS_CLIENT_H
#define COLLECTOR_NATS_CLIENT_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nats_client;

/* How to connect. What is NULL is not used. Borrowed. */
struct nats_login {
	const char *const *urls;
	size_t url_count;
	const char *name; /* of the connection, for the server's lists */
	const char *user, *password, *token;
	const char *nkey, *seed; /* public key and the seed that signs for it */
	const char *credentials; /* path of a .creds file */
	const char *ca, *certificate, *key;
	bool tls;
};

/* What the server has of a stream. */
struct nats_extent {
	int64_t created_ns; /* Unix time: a stream that is made anew has another */
	uint64_t first, last;
	int64_t last_ms; /* when the last one was put, Unix ms; 0: there was none */
};

struct nats_message {
	struct weir_span data, subject; /* borrowed until the next call */
	uint64_t sequence;
	uint64_t pending; /* how many the server has behind it */
	int64_t put_ms;   /* Unix ms */
};

/** Whether this program was built with libnats. */
bool nats_built_in(void);

/** Connects. @return WEIR_OK; WEIR_IO: no server, or it refuses the login, in words */
WEIR_MUST_USE enum weir_status nats_client_open(const struct nats_login *login, struct nats_client **client,
                                                struct weir_error *error);
void nats_client_close(struct nats_client *client);

/** Asks what a stream is now. @return WEIR_OK; WEIR_IO in words: no such stream, no JetStream, not allowed */
WEIR_MUST_USE enum weir_status nats_client_extent(struct nats_client *client, const char *stream,
                                                  struct nats_extent *extent, struct weir_error *error);

/** Whether the server has a message that it can give: one of a number may be removed, or damaged. */
WEIR_MUST_USE enum weir_status nats_client_has(struct nats_client *client, const char *stream, uint64_t sequence,
                                               bool *has, struct weir_error *error);

/** Has the server send all of a stream's messages from a sequence number on, and nothing that was asked for before. */
WEIR_MUST_USE enum weir_status nats_client_consume(struct nats_client *client, const char *stream, uint64_t from,
                                                   struct weir_error *error);
/** Whether a message is here already, so that nats_client_next() does not wait. */
bool nats_client_has_more(struct nats_client *client);
/**
 * The next message, in the stream's order.
 *
 * @return WEIR_OK; WEIR_AGAIN: none within 100 ms; WEIR_IO: the connection or the stream is gone, or a message went
 *         missing on the way: open another
 */
WEIR_MUST_USE enum weir_status nats_client_next(struct nats_client *client, struct nats_message *message,
                                                struct weir_error *error);

#endif
