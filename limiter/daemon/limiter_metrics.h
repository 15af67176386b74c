/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of workers, in the daemon and in `weir run`. */
#ifndef LIMITER_LIMITER_METRICS_H
#define LIMITER_LIMITER_METRICS_H

#include "limiter/worker/worker.h"

/* Of the daemon alone; limiter_metrics() has the others. */
enum limiter_daemon_metric {
	LIMITER_IS_WORKING,
	LIMITER_PARTITIONS_GIVEN,
	LIMITER_PARTITIONS,
	LIMITER_NOT_LIVE,
	LIMITER_PARTITIONS_TAKEN,
	LIMITER_PARTITIONS_LEFT,
	LIMITER_FENCED,
	LIMITER_DEAD_LETTERS,
	LIMITER_DEAD_LETTERS_DROPPED,
	LIMITER_REMINDERS,
	LIMITER_AHEAD,
	LIMITER_MOVES,
	LIMITER_BUSY,
	LIMITER_TAKE,
	LIMITER_LAG_MESSAGES,
	LIMITER_LAG_SECONDS,
	LIMITER_PUBLISH_FAILURES,
	LIMITER_PRODUCER_RESTARTS,
	LIMITER_LOAD_WAIT,
	LIMITER_DAEMON_METRIC_COUNT,
};

extern const struct weir_metric limiter_daemon_metrics[LIMITER_DAEMON_METRIC_COUNT];

extern const struct weir_metric_table limiter_metric_table, limiter_daemon_metric_table;

struct limiter_parts {
	struct worker *const *workers;
	uint32_t worker_count;
	struct policy_registry *registry;
	int64_t memory_bytes; /* limiter.memory */
};

/** A counter of all workers. @param counter  offsetof(struct worker_stats, …) */
uint64_t limiter_sum(const struct limiter_parts *parts, size_t counter);

/** A zone's counts of all workers. @thread any */
struct worker_zone limiter_zone(const struct limiter_parts *parts, uint32_t zone_id);

/** How far the clock of some partition is ahead of this machine's; 0: none is. @thread any */
int64_t limiter_clock_ahead_ms(const struct limiter_parts *parts);

/** Appends a histogram of all workers. @param member  offsetof(struct worker_stats, …) */
void limiter_histogram(const struct limiter_parts *parts, struct weir_text *page, const struct weir_metric *metric,
                       const struct weir_histogram_scale *scale, size_t member);

/** Appends their metrics: verdicts by zone, events, state, checkpoints. @thread any */
void limiter_metrics(const struct limiter_parts *parts, struct weir_text *page);

/** Appends `"name":number,…` of their state: buckets, memory, checkpoints; names as in the metrics. @thread any */
void limiter_figures(const struct limiter_parts *parts, struct weir_text *members);

#endif
