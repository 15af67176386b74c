/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What senders push, on disk: their data is taken when it is here, and read from here like a log.
 *
 * A batch is what one request, or one chunk, holds: whole lines. It is one message of a local bus with one partition, so
 * many batches share an fsync, a torn tail is cut, and files go once their batches are acknowledged. A line's position
 * is (offset + 1) << 20 | its place in the batch, which no restart changes.
 *
 * A batch may have an id. The ids of the last hour, at most a million, are known, also after a crash: a batch that
 * comes again is answered as the first time and not stored. An id that comes with other lines is refused, as either
 * choice would lose some. An id that may be that of several batches, one after another, is ended once the sender of one
 * knows that it is taken: then it is the next one's.
 *
 * @thread append, problem and status: any. Reading (read, acknowledge, resume): one, that of the source
 */
#ifndef COLLECTOR_SOURCE_PUSH_SPOOL_H
#define COLLECTOR_SOURCE_PUSH_SPOOL_H

#include "collector/source/source.h"

struct push_spool;
struct weir_log;

enum {
	PUSH_POSITION_LINE_BITS = 20,
	PUSH_BATCH_MOST_LINES = 1 << PUSH_POSITION_LINE_BITS,
	PUSH_BATCH_MOST_BYTES = 31 << 20,
	PUSH_ID_MOST_BYTES = 1024,
	PUSH_SPOOL_ID_BYTES = 16,
	PUSH_COMMIT_MOST_MS = 10000, /* a batch that is not on disk by then is answered with WEIR_AGAIN */
};

#define PUSH_SPOOL_LEAST_BYTES (INT64_C(1) << 20)

/* What its source remembers of the spool that it read last. */
struct push_spool_last {
	uint8_t id[PUSH_SPOOL_ID_BYTES];
	uint64_t position; /* up to which all is safe downstream; 0: nothing */
};

struct push_spool_options {
	const char *directory;              /* created where there is none */
	const struct push_spool_last *last; /* NULL: nothing is remembered */
	int64_t most_bytes;         /* of its files: beyond, nothing is taken. A batch may have a quarter of it at most */
	const char *name;           /* of the source, for the log; copied */
	const struct weir_log *log; /* that senders are told to wait; NULL: nothing is said */
};

/**
 * Opens or creates a spool, and reads which ids it knows.
 *
 * Its own id is on disk before its first batch. One that is lost while batches lie there is taken from what is remembered;
 * a spool whose batches are gone gets another, as its positions begin anew. Either is told.
 *
 * @return WEIR_OK; WEIR_LOCKED: another process has it; WEIR_INVALID: damaged; WEIR_NEWER; WEIR_IO
 */
WEIR_MUST_USE enum weir_status push_spool_open(const struct push_spool_options *options, struct push_spool **spool,
                                               struct weir_error *error);

/**
 * Takes nothing more: every append that waits is answered, each within PUSH_COMMIT_MOST_MS, when this returns, and each
 * later one gets WEIR_AGAIN. What is on disk stays for the next start.
 */
void push_spool_stop(struct push_spool *spool);
/** Stops and frees. NULL is fine. */
void push_spool_close(struct push_spool *spool);

/* What became of a batch. */
struct push_outcome {
	/*
	 * WEIR_OK: it is on disk. WEIR_AGAIN: not in time, or the spool stops: it may yet be stored, so who sends it again
	 * without an id may send it twice. WEIR_INVALID: its id belongs to another batch.
	 */
	enum weir_status status;
	bool again;            /* WEIR_OK: its id was known, nothing was stored */
	bool clashes;          /* WEIR_INVALID: its id came with other lines before */
	uint32_t lines;        /* how many the batch has */
	struct weir_error why; /* unless WEIR_OK */
};

/** Called once for each batch that was taken. @thread the spool's: it must not wait, and must not call the spool */
typedef void push_done(void *context, const struct push_outcome *outcome);

/**
 * Gives a batch to the spool's thread.
 *
 * @param id     the sender's name of the batch, copied; at NULL: it has none. A kind of sender puts a word before it, so
 *               that two kinds cannot meet
 * @param lines  each ended by '\n', not empty. Taken with WEIR_OK (then empty); otherwise still the caller's
 * @return WEIR_OK: done is called, perhaps before this returns; otherwise it is not. WEIR_FULL: the spool, or the queue
 *         before it, is full; WEIR_AGAIN: the disk takes nothing now, or the spool stops: the words say which;
 *         WEIR_INVALID: too many lines or bytes, or too long an id
 */
WEIR_MUST_USE enum weir_status push_spool_append(struct push_spool *spool, struct weir_span id, struct weir_text *lines,
                                                 push_done *done, void *context, struct weir_error *error);

/**
 * Says that the sender of a batch knows that it is taken: what comes under this id from then on is another batch. A crash
 * within the next two seconds may undo it; after a stop it holds.
 */
void push_spool_end(struct push_spool *spool, struct weir_span id);

/** How many bytes a batch may have. */
size_t push_spool_batch_most(const struct push_spool *spool);

/**
 * As push_spool_append(), and waits. With an id, lines may be more than a batch may have: they are stored in parts. Where
 * that fails in between, send all of it again under the same id.
 *
 * @param outcome  set; its status is returned
 */
WEIR_MUST_USE enum weir_status push_spool_append_wait(struct push_spool *spool, struct weir_span id,
                                                      struct weir_text *lines, struct push_outcome *outcome);

/** Whether a spool could be opened. Takes no lock and changes nothing. @return WEIR_OK, also where there is none; as opening */
WEIR_MUST_USE enum weir_status push_spool_check(const char *directory, struct weir_error *error);

/**
 * Counts what of a spool that nobody has open was not read, up to a time. Changes nothing.
 *
 * @param low  gives the position up to which all was read of a spool with this id; NULL: the spool has lost its own
 */
WEIR_MUST_USE enum weir_status push_spool_count(const char *directory,
                                                uint64_t (*low)(void *context, const uint8_t *id), void *context,
                                                struct source_left *left, struct weir_error *error);

/** Random bytes that the spool has had since it was made: another one begins at position 0 again. */
const uint8_t *push_spool_id(const struct push_spool *spool);

/* ---- reading ---- */

/** Sets where to begin: after the line of a position, or at the oldest batch that is there. Before the first read. */
void push_spool_resume(struct push_spool *spool, uint64_t position);

/** Likewise, where it is not known: behind the batches that were safe downstream when a process last saved that. */
void push_spool_resume_settled(struct push_spool *spool);

/**
 * Hands out the next lines, all of one batch. Data and positions are borrowed until the next call.
 *
 * @param line_max  a longer line is handed out alone, as too_long
 * @param chunk     its stream is the caller's to set
 * @return WEIR_OK; WEIR_AGAIN: none now; WEIR_IO, WEIR_INVALID: it cannot be read: tried again at the next call
 */
WEIR_MUST_USE enum weir_status push_spool_read(struct push_spool *spool, size_t line_max, struct source_chunk *chunk,
                                               struct weir_error *error);
/** Becomes readable when push_spool_read() may have more. */
int push_spool_fd(const struct push_spool *spool);
/** All up to a position is safe downstream: the files that hold only that may go. */
void push_spool_acknowledge(struct push_spool *spool, uint64_t position);

struct push_spool_status {
	uint64_t bytes, most_bytes; /* of its files */
	uint64_t batches, lines;    /* stored by this process */
	uint64_t again_batches;     /* known ids: answered, not stored */
	uint64_t nameless_batches;  /* stored without an id: the sender may have sent them twice */
	uint64_t full_refusals;     /* WEIR_FULL and WEIR_AGAIN */
	/*
	 * How long senders have been told to wait: since a batch was refused, for as long as another of its size would be,
	 * however rarely they ask, and some seconds longer; 0: they are not.
	 */
	int64_t waiting_ms;
	uint64_t waiting_batches; /* stored and not read yet */
	char problem[256];        /* "": none */
};

void push_spool_status(struct push_spool *spool, struct push_spool_status *status);

#endif
