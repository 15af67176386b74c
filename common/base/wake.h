/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking a thread that waits on descriptors: an eventfd, which whoever has
 * something for the thread writes, and which it clears before it looks.
 */
#ifndef WEIR_COMMON_WAKE_H
#define WEIR_COMMON_WAKE_H

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/** A descriptor that never blocks; -1: there is none, and errno says why. The caller closes it. */
static inline int weir_wake_new(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/** Makes the descriptor readable. @param descriptor  -1: does nothing @thread any */
static inline void weir_wake_up(int descriptor)
{
	const uint64_t one = 1;
	if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0)
		return; /* it is at its most, and so readable */
}

/** Makes it unreadable until the next weir_wake_up(). Look for work after this, not before. */
static inline void weir_wake_clear(int descriptor)
{
	uint64_t times;
	if (read(descriptor, &times, sizeof times) < 0)
		return; /* it was unreadable */
}

#endif
