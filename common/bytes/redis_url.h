/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of Redis servers that a configuration or a command line names. */
#ifndef WEIR_COMMON_REDIS_URL_H
#define WEIR_COMMON_REDIS_URL_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_redis_url {
	char *host, *user, *password; /* user and password: NULL if there is none */
	char *ca;                     /* a file of certificates to trust; NULL: the system's */
	char *certificate, *key;      /* files of the certificate that is shown, to a server that asks; NULL: none */
	bool tls;
	uint16_t port;
	uint32_t database;
};

/**
 * redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]; an IPv6 address in brackets. By TLS (rediss) also with ?ca=FILE at its
 * end, certificate=FILE and key=FILE, joined by &. With %XX for any byte.
 */
WEIR_MUST_USE enum weir_status weir_redis_url_parse(const char *text, struct weir_redis_url *url,
                                                    struct weir_error *error);
void weir_redis_url_deinit(struct weir_redis_url *url);

#endif
