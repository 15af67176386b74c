/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of bounded size that a role cannot continue without.
 *
 * Everything that grows with input has its own ceiling and returns WEIR_FULL;
 * what is left are small fixed structures, for which running out means that
 * the machine is gone: these end the process with a message.
 */
#ifndef WEIR_COMMON_ALLOC_H
#define WEIR_COMMON_ALLOC_H

#include <stddef.h>

/** Zeroed memory. The caller frees with free(). Ends the process if there is none. */
void *weir_alloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));

/** The same at a multiple of `bytes`, a power of two, such as a cache line. */
void *weir_alloc_aligned(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));

/** realloc() to count * bytes; contents kept, the rest not zeroed. Ends the process if there is none. */
void *weir_realloc(void *memory, size_t count, size_t bytes) __attribute__((returns_nonnull));

/** A terminated copy of length bytes. The caller frees. */
char *weir_copy(const void *bytes, size_t length) __attribute__((malloc, returns_nonnull));

#endif
