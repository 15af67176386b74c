/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a Redis server, over hiredis: commands are queued, sent
 * together, and answered in order.
 *
 * @thread one owner
 */
#ifndef WEIR_COMMON_REDIS_H
#define WEIR_COMMON_REDIS_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/bytes/redis_url.h"
#include "common/redis/resolve.h"

struct weir_redis;
struct weir_redis_answer;

/**
 * @param question    for the host's addresses, of who connects again and again; NULL: asked anew by each call
 * @param timeout_ms  of connecting, and of every answer; finding the addresses takes as long at most
 * @return WEIR_OK; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_redis_open(const struct weir_redis_url *url, struct weir_question *question,
                                               int timeout_ms, struct weir_redis **link, struct weir_error *error);
/** NULL is fine. */
void weir_redis_close(struct weir_redis *link);

/** The socket. Who reads and writes it himself sends and receives nothing by the functions below. */
int weir_redis_fd(const struct weir_redis *link);

/** Queues a command; its words are copied. */
void weir_redis_send(struct weir_redis *link, const struct weir_span *words, size_t count);

/**
 * Sends what is queued and takes the next answer.
 *
 * @param answer  returned, weir_redis_answer_free(); NULL: the caller does not want it
 * @return WEIR_OK; WEIR_INVALID: the server refused that command, in its words, and the connection is good; WEIR_IO:
 *         the connection is of no use any more
 */
WEIR_MUST_USE enum weir_status weir_redis_receive(struct weir_redis *link, struct weir_redis_answer **answer,
                                                  struct weir_error *error);

void weir_redis_answer_free(struct weir_redis_answer *answer);
bool weir_redis_answer_is_nil(const struct weir_redis_answer *answer);
/** Its text, with `at` NULL where it is none. Borrowed from the answer. */
struct weir_span weir_redis_answer_text(const struct weir_redis_answer *answer);
/** @return false: it is no number */
bool weir_redis_answer_number(const struct weir_redis_answer *answer, int64_t *number);
/** How many elements it has, and one of them. */
size_t weir_redis_answer_count(const struct weir_redis_answer *answer);
const struct weir_redis_answer *weir_redis_answer_element(const struct weir_redis_answer *answer, size_t index);

#endif
