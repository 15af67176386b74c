/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: the pieces in which a shard takes memory from the system and gives it
 * back. Two megabytes and aligned to that, so that one entry of the processor's
 * page tables can cover a chunk: a bucket is one random access, and without that
 * it would be several.
 */
#ifndef LIMITER_CHUNK_H
#define LIMITER_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

enum { CHUNK_BYTES = 2 << 20 };

/**
 * Maps zeroed memory; ends the process if there is none.
 *
 * @param bytes  a multiple of CHUNK_BYTES
 * @param huge   ask for huge pages: all of it becomes resident at once. Else it does page by page, as it is touched
 */
void *chunk_map(size_t bytes, bool huge) __attribute__((returns_nonnull));
void chunk_unmap(void *chunk, size_t bytes);

#endif
