/*
 * Metrics in Prometheus' text form, and counters that cost their thread an
 * add.
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

/* Zero-initialised is empty. Every use of one histogram names the same scale. */
struct weir_histogram {
	struct weir_counter buckets[WEIR_HISTOGRAM_BUCKETS_MAX + 1]; /* each value in one; the last is above all bounds */
	_Atomic double sum;
};

/** @thread the histogram's owner */
void weir_histogram_observe(struct weir_histogram *histogram, const struct weir_histogram_scale *scale, double value);

/* ---- what a page says ---- */

struct weir_label {
	const char *name;
	struct weir_span value; /* any bytes: escaped, what is not UTF-8 becomes U+FFFD */
};

/** "# HELP" and "# TYPE" lines: once before a metric's samples, which follow without another metric between. */
void weir_metrics_family(struct weir_text *page, const char *name, const char *type, const char *help);

void weir_metrics_uint(struct weir_text *page, const char *name, const struct weir_label *labels, size_t label_count,
                       uint64_t value);
void weir_metrics_double(struct weir_text *page, const char *name, const struct weir_label *labels, size_t label_count,
                         double value);

/** A family of one counter or gauge without labels. */
void weir_metrics_counter(struct weir_text *page, const char *name, const char *help, uint64_t value);
void weir_metrics_gauge(struct weir_text *page, const char *name, const char *help, double value);

/** The _bucket, _sum and _count samples of histograms of one scale, summed: one a thread. */
void weir_metrics_histogram(struct weir_text *page, const char *name, const struct weir_label *labels,
                            size_t label_count, const struct weir_histogram_scale *scale,
                            const struct weir_histogram *const *histograms, size_t histogram_count);

#endif
