/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a surface's checks were answered, by zone. Zones are those of policies, so that callers make no new ones; beyond a
 * bound they count as one.
 *
 * @thread its surface's; check_counts_read() of any
 */
#ifndef LIMITER_CHECK_COUNTS_H
#define LIMITER_CHECK_COUNTS_H

#include "common/log/metrics.h"
#include "common/policy/policy.h"
#include "limiter/check/check.h"

enum check_counted {
	CHECK_COUNTED_PASSED,
	CHECK_COUNTED_BLOCKED,
	CHECK_COUNTED_SETTLED,
	CHECK_COUNTED_UNAVAILABLE,
	CHECK_COUNTED_REFUSED,
	CHECK_COUNTED_MAX
};

enum { CHECK_COUNTED_ZONES = WEIR_ZONES_MAX, CHECK_COUNTED_OTHER = CHECK_COUNTED_ZONES };

struct check_counts;

struct check_counts *check_counts_new(void);
void check_counts_free(struct check_counts *counts);
/** The number of a zone's counts, by its name; CHECK_COUNTED_OTHER: there are too many zones. */
uint32_t check_counts_named(struct check_counts *counts, const char *name);
void check_counts_add(struct check_counts *counts, uint32_t number, enum check_outcome outcome);

/** The word of a metric's label. */
const char *check_counted_name(enum check_counted counted);
/** Reads the counts of a number. @param name  set; lives as long as the counts @return false: there is none yet */
bool check_counts_read(const struct check_counts *counts, uint32_t number, const char **name,
                       uint64_t answers[CHECK_COUNTED_MAX]);

#endif
