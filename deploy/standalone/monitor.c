/*
 * Pages are made when they are asked for, from counters that their threads own:
 * nothing is counted twice, and nobody waits for a reader.
 */
#include "deploy/standalone/monitor.h"

#include "common/alloc.h"
#include "common/http.h"

#include <stddef.h>
#include <stdlib.h>

struct monitor {
	struct monitor_options options;
	struct weir_http *http;
};

static uint64_t sum(const struct monitor *monitor, size_t counter)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < monitor->options.worker_count; i++) {
		const char *stats = (const char *)worker_stats(monitor->options.workers[i]);
		total += weir_counter_read((const struct weir_counter *)(const void *)(stats + counter));
	}
	return total;
}

#define SUM(monitor, member) sum(monitor, offsetof(struct worker_stats, member))

struct zone_numbers {
	uint64_t passed, blocked, late, decisions;
};

static struct zone_numbers zone_numbers(const struct monitor *monitor, uint32_t zone_id)
{
	struct zone_numbers numbers = {0};
	for (uint32_t i = 0; i < monitor->options.worker_count; i++) {
		uint32_t count;
		struct lane *const *lanes = worker_lanes(monitor->options.workers[i], &count);
		for (uint32_t j = 0; j < count; j++) {
			const struct tally_zone *zone = tally_zone(lane_tally(lanes[j]), zone_id);
			if (zone == NULL)
				continue;
			numbers.passed += zone->passed;
			numbers.blocked += zone->blocked;
			numbers.late += zone->late;
			numbers.decisions += zone->decisions;
		}
	}
	return numbers;
}

static void zone_metrics(const struct monitor *monitor, struct weir_text *page)
{
	const struct weir_policy *policy = rulebook_policy(monitor->options.book, rulebook_newest(monitor->options.book));
	weir_metrics_family(page, "weir_verdicts_total", "counter", "Judged events by zone and verdict.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct zone_numbers numbers = zone_numbers(monitor, policy->zones[i].id);
		struct weir_label labels[] = {{"zone", weir_span_of(policy->zones[i].name)}, {"verdict", weir_span_of("pass")}};
		weir_metrics_uint(page, "weir_verdicts_total", labels, 2, numbers.passed);
		labels[1].value = weir_span_of("block");
		weir_metrics_uint(page, "weir_verdicts_total", labels, 2, numbers.blocked);
	}
	weir_metrics_family(page, "weir_late_total", "counter", "Events that were late for some limit, by zone.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_label label = {"zone", weir_span_of(policy->zones[i].name)};
		weir_metrics_uint(page, "weir_late_total", &label, 1, zone_numbers(monitor, policy->zones[i].id).late);
	}
	weir_metrics_family(page, "weir_decisions_total", "counter", "Published decisions by zone.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_label label = {"zone", weir_span_of(policy->zones[i].name)};
		weir_metrics_uint(page, "weir_decisions_total", &label, 1,
		                  zone_numbers(monitor, policy->zones[i].id).decisions);
	}
}

static void histogram(const struct monitor *monitor, struct weir_text *page, const char *name, const char *help,
                      size_t member)
{
	const struct weir_histogram **histograms =
		weir_alloc(monitor->options.worker_count, sizeof(const struct weir_histogram *));
	for (uint32_t i = 0; i < monitor->options.worker_count; i++) {
		const char *stats = (const char *)worker_stats(monitor->options.workers[i]);
		histograms[i] = (const struct weir_histogram *)(const void *)(stats + member);
	}
	weir_metrics_family(page, name, "histogram", help);
	weir_metrics_histogram(page, name, NULL, 0, &weir_latency_scale, histograms, monitor->options.worker_count);
	free(histograms);
}

static void limiter_metrics(const struct monitor *monitor, struct weir_text *page)
{
	zone_metrics(monitor, page);
	weir_metrics_counter(page, "weir_events_total", "Events judged.", SUM(monitor, events));
	weir_metrics_counter(page, "weir_repeated_events_total", "Events dropped because they were judged before.",
	                     SUM(monitor, repeated));
	weir_metrics_counter(page, "weir_frames_total", "Frames judged.", SUM(monitor, frames));
	weir_metrics_counter(page, "weir_malformed_frames_total", "Messages of the log that were no frames.",
	                     SUM(monitor, malformed));
	weir_metrics_gauge(page, "weir_buckets", "Buckets in memory.", (double)SUM(monitor, buckets));
	weir_metrics_gauge(page, "weir_buckets_spilled", "Buckets that only the store has.", (double)SUM(monitor, spilled));
	weir_metrics_gauge(page, "weir_evicted_segments", "Segments of which some buckets are only in the store.",
	                   (double)SUM(monitor, evicted_segments));
	weir_metrics_gauge(page, "weir_state_bytes", "Memory of all buckets and their index.", (double)SUM(monitor, bytes));
	weir_metrics_counter(page, "weir_evictions_total", "Buckets that left memory for the store.",
	                     SUM(monitor, evictions));
	weir_metrics_counter(page, "weir_segment_loads_total", "Segments read back from the store.", SUM(monitor, loads));
	weir_metrics_counter(page, "weir_forgotten_total", "Buckets that nothing can depend on any more.",
	                     SUM(monitor, forgotten));
	weir_metrics_counter(page, "weir_checkpoints_total", "Checkpoints stored.", SUM(monitor, checkpoints));
	uint64_t oldest_ms = 0;
	for (uint32_t i = 0; i < monitor->options.worker_count; i++) {
		uint64_t age_ms = weir_counter_read(&worker_stats(monitor->options.workers[i])->checkpoint_age_ms);
		oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
	}
	weir_metrics_gauge(page, "weir_checkpoint_age_seconds", "Age of the oldest change that no checkpoint holds.",
	                   (double)oldest_ms / 1000.0);
	histogram(monitor, page, "weir_checkpoint_seconds", "From a checkpoint's cut to its being stored.",
	          offsetof(struct worker_stats, checkpoint));
	histogram(monitor, page, "weir_batch_seconds", "From receiving a batch of frames to its last verdict.",
	          offsetof(struct worker_stats, batch));
}

static void handle_metrics(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct monitor *monitor = context;
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	collector_metrics(monitor->options.collector, &reply->body);
	limiter_metrics(monitor, &reply->body);
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
	say(reply, healthy(context), "a worker has ended\n");
}

/* Restoring is done before the monitor starts: what runs is ready. */
static void handle_ready(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct monitor *monitor = context;
	say(reply, healthy(monitor) && !collector_ended(monitor->options.collector), "not reading\n");
}

enum weir_status monitor_start(const struct monitor_options *options, struct monitor **out, struct weir_error *error)
{
	struct monitor *monitor = weir_alloc(1, sizeof *monitor);
	monitor->options = *options;
	const struct weir_http_path paths[] = {
		{"/metrics", handle_metrics, monitor},
		{"/healthz", handle_health, monitor},
		{"/readyz", handle_ready, monitor},
	};
	struct weir_http_options http = {.host = options->host, .port = options->port, .paths = paths, .path_count = 3};
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
