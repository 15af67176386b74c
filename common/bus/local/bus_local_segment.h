/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One segment file of a topic: made, opened, walked record by record, mended
 * after a crash; and the index that says where a partition's messages lie.
 */
#ifndef WEIR_COMMON_BUS_LOCAL_SEGMENT_H
#define WEIR_COMMON_BUS_LOCAL_SEGMENT_H

#include "common/bus/local/bus_local_format.h"
#include "common/bus/local/bus_local_index.h"
#include "common/files/durable_file.h"

#include <sys/types.h>

struct weir_bus_segment {
	uint64_t sequence;
	uint64_t id;
	uint64_t length;         /* its valid bytes; they are on disk */
	uint64_t previous_bytes; /* as its header says */
	uint64_t *first;         /* next offset of each partition where it begins */
	uint32_t partitions;
	struct weir_bus_index *index; /* NULL: not loaded */
	uint64_t used;                /* when its index was last looked at */
};

void weir_bus_segment_free(struct weir_bus_segment *segment);

/** DIRECTORY/<sequence, 20 digits>.log */
WEIR_MUST_USE enum weir_status weir_bus_segment_path(const char *directory, uint64_t sequence,
                                                     char path[WEIR_PATH_BYTES], struct weir_error *error);

/** The sequences of the segment files in a directory, ascending; *sequences is returned, the caller frees. */
WEIR_MUST_USE enum weir_status weir_bus_segment_list(const char *directory, uint64_t **sequences, uint32_t *count,
                                                     struct weir_error *error);

/**
 * Makes the file with its header, on disk; what had the name before is overwritten.
 *
 * @param header   its id is chosen here
 * @param segment  new, with an empty index
 * @param fd       open for writing
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_create(const char *directory, struct weir_bus_segment_header *header,
                                                       struct weir_bus_segment **segment, int *fd,
                                                       struct weir_error *error);

/**
 * Reads a file's header. length is what the file has, index is not loaded.
 *
 * @return WEIR_OK; WEIR_INVALID, WEIR_NEWER, WEIR_IO: the words name the file
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_open(const char *directory, enum weir_topic topic, uint32_t partitions,
                                                     uint64_t sequence, struct weir_bus_segment **segment,
                                                     struct weir_error *error);

/* How far a walk came. */
struct weir_bus_walk {
	uint64_t end;     /* after the last good record */
	uint64_t durable; /* the last good record's `durable`, or where the records begin */
	const char *why;  /* what is wrong at `end`, where something is */
};

/**
 * Walks the records from the header up to `limit`: headers, the order of each partition's offsets and, if asked, the
 * bodies' hashes.
 *
 * @param index         filled; NULL: not wanted
 * @param next_offsets  each partition's first offset; moved to after its last
 * @return WEIR_OK: all good up to limit; WEIR_INVALID: not beyond walk->end; WEIR_IO (errno)
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_walk(int fd, const struct weir_bus_segment *segment, uint64_t limit,
                                                     bool bodies, struct weir_bus_index *index, uint64_t *next_offsets,
                                                     struct weir_bus_walk *walk);

/** Loads the index of a segment that is closed (walks its headers). @return also WEIR_INVALID: file and byte */
WEIR_MUST_USE enum weir_status weir_bus_segment_load(const char *directory, const struct weir_bus_segment *segment,
                                                     struct weir_bus_index **index, struct weir_error *error);

/**
 * Opens the last segment for writing: checks every byte, cuts a torn tail, puts the rest on disk and fills the index.
 *
 * @param next_offsets  set to after the last record
 * @return WEIR_OK; WEIR_INVALID: acknowledged bytes are damaged: file and byte; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_mend(const char *directory, struct weir_bus_segment *segment,
                                                     uint64_t *next_offsets, int *fd, struct weir_error *error);

/* ---- for the files of the local bus ---- */

/** Opens a segment's file. *path is set where it fails, too. @return WEIR_OK; WEIR_IO (errno) */
WEIR_MUST_USE enum weir_status weir_bus_segment_open_file(const char *directory, uint64_t sequence, int flags,
                                                          char path[WEIR_PATH_BYTES], int *fd,
                                                          struct weir_error *error);

/** "PATH is damaged at byte N: why", WEIR_INVALID. */
enum weir_status weir_bus_segment_damaged(const char *path, const struct weir_bus_walk *walk, struct weir_error *error);

/** pread() of all bytes. @return how many there were before the end, or -1 */
ssize_t weir_bus_read(int fd, char *bytes, size_t length, uint64_t at);
/** pwrite() of all bytes. @return 0 or -1 */
int weir_bus_write(int fd, const char *bytes, size_t length, uint64_t at);

#endif
