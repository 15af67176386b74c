/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a host's name, by the system's resolver, in bounded time.
 *
 * The resolver waits as long as it likes, a quarter of a minute where no name server answers, and cannot be stopped. So it is
 * asked by a thread that nobody joins. Who connects again and again keeps one question, and finds it under way the next
 * time: so no more than one thread waits for its name, and an answer that comes late is heard.
 */
#ifndef WEIR_COMMON_REDIS_RESOLVE_H
#define WEIR_COMMON_REDIS_RESOLVE_H

#include "common/base/status.h"

#include <stdint.h>

enum {
	WEIR_RESOLVE_ADDRESSES_MAX = 8,
	WEIR_RESOLVE_ADDRESS_BYTES = 64, /* with the scope of an IPv6 address */
	WEIR_RESOLVE_HOST_BYTES = 256,
};

/* In the resolver's order: the first that answers is meant. */
struct weir_resolved {
	uint32_t count;
	char addresses[WEIR_RESOLVE_ADDRESSES_MAX][WEIR_RESOLVE_ADDRESS_BYTES];
};

struct weir_question;

struct weir_question *weir_question_new(void);
/** Waits for nobody: a thread that still asks ends by itself. NULL is fine. */
void weir_question_free(struct weir_question *question);

/**
 * @param question    where nothing is asked, or the same host
 * @param host        a name, or an address, which is its own
 * @param timeout_ms  how long to wait for an answer, which is told once
 * @return WEIR_OK; WEIR_IO: there is no such name, or no answer yet
 * @thread the one that has the question
 */
WEIR_MUST_USE enum weir_status weir_resolve(struct weir_question *question, const char *host, int timeout_ms,
                                            struct weir_resolved *found, struct weir_error *error);

#endif
