/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap in which each element knows its place. A wheel would be faster
 * by a constant, but the table also asks for the entry that ends first of all,
 * which is what a heap has on top.
 */
#include "deploy/gateways/table/block_heap.h"

#include "common/base/alloc.h"

#include <stdlib.h>

void block_heap_deinit(struct block_heap *heap)
{
	free(heap->at);
	*heap = (struct block_heap){0};
}

static void set(struct block_heap *heap, uint32_t place, struct block_due *due)
{
	heap->at[place] = due;
	due->place = place;
}

static void rise(struct block_heap *heap, uint32_t place)
{
	struct block_due *due = heap->at[place];
	for (; place > 1 && heap->at[place / 2]->due_ms > due->due_ms; place /= 2)
		set(heap, place, heap->at[place / 2]);
	set(heap, place, due);
}

static void sink(struct block_heap *heap, uint32_t place)
{
	struct block_due *due = heap->at[place];
	for (uint32_t child; (child = 2 * place) <= heap->count; place = child) {
		if (child < heap->count && heap->at[child + 1]->due_ms < heap->at[child]->due_ms)
			child++;
		if (heap->at[child]->due_ms >= due->due_ms)
			break;
		set(heap, place, heap->at[child]);
	}
	set(heap, place, due);
}

void block_heap_put(struct block_heap *heap, struct block_due *due, int64_t due_ms)
{
	if (due->place == 0) {
		if (heap->count + 1 >= heap->capacity) {
			heap->capacity = heap->capacity > 0 ? 2 * heap->capacity : 64;
			heap->at = weir_realloc(heap->at, heap->capacity, sizeof(struct block_due *));
		}
		set(heap, ++heap->count, due);
	}
	due->due_ms = due_ms;
	rise(heap, due->place);
	sink(heap, due->place);
}

void block_heap_take(struct block_heap *heap, struct block_due *due)
{
	uint32_t place = due->place;
	if (place == 0)
		return;
	due->place = 0;
	struct block_due *last = heap->at[heap->count--];
	if (last == due)
		return;
	set(heap, place, last);
	rise(heap, place);
	sink(heap, last->place);
}
