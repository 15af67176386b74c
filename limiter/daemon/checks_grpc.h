/* SPDX-License-Identifier: Apache-2.0 */
/* The surface by gRPC of each worker: listen.grpc. */
#ifndef LIMITER_CHECKS_GRPC_H
#define LIMITER_CHECKS_GRPC_H

#include "common/config/config.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "limiter/check/grpc/grpc_server.h"
#include "limiter/check/refusals.h"
#include "limiter/check/surface.h"

struct checks_grpc;

/** @param threads  workers @param lists  of `exempt`, borrowed while they live, as refusals are @return checks_grpc_free() */
struct checks_grpc *checks_grpc_new(const struct weir_config *config, uint32_t threads, struct weir_exempt_lists *lists,
                                    struct refusals *refusals, const struct weir_log *log);
/** When the surfaces are freed. NULL is fine. */
void checks_grpc_free(struct checks_grpc *grpc);

/**
 * Opens a worker's surface. The first one's port is everyone's.
 *
 * @param password  borrowed while they live; NULL: none is asked for
 * @param tls       likewise; NULL: plain
 */
WEIR_MUST_USE enum weir_status checks_grpc_open(struct checks_grpc *grpc, uint32_t worker,
                                                const struct check_judge *judge, const char *password,
                                                struct weir_http_tls_server *tls, struct check_surface *surface,
                                                struct weir_error *error);

/** The figure at a place of struct link_figures, of all workers together. @param grpc  NULL: 0 @thread any */
uint64_t checks_grpc_figure(const struct checks_grpc *grpc, size_t member);

/** How a worker's checks were answered. @return NULL: it has none yet @thread any */
const struct check_counts *checks_grpc_counts(const struct checks_grpc *grpc, uint32_t worker);

#endif
