/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a host's name, by the system's resolver, in bounded time.
 *
 * The resolver waits as long as it likes, a quarter of a minute where no name server answers, and cannot be stopped. So it is
 * asked by a thread of its own, which nobody joins; whoever asks for the same name meanwhile waits for the same answer. An
 * answer, good or bad, is given for WEIR_RESOLVE_KEPT_MS.
 */
#ifndef WEIR_COMMON_REDIS_RESOLVE_H
#define WEIR_COMMON_REDIS_RESOLVE_H

#include "common/base/status.h"

#include <stdint.h>

enum {
	WEIR_RESOLVE_ADDRESSES_MAX = 8,
	WEIR_RESOLVE_ADDRESS_BYTES = 64, /* with the scope of an IPv6 address */
	WEIR_RESOLVE_HOST_BYTES = 256,
	WEIR_RESOLVE_NAMES_MAX = 64, /* asked for at a time, by a process */
	WEIR_RESOLVE_KEPT_MS = 1000,
};

/* In the resolver's order: the first that answers is meant. */
struct weir_resolved {
	uint32_t count;
	char addresses[WEIR_RESOLVE_ADDRESSES_MAX][WEIR_RESOLVE_ADDRESS_BYTES];
};

/**
 * @param host        a name, or an address, which is its own
 * @param timeout_ms  how long to wait; who comes again later finds the same question under way
 * @return WEIR_OK; WEIR_IO: there is no such name, or no answer yet
 * @thread any
 */
WEIR_MUST_USE enum weir_status weir_resolve(const char *host, int timeout_ms, struct weir_resolved *found,
                                            struct weir_error *error);

#endif
