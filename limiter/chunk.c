/* Aligned mappings: more is mapped than asked for and the ends are given back. */
#include "limiter/chunk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

void *chunk_map(size_t bytes, bool huge)
{
	size_t room = bytes + CHUNK_BYTES;
	char *mapped = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED) {
		fprintf(stderr, "weir: out of memory (asked for %zu bytes)\n", bytes);
		abort();
	}
	size_t front = (CHUNK_BYTES - ((uintptr_t)mapped & (CHUNK_BYTES - 1))) & (CHUNK_BYTES - 1);
	if (front > 0)
		munmap(mapped, front);
	if (CHUNK_BYTES - front > 0)
		munmap(mapped + front + bytes, CHUNK_BYTES - front);
	/* Where the system has no huge pages, small ones serve: slower, not wrong. */
	(void)madvise(mapped + front, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return mapped + front;
}

void chunk_unmap(void *chunk, size_t bytes)
{
	munmap(chunk, bytes);
}
