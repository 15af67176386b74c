/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligned mappings. The system places a new mapping next to the last one, so the
 * mapping after an aligned chunk is usually aligned without more ado: chunks are
 * then adjacent, as one mapping, and use the processor's page tables evenly. If it
 * is not aligned, more is mapped than asked for, and the ends are unmapped.
 */
#include "limiter/memory/chunk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char *map(size_t bytes)
{
	char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED) {
		fprintf(stderr, "weir: out of memory (asked for %zu bytes)\n", bytes);
		abort();
	}
	return mapped;
}

static size_t bytes_to_boundary(const char *mapped)
{
	return (CHUNK_BYTES - ((uintptr_t)mapped & (CHUNK_BYTES - 1))) & (CHUNK_BYTES - 1);
}

void *chunk_map(size_t bytes, bool huge)
{
	char *mapped = map(bytes);
	size_t front = bytes_to_boundary(mapped);
	if (front > 0) {
		munmap(mapped, bytes);
		mapped = map(bytes + CHUNK_BYTES);
		front = bytes_to_boundary(mapped);
		if (front > 0)
			munmap(mapped, front);
		if (CHUNK_BYTES - front > 0)
			munmap(mapped + front + bytes, CHUNK_BYTES - front);
	}
	/* A system without huge pages gives small ones: that is slower, but not wrong. */
	(void)madvise(mapped + front, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return mapped + front;
}

bool chunk_part_give_back(void *part, size_t bytes)
{
	return bytes % (size_t)sysconf(_SC_PAGESIZE) == 0 && madvise(part, bytes, MADV_DONTNEED) == 0;
}

void chunk_unmap(void *chunk, size_t bytes)
{
	munmap(chunk, bytes);
}
