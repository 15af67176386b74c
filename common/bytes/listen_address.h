/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen, as people write it. */
#ifndef WEIR_COMMON_LISTEN_ADDRESS_H
#define WEIR_COMMON_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Reads where to listen: "127.0.0.1:9464", "[::1]:9464", "localhost:9464", ":9464" or "*:9464".
 *
 * @param host  returned, the caller frees: "*" for every address
 * @return false: it is not one of these, and nothing is returned
 */
bool weir_listen_address(const char *text, char **host, uint16_t *port);

/** Whether such a host is reached from this machine alone. */
bool weir_listen_is_loopback(const char *host);

#endif
