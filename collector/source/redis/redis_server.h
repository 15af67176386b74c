/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to one Redis server for reading: commands are queued and sent together, answers come token by token.
 *
 * @thread the source's
 */
#ifndef COLLECTOR_SOURCE_REDIS_SERVER_H
#define COLLECTOR_SOURCE_REDIS_SERVER_H

#include "collector/source/queue/source_queue.h"
#include "common/base/text.h"
#include "common/redis/redis.h"
#include "common/resp/resp.h"

struct redis_server {
	struct queue_source *queue;     /* whose end ends every wait; what was taken is handed on before one */
	struct weir_question *question; /* where it is */
	struct weir_redis *link;        /* NULL: not connected */
	char name[160];                 /* "Redis at 127.0.0.1:6379" */
	struct weir_text out;           /* commands that are not sent yet */
	struct weir_resp resp;
	int64_t patience_ms; /* how long an answer may take */
	bool finishing;      /* the end of the source ends no wait any more */
};

void redis_server_init(struct redis_server *server, struct queue_source *queue, uint32_t text_max);
void redis_server_deinit(struct redis_server *server);

/** Connects, logs in, and asks whether it is a master. @return WEIR_OK; WEIR_IO in words */
WEIR_MUST_USE enum weir_status redis_server_open(struct redis_server *server, const struct weir_redis_url *url,
                                                 struct weir_error *error);
void redis_server_close(struct redis_server *server);

/** Queues a command of so many words, which follow. */
void redis_server_command(struct redis_server *server, size_t words);
void redis_server_word(struct redis_server *server, struct weir_span word);
void redis_server_text(struct redis_server *server, const char *word);
void redis_server_number(struct redis_server *server, uint64_t number);

/** The next token; sends what is queued before. @return WEIR_OK; WEIR_END: the source ends; WEIR_IO: no use any more */
WEIR_MUST_USE enum weir_status redis_server_next(struct redis_server *server, struct weir_resp_token *token,
                                                 struct weir_error *error);
/** Passes over what is in a list. */
WEIR_MUST_USE enum weir_status redis_server_skip(struct redis_server *server, const struct weir_resp_token *token,
                                                 struct weir_error *error);

#endif
