/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the process has run: stopped, suspended, swapped out or starved of CPU,
 * a thread wakes up late, and then what it waited for from others is late too,
 * through no fault of theirs.
 */
#ifndef WEIR_COMMON_STALL_H
#define WEIR_COMMON_STALL_H

#include "common/base/clock.h"

/* Of one thread, that turns at intervals much shorter than a second or two. Zero-initialised. */
struct weir_stall {
	int64_t turn_ms;
};

enum { WEIR_STALL_MS = 5000 }; /* waking up later than this is no mere load of the machine */

/**
 * Called in each turn.
 *
 * @param now_ms     by a clock that counts while the machine is suspended: CLOCK_BOOTTIME
 * @param period_ms  how long a turn should have taken at most
 * @return how long the process did not run; 0: it did
 */
static inline int64_t weir_stall_turn(struct weir_stall *stall, int64_t now_ms, int64_t period_ms)
{
	int64_t late_ms = stall->turn_ms > 0 ? now_ms - stall->turn_ms - period_ms : 0;
	stall->turn_ms = now_ms;
	return late_ms >= WEIR_STALL_MS ? late_ms : 0;
}

#endif
