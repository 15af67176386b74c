/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on a condition until a moment: monotonic time, for timeouts alone. */
#ifndef WEIR_COMMON_DEADLINE_H
#define WEIR_COMMON_DEADLINE_H

#include "common/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A moment of the monotonic clock. */
struct weir_deadline {
	struct timespec at;
};

static inline struct weir_deadline weir_deadline_in_ms(int64_t delay_ms)
{
	struct weir_deadline deadline;
	clock_gettime(CLOCK_MONOTONIC, &deadline.at);
	deadline.at.tv_sec += (time_t)(delay_ms / 1000);
	deadline.at.tv_nsec += (long)(delay_ms % 1000) * 1000000;
	if (deadline.at.tv_nsec >= 1000000000) {
		deadline.at.tv_nsec -= 1000000000;
		deadline.at.tv_sec++;
	}
	return deadline;
}

/** @param at_ms  as weir_monotonic_ms() tells it */
static inline struct weir_deadline weir_deadline_at_ms(int64_t at_ms)
{
	return (struct weir_deadline){.at = {.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000) * 1000000}};
}

/** A condition that waits by the monotonic clock: a step of the wall clock neither shortens nor lengthens a wait. */
static inline void weir_condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

/** False: the deadline has passed. */
static inline bool weir_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                       const struct weir_deadline *deadline)
{
	return pthread_cond_timedwait(condition, lock, &deadline->at) != ETIMEDOUT;
}

#endif
