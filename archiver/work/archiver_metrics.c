/* Names and help texts of the archiver's metrics: deploy/grafana draws them. */
#include "archiver/work/archiver_metrics.h"

#include "common/base/clock.h"

void archiver_metrics(const struct archiver_stats *stats, struct weir_text *page)
{
	const struct {
		const char *name, *help;
		const struct weir_counter *counter;
	} counters[] = {
		{"weir_archiver_frames_total", "Judged frames that were counted.", &stats->frames},
		{"weir_archiver_events_total", "Events in zones that were counted.", &stats->events},
		{"weir_archiver_repeated_frames_total", "Judged frames that had been counted already.", &stats->repeated},
		{"weir_archiver_decisions_total", "Decisions that were taken.", &stats->decisions},
		{"weir_archiver_malformed_total", "Messages that were neither, and passed over.", &stats->malformed},
		{"weir_archiver_rows_total", "Rows that were stored.", &stats->rows},
		{"weir_archiver_commits_total", "Transactions that stored them.", &stats->commits},
		{"weir_archiver_partitions_taken_total", "Partitions that came to this process.", &stats->taken},
		{"weir_archiver_partitions_left_total", "Partitions that went.", &stats->given_up},
		{"weir_archiver_fenced_total", "Partitions that were found to be another's.", &stats->fenced},
	};
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		weir_metrics_counter(page, counters[i].name, counters[i].help, weir_counter_read(counters[i].counter));
	weir_metrics_gauge(page, "weir_archiver_partitions", "Partitions that are archived here.",
	                   (double)weir_counter_read(&stats->partitions));
	weir_metrics_gauge(page, "weir_archiver_partitions_stuck", "Partitions that wait for a person: the log says why.",
	                   (double)weir_counter_read(&stats->stuck));
	weir_metrics_gauge(page, "weir_archiver_waiting_rows", "Rows that are not stored yet.",
	                   (double)weir_counter_read(&stats->waiting_rows));
	weir_metrics_gauge(page, "weir_archiver_waiting_bytes", "Memory that they take.",
	                   (double)weir_counter_read(&stats->waiting_bytes));
	uint64_t oldest_ms = weir_counter_read(&stats->oldest_ms);
	weir_metrics_gauge(page, "weir_archiver_waiting_seconds", "Since what waits longest to be stored came.",
	                   oldest_ms == 0 ? 0 : (double)(weir_monotonic_ms() - (int64_t)oldest_ms) / 1000);
	const struct weir_histogram *commits[] = {&stats->commit};
	weir_metrics_family(page, "weir_archiver_commit_seconds", "histogram", "One transaction.");
	weir_metrics_histogram(page, "weir_archiver_commit_seconds", NULL, 0, &weir_latency_scale, commits, 1);
}

void archiver_figures(void *context, struct weir_text *members)
{
	const struct archiver_stats *stats = context;
	const struct {
		const char *name;
		const struct weir_counter *counter;
	} figures[] = {
		{"weir_archiver_events_total", &stats->events},         {"weir_archiver_decisions_total", &stats->decisions},
		{"weir_archiver_malformed_total", &stats->malformed},   {"weir_archiver_partitions", &stats->partitions},
		{"weir_archiver_partitions_stuck", &stats->stuck},      {"weir_archiver_waiting_rows", &stats->waiting_rows},
		{"weir_archiver_waiting_bytes", &stats->waiting_bytes},
	};
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		weir_text_printf(members, "%s\"%s\":%llu", i > 0 ? "," : "", figures[i].name,
		                 (unsigned long long)weir_counter_read(figures[i].counter));
}
