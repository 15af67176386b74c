/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms' files share. */
#ifndef WEIR_COMMON_ALGORITHM_INTERNAL_H
#define WEIR_COMMON_ALGORITHM_INTERNAL_H

#include "common/algorithm/limit_state.h"

#include <stddef.h>

/* "rate" events in each "window": members as most algorithms have them. */
#define WEIR_RATE_MEMBER                                                                                           \
	{                                                                                                              \
		.name = "rate", .at = offsetof(struct weir_limit, rate),                                                   \
		.needed = "how many events a window may hold, such as 10", .meaning = "how many events a window may hold", \
		.least = 1, .most = WEIR_RATE_MAX                                                                          \
	}
#define WEIR_WINDOW_MEMBER                                                                        \
	{                                                                                             \
		.name = "window", .kind = WEIR_MEMBER_TIME, .at = offsetof(struct weir_limit, window_ms), \
		.needed = "the window that \"rate\" applies to, such as \"1m\"",                          \
		.meaning = "the window that \"rate\" applies to", .least = 1, .most = WEIR_WINDOW_MAX_MS  \
	}

/** Appends "90s". */
void weir_limit_put_time(struct weir_text *text, int64_t duration_ms);
/** Appends "hour" for the times that have a name, else "90s". */
void weir_limit_put_period(struct weir_text *text, int64_t duration_ms);

/** Refuses what holds more tokens than fit into 64 bits. */
WEIR_MUST_USE enum weir_status weir_limit_check_capacity(const struct weir_json *at, int64_t tokens, int64_t window_ms,
                                                         struct weir_error *error);
/** The most tokens that do. */
int64_t weir_limit_capacity(int64_t window_ms);

/** A number multiplied, rounded down, within its bounds. */
int64_t weir_limit_multiply(int64_t number, uint32_t thousandths, int64_t least, int64_t most);

/** a / b rounded up, for b > 0 and a >= 0. */
static inline int64_t weir_limit_divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/** The most that `windows` of them let pass. */
int64_t weir_limit_most_in(int64_t windows, int64_t rate);
/** The same of a bucket of tokens in a span of time: what is there at once, and what comes back meanwhile. */
int64_t weir_limit_most_refilled(const struct weir_limit *limit, int64_t span_ms);

/** limit_token_bucket.c and limit_gcra.c: "5 in 1m, bursts of 9". */
void weir_limit_brief_burst(struct weir_text *text, const struct weir_limit *limit);

/* limit_sliding_window.c: uniform is one of rate 1. */
void weir_limit_sliding_shape(struct weir_limit_shape *shape);
int64_t weir_limit_sliding_most(const struct weir_limit *limit, const struct weir_limit *window);
void weir_limit_sliding_met(const struct weir_limit *limit, int64_t t, int64_t *after_ms, int64_t *until_ms);

/* limit_penalizing_bucket.c: token_bucket with "penalize". */
void weir_limit_penalizing_shape(struct weir_limit_shape *shape);

#endif
