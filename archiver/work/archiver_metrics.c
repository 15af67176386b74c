/* SPDX-License-Identifier: Apache-2.0 */
/* The archiver's metrics, which deploy/grafana shows. */
#include "archiver/work/archiver_metrics.h"

#include "common/base/clock.h"

enum {
	FRAMES,
	EVENTS,
	REPEATED_FRAMES,
	DECISIONS,
	SHADOW_DECISIONS,
	SHADOW_UP,
	MALFORMED,
	ROWS,
	COMMITS,
	PARTITIONS_TAKEN,
	PARTITIONS_LEFT,
	FENCED,
	PARTITIONS,
	PARTITIONS_PARKED,
	WAITING_ROWS,
	WAITING_BYTES,
	WAITING_SECONDS,
	COMMIT,
	MEMORY_LIMIT,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[FRAMES] = {"weir_archiver_frames_total", WEIR_COUNTER, "frames", WEIR_NO_LABELS,
                "Judged frames that were counted."},
	[EVENTS] = {"weir_archiver_events_total", WEIR_COUNTER, "events", WEIR_NO_LABELS,
                "Judged events that were counted, once in each of their zones."},
	[REPEATED_FRAMES] = {"weir_archiver_repeated_frames_total", WEIR_COUNTER, "frames", WEIR_NO_LABELS,
                         "Judged frames that were dropped because they had been counted before."},
	[DECISIONS] = {"weir_archiver_decisions_total", WEIR_COUNTER, "decisions", WEIR_NO_LABELS,
                   "Decisions that are enforced, read from their topic, to be stored."},
	[SHADOW_DECISIONS] =
		{"weir_archiver_shadow_decisions_total", WEIR_COUNTER, "decisions", WEIR_NO_LABELS,
         "Decisions of zones in shadow mode, which block nobody, read from their topic, to be stored."},
	[SHADOW_UP] =
		{"weir_archiver_shadow_up", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
         "0 while decisions of zones in shadow mode cannot be read from their topic, as without the right to: the log "
         "says why, and everything else is archived. Otherwise 1. weir_topic_up says whether the topic exists."},
	[MALFORMED] = {"weir_archiver_malformed_total", WEIR_COUNTER, "messages", WEIR_NO_LABELS,
                   "Messages on the topics of judged frames and of decisions that are neither and were skipped: "
                   "something other than weir writes there. The log says where."},
	[ROWS] = {"weir_archiver_rows_total", WEIR_COUNTER, "rows", WEIR_NO_LABELS, "Rows stored."},
	[COMMITS] = {"weir_archiver_commits_total", WEIR_COUNTER, "transactions", WEIR_NO_LABELS,
                 "Transactions that stored rows."},
	[PARTITIONS_TAKEN] = {"weir_archiver_partitions_taken_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                          "Partitions that this process took over."},
	[PARTITIONS_LEFT] = {"weir_archiver_partitions_left_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                         "Partitions that this process gave up."},
	[FENCED] = {"weir_archiver_fenced_total", WEIR_COUNTER, "partitions", WEIR_NO_LABELS,
                "Partitions that turned out to have another owner: this archiver had stalled for longer than its "
                "session timeout. Nothing is lost or counted twice."},
	[PARTITIONS] = {"weir_archiver_partitions", WEIR_GAUGE, "partitions", WEIR_NO_LABELS,
                    "Partitions that this process archives."},
	[PARTITIONS_PARKED] =
		{"weir_archiver_partitions_stuck", WEIR_GAUGE, "partitions", WEIR_NO_LABELS,
         "Parked partitions, and those whose limiter publishes no judged frames: they wait for an operator. The log says "
         "why, of parked ones /healthz too; what the topics delete in the meantime, or never have, is missing from the "
         "archive."},
	[WAITING_ROWS] = {"weir_archiver_waiting_rows", WEIR_GAUGE, "rows", WEIR_NO_LABELS,
                      "Rows that are not stored yet."},
	[WAITING_BYTES] = {"weir_archiver_waiting_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                       "Memory of rows that are not stored yet. At archiver.memory, the archiver stops reading."},
	[WAITING_SECONDS] = {"weir_archiver_waiting_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
                         "Age of the oldest row that is not stored yet. If this grows, the store is slow or down; the "
                         "topics keep unread messages for bus.retention."},
	[COMMIT] = {"weir_archiver_commit_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
                "Duration of a transaction in the store."},
	[MEMORY_LIMIT] = {"weir_archiver_memory_limit_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                      "archiver.memory: where weir_archiver_waiting_bytes reaches it, nothing more is read."},
};

const struct weir_metric archiver_daemon_metrics[ARCHIVER_DAEMON_METRIC_COUNT] = {
	[ARCHIVER_IS_WORKING] = {"weir_archiver_working", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
                             "1 while the archiver is connected to its servers and not stopping."},
	[ARCHIVER_PARTITIONS_GIVEN] = {"weir_archiver_partitions_given", WEIR_GAUGE, "partitions", WEIR_NO_LABELS,
                                   "Partitions that the consumer group has assigned to this process."},
	[ARCHIVER_LAG_MESSAGES] =
		{"weir_archiver_lag_messages", WEIR_GAUGE, "messages", WEIR_NO_LABELS,
         "Messages on the topics of judged frames and decisions that have not been read. If this grows, add "
         "an archiver or check whether the store is slow. Absent while unknown, as in an outage of the bus."},
	[ARCHIVER_LAG_SECONDS] =
		{"weir_archiver_lag_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "How long the oldest message that is not read has been on its topic, for the partition furthest behind; 0 if "
         "everything is read. What was there before this process started counts by the time of its sender. Absent while "
         "unknown, as in an outage of the bus."},
};

const struct weir_metric_table archiver_metric_table = {metrics, METRIC_COUNT};
const struct weir_metric_table archiver_daemon_metric_table = {archiver_daemon_metrics, ARCHIVER_DAEMON_METRIC_COUNT};

/* Partitions that wait for an operator. */
static uint64_t stuck(const struct archiver_stats *stats)
{
	return weir_counter_read(&stats->parked) + weir_counter_read(&stats->unfed);
}

static double waiting_s(const struct archiver_stats *stats)
{
	uint64_t oldest_ms = weir_counter_read(&stats->oldest_ms);
	return oldest_ms == 0 ? 0 : (double)(weir_monotonic_ms() - (int64_t)oldest_ms) / 1000;
}

void archiver_metrics(const struct archiver_stats *stats, int64_t memory_bytes, struct weir_text *page)
{
	const struct {
		int metric;
		const struct weir_counter *counter;
	} counters[] = {
		{FRAMES, &stats->frames},
		{EVENTS, &stats->events},
		{REPEATED_FRAMES, &stats->repeated},
		{DECISIONS, &stats->decisions},
		{SHADOW_DECISIONS, &stats->shadow_decisions},
		{MALFORMED, &stats->malformed},
		{ROWS, &stats->rows},
		{COMMITS, &stats->commits},
		{PARTITIONS_TAKEN, &stats->taken},
		{PARTITIONS_LEFT, &stats->given_up},
		{FENCED, &stats->fenced},
	};
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		weir_metrics_counter(page, &metrics[counters[i].metric], weir_counter_read(counters[i].counter));
	weir_metrics_gauge(page, &metrics[SHADOW_UP], weir_counter_read(&stats->shadow_fails) == 0);
	weir_metrics_gauge(page, &metrics[PARTITIONS], (double)weir_counter_read(&stats->partitions));
	weir_metrics_gauge(page, &metrics[PARTITIONS_PARKED], (double)stuck(stats));
	weir_metrics_gauge(page, &metrics[WAITING_ROWS], (double)weir_counter_read(&stats->waiting_rows));
	weir_metrics_gauge(page, &metrics[WAITING_BYTES], (double)weir_counter_read(&stats->waiting_bytes));
	weir_metrics_gauge(page, &metrics[WAITING_SECONDS], waiting_s(stats));
	weir_metrics_gauge(page, &metrics[MEMORY_LIMIT], (double)memory_bytes);
	const struct weir_histogram *commits[] = {&stats->commit};
	weir_metrics_histogram(page, &metrics[COMMIT], &weir_latency_scale, commits, 1);
}

void archiver_figures(const struct archiver_stats *stats, struct weir_text *members)
{
	const struct {
		int metric;
		const struct weir_counter *counter;
	} figures[] = {
		{EVENTS, &stats->events},         {DECISIONS, &stats->decisions},       {MALFORMED, &stats->malformed},
		{PARTITIONS, &stats->partitions}, {WAITING_ROWS, &stats->waiting_rows}, {WAITING_BYTES, &stats->waiting_bytes},
	};
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		weir_text_printf(members, "\"%s\":%llu,", metrics[figures[i].metric].name,
		                 (unsigned long long)weir_counter_read(figures[i].counter));
	weir_text_printf(members, "\"%s\":%llu,", metrics[PARTITIONS_PARKED].name, (unsigned long long)stuck(stats));
	weir_text_printf(members, "\"%s\":%.3f", metrics[WAITING_SECONDS].name, waiting_s(stats));
}
