/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One order for several streams, for --once: by (running maximum of the stream's
 * times, place in the configuration, path bytes of a glob's files). Each stream
 * keeps its own order. The same input gives the same order on any machine.
 */
#ifndef COLLECTOR_MERGE_H
#define COLLECTOR_MERGE_H

#include "collector/follow/record_reader.h"

struct merge;

/* One stream to merge. Its source provides its chunks. */
struct merge_input {
	struct source *source;
	struct record_reader *reader;
	int64_t maximum_ms;       /* running maximum of the stream's record times; -1: none yet (a resumed run sets it) */
	int64_t given_maximum_ms; /* the same without the record that is read ahead: a cut saves it */
};

/** @param inputs  borrowed; among equal times the one with the lower index comes first */
struct merge *merge_new(struct merge_input *inputs, size_t count);
void merge_free(struct merge *merge);

/**
 * Finds the stream whose record comes next; its reader holds the record. Takes the record of the previous call.
 *
 * @return WEIR_OK; WEIR_END: all streams are read; WEIR_AGAIN: a pipe whose turn it is has nothing yet, although
 *         collect() waited for a while: call again; WEIR_IO: a stream failed and provides no more (the error says
 *         which): call again for the others
 */
WEIR_MUST_USE enum weir_status merge_next(struct merge *merge, struct merge_input **input, struct weir_error *error);

/** Takes the record of the last merge_next(), if it is not taken yet: called before a cut. */
void merge_take(struct merge *merge);

#endif
