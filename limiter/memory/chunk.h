/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: the unit in which a shard takes memory from the system and gives it
 * back. A chunk has two megabytes and is aligned to that, so that one entry of
 * the processor's page tables can cover it. Reading a bucket is then one random
 * memory access; with small pages it would be several.
 */
#ifndef LIMITER_CHUNK_H
#define LIMITER_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

enum { CHUNK_BYTES = 2 << 20 };

/**
 * Maps zeroed memory; aborts the process if there is none.
 *
 * @param bytes  a multiple of CHUNK_BYTES
 * @param huge   asks for huge pages: a chunk becomes resident as a whole; otherwise page by page, as it is touched
 */
void *chunk_map(size_t bytes, bool huge) __attribute__((returns_nonnull));
void chunk_unmap(void *chunk, size_t bytes);
/**
 * Gives back a part of a chunk without huge pages, which stays mapped and reads as zeroes.
 *
 * @return false: it was not, as the system's pages are larger than such a part
 */
bool chunk_part_give_back(void *part, size_t bytes);

#endif
