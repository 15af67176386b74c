/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of checks of buckets whose newest event is in the future, as the clock was
 * set back since, or is behind another's. It follows the clock, but never goes back:
 * where the clock is behind what was answered or seen in the log, this time goes on at
 * half the speed until the clock is there again. Were it to wait, a key at its limit
 * would be blocked as long; were it to go back, whatever was counted would be in the
 * future. So fewer pass meanwhile, and never more.
 */
#ifndef LIMITER_CHECK_CLOCK_H
#define LIMITER_CHECK_CLOCK_H

#include <stdint.h>

/* When a check is asked. */
struct check_now {
	int64_t wall_ms;
	int64_t steady_ms; /* of a clock that nobody sets */
};

struct check_clock {
	int64_t time_ms;   /* the newest that was given or seen */
	int64_t steady_ms; /* up to when it has gone on; -1: since the next reading */
};

static inline int64_t check_clock_read(struct check_clock *clock, struct check_now now)
{
	if (now.wall_ms >= clock->time_ms) {
		*clock = (struct check_clock){.time_ms = now.wall_ms, .steady_ms = now.steady_ms};
	} else if (clock->steady_ms < 0) {
		clock->steady_ms = now.steady_ms;
	} else {
		int64_t passed_ms = (now.steady_ms - clock->steady_ms) / 2;
		clock->time_ms += passed_ms;
		clock->steady_ms += 2 * passed_ms;
	}
	return clock->time_ms;
}

/** Takes note of what another has answered, or was told of. */
static inline void check_clock_see(struct check_clock *clock, int64_t time_ms)
{
	if (time_ms > clock->time_ms)
		*clock = (struct check_clock){.time_ms = time_ms, .steady_ms = -1};
}

/** How far it is before the clock. */
static inline int64_t check_clock_ahead_ms(const struct check_clock *clock, int64_t wall_ms)
{
	return clock->time_ms > wall_ms ? clock->time_ms - wall_ms : 0;
}

#endif
