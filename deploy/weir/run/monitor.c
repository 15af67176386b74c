/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages are made when they are asked for, from counters that their threads own:
 * nothing is counted twice, and nobody waits for a reader.
 */
#include "deploy/weir/run/monitor.h"

#include "archiver/work/archiver_metrics.h"
#include "common/base/alloc.h"
#include "common/daemon/process_metrics.h"
#include "common/http/http.h"
#include "limiter/daemon/limiter_metrics.h"

#include <stdlib.h>

struct monitor {
	struct monitor_options options;
	struct weir_http *http;
	double start_s; /* of the process: Unix time */
};

static void handle_metrics(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct monitor *monitor = context;
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	collector_metrics(monitor->options.collector, &reply->body);
	struct limiter_parts parts = {.workers = monitor->options.workers,
	                              .worker_count = monitor->options.worker_count,
	                              .registry = monitor->options.registry,
	                              .memory_bytes = monitor->options.config->limiter.memory_bytes};
	limiter_metrics(&parts, &reply->body);
	if (monitor->options.archiver != NULL)
		archiver_metrics(archiver_stats(monitor->options.archiver), monitor->options.config->archiver.memory_bytes,
		                 &reply->body);
	api_metrics(monitor->options.api, &reply->body);
	gateways_metrics(monitor->options.gateways, &reply->body);
	weir_process_metrics("run", monitor->start_s, &reply->body);
	weir_http_metrics(request, &reply->body);
	exempt_fetch_metrics(monitor->options.fetch, &reply->body);
	verified_hosts_metrics(monitor->options.hosts, &reply->body);
}

static bool healthy(const struct monitor *monitor)
{
	for (uint32_t i = 0; i < monitor->options.worker_count; i++)
		if (worker_ended(monitor->options.workers[i]))
			return false;
	return true;
}

static void say(struct weir_http_reply *reply, bool good, const char *bad)
{
	reply->status = good ? 200 : 503;
	weir_text_puts(&reply->body, good ? "ok\n" : bad);
}

static void handle_health(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	say(reply, healthy(context), "one of its threads has stopped\n");
}

/* Restoring is done before the monitor starts: what runs is ready, where it can read what the logs say. */
static void handle_ready(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct monitor *monitor = context;
	struct weir_text why = {0};
	bool reads = healthy(monitor) && !collector_ended(monitor->options.collector);
	bool good = gateways_ready(monitor->options.gateways, &why) && reads;
	good &= collector_formats_fit(monitor->options.collector, &why);
	weir_text_append(&why, "", 1);
	say(reply, good, reads ? why.at : "not reading\n");
	weir_text_deinit(&why);
}

enum weir_status monitor_start(const struct monitor_options *options, struct monitor **out, struct weir_error *error)
{
	struct monitor *monitor = weir_alloc(1, sizeof *monitor);
	monitor->options = *options;
	monitor->start_s = weir_process_start_s();
	const struct weir_http_path paths[] = {
		{"/metrics", handle_metrics, monitor},
		{"/healthz", handle_health, monitor},
		{"/readyz", handle_ready, monitor},
	};
	struct weir_http_options http = {.host = options->host,
	                                 .port = options->port,
	                                 .paths = paths,
	                                 .path_count = 3,
	                                 .tls = options->tls,
	                                 .log = options->log};
	enum weir_status status = weir_http_start(&http, &monitor->http, error);
	if (status != WEIR_OK) {
		free(monitor);
		return status;
	}
	*out = monitor;
	return WEIR_OK;
}

void monitor_stop(struct monitor *monitor)
{
	if (monitor == NULL)
		return;
	weir_http_stop(monitor->http);
	free(monitor);
}
