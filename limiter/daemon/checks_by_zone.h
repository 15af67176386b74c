/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIMITER_CHECKS_BY_ZONE_H
#define LIMITER_CHECKS_BY_ZONE_H

#include "limiter/check/check_counts.h"

/**
 * Appends a surface's samples of a metric with the labels zone, surface and answer: what all workers counted, by the names
 * of zones.
 *
 * @param counts  one a worker; NULL: it has none
 */
void checks_by_zone(struct weir_text *page, const struct weir_metric *metric, const char *surface,
                    const struct check_counts *const *counts, uint32_t count);

#endif
