/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection by TLS, as a socket of this machine: whoever has it writes and reads in clear, and a thread carries the
 * bytes. So hiredis needs no TLS of its own, which not every distribution has built.
 *
 * @thread one owner
 */
#ifndef WEIR_COMMON_REDIS_TLS_H
#define WEIR_COMMON_REDIS_TLS_H

#include "common/base/status.h"

#include <stdint.h>

struct weir_redis_tls;

/* Files in PEM form. */
struct weir_redis_tls_files {
	const char *ca;                /* whom to trust; NULL: the system's */
	const char *certificate, *key; /* what a server that asks is shown; NULL: nothing */
};

/**
 * Connects, and checks that the certificate is of this host and of someone who is trusted.
 *
 * @param address  of the host, in numbers
 * @param tls  returned: weir_redis_tls_free()
 * @param fd   returned: the clear end, the caller closes it
 * @return WEIR_OK; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_redis_tls_connect(const char *host, const char *address, uint16_t port,
                                                      const struct weir_redis_tls_files *files, int timeout_ms,
                                                      struct weir_redis_tls **tls, int *fd, struct weir_error *error);
/** Ends the thread, once the clear end is closed. NULL is fine. */
void weir_redis_tls_free(struct weir_redis_tls *tls);

#endif
