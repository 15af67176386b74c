/* SPDX-License-Identifier: Apache-2.0 */
/* The waiting is of this process: a machine that is started anew has a clock that may be another. */
#include "archiver/work/keep_clock.h"

int64_t keep_clock_now(struct keep_clock *clock, int64_t wall_ms, int64_t last_ms, int64_t monotonic_ms)
{
	bool ahead = last_ms > 0 && wall_ms - last_ms > KEEP_CLOCK_AHEAD_MS;
	if (!ahead)
		clock->waits = false;
	else if (!clock->waits || clock->last_ms != last_ms)
		*clock = (struct keep_clock){.waits = true, .since_ms = monotonic_ms, .last_ms = last_ms};
	return ahead && monotonic_ms - clock->since_ms < KEEP_CLOCK_WAIT_MS ? last_ms : wall_ms;
}
