/*
 * Pages are made when they are asked for, from counters that their threads own:
 * nothing is counted twice, and nobody waits for a reader.
 */
#include "limiter/daemon/limiter_metrics.h"

#include "common/base/alloc.h"

#include <stddef.h>
#include <stdlib.h>

uint64_t limiter_sum(const struct limiter_parts *parts, size_t counter)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		const char *stats = (const char *)worker_stats(parts->workers[i]);
		total += weir_counter_read((const struct weir_counter *)(const void *)(stats + counter));
	}
	return total;
}

#define SUM(parts, member) limiter_sum(parts, offsetof(struct worker_stats, member))

static struct worker_zone zone_numbers(const struct limiter_parts *parts, uint32_t zone_id)
{
	struct worker_zone sum = {0};
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		struct worker_zone numbers;
		worker_zone(parts->workers[i], zone_id, &numbers);
		sum.passed += numbers.passed;
		sum.blocked += numbers.blocked;
		sum.late += numbers.late;
		sum.decisions += numbers.decisions;
	}
	return sum;
}

static void zone_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	const struct weir_policy *policy = rulebook_policy(parts->book, rulebook_newest(parts->book));
	weir_metrics_family(page, "weir_verdicts_total", "counter", "Judged events by zone and verdict.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct worker_zone numbers = zone_numbers(parts, policy->zones[i].id);
		struct weir_label labels[] = {{"zone", weir_span_of(policy->zones[i].name)}, {"verdict", weir_span_of("pass")}};
		weir_metrics_uint(page, "weir_verdicts_total", labels, 2, numbers.passed);
		labels[1].value = weir_span_of("block");
		weir_metrics_uint(page, "weir_verdicts_total", labels, 2, numbers.blocked);
	}
	weir_metrics_family(page, "weir_late_total", "counter", "Events that were late for some limit, by zone.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_label label = {"zone", weir_span_of(policy->zones[i].name)};
		weir_metrics_uint(page, "weir_late_total", &label, 1, zone_numbers(parts, policy->zones[i].id).late);
	}
	weir_metrics_family(page, "weir_decisions_total", "counter", "Published decisions by zone.");
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_label label = {"zone", weir_span_of(policy->zones[i].name)};
		weir_metrics_uint(page, "weir_decisions_total", &label, 1, zone_numbers(parts, policy->zones[i].id).decisions);
	}
}

void limiter_histogram(const struct limiter_parts *parts, struct weir_text *page, const char *name, const char *help,
                       size_t member)
{
	const struct weir_histogram **histograms = weir_alloc(parts->worker_count, sizeof(const struct weir_histogram *));
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		const char *stats = (const char *)worker_stats(parts->workers[i]);
		histograms[i] = (const struct weir_histogram *)(const void *)(stats + member);
	}
	weir_metrics_family(page, name, "histogram", help);
	weir_metrics_histogram(page, name, NULL, 0, &weir_latency_scale, histograms, parts->worker_count);
	free(histograms);
}

static void order_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	weir_metrics_family(page, "weir_orders_total", "counter",
	                    "Operators' commands carried out, by kind; one for a prefix in each partition.");
	for (int kind = 0; kind < ORDER_KIND_COUNT; kind++) {
		struct weir_label label = {"command", weir_span_of(order_kind_name((enum order_kind)kind))};
		size_t counter = offsetof(struct worker_stats, orders) + (size_t)kind * sizeof(struct weir_counter);
		weir_metrics_uint(page, "weir_orders_total", &label, 1, limiter_sum(parts, counter));
	}
}

static double checkpoint_age_s(const struct limiter_parts *parts)
{
	uint64_t oldest_ms = 0;
	for (uint32_t i = 0; i < parts->worker_count; i++) {
		uint64_t age_ms = weir_counter_read(&worker_stats(parts->workers[i])->checkpoint_age_ms);
		oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
	}
	return (double)oldest_ms / 1000.0;
}

void limiter_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	if (rulebook_newest(parts->book) > 0)
		zone_metrics(parts, page);
	weir_metrics_counter(page, "weir_events_total", "Events judged.", SUM(parts, events));
	weir_metrics_counter(page, "weir_repeated_events_total", "Events dropped because they were judged before.",
	                     SUM(parts, repeated));
	weir_metrics_counter(page, "weir_frames_total", "Frames judged.", SUM(parts, frames));
	weir_metrics_counter(page, "weir_malformed_frames_total", "Messages of the log that were no frames.",
	                     SUM(parts, malformed));
	order_metrics(parts, page);
	weir_metrics_gauge(page, "weir_buckets", "Buckets in memory.", (double)SUM(parts, buckets));
	weir_metrics_gauge(page, "weir_buckets_spilled", "Buckets that only the store has.", (double)SUM(parts, spilled));
	weir_metrics_gauge(page, "weir_evicted_segments", "Segments of which some buckets are only in the store.",
	                   (double)SUM(parts, evicted_segments));
	weir_metrics_gauge(page, "weir_state_bytes", "Memory of all buckets and their index.", (double)SUM(parts, bytes));
	weir_metrics_counter(page, "weir_evictions_total", "Buckets that left memory for the store.",
	                     SUM(parts, evictions));
	weir_metrics_counter(page, "weir_segment_loads_total", "Segments read back from the store.", SUM(parts, loads));
	weir_metrics_counter(page, "weir_forgotten_total", "Buckets that nothing can depend on any more.",
	                     SUM(parts, forgotten));
	weir_metrics_counter(page, "weir_checkpoints_total", "Checkpoints stored.", SUM(parts, checkpoints));
	weir_metrics_gauge(page, "weir_checkpoint_age_seconds", "Age of the oldest change that no checkpoint holds.",
	                   checkpoint_age_s(parts));
	limiter_histogram(parts, page, "weir_checkpoint_seconds", "From a checkpoint's cut to its being stored.",
	                  offsetof(struct worker_stats, checkpoint));
	limiter_histogram(parts, page, "weir_batch_seconds", "From receiving a batch of frames to its last verdict.",
	                  offsetof(struct worker_stats, batch));
}

void limiter_figures(const struct limiter_parts *parts, struct weir_text *members)
{
	weir_text_printf(members, "\"weir_events_total\":%llu,\"weir_buckets\":%llu,\"weir_buckets_spilled\":%llu",
	                 (unsigned long long)SUM(parts, events), (unsigned long long)SUM(parts, buckets),
	                 (unsigned long long)SUM(parts, spilled));
	weir_text_printf(members, ",\"weir_state_bytes\":%llu,\"weir_checkpoint_age_seconds\":%.3f",
	                 (unsigned long long)SUM(parts, bytes), checkpoint_age_s(parts));
}
