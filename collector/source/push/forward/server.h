/* SPDX-License-Identifier: Apache-2.0 */
/* What the listener's thread and its jobs share. Of the thread alone, but for what is said to be of both. */
#ifndef COLLECTOR_SOURCE_FORWARD_SERVER_H
#define COLLECTOR_SOURCE_FORWARD_SERVER_H

#include "collector/source/push/forward/internal.h"

#include <pthread.h>

enum {
	PART_BYTES = 2 << 20, /* with one line more it fits a quarter of the smallest spool */
	PART_LINES = 1 << 19,
};

/* A message that the spool is to answer. */
struct note {
	struct forward_connection *connection; /* NULL: nobody waits for it */
	char *chunk;
	uint32_t chunk_length;
	uint8_t tag[FORWARD_TAG_HASH_BYTES];
	uint32_t parts, all_parts; /* that are not answered; that were given */
	bool given;                /* all of its parts */
	bool failed;
	struct weir_error why;
};

/* One batch of it. */
struct part {
	struct part *next;
	struct forward_server *server;
	struct note *note; /* NULL: of messages without a chunk */
	struct push_outcome outcome;
};

/* The message that is being turned into lines. */
struct job {
	struct forward_connection *connection; /* NULL: there is none */
	struct forward_frame frame;
	struct forward_lines lines;
	struct note *note; /* NULL: it has no chunk */
	struct weir_text text;
	uint32_t number;        /* of the next part */
	enum weir_status state; /* WEIR_END: all lines were written; WEIR_INVALID: as many as can be */
	struct weir_error why;
};

struct forward_server {
	const struct forward_config *config;
	struct push_spool *spool;
	const struct weir_log *log; /* NULL: nothing is logged */
	struct weir_http_tls_server *tls;
	struct forward_limits limits;
	pthread_t thread;
	int epoll, listener, heartbeats, wake;
	_Atomic bool stopping; /* reads no more */
	_Atomic bool looked;   /* whose ids have ended is said to the spool */
	_Atomic bool stopped;  /* the spool has answered everything */
	/* of the thread alone */
	struct forward_connection **connections;
	size_t count;
	struct forward_memory memory;
	struct job job;
	struct weir_text loose; /* lines of messages without a chunk */
	uint32_t loose_lines;
	uint64_t lost_before_stop;
	struct forward_acks acks;
	bool full;     /* the spool took no more, when it was asked last */
	bool starving; /* some connection waits for memory */
	bool behind;   /* some connection has bytes of which epoll does not tell */
	bool accepting;
	int64_t accept_from_ms, turn_ms;
	/* of both */
	pthread_mutex_t mutex;
	struct part *answered, **answered_end;
	struct forward_status status;
	int64_t problem_until_ms;
};

/* ---- forward_server.c ---- */

/** Says it in the status, for a while. */
void forward_say(struct forward_server *server, const char *format, ...) WEIR_PRINTF(2, 3);
/** Adds to a count of the status. */
void forward_add(struct forward_server *server, uint64_t *count, uint64_t more);
/** Refuses a connection, which its sender may try again. */
void forward_refuse(struct forward_server *server, struct forward_connection *connection, const char *words);

/* ---- forward_jobs.c: messages to batches of the spool, its answers to acknowledgements ---- */

/** Takes what the spool has answered. */
void forward_take_answers(struct forward_server *server);
/** Takes a message with entries. @return WEIR_OK: it is done; WEIR_FULL: it waits for the spool, and is the job */
enum weir_status forward_take_entries(struct forward_server *server, struct forward_connection *connection,
                                      const struct forward_frame *frame);
/** Goes on with the job. @return as forward_take_entries() */
enum weir_status forward_work(struct forward_server *server);
/** Gives the lines that nobody waits for. @return WEIR_OK; WEIR_FULL */
enum weir_status forward_give_loose(struct forward_server *server);

#endif
