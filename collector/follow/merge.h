/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One order for several streams, for --once: by (running maximum of a stream's
 * times, place in the configuration, a glob's files by path bytes), each stream
 * in its own order. The same input gives the same order on any machine.
 */
#ifndef COLLECTOR_MERGE_H
#define COLLECTOR_MERGE_H

#include "collector/follow/record_reader.h"

struct merge;

/* One stream to merge, in the order of ties. Borrowed by the merge; its source feeds it. */
struct merge_input {
	struct source *source;
	struct record_reader *reader;
	int64_t maximum_ms;       /* running maximum of the stream's record times; -1: none yet (a resumed run sets it) */
	int64_t given_maximum_ms; /* the same without the record that is read ahead: what a cut remembers */
};

/** @param inputs  borrowed; their place is their rank among equal times */
struct merge *merge_new(struct merge_input *inputs, size_t count);
void merge_free(struct merge *merge);

/**
 * The stream whose record comes next: *input->reader holds it. The one given before is taken by this call.
 *
 * @return WEIR_OK; WEIR_END: all streams are read; WEIR_AGAIN: a pipe that is next in the order has nothing yet,
 *         collect() has waited for it a while: call again; WEIR_IO: a stream failed and gives no more (call again for the
 *         others), the words say which
 */
WEIR_MUST_USE enum weir_status merge_next(struct merge *merge, struct merge_input **input, struct weir_error *error);

/** Takes the record given last, if it is not yet taken: before a cut. */
void merge_take(struct merge *merge);

#endif
