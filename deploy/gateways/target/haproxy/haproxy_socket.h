/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's runtime interface: one connection for each request, which HAProxy closes when it has answered. */
#ifndef DEPLOY_GATEWAYS_TARGET_HAPROXY_HAPROXY_SOCKET_H
#define DEPLOY_GATEWAYS_TARGET_HAPROXY_HAPROXY_SOCKET_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"

/**
 * Sends a request (commands split by ';', or one with a payload) and takes the whole answer.
 *
 * @param answer  cleared first
 * @return WEIR_OK; WEIR_IO: nobody listens, or there was no answer in time
 */
WEIR_MUST_USE enum weir_status haproxy_socket_ask(const char *path, struct weir_span request, struct weir_text *answer,
                                                  struct weir_error *error);

#endif
