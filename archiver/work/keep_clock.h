/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By what time old rows are deleted: the clock's, but a clock that is far ahead of the last deletion is not believed at
 * once. A machine whose clock is wrong as it starts would delete all there is, and events that it writes in its logs
 * have that same clock. So no more is deleted for some hours, in which people read the log, and time servers answer.
 *
 * No clock is read here.
 */
#ifndef ARCHIVER_WORK_KEEP_CLOCK_H
#define ARCHIVER_WORK_KEEP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	KEEP_CLOCK_AHEAD_MS = 24 * 3600 * 1000, /* beyond the last deletion: more than a restart takes */
	KEEP_CLOCK_WAIT_MS = 6 * 3600 * 1000,   /* after which the clock is believed */
};

/* Zero-initialised. */
struct keep_clock {
	bool waits;       /* for the clock, or to believe it */
	int64_t since_ms; /* monotonic: since when */
	int64_t
		last_ms; /* the last deletion as it was then: where it moves on, somebody else deletes by a clock that is right */
};

/**
 * @param wall_ms  the clock
 * @param last_ms  by what time rows were last deleted, by any archiver; 0: nothing is known
 * @return Unix ms; below wall_ms: it waits
 */
int64_t keep_clock_now(struct keep_clock *clock, int64_t wall_ms, int64_t last_ms, int64_t monotonic_ms);

#endif
