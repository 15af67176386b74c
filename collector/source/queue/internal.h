/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the base of queues share. */
#ifndef COLLECTOR_SOURCE_QUEUE_INTERNAL_H
#define COLLECTOR_SOURCE_QUEUE_INTERNAL_H

#include "collector/source/queue/source_queue.h"
#include "collector/source/source_memory.h"

enum { QUEUE_PROBLEM_BYTES = 256, QUEUE_MARKS = 64 };

/* The kind's numbers at a position that was handed out, and is not safe yet. */
struct queue_mark {
	uint64_t position, numbers[QUEUE_NUMBERS];
};

/* Something that is not read. */
struct queue_trouble {
	char *name;
	char words[QUEUE_PROBLEM_BYTES]; /* "": it is read again */
	bool absent;
};

/* A stream that a server has or had, from when it was found until the source ends. */
struct queue_stream {
	struct source_stream stream; /* first */
	uint8_t id[SOURCE_ID_BYTES]; /* as found: the same as the stream's, but of one that stands for none */
	char *label;
	enum source_guarantee guarantee;
	struct source_memory_stream *record; /* NULL: nothing is remembered */
	_Atomic uint64_t safe;
	/* Only the source's thread. */
	uint64_t place;                                             /* of the newest message taken or passed over */
	int64_t put_ms;                                             /* of that */
	uint64_t numbers[QUEUE_NUMBERS], remembered[QUEUE_NUMBERS]; /* the kind's: now, and when it was found */
	/* Only the collector's thread. */
	uint64_t handed; /* position of the newest line handed out */
	struct queue_mark marks[QUEUE_MARKS];
	size_t mark_count;
	uint64_t noted[QUEUE_NUMBERS]; /* the numbers that the memory has */
	/* Guarded by the mutex, as status() reads them. */
	bool answered;   /* the thread knows where it begins: no other is read under its label */
	uint64_t shown;  /* every message up to here is handed out, or has no line */
	uint64_t newest; /* that the server has, as far as known */
	int64_t shown_ms;
	uint64_t skipped, again, lost, unknown;
	bool counts_left; /* `left` is known: how many messages were behind `left_at` */
	uint64_t left, left_at;
	char problem[QUEUE_PROBLEM_BYTES];
	int64_t problem_until_ms;
};

/**
 * source_queue_streams.c: adds the stream that was found, with what the memory has of it; or gives the one that is known.
 *
 * @return NULL, and WEIR_INVALID in words: there are too many, or another source reads it
 */
struct queue_stream *queue_open_stream(struct queue_source *source, const struct queue_found *found,
                                       struct weir_error *error);
/** A stream that stands for one that could not be found, with `once`. */
void queue_open_none(struct queue_source *source);
/** Saves where the stream begins. @return false: it could not be saved, and is to be tried again */
bool queue_save_stream(struct queue_source *source);
void queue_free_streams(struct queue_source *source);

/** source_queue_batches.c: the source's thread. @param context  the struct queue_source */
void *queue_read(void *context);

/** Shows a problem of the source as a whole until a stream is being read; "" ends it. */
void queue_problem(struct queue_source *source, const char *words);

#endif
