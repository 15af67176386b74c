/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the spool share. Only push_spool*.c include it. */
#ifndef COLLECTOR_SOURCE_PUSH_INTERNAL_H
#define COLLECTOR_SOURCE_PUSH_INTERNAL_H

#include "collector/source/push/push_ids.h"
#include "collector/source/push/push_spool.h"
#include "common/bus/bus.h"
#include "common/log/log.h"

#include <pthread.h>

enum { PUSH_MESSAGES = 64, PUSH_CHUNK_LINES = 8192 };

/* A batch on its way to disk. */
struct push_append {
	struct push_append *next;
	push_done *done;
	void *context;
	bool has_id, answered;
	bool ends; /* no batch: the id's sender knows that it is taken */
	struct push_id id;
	struct weir_text lines; /* empty once it is sent */
	uint64_t bytes, taken;  /* taken: of these, those in push_spool.taken_bytes */
	uint32_t line_count;
	int64_t deadline_ms; /* monotonic */
};

struct push_appends {
	struct push_append *first, *last;
};

/* What the reading thread has. */
struct push_reading {
	struct weir_consumer *consumer;
	struct weir_message messages[PUSH_MESSAGES];
	size_t count, taken;
	bool assigned;
	uint64_t begin; /* position to continue after */
	size_t at;      /* byte in the message */
	uint64_t line;  /* its next line's place */
	uint64_t end;   /* position of the last line of the newest batch that is handed out whole; 0: none */
	uint64_t done;  /* batches below this offset are acknowledged */
	uint64_t *positions;
};

struct push_spool {
	struct weir_bus *bus;
	uint64_t most_bytes;
	uint8_t id[PUSH_SPOOL_ID_BYTES];
	uint64_t settled_before; /* batches below this offset were settled when it was opened */
	int event;
	int work; /* an eventfd: the thread has something to do */
	pthread_t thread;
	bool started;

	pthread_mutex_t mutex; /* of all that follows, up to the thread's own */
	struct push_appends queue;
	uint64_t taken_bytes, taken_batches; /* of batches that are not on disk yet, and how many */
	bool stopping, hurry;                /* hurry: the spool is full, and what is acknowledged should go */
	uint64_t acknowledged, settled;
	uint64_t handed;                      /* batches below this offset were read */
	uint64_t refused_bytes;               /* of the batch that was refused last */
	int64_t refused_ms, waiting_since_ms; /* monotonic; 0: no sender is told to wait */
	int64_t stop_ms;
	struct push_spool_status counts;

	/* the thread's own */
	struct weir_producer *producer;
	struct push_ids *ids;
	struct push_appends away;  /* sent and not delivered, in the order of sending */
	struct push_appends twins; /* with an id that one of those has */
	int64_t settle_ms;         /* when it may settle again */
	bool settle_failed;        /* the last attempt failed: the next waits, whoever hurries */
	char name[96];
	const struct weir_log *log;
	struct weir_fault full;
	uint64_t full_told; /* refusals that are in the log */

	struct push_reading reading;
};

/** As push_spool_append(). @param body  hash of the whole that the id names, of which the lines may be a part */
WEIR_MUST_USE enum weir_status push_append_part(struct push_spool *spool, struct weir_span id, uint64_t body,
                                                struct weir_text *lines, push_done *done, void *context,
                                                struct weir_error *error);

uint32_t push_count_lines(struct weir_span lines);

/* ---- push_spool_look.c ---- */

enum push_id_file {
	PUSH_ID_MISSING,
	PUSH_ID_UNHASHED, /* of an earlier version: a change of it would not show */
	PUSH_ID_WHOLE,
};

/** Reads the file of a spool's id. @param found  PUSH_ID_MISSING: the id is not set @return WEIR_INVALID: damaged; WEIR_IO */
WEIR_MUST_USE enum weir_status push_spool_id_look(const char *directory, uint8_t id[PUSH_SPOOL_ID_BYTES],
                                                  enum push_id_file *found, struct weir_error *error);
/** A warning of what a spool has lost, with the runbook's heading. */
void push_spool_tell(const struct push_spool *spool, const char *what);
/** Settles which id a spool has whose log is open, and tells what that means where it is not the one that it had. */
WEIR_MUST_USE enum weir_status push_spool_id_settle(struct push_spool *spool, const char *directory,
                                                    const struct push_spool_last *last, struct weir_error *error);

#endif
