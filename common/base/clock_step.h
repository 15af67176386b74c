/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the clock was set while a program runs, for those who hold times of it. A machine's sleep is such a step, too. */
#ifndef WEIR_COMMON_CLOCK_STEP_H
#define WEIR_COMMON_CLOCK_STEP_H

#include <stdint.h>

enum { WEIR_CLOCK_STEP_MS = 2000 /* a smaller difference is none: a leap second */ };

/* @thread one */
struct weir_clock_step {
	int64_t offset_ms; /* the clock minus the monotonic one, which only a step changes */
};

/** Begins to watch. */
void weir_clock_step_begin(struct weir_clock_step *clock);

/** By how much the clock was set since it was last said so, or since the beginning; below 0: back; 0: it was not. */
int64_t weir_clock_step_take(struct weir_clock_step *clock);

#endif
