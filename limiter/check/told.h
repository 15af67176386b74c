/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway's client is told of its limits, as fields of a reply by HTTP or gRPC. */
#ifndef LIMITER_CHECK_TOLD_H
#define LIMITER_CHECK_TOLD_H

#include "common/config/config.h"
#include "limiter/check/check.h"

enum { TOLD_ZONES_MAX = 8 };

/* A zone, and how a check of it was answered. Borrowed. */
struct told {
	const char *zone;
	const struct check_answer *answer;
};

/** Takes a field. @param value  borrowed until it returns */
typedef void told_put(void *context, const char *name, struct weir_span value);

/**
 * Puts the fields of zones: RateLimit-Policy and RateLimit of all, or X-RateLimit-Limit, -Remaining and -Reset of the
 * first, or none.
 *
 * @param told   the tightest first
 * @param count  TOLD_ZONES_MAX at most; 0: there are no fields
 */
void told_fields(enum weir_rate_limit_fields fields, const struct told *told, uint32_t count, told_put *put,
                 void *context);

/** Until there is more: the block ends, or all that was counted is forgotten. */
int64_t told_wait_ms(const struct check_answer *answer);

/** Begun seconds. @param ms  not below 0 */
static inline int64_t told_seconds(int64_t ms)
{
	return ms / 1000 + (ms % 1000 > 0);
}

#endif
