/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that ends the process when there is no memory: see alloc.h for where that is right. */
#include "common/base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t count, size_t bytes)
{
	fprintf(stderr, "weir: out of memory (asked for %zu x %zu bytes)\n", count, bytes);
	abort();
}

void *weir_alloc(size_t count, size_t bytes)
{
	void *memory = calloc(count ? count : 1, bytes ? bytes : 1);
	if (memory == NULL)
		out_of_memory(count, bytes);
	return memory;
}

void *weir_alloc_aligned(size_t count, size_t bytes)
{
	if (count > SIZE_MAX / bytes)
		out_of_memory(count, bytes);
	size_t size = count > 0 ? count * bytes : bytes;
	void *memory = aligned_alloc(bytes, size);
	if (memory == NULL)
		out_of_memory(count, bytes);
	return memset(memory, 0, size);
}

void *weir_realloc(void *memory, size_t count, size_t bytes)
{
	if (bytes != 0 && count > SIZE_MAX / bytes)
		out_of_memory(count, bytes);
	size_t size = count * bytes;
	void *grown = realloc(memory, size ? size : 1);
	if (grown == NULL)
		out_of_memory(count, bytes);
	return grown;
}

char *weir_copy(const void *bytes, size_t length)
{
	char *copy = weir_alloc(length + 1, 1);
	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}
