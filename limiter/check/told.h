/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is told, a gateway's by HTTP or gRPC above all: what several checks that were asked together come to, and the fields of
 * a reply that tell of limits.
 *
 * A zone that blocks counts more than one that could not be judged, and that more than one that passes. Of zones that
 * block, one that can never pass counts most, then the one that blocks longest; of zones that pass, the one that has the
 * least left. The client is to wait until all that block would pass; if one can never pass, no time is told.
 */
#ifndef LIMITER_CHECK_TOLD_H
#define LIMITER_CHECK_TOLD_H

#include "common/config/config.h"
#include "limiter/check/check.h"

#include <stdbool.h>

enum { TOLD_ZONES_MAX = 8, TOLD_DENIED_AGAIN_MS = 1000 };

/* A zone, and how a check of it was answered. Borrowed. */
struct told {
	const char *zone;
	const struct check_answer *answer;
};

/* Checks that were asked together. Zero-initialised. */
struct told_verdict {
	bool blocked;     /* one blocks */
	bool never;       /* one of those that block can never pass */
	int64_t retry_ms; /* the longest time of those that block */
	const char *why;  /* one could not be judged: the reason, a constant; NULL: all were judged */
};

/**
 * Makes what could not be judged what the configuration says: passed, or blocked for TOLD_DENIED_AGAIN_MS, with a limit of
 * 0; WEIR_ON_UNAVAILABLE_ERROR leaves it. A zone that was removed meanwhile passes.
 */
void told_settle(struct check_answer *answer, enum weir_on_unavailable on_unavailable);
/** Adds a settled answer. */
void told_sum(struct told_verdict *verdict, const struct check_answer *answer);
/** After which time the client may try again, in ms; -1: none is told. */
int64_t told_retry_ms(const struct told_verdict *verdict);

/** Whether a client is told of `a` before `b`, both passed or blocked. */
bool told_is_tighter(const struct check_answer *a, const struct check_answer *b);
/**
 * Adds a zone to those that fields tell of. One without a limit is left out, as is the last of too many, and of a zone that
 * comes twice what is less tight.
 *
 * @param told  the tightest first @return how many there are now
 */
uint32_t told_add(struct told told[TOLD_ZONES_MAX], uint32_t count, const struct told *zone);

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
/** Puts Retry-After, if a time is told. */
void told_retry_after(const struct told_verdict *verdict, told_put *put, void *context);

/**
 * Until there is more: the block ends; of a pass, and of a cost that can never pass, until all that was counted is forgotten.
 *
 * @return -1: an operator blocks the key without end, and no time is told
 */
int64_t told_wait_ms(const struct check_answer *answer);

/** Begun seconds. @param ms  not below 0 */
static inline int64_t told_seconds(int64_t ms)
{
	return ms / 1000 + (ms % 1000 > 0);
}

#endif
