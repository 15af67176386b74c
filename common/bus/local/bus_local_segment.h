/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One segment file of a topic: created, opened, walked record by record, repaired
 * after a crash; and the index that says where a partition's messages are.
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
	uint64_t previous_bytes; /* from its header */
	uint64_t *first;         /* each partition's next offset at its beginning */
	uint32_t partitions;
	struct weir_bus_index *index; /* NULL: not loaded */
	uint64_t used;                /* journal->index_uses when its index was last used */
};

void weir_bus_segment_free(struct weir_bus_segment *segment);

/** DIRECTORY/<sequence, 20 digits>.log */
WEIR_MUST_USE enum weir_status weir_bus_segment_path(const char *directory, uint64_t sequence,
                                                     char path[WEIR_PATH_BYTES], struct weir_error *error);

/** Lists the sequences of a directory's segment files, ascending. @param sequences  returned, the caller frees */
WEIR_MUST_USE enum weir_status weir_bus_segment_list(const char *directory, uint64_t **sequences, uint32_t *count,
                                                     struct weir_error *error);

/**
 * Creates the file with its header, on disk. Overwrites an existing file of that name.
 *
 * @param header   its id is set here
 * @param segment  set to a new one, with an empty index
 * @param fd       set to the file, open for writing
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_create(const char *directory, struct weir_bus_segment_header *header,
                                                       struct weir_bus_segment **segment, int *fd,
                                                       struct weir_error *error);

/**
 * Reads a file's header. Sets `length` to the file's size, and does not load the index.
 *
 * @return WEIR_OK; WEIR_INVALID, WEIR_NEWER, WEIR_IO: the error names the file
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_open(const char *directory, enum weir_topic topic, uint32_t partitions,
                                                     uint64_t sequence, struct weir_bus_segment **segment,
                                                     struct weir_error *error);

/* The result of a walk. */
struct weir_bus_walk {
	uint64_t end;     /* after the last valid record */
	uint64_t durable; /* the last valid record's `durable`, or where the records begin */
	const char *why;  /* what is wrong at `end`, if anything is */
};

/**
 * Walks the records from the header up to `limit`: headers, the order of each partition's offsets and, if asked, the
 * bodies' hashes.
 *
 * @param index         filled; NULL: not wanted
 * @param next_offsets  each partition's first offset; set to the offset after its last
 * @return WEIR_OK: all records up to limit are valid; WEIR_INVALID: only those before walk->end are; WEIR_IO (errno)
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_walk(int fd, const struct weir_bus_segment *segment, uint64_t limit,
                                                     bool bodies, struct weir_bus_index *index, uint64_t *next_offsets,
                                                     struct weir_bus_walk *walk);

/** Loads the index of a closed segment, walking its headers. @return also WEIR_INVALID: error names file and byte */
WEIR_MUST_USE enum weir_status weir_bus_segment_load(const char *directory, const struct weir_bus_segment *segment,
                                                     struct weir_bus_index **index, struct weir_error *error);

/**
 * Opens the last segment for writing: checks every byte, makes what is whole durable and fills the index.
 *
 * @param torn          set to whether more stands behind its length than the next record covers: it is cut before that
 * @param next_offsets  set to each partition's offset after its last record
 * @return WEIR_OK; WEIR_INVALID: acknowledged bytes are damaged: the error names file and byte; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_mend(const char *directory, struct weir_bus_segment *segment,
                                                     uint64_t *next_offsets, int *fd, bool *torn,
                                                     struct weir_error *error);

/** Checks every byte as weir_bus_segment_mend() does, and changes nothing. @return as there */
WEIR_MUST_USE enum weir_status weir_bus_segment_examine(const char *directory, const struct weir_bus_segment *segment,
                                                        uint64_t *next_offsets, struct weir_error *error);

/* ---- for the files of the local bus ---- */

/** Opens a segment's file. @param path  set, also on failure @return WEIR_OK; WEIR_IO (errno) */
WEIR_MUST_USE enum weir_status weir_bus_segment_open_file(const char *directory, uint64_t sequence, int flags,
                                                          char path[WEIR_PATH_BYTES], int *fd,
                                                          struct weir_error *error);

/** Sets the error "PATH is damaged at byte N: why". @return WEIR_INVALID */
enum weir_status weir_bus_segment_damaged(const char *path, const struct weir_bus_walk *walk, struct weir_error *error);

/** Reads by pread() until `length` bytes or the end of the file. @return how many were read, or -1 */
ssize_t weir_bus_read(int fd, char *bytes, size_t length, uint64_t at);
/** Writes all bytes by pwrite(). @return 0 or -1 */
int weir_bus_write(int fd, const char *bytes, size_t length, uint64_t at);

#endif
