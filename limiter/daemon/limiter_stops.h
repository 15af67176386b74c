/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions that limiters have said to be stopped, for a check. */
#ifndef LIMITER_DAEMON_LIMITER_STOPS_H
#define LIMITER_DAEMON_LIMITER_STOPS_H

#include "common/diagnosis/server_checks.h"

/**
 * Finds them, with their reasons.
 *
 * @param told  whether gaps are among the findings already: a stop by one is not told again
 * @return how many partitions are stopped by what is told here
 */
uint32_t limiter_check_stops(const struct weir_check *check, struct weir_store *store, uint32_t partitions, bool told);

#endif
