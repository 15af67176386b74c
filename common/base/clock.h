/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, for those who may read them: nobody below the collector judges by one. */
#ifndef WEIR_COMMON_CLOCK_H
#define WEIR_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t weir_clock_ms(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/** For durations and deadlines. */
static inline int64_t weir_monotonic_ms(void)
{
	return weir_clock_ms(CLOCK_MONOTONIC);
}

/** Unix ms. */
static inline int64_t weir_wall_ms(void)
{
	return weir_clock_ms(CLOCK_REALTIME);
}

#endif
