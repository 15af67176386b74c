/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in a topic's files from where records are read as they are written, by another process too.
 *
 * @thread one at a time
 */
#ifndef WEIR_COMMON_BUS_LOCAL_CURSOR_H
#define WEIR_COMMON_BUS_LOCAL_CURSOR_H

#include "common/bus/local/bus_local_segment.h"

struct weir_bus_cursor {
	char *directory; /* of the topic; owned */
	enum weir_topic topic;
	uint32_t partitions;
	struct weir_bus_segment *segment; /* NULL: it has no place */
	uint64_t *next;                   /* of each partition, the offset that its next record has */
	uint64_t *retreat; /* of each partition: where a new file begins below what was read; UINT64_MAX: it does not */
	int fd;
	uint64_t at;
	char *window;
	size_t capacity, filled;
	uint64_t window_at;
};

void weir_bus_cursor_init(struct weir_bus_cursor *cursor, const char *directory, enum weir_topic topic,
                          uint32_t partitions);
void weir_bus_cursor_deinit(struct weir_bus_cursor *cursor);

/**
 * Goes to the newest file at whose beginning no partition is past the place that is wanted, else to the oldest.
 *
 * @param wanted  of each partition; UINT64_MAX: any. NULL: the newest file
 * @return WEIR_OK; WEIR_AGAIN: there is no file; WEIR_IO, WEIR_INVALID, WEIR_NEWER: a file cannot be read
 */
WEIR_MUST_USE enum weir_status weir_bus_cursor_place(struct weir_bus_cursor *cursor, const uint64_t *wanted,
                                                     struct weir_error *error);
/** Gives up the place. */
void weir_bus_cursor_leave(struct weir_bus_cursor *cursor);

/**
 * Reads the next record; `next` of its partition is past it then. Where records are damaged or gone it goes on behind
 * them, so that `next` leaps.
 *
 * @param body  borrowed until the next call
 * @return WEIR_OK; WEIR_AGAIN: nothing more is written; WEIR_END: it went on to another file, whose `next` it has taken
 *         up: call again; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_cursor_read(struct weir_bus_cursor *cursor, struct weir_bus_record *record,
                                                    const char **body, struct weir_error *error);

#endif
