/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a Redis server, over hiredis: commands are queued, sent
 * together, and answered in order.
 *
 * @thread one owner
 */
#ifndef DEPLOY_GATEWAYS_TARGET_REDIS_REDIS_H
#define DEPLOY_GATEWAYS_TARGET_REDIS_REDIS_H

#include "common/base/span.h"
#include "common/base/status.h"

struct redis_url {
	char *host, *user, *password; /* user and password: NULL if there is none */
	char *ca;                     /* a file of certificates to trust; NULL: the system's */
	bool tls;
	uint16_t port;
	uint32_t database;
};

/** redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], by TLS (rediss) also with ?ca=FILE at its end; with %XX for any byte; an IPv6 address in brackets. */
WEIR_MUST_USE enum weir_status redis_url_parse(const char *text, struct redis_url *url, struct weir_error *error);
void redis_url_deinit(struct redis_url *url);

struct redis_link;
struct redis_answer;

/** @param timeout_ms  of connecting, and of every answer. @return WEIR_OK; WEIR_IO */
WEIR_MUST_USE enum weir_status redis_link_open(const struct redis_url *url, int timeout_ms, struct redis_link **link,
                                               struct weir_error *error);
/** NULL is fine. */
void redis_link_close(struct redis_link *link);

/** Queues a command; its words are copied. */
void redis_link_send(struct redis_link *link, const struct weir_span *words, size_t count);

/**
 * Sends what is queued and takes the next answer.
 *
 * @param answer  returned, redis_answer_free(); NULL: the caller does not want it
 * @return WEIR_OK; WEIR_INVALID: the server refused that command, in its words, and the connection is good; WEIR_IO:
 *         the connection is of no use any more
 */
WEIR_MUST_USE enum weir_status redis_link_receive(struct redis_link *link, struct redis_answer **answer,
                                                  struct weir_error *error);

void redis_answer_free(struct redis_answer *answer);
bool redis_answer_is_nil(const struct redis_answer *answer);
/** Its text, with `at` NULL where it is none. Borrowed from the answer. */
struct weir_span redis_answer_text(const struct redis_answer *answer);
/** How many elements it has, and one of them. */
size_t redis_answer_count(const struct redis_answer *answer);
const struct redis_answer *redis_answer_element(const struct redis_answer *answer, size_t index);

#endif
