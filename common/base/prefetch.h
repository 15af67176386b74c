/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the processor for memory that is needed soon.
 *
 * GCC takes a function that does nothing but __builtin_prefetch() for one without effect, and drops its calls. So each
 * request says that it has one, by an empty statement of assembly.
 */
#ifndef WEIR_COMMON_PREFETCH_H
#define WEIR_COMMON_PREFETCH_H

/** Asks for the line of an address, which need not be mapped, to be read or written next: into the first cache. */
static inline __attribute__((always_inline)) void weir_prefetch(const void *at)
{
	__builtin_prefetch(at, 1, 3);
	__asm__ volatile("");
}

/** The same for what is needed some hundred nanoseconds later: into the second cache. */
static inline __attribute__((always_inline)) void weir_prefetch_far(const void *at)
{
	__builtin_prefetch(at, 1, 2);
	__asm__ volatile("");
}

#endif
