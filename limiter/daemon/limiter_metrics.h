/* What operators watch of workers, in whatever process they are. */
#ifndef LIMITER_LIMITER_METRICS_H
#define LIMITER_LIMITER_METRICS_H

#include "limiter/worker/worker.h"

struct limiter_parts {
	struct worker *const *workers;
	uint32_t worker_count;
	struct rulebook *book;
};

/** A counter of all workers. @param counter  offsetof(struct worker_stats, …) */
uint64_t limiter_sum(const struct limiter_parts *parts, size_t counter);

/** Appends a histogram of all workers. @param member  offsetof(struct worker_stats, …) */
void limiter_histogram(const struct limiter_parts *parts, struct weir_text *page, const char *name, const char *help,
                       size_t member);

/** Appends their metrics: verdicts by zone, events, state, checkpoints. @thread any */
void limiter_metrics(const struct limiter_parts *parts, struct weir_text *page);

/** Appends `"name":number,…` of their state: buckets, memory, checkpoints; names as in the metrics. @thread any */
void limiter_figures(const struct limiter_parts *parts, struct weir_text *members);

#endif
