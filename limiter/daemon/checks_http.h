/* SPDX-License-Identifier: Apache-2.0 */
/* The surface by HTTP of each worker: listen.check_http. */
#ifndef LIMITER_CHECKS_HTTP_H
#define LIMITER_CHECKS_HTTP_H

#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "common/log/log.h"
#include "limiter/check/http/check_http.h"
#include "limiter/check/refusals.h"
#include "limiter/check/surface.h"

struct checks_http;

/**
 * @param threads  workers
 * @param lists    of `exempt`, borrowed while they live; NULL: there are none
 * @param refusals  likewise
 * @return checks_http_free()
 */
struct checks_http *checks_http_new(const struct weir_config *config, uint32_t threads, struct weir_exempt_lists *lists,
                                    struct refusals *refusals, const struct weir_log *log);
/** When the surfaces are freed. NULL is fine. */
void checks_http_free(struct checks_http *http);

/**
 * Opens a worker's surface. The first one's port is everyone's.
 *
 * @param password  borrowed while they live; NULL: none is asked for
 * @param tls       likewise; NULL: plain
 */
WEIR_MUST_USE enum weir_status checks_http_open(struct checks_http *http, uint32_t worker,
                                                const struct check_judge *judge, const char *password,
                                                struct weir_http_tls_server *tls, struct check_surface *surface,
                                                struct weir_error *error);

/** The figure at a place of struct link_figures, of all workers together. @param http  NULL: 0 @thread any */
uint64_t checks_http_figure(const struct checks_http *http, size_t member);

/** How a worker's checks were answered. @return NULL: it has none yet @thread any */
const struct check_counts *checks_http_counts(const struct checks_http *http, uint32_t worker);

#endif
