/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus text form, version 0.0.4.
 *
 * Values are appended straight into the page. A histogram keeps each value in
 * one bucket, so that observing is one add; the page's buckets, which hold all
 * values up to their bound, are summed when it is read.
 */
#include "common/log/metrics.h"

#include "common/base/words.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	DOUBLE_TEXT_BYTES = 32,
	LABEL_MAX_BYTES = 1024, /* a longer value is cut */
};

static const double latency_bounds[] = {
	25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3,
	25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1,    2.5,    5,    10,
};

const struct weir_histogram_scale weir_latency_scale = {
	.bounds = latency_bounds,
	.count = sizeof latency_bounds / sizeof latency_bounds[0],
};

static const double delay_bounds[] = {
	5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600,
};

const struct weir_histogram_scale weir_delay_scale = {
	.bounds = delay_bounds,
	.count = sizeof delay_bounds / sizeof delay_bounds[0],
};

void weir_histogram_observe(struct weir_histogram *histogram, const struct weir_histogram_scale *scale, double value)
{
	assert(scale->count <= WEIR_HISTOGRAM_BUCKETS_MAX);
	uint32_t bucket = 0;
	while (bucket < scale->count && value > scale->bounds[bucket])
		bucket++;
	weir_counter_add(&histogram->buckets[bucket], 1);
	double sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
	atomic_store_explicit(&histogram->sum, sum + value, memory_order_relaxed);
}

/*
 * A label's value. Its escapes are those of JSON for `"`, `\` and line breaks, and it must be UTF-8 as JSON must; the
 * other control characters, which have an escape in JSON alone, become spaces.
 */
static void append_value(struct weir_text *page, struct weir_span value)
{
	char plain[LABEL_MAX_BYTES];
	uint32_t left = value.length < sizeof plain ? value.length : (uint32_t)sizeof plain, length = 0;
	for (const char *at = value.at; left > 0;) {
		uint32_t control = *at != '\n' ? (uint32_t)weir_control_bytes(at, left) : 0, taken = control > 0 ? control : 1;
		plain[length++] = control > 0 ? ' ' : *at;
		at += taken;
		left -= taken;
	}
	weir_text_json(page, (struct weir_span){.at = plain, .length = length});
}

/* Labels with braces, or nothing; `bound`: of a bucket, or NULL. */
static void append_labels(struct weir_text *page, const struct weir_metric *metric, const struct weir_span *values,
                          const char *bound)
{
	const char *mark = "{";
	for (size_t i = 0; i < WEIR_METRIC_LABELS_MAX && metric->labels[i].name != NULL; i++, mark = ",") {
		assert(values != NULL);
		weir_text_printf(page, "%s%s=", mark, metric->labels[i].name);
		append_value(page, values[i]);
	}
	if (bound != NULL)
		weir_text_printf(page, "%sle=\"%s\"}", mark, bound);
	else if (*mark == ',')
		weir_text_puts(page, "}");
}

/* The shortest form that reads back as the same number. */
static const char *format_double(double value, char text[DOUBLE_TEXT_BYTES])
{
	if (isnan(value))
		return "NaN";
	if (isinf(value))
		return value > 0 ? "+Inf" : "-Inf";
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, DOUBLE_TEXT_BYTES, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return text;
}

static const char *const type_names[] = {
	[WEIR_COUNTER] = "counter", [WEIR_GAUGE] = "gauge", [WEIR_HISTOGRAM] = "histogram"};

void weir_metrics_describe(struct weir_text *text, const struct weir_metric_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct weir_metric *metric = &table->at[i];
		weir_text_printf(text, "| `%s` | %s | %s |", metric->name, type_names[metric->type], metric->unit);
		const char *mark = " ";
		for (size_t j = 0; j < WEIR_METRIC_LABELS_MAX && metric->labels[j].name != NULL; j++, mark = "; ")
			weir_text_printf(text, "%s`%s`: %s", mark, metric->labels[j].name, metric->labels[j].values);
		weir_text_printf(text, " | %s |\n", metric->help);
	}
}

void weir_metrics_family(struct weir_text *page, const struct weir_metric *metric)
{
	weir_text_printf(page, "# HELP %s ", metric->name);
	for (const char *at = metric->help; *at != '\0'; at++) {
		if (*at == '\\')
			weir_text_puts(page, "\\\\");
		else
			weir_text_append(page, at, 1);
	}
	weir_text_printf(page, "\n# TYPE %s %s\n", metric->name, type_names[metric->type]);
}

void weir_metrics_uint(struct weir_text *page, const struct weir_metric *metric, const struct weir_span *values,
                       uint64_t value)
{
	weir_text_puts(page, metric->name);
	append_labels(page, metric, values, NULL);
	weir_text_puts(page, " ");
	weir_text_uint(page, value);
	weir_text_puts(page, "\n");
}

void weir_metrics_double(struct weir_text *page, const struct weir_metric *metric, const struct weir_span *values,
                         double value)
{
	char text[DOUBLE_TEXT_BYTES];
	weir_text_puts(page, metric->name);
	append_labels(page, metric, values, NULL);
	weir_text_printf(page, " %s\n", format_double(value, text));
}

void weir_metrics_counter(struct weir_text *page, const struct weir_metric *metric, uint64_t value)
{
	assert(metric->type == WEIR_COUNTER);
	weir_metrics_family(page, metric);
	weir_metrics_uint(page, metric, NULL, value);
}

void weir_metrics_gauge(struct weir_text *page, const struct weir_metric *metric, double value)
{
	assert(metric->type == WEIR_GAUGE);
	weir_metrics_family(page, metric);
	weir_metrics_double(page, metric, NULL, value);
}

static void append_sample(struct weir_text *page, const struct weir_metric *metric, const char *ending,
                          const struct weir_span *values, const char *bound)
{
	weir_text_printf(page, "%s_%s", metric->name, ending);
	append_labels(page, metric, values, bound);
	weir_text_puts(page, " ");
}

void weir_metrics_histogram_sample(struct weir_text *page, const struct weir_metric *metric,
                                   const struct weir_span *values, const struct weir_histogram_scale *scale,
                                   const struct weir_histogram *const *histograms, size_t histogram_count)
{
	assert(metric->type == WEIR_HISTOGRAM);
	char text[DOUBLE_TEXT_BYTES];
	uint64_t count = 0;
	double sum = 0;
	for (uint32_t bucket = 0; bucket <= scale->count; bucket++) {
		for (size_t i = 0; i < histogram_count; i++)
			count += weir_counter_read(&histograms[i]->buckets[bucket]);
		append_sample(page, metric, "bucket", values,
		              format_double(bucket < scale->count ? scale->bounds[bucket] : INFINITY, text));
		weir_text_printf(page, "%llu\n", (unsigned long long)count);
	}
	for (size_t i = 0; i < histogram_count; i++)
		sum += atomic_load_explicit(&histograms[i]->sum, memory_order_relaxed);
	append_sample(page, metric, "sum", values, NULL);
	weir_text_printf(page, "%s\n", format_double(sum, text));
	append_sample(page, metric, "count", values, NULL);
	weir_text_printf(page, "%llu\n", (unsigned long long)count);
}

void weir_metrics_histogram(struct weir_text *page, const struct weir_metric *metric,
                            const struct weir_histogram_scale *scale, const struct weir_histogram *const *histograms,
                            size_t histogram_count)
{
	weir_metrics_family(page, metric);
	weir_metrics_histogram_sample(page, metric, NULL, scale, histograms, histogram_count);
}
