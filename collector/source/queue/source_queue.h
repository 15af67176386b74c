/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of sources that read a server's queues through a client library whose calls wait.
 *
 * A thread of the source's own connects, reads and fills batches of lines. The collector's thread hands them out. Between
 * the two are at most QUEUE_BATCHES batches: when they are full, the thread waits, stops taking messages from the
 * server, and the messages stay there. An eventfd tells the collector's thread of a batch.
 *
 *     the source's thread                        the collector's thread
 *     run(): connect, queue_find(): a stream ──► collect(): the stream's memory says where it begins
 *            queue_put(): a message ───────────► collect(): a batch
 *            queue_safe() ◄───────────────────── acknowledge()
 *
 * A kind puts `struct queue_source` first in its own struct, and the functions below into its source_ops.
 */
#ifndef COLLECTOR_SOURCE_QUEUE_H
#define COLLECTOR_SOURCE_QUEUE_H

#include "collector/source/source.h"

#include <pthread.h>

enum { QUEUE_BATCHES = 8, QUEUE_BATCH_BYTES = 256 << 10, QUEUE_BATCH_LINES = 4096, QUEUE_STREAMS_MAX = 2048 };

struct queue_source;
struct queue_stream;
struct queue_trouble;

/* What a kind does on the source's thread. */
struct queue_reader {
	/**
	 * Connects and reads until something fails. Called again after a pause.
	 *
	 * @return WEIR_END: queue_ending(), or with `once` all is read; WEIR_IO: failed, in words; WEIR_INVALID: so, and will
	 *         again until somebody has mended it
	 */
	enum weir_status (*run)(struct queue_source *source, struct weir_error *error);
};

/* Numbers of the kind's that the memory has beside a position. */
enum queue_number { QUEUE_NUMBER, QUEUE_ADDED, QUEUE_NUMBERS };

/* What a server says of a stream. */
struct queue_found {
	uint8_t id[SOURCE_ID_BYTES]; /* of what the stream is, in every collector: one that was made anew has another */
	const char *label;           /* what is read, however often it is made anew: "nats:LOGS"; borrowed */
	enum source_guarantee guarantee;
	bool fleeting; /* its id is this start's alone: nothing of it is remembered */
	uint64_t last; /* position of the newest message that the server has; 0: it never had one */
	bool kept;     /* the server itself keeps up to where all is safe: that counts, whatever is remembered */
	uint64_t safe;
	bool again; /* only if it was read before; else it is not found: WEIR_INVALID */
};

struct queue_batch {
	struct queue_stream *stream;
	struct weir_text lines;
	uint64_t *positions; /* QUEUE_BATCH_LINES */
	size_t count;
	uint64_t skipped;                /* bytes that are not in its one line, if that is too long; else 0 */
	uint32_t tail;                   /* of these, how many of the last stand behind the line */
	uint64_t through;                /* every message up to here is in this batch or one before, or has no line */
	uint64_t numbers[QUEUE_NUMBERS]; /* of queue_set_number(), when the newest of them was taken */
	uint64_t blank;                  /* how many messages up to there had none */
	int64_t put_ms;                  /* of the newest message, Unix ms; 0: not known */
};

struct queue_source {
	struct source source;
	const struct queue_reader *reader;
	struct source_memory *memory; /* NULL: nothing is remembered */
	const char *prefix;           /* of its streams in the memory */
	char *label;                  /* of the source as a whole, with the prefix */
	bool once, looks;             /* as source_context has them */
	size_t line_max;
	enum source_at_start start;
	pthread_t thread;
	bool running;
	int fd;       /* an eventfd */
	bool filling; /* a batch is begun: only the source's thread, as is the next */
	bool reads;   /* since the last run(), it was read */

	pthread_mutex_t mutex;  /* guards what follows */
	pthread_cond_t changed; /* either side has done something */
	_Atomic bool ending;
	bool ended;                      /* the thread reads no more; with `once` */
	struct weir_error failure;       /* with `once`: why it failed; status WEIR_OK: it did not */
	const struct queue_found *asked; /* the thread waits to learn where this stream begins */
	struct queue_stream *answer;
	struct weir_error refusal; /* why there is none; status WEIR_OK: not answered yet, or there is one */
	struct queue_batch batches[QUEUE_BATCHES];
	uint64_t filled, taken; /* how many batches ever */
	uint64_t errors;
	char problem[256];
	struct queue_trouble *troubles; /* what is not read, by its name */
	size_t trouble_count;

	bool lent; /* the oldest batch is handed out: only the collector's thread */
	struct queue_stream **streams;
	struct source_stream **handles;
	size_t stream_count;
};

/* ---- for a kind's create and free ---- */

/** Sets up the members above. @param ops, reader, prefix  must outlive the source @param label  as of its streams; copied */
WEIR_MUST_USE enum weir_status queue_init(struct queue_source *source, const struct source_ops *ops,
                                          const struct queue_reader *reader, const char *prefix, const char *label,
                                          const struct source_context *context, struct weir_error *error);
/**
 * Starts the thread. With `once`, waits until it has found its stream or has failed: then the source has one stream in
 * either case, and its collect() says what failed.
 */
WEIR_MUST_USE enum weir_status queue_start(struct queue_source *source, struct weir_error *error);
/** Ends and joins the thread, if it runs: within a second, or the time that connecting may take. */
void queue_stop(struct queue_source *source);
void queue_deinit(struct queue_source *source);

/* ---- for a kind's run(): on the source's thread ---- */

/** Whether run() is to end. */
bool queue_ending(const struct queue_source *source);

/**
 * Says which stream was found, and waits until it is known where to begin.
 *
 * @return WEIR_OK; WEIR_END: the source ends; WEIR_INVALID in words: it cannot be read beside the others
 */
WEIR_MUST_USE enum weir_status queue_find(struct queue_source *source, const struct queue_found *found,
                                          struct queue_stream **stream, struct weir_error *error);

/** The position of the newest message taken, or that before the first to take. */
uint64_t queue_place(const struct queue_stream *stream);
/** The position up to which all is safe downstream. */
uint64_t queue_safe(const struct queue_stream *stream);
/**
 * Sets a number of the kind's that belongs to the messages taken from now on: once they are safe, the memory has it beside
 * their position. Behind the last message, queue_pass() at queue_place() hands it on.
 *
 * @param number  0: it is not known, and the memory keeps what it has
 */
void queue_set_number(struct queue_stream *stream, enum queue_number which, uint64_t number);
/** The number that the memory had when the stream was found: of its position, or of a place somewhat before; 0: none. */
uint64_t queue_remembered(const struct queue_stream *stream, enum queue_number which);

/**
 * Takes a message: as a line, if it has one. Waits while the batches are full.
 *
 * @param bytes    borrowed
 * @param put_ms   when it was put into the queue, Unix ms; 0: not known
 * @return false: the source ends, and it was not taken
 */
bool queue_put(struct queue_source *source, struct queue_stream *stream, const void *bytes, size_t length,
               uint64_t position, int64_t put_ms);
/** Passes a message over that is not wanted. @return as queue_put() */
bool queue_pass(struct queue_source *source, struct queue_stream *stream, uint64_t position);
/** Whether the next queue_put() does not wait. */
bool queue_has_room(struct queue_source *source);
/** Hands on what was taken: before waiting for the next message. */
void queue_flush(struct queue_source *source);

/** The newest position that the server has, as far as known. */
void queue_note_end(struct queue_source *source, struct queue_stream *stream, uint64_t newest);
/** Counts records that cannot be read any more, and shows why for a minute. */
void queue_note_lost(struct queue_source *source, struct queue_stream *stream, uint64_t count, const char *format, ...)
	WEIR_PRINTF(4, 5);
/** How many messages are left behind those that were taken, where positions do not say it. */
void queue_note_left(struct queue_source *source, struct queue_stream *stream, uint64_t left);
/** Counts a loss of which nobody knows how much it was. */
void queue_note_unknown(struct queue_source *source, struct queue_stream *stream);
/** Shows why what has this label is not read, whether it was found or not; NULL: it is read. @param absent  it is not there */
void queue_stopped(struct queue_source *source, const char *label, bool absent, const char *words);
/** Ends the source's problem, and the longer pauses: it is being read. */
void queue_succeeded(struct queue_source *source);
/** Counts a message that the server gave again. */
void queue_note_again(struct queue_source *source, struct queue_stream *stream);

/* ---- as in source_ops ---- */

enum weir_status queue_collect(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
                               struct weir_error *error);
size_t queue_streams(struct source *source, struct source_stream ***streams);
int queue_fd(const struct source *source);
void queue_acknowledge(struct source *source, struct source_stream *stream, uint64_t position);
enum weir_status queue_resume(struct source *source, struct source_stream *stream, uint64_t position,
                              struct weir_error *error);
size_t queue_status(struct source *source, struct source_status *statuses, size_t count);

#endif
