/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages are made when they are asked for, from counters that their threads own:
 * nothing is counted twice, and nobody waits for a reader.
 */
#include "deploy/weir/run/monitor.h"

#include "archiver/work/archiver_metrics.h"
#include "common/base/alloc.h"
#include "common/daemon/certificate_metrics.h"
#include "common/daemon/process_metrics.h"
#include "common/http/http.h"
#include "limiter/checkpoint/checkpoint_io.h"
#include "limiter/daemon/limiter_metrics.h"

#include <stdlib.h>

struct monitor {
	struct monitor_options options;
	struct weir_http *http;
	double start_s; /* of the process: Unix time */
};

enum { STATE_UP, DECISIONS_UP, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[STATE_UP] =
		{"weir_run_state_up", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
         "1 while the state directory takes what is written: the log of events and decisions, and checkpoints, and nothing in "
         "it that is open was removed or replaced. "
         "Otherwise 0: the System view and the process's log say why, and /readyz where the log of events takes nothing, "
         "so that reading waits and nothing is judged."},
	[DECISIONS_UP] = {"weir_run_decisions_up", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
                      "1 while the files of decisions take what is written. Otherwise 0: judging goes on, and whoever "
                      "reads decisions there learns of no new block; /readyz says why."},
};

const struct weir_metric_table monitor_metric_table = {metrics, METRIC_COUNT};

/* Whether the log on disk takes what is read. */
static bool takes_events(const struct monitor_options *of, struct weir_text *why)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	if (!of->bus->ops->problem(of->bus, words, sizeof words))
		return true;
	weir_text_printf(why, "%s: reading waits, and new lines are not judged\n", words);
	return false;
}

/* Whether what was judged can be stored: until then it is in memory, and judged again after a restart. */
static bool takes_checkpoints(const struct monitor_options *of, struct weir_text *why)
{
	struct checkpoint_io *failing = checkpoint_io_fails(of->checkpoint_writer)   ? of->checkpoint_writer
	                                : checkpoint_io_fails(of->checkpoint_reader) ? of->checkpoint_reader
	                                                                             : NULL;
	char words[WEIR_ERROR_TEXT_BYTES];
	if (failing == NULL)
		return true;
	checkpoint_io_failure(failing, words, sizeof words);
	weir_text_printf(why, "checkpoints cannot be stored, and judging goes on in memory: %s\n", words);
	return false;
}

/* Whether whoever reads the decisions' files learns of new blocks. */
static bool takes_decisions(const struct monitor_options *of, struct weir_text *why)
{
	struct sink *const sinks[] = {of->decisions, of->shadow};
	char words[WEIR_ERROR_TEXT_BYTES];
	bool good = true;
	for (size_t i = 0; i < sizeof sinks / sizeof *sinks; i++) {
		if (sinks[i] == NULL || !sink_problem(sinks[i], words, sizeof words))
			continue;
		weir_text_printf(why, "%s: judging goes on, and whoever reads these decisions learns of no new block\n", words);
		good = false;
	}
	return good;
}

static void state_metrics(const struct monitor_options *of, struct weir_text *page)
{
	struct weir_text why = {0};
	bool up = takes_events(of, &why);
	up &= takes_checkpoints(of, &why);
	up &= state_directory_stands(of->state, &why);
	weir_metrics_gauge(page, &metrics[STATE_UP], up);
	weir_metrics_gauge(page, &metrics[DECISIONS_UP], takes_decisions(of, &why));
	weir_text_deinit(&why);
}

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
	limiter_checks_metrics(monitor->options.checks, &parts, &reply->body);
	if (monitor->options.archiver != NULL) {
		archiver_metrics(archiver_stats(monitor->options.archiver), monitor->options.config->archiver.memory_bytes,
		                 &reply->body);
		arming_metrics(monitor->options.arming, &reply->body);
	}
	api_metrics(monitor->options.api, &reply->body);
	gateways_metrics(monitor->options.gateways, &reply->body);
	state_metrics(&monitor->options, &reply->body);
	weir_process_metrics("run", monitor->start_s, &reply->body);
	weir_http_metrics(request, &reply->body);
	weir_certificate_metrics(monitor->options.config, NULL, &reply->body);
	weir_exempt_fetch_metrics(monitor->options.fetch, &reply->body);
	weir_verified_hosts_metrics(monitor->options.hosts, &reply->body);
}

static bool healthy(const struct monitor_options *of)
{
	for (uint32_t i = 0; i < of->worker_count; i++)
		if (worker_ended(of->workers[i]))
			return false;
	return true;
}

static const char thread_stopped[] = "one of its threads has stopped\n", not_reading[] = "not reading\n";

/* Restoring is done before the monitor starts: what runs is ready, where it can read what the logs say. */
static bool ready(const struct monitor_options *of, struct weir_text *why)
{
	if (!healthy(of) || collector_ended(of->collector)) {
		weir_text_puts(why, not_reading);
		return false;
	}
	bool good = gateways_ready(of->gateways, why);
	good &= collector_formats_fit(of->collector, why);
	good &= takes_events(of, why);
	good &= takes_decisions(of, why);
	return good;
}

void monitor_troubles(void *context, struct weir_text *lines)
{
	const struct monitor_options *of = context;
	if (!healthy(of))
		weir_text_puts(lines, thread_stopped);
	(void)ready(of, lines);
	(void)takes_checkpoints(of, lines);
	(void)state_directory_stands(of->state, lines);
}

static void handle_health(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct monitor *monitor = context;
	bool good = healthy(&monitor->options);
	(void)request;
	reply->status = good ? 200 : 503;
	weir_text_puts(&reply->body, good ? "ok\n" : thread_stopped);
}

static void handle_ready(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct monitor *monitor = context;
	(void)request;
	reply->status = ready(&monitor->options, &reply->body) ? 200 : 503;
	if (reply->status == 200)
		weir_text_puts(&reply->body, "ok\n");
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
