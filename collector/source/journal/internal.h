/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the journal source share. Only source_journal*.c include it. */
#ifndef COLLECTOR_SOURCE_JOURNAL_INTERNAL_H
#define COLLECTOR_SOURCE_JOURNAL_INTERNAL_H

#include "collector/source/journal/journal_file.h"
#include "collector/source/journal/journal_files.h"
#include "collector/source/journal/source_journal.h"
#include "collector/source/source_memory.h"

#include <pthread.h>

enum { JOURNAL_STREAMS_MAX = 1024, JOURNAL_CHUNK_BYTES = 256 << 10, JOURNAL_CHUNK_ENTRIES = 1024 };

/* A position is this plus a sequence number. */
#define JOURNAL_POSITION_BASE (UINT64_C(1) << SOURCE_OFFSET_BITS)
#define JOURNAL_SEQNUM_MAX (UINT64_C(1) << 62)

struct journal_stream {
	struct source_stream stream; /* first; its name is the record's path */
	struct source_memory_stream *record;
	uint8_t id[JOURNAL_ID_BYTES];
	char *name; /* of its files (journal_name()); owned */
	/* the file being read; NULL: none now */
	struct journal_file *file;
	int fd;
	struct journal_listed at; /* its path is owned */
	bool succeeded;           /* another file continues after it: nothing more is written to it */
	bool complete;            /* the previous file was read to its end: no entry is lost between it and the next one */
	uint64_t through;         /* every entry up to this number was handed out, or is not wanted */
	uint64_t handed, acknowledged;
	int64_t retry_ms; /* after a failure: not read before this */
	/* the newest chunk */
	struct weir_text text;
	uint64_t positions[JOURNAL_CHUNK_ENTRIES];
	size_t count;
	bool long_held; /* a too long entry waits, to be handed out on its own */
	uint64_t long_skipped;
	struct weir_text long_text;
	uint64_t long_seqnum;
	bool failed; /* with `once`: it has failed for good, and the error was returned */
	/* for status(), under the source's mutex */
	struct source_status status;
	int64_t caught_up_ms, problem_until_ms; /* problem_until_ms INT64_MAX: until it is read again */
};

struct journal_source {
	struct source source;
	bool once;
	size_t line_max;
	enum source_at_start start;
	char *label; /* the part of its streams' names between the prefix and the seqnum id */
	struct journal_filter filter;
	struct source_memory *memory;
	bool memory_owned;
	struct journal_files files;
	int64_t scan_ms, save_ms; /* monotonic: when the next of these is due */
	struct journal_stream **streams;
	struct source_stream **handles;
	size_t stream_count, turn;
	pthread_mutex_t mutex; /* guards statuses, and the list of streams */
	char problem[256];     /* of the source as a whole: there is no journal, or it cannot be listed */
};

/** source_journal_config.c: the members of the configuration, and the function that reads it into a source. */
extern const struct weir_json_rule journal_members[];
WEIR_MUST_USE enum weir_status journal_configure(struct journal_source *source, const struct weir_json *config,
                                                 const struct source_context *context, struct weir_error *error);

/** source_journal_stream.c: reads a stream's next lines, as source_ops.collect. */
enum weir_status journal_stream_collect(struct journal_source *source, struct journal_stream *stream, int64_t now_ms,
                                        struct source_chunk *chunk, struct weir_error *error);

/** Closes the file being read, if any. */
void journal_stream_close(struct journal_stream *stream);

/** Lists the files again, if that is due, and adds streams for new ids and names. */
void journal_source_scan(struct journal_source *source, int64_t now_ms);

#endif
