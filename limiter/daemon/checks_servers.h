/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that take checks: for each worker one by each protocol that is listened for. */
#ifndef LIMITER_CHECKS_SERVERS_H
#define LIMITER_CHECKS_SERVERS_H

#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "common/http/tls_stream.h"
#include "common/log/log.h"
#include "limiter/check/check_counts.h"
#include "limiter/check/refusals.h"
#include "limiter/check/surface.h"
#include "limiter/owners/owners.h"

struct resp_users;

/* All borrowed while they live. */
struct checks_servers_options {
	const struct weir_config *config;
	uint32_t threads;                /* workers */
	struct weir_exempt_lists *lists; /* of `exempt`; NULL: there are none */
	struct refusals *refusals;
	struct weir_http_tls_server *tls; /* NULL: plain */
	const char *password;             /* NULL: none is asked for */
	const struct resp_users *users;   /* of listen.resp; none: whoever connects may ask */
	struct owners *owners;            /* NULL: this process is alone */
	const struct weir_log *log;
};

struct checks_servers;

/** @return checks_servers_free() */
struct checks_servers *checks_servers_new(const struct checks_servers_options *options);
/** When the surfaces are freed. NULL is fine. */
void checks_servers_free(struct checks_servers *servers);

/**
 * Opens a worker's, as one surface. The first worker's ports are everyone's. Until checks_servers_opened() no other thread
 * looks at them, so that the surface may be freed where the worker does not start.
 *
 * @param surface  set in any case
 */
WEIR_MUST_USE enum weir_status checks_servers_open(struct checks_servers *servers, uint32_t worker,
                                                   const struct check_judge *judge, struct check_surface *surface,
                                                   struct weir_error *error);
/** All of a worker is open: its servers are counted from now on. */
void checks_servers_opened(struct checks_servers *servers, uint32_t worker);
/** That of listen.resp. */
uint16_t checks_servers_port(const struct checks_servers *servers);

/** The figure at a place of struct link_figures, of all workers together. @param servers  NULL: 0 @thread any */
uint64_t checks_servers_figure(const struct checks_servers *servers, enum refusal_surface by, size_t member);
/** How a worker's checks were answered. @return NULL: it has none @thread any */
const struct check_counts *checks_servers_counts(const struct checks_servers *servers, enum refusal_surface by,
                                                 uint32_t worker);

#endif
