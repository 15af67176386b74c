/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that a server listens on. */
#ifndef WEIR_COMMON_LISTEN_SOCKET_H
#define WEIR_COMMON_LISTEN_SOCKET_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Listens by TCP.
 *
 * @param host    a name or address; NULL or "*": every address of the machine
 * @param port    0: any free one
 * @param shared  other sockets of this user may listen there, too: the kernel divides connections among them
 * @param fd      set: blocking, closed at exec; the caller closes
 * @param bound   set: the port
 * @return WEIR_OK; WEIR_INVALID: the host has no address; WEIR_IO: the port is taken or not allowed, or
 *         nobody could say which address the host has
 */
WEIR_MUST_USE enum weir_status weir_listen_socket(const char *host, uint16_t port, bool shared, int *fd,
                                                  uint16_t *bound, struct weir_error *error);

#endif
