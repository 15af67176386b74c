/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages for operators: /metrics (Prometheus), /healthz and /readyz on
 * `listen.http`.
 */
#ifndef DEPLOY_WEIR_RUN_MONITOR_H
#define DEPLOY_WEIR_RUN_MONITOR_H

#include "archiver/api/api.h"
#include "archiver/arming/arming.h"
#include "archiver/work/archiver.h"
#include "collector/follow/collector.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/verified_hosts.h"
#include "common/http/http.h"
#include "deploy/gateways/gateway/gateways.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/run/sink.h"
#include "limiter/daemon/limiter_checks.h"
#include "limiter/worker/worker.h"

struct monitor;

struct monitor_options {
	struct sink *decisions, *shadow; /* NULL: they are not written */
	const char *host;                /* "127.0.0.1" */
	uint16_t port;
	struct weir_http_tls tls;
	const struct weir_config *config;
	const struct weir_log *log;
	struct collector *collector;
	struct worker *const *workers;
	uint32_t worker_count;
	struct policy_registry *registry;
	const struct limiter_checks *checks; /* NULL: none are asked */
	struct archiver *archiver;           /* NULL: none */
	struct arming *arming;               /* likewise */
	const struct api *api;               /* NULL: none */
	const struct gateways *gateways;
	struct weir_exempt_fetch *fetch;
	struct weir_verified_hosts *hosts;
	struct weir_bus *bus; /* the log in the state directory */
	const struct state_directory *state;
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
};

extern const struct weir_metric_table monitor_metric_table;

/** Everything in the options is borrowed until monitor_stop(). */
WEIR_MUST_USE enum weir_status monitor_start(const struct monitor_options *options, struct monitor **monitor,
                                             struct weir_error *error);
/** Appends what is not well, in lines; nothing: all is. @param context  const struct monitor_options @thread any */
void monitor_troubles(void *context, struct weir_text *lines);
/** NULL is fine. */
void monitor_stop(struct monitor *monitor);

#endif
