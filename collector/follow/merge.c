/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of streams by (running maximum, place). The top stream is read as
 * long as it stays on top, so one file, or several files in succession, cost one
 * comparison per record.
 */
#include "collector/follow/merge.h"

#include "common/base/alloc.h"

#include <stdlib.h>

struct merge {
	struct merge_input *inputs; /* borrowed, ranked by index */
	size_t count;
	struct merge_input **heap; /* the inputs that have a record; the least first */
	size_t live;
	size_t started; /* inputs whose first record was read */
	bool given;     /* heap[0]'s record was returned, and is not taken yet */
	bool awaited;   /* heap[0]'s record was taken, and the next one is not read yet */
};

struct merge *merge_new(struct merge_input *inputs, size_t count)
{
	struct merge *merge = weir_alloc(1, sizeof *merge);
	merge->inputs = inputs;
	merge->count = count;
	merge->heap = weir_alloc(count, sizeof *merge->heap);
	return merge;
}

void merge_free(struct merge *merge)
{
	if (merge == NULL)
		return;
	free(merge->heap);
	free(merge);
}

static bool before(const struct merge_input *a, const struct merge_input *b)
{
	return a->maximum_ms != b->maximum_ms ? a->maximum_ms < b->maximum_ms : a < b;
}

static void sift_down(struct merge *merge)
{
	struct merge_input **heap = merge->heap;
	struct merge_input *moved = heap[0];
	size_t at = 0;
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= merge->live)
			break;
		if (child + 1 < merge->live && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void push(struct merge *merge, struct merge_input *input)
{
	struct merge_input **heap = merge->heap;
	size_t at = merge->live++;
	while (at > 0 && before(input, heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = input;
}

/*
 * Reads the input's next record. WEIR_END, WEIR_IO: there is none, and the lines after its last record are counted;
 * WEIR_AGAIN: there is none yet.
 */
static enum weir_status advance(struct merge_input *input, struct weir_error *error)
{
	struct record_reader *reader = input->reader;
	while (record_reader_next(reader) == WEIR_AGAIN) {
		struct source_chunk chunk;
		enum weir_status status = input->source->ops->collect(input->source, reader->stream, &chunk, error);
		if (status == WEIR_AGAIN)
			return status;
		if (status != WEIR_OK) {
			record_reader_end(reader);
			return status;
		}
		record_reader_feed(reader, &chunk);
	}
	if (reader->record.time_ms > input->maximum_ms)
		input->maximum_ms = reader->record.time_ms;
	return WEIR_OK;
}

enum weir_status merge_next(struct merge *merge, struct merge_input **input, struct weir_error *error)
{
	while (merge->started < merge->count) {
		struct merge_input *next = &merge->inputs[merge->started];
		enum weir_status status = advance(next, error);
		if (status == WEIR_AGAIN)
			return status;
		merge->started++;
		if (status == WEIR_OK)
			push(merge, next);
		else if (status != WEIR_END)
			return status;
	}
	if (merge->given) {
		record_reader_take(merge->heap[0]->reader, 0);
		merge->given = false;
		merge->awaited = true;
	}
	if (merge->awaited) {
		enum weir_status status = advance(merge->heap[0], error);
		if (status == WEIR_AGAIN)
			return status;
		merge->awaited = false;
		if (status != WEIR_OK) {
			merge->heap[0] = merge->heap[--merge->live];
			if (merge->live > 0)
				sift_down(merge);
			if (status != WEIR_END)
				return status;
		} else if (merge->live > 1) {
			sift_down(merge);
		}
	}
	if (merge->live == 0)
		return WEIR_END;
	*input = merge->heap[0];
	(*input)->given_maximum_ms = (*input)->maximum_ms;
	merge->given = true;
	return WEIR_OK;
}

void merge_take(struct merge *merge)
{
	if (merge->given)
		record_reader_take(merge->heap[0]->reader, 0);
}
