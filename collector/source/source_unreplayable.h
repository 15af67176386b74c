/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of sources that cannot read anything again: standard input, and what is sent over a network.
 *
 * Such a source has one stream, whose lines are read at most once. Its id is new at each start, its positions count the
 * bytes handed out since, acknowledging changes nothing, and it cannot resume at a position. A kind puts
 * `struct source_unreplayable` first in its own struct, and the functions below into its source_ops.
 */
#ifndef COLLECTOR_SOURCE_UNREPLAYABLE_H
#define COLLECTOR_SOURCE_UNREPLAYABLE_H

#include "collector/source/source.h"

#include <pthread.h>

struct source_unreplayable {
	struct source source;
	struct source_stream stream;
	struct source_stream *streams[1];
	const char *what;  /* what cannot be read again, for people */
	uint64_t position; /* of the next byte to hand out */
	uint64_t bound;    /* when the offset exceeds it, another incarnation begins, as if with another file */
	pthread_mutex_t mutex;
	struct source_status status; /* guarded by the mutex */
};

/**
 * @param ops   of the kind
 * @param name  of the stream, copied
 * @param what  for errors, before "cannot be read again": "standard input"; borrowed, must outlive the source
 */
void source_unreplayable_init(struct source_unreplayable *source, const struct source_ops *ops, const char *name,
                              const char *what);
void source_unreplayable_deinit(struct source_unreplayable *source);

/**
 * Sets the stream and position of a chunk to hand out, and moves the source's position past it.
 *
 * @return whether another incarnation begins with it
 */
bool source_unreplayable_place(struct source_unreplayable *source, struct source_chunk *chunk);

/* As in source_ops. */
size_t source_unreplayable_streams(struct source *source, struct source_stream ***streams);
void source_unreplayable_acknowledge(struct source *source, struct source_stream *stream, uint64_t position);
enum weir_status source_unreplayable_resume(struct source *source, struct source_stream *stream, uint64_t position,
                                            struct weir_error *error);
size_t source_unreplayable_status(struct source *source, struct source_status *statuses, size_t count);

#endif
