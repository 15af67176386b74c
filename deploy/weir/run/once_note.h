/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a --once run leaves beside its checkpoint: how far each stream was read,
 * how long the output files were, what was counted. Written in the
 * checkpoint's own transaction, so that all of it is one cut.
 */
#ifndef DEPLOY_WEIR_RUN_ONCE_NOTE_H
#define DEPLOY_WEIR_RUN_ONCE_NOTE_H

#include "collector/follow/record_reader.h"
#include "common/files/line_file.h"
#include "deploy/weir/run/outputs.h"

#define ONCE_NOTE_NAME "once"

struct once_stream {
	char *name;
	uint64_t position;  /* read up to here */
	int64_t maximum_ms; /* the highest record time so far, -1: none */
	char *header;       /* its format's header line, NULL: none */
	size_t header_length;
	struct record_counts counts;
};

struct once_note {
	uint64_t zones;   /* hash of the policy's text */
	uint64_t sources; /* hash of the sources' configuration */
	uint64_t lists;   /* hash of the lists of its "exempt" (exempt_lists_hash) */
	uint32_t partitions;
	bool finished;
	uint64_t records; /* in the merged order so far */
	double seconds;   /* of work so far */
	struct weir_line_file_mark files[OUTPUT_COUNT];
	struct weir_line_file_mark dead_letters;
	uint64_t dead_letters_written, dead_letters_dropped;
	struct once_stream *streams;
	size_t stream_count;
	char *memory; /* the sources' own (source_memory), NULL: none */
};

/** As JSON; returned, the caller frees. */
char *once_note_encode(const struct once_note *note);
WEIR_MUST_USE enum weir_status once_note_decode(const char *text, size_t length, struct once_note *note,
                                                struct weir_error *error);
void once_note_deinit(struct once_note *note);

/** The stream of a name, NULL if there is none. */
const struct once_stream *once_note_stream(const struct once_note *note, const char *name);

#endif
