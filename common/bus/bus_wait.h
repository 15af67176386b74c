/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait for what a bus is to acknowledge: until a time, or as long as it makes sense. A local bus that cannot
 * write says so itself, as on a full disk, and nothing else will end that; a cluster's brokers come back.
 */
#ifndef WEIR_COMMON_BUS_WAIT_H
#define WEIR_COMMON_BUS_WAIT_H

#include "common/bus/bus.h"

struct weir_bus_wait {
	int64_t wait_ms, end_ms; /* end_ms is of the monotonic clock */
	int64_t failing_ms;      /* since when a local bus has a problem; 0: it has none */
};

struct weir_bus_wait weir_bus_wait_begin(int64_t wait_ms);

/**
 * To be asked each time that nothing was acknowledged.
 *
 * @param what  what was sent, as "the policy"
 * @return WEIR_OK: wait on; WEIR_IO, with the bus's own problem where it has one
 */
WEIR_MUST_USE enum weir_status weir_bus_wait_on(struct weir_bus_wait *wait, struct weir_bus *bus, const char *what,
                                                struct weir_error *error);

#endif
