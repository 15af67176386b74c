/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in the order in which they come due: the first is at hand, any can be moved or taken out. */
#ifndef DEPLOY_GATEWAYS_TABLE_BLOCK_HEAP_H
#define DEPLOY_GATEWAYS_TABLE_BLOCK_HEAP_H

#include <stdint.h>

/* What stands in a heap: part of the thing that comes due. */
struct block_due {
	int64_t due_ms;
	uint32_t place; /* the heap's; 0: in none */
};

/* Zero-initialised is empty. */
struct block_heap {
	struct block_due **at; /* from 1 on */
	uint32_t count, capacity;
};

void block_heap_deinit(struct block_heap *heap);

/** Puts it in with this time, or moves it there. @param due  borrowed until it is taken out */
void block_heap_put(struct block_heap *heap, struct block_due *due, int64_t due_ms);
/** Takes it out; of no effect where it is in none. */
void block_heap_take(struct block_heap *heap, struct block_due *due);

/** The one that comes due first; NULL: empty. */
static inline struct block_due *block_heap_first(const struct block_heap *heap)
{
	return heap->count > 0 ? heap->at[1] : (struct block_due *)0;
}

#endif
