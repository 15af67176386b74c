/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in Prometheus' text form, and counters that cost their thread an
 * add. What a metric is called, what it means and how it is to be read is
 * said once, in its module's table.
 *
 * A counter or histogram is written by the one thread that owns it, without
 * locks, and may be read by any. What several threads count is summed by the
 * reader.
 */
#ifndef WEIR_COMMON_METRICS_H
#define WEIR_COMMON_METRICS_H

#include "common/base/text.h"

#include <stdatomic.h>

/* ---- what threads own ---- */

struct weir_counter {
	_Atomic uint64_t value;
};

/** @thread the counter's owner: no other thread adds */
static inline void weir_counter_add(struct weir_counter *counter, uint64_t amount)
{
	uint64_t value = atomic_load_explicit(&counter->value, memory_order_relaxed);
	atomic_store_explicit(&counter->value, value + amount, memory_order_relaxed);
}

/** For a gauge, or what is counted elsewhere. @thread likewise */
static inline void weir_counter_set(struct weir_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline uint64_t weir_counter_read(const struct weir_counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

enum { WEIR_HISTOGRAM_BUCKETS_MAX = 24 };

/* The upper bounds of a histogram's buckets, growing; what lies above the last one is counted in +Inf alone. */
struct weir_histogram_scale {
	const double *bounds; /* in the unit that is shown: seconds */
	uint32_t count;       /* at most WEIR_HISTOGRAM_BUCKETS_MAX */
};

/** 25 µs to 10 s by 1-2.5-5 steps: latencies. */
extern const struct weir_histogram_scale weir_latency_scale;
/** 5 ms to an hour: from a line's time until something is done about it, which an outage makes long. */
extern const struct weir_histogram_scale weir_delay_scale;

/* Zero-initialised is empty. Every use of one histogram names the same scale. */
struct weir_histogram {
	struct weir_counter buckets[WEIR_HISTOGRAM_BUCKETS_MAX + 1]; /* each value in one; the last is above all bounds */
	_Atomic double sum;
};

/** @thread the histogram's owner */
void weir_histogram_observe(struct weir_histogram *histogram, const struct weir_histogram_scale *scale, double value);

/* ---- what there is to show: each module that shows something has a table of it ---- */

enum weir_metric_type { WEIR_COUNTER, WEIR_GAUGE, WEIR_HISTOGRAM };

enum { WEIR_METRIC_LABELS_MAX = 3 };

/* One metric, whatever its labels' values. Nothing is written on a page but by its row. */
struct weir_metric {
	const char *name;
	enum weir_metric_type type;
	const char *unit; /* of its values, in words */
	struct {
		const char *name;   /* NULL: there are no more */
		const char *values; /* in words; where some stand in backticks, those are all that there are */
	} labels[WEIR_METRIC_LABELS_MAX];
	const char *help; /* what it means, and what to do about it: sentences, without "|" or line breaks */
};

/* WEIR_LABELS({"zone", "the zone's name"}, ...) */
#define WEIR_LABELS(...) \
	{                    \
		__VA_ARGS__      \
	}
#define WEIR_NO_LABELS \
	{                  \
		{              \
			0          \
		}              \
	}

/* A module's rows, in the order in which its page has them. */
struct weir_metric_table {
	const struct weir_metric *at;
	size_t count;
};

/** Appends a row of Markdown for each metric: name, type, unit, labels, meaning. */
void weir_metrics_describe(struct weir_text *text, const struct weir_metric_table *table);

/* ---- what a page says ---- */

/** "# HELP" and "# TYPE" lines: once before a metric's samples, which follow without another metric between. */
void weir_metrics_family(struct weir_text *page, const struct weir_metric *metric);

/**
 * One sample.
 *
 * @param values  of the metric's labels, in their order; any bytes: escaped, what is not UTF-8 becomes U+FFFD; NULL
 *                where it has none
 */
void weir_metrics_uint(struct weir_text *page, const struct weir_metric *metric, const struct weir_span *values,
                       uint64_t value);
void weir_metrics_double(struct weir_text *page, const struct weir_metric *metric, const struct weir_span *values,
                         double value);

/** A family of one counter or gauge without labels. */
void weir_metrics_counter(struct weir_text *page, const struct weir_metric *metric, uint64_t value);
void weir_metrics_gauge(struct weir_text *page, const struct weir_metric *metric, double value);

/** A family of one histogram without labels: the sum of several of one scale, one a thread. */
void weir_metrics_histogram(struct weir_text *page, const struct weir_metric *metric,
                            const struct weir_histogram_scale *scale, const struct weir_histogram *const *histograms,
                            size_t histogram_count);

/** The samples of one, with values for the metric's labels; after weir_metrics_family(). */
void weir_metrics_histogram_sample(struct weir_text *page, const struct weir_metric *metric,
                                   const struct weir_span *values, const struct weir_histogram_scale *scale,
                                   const struct weir_histogram *const *histograms, size_t histogram_count);

#endif
