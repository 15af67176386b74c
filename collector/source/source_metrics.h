/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of each stream that several kinds of sources share. Metrics of a single kind are beside that kind.
 *
 * A kind lists those that its streams have (source_ops.metrics). If two kinds show the same thing in different ways,
 * their metrics share a row.
 */
#ifndef COLLECTOR_SOURCE_METRICS_H
#define COLLECTOR_SOURCE_METRICS_H

#include "collector/source/source.h"
#include "common/log/metrics.h"

struct source_metric {
	const struct weir_metric *row;
	/** Reads a sample from a status. @return false: it has none now */
	bool (*sample)(const struct source_status *status, double *value);
	bool of_whole;            /* the status of a source as a whole has it too */
	bool largest;             /* of many streams together the largest matters, not the sum */
	const char *const *words; /* a sample is an index into these: the row's second label's value, which shows 1 */
};

/* What stands for the streams of a source that are too many to be shown one by one. */
#define SOURCE_METRIC_OTHERS "(others)"
/* What stands, of counters, for what sources had counted when they were closed, to be opened anew. */
#define SOURCE_METRIC_ENDED "(ended)"

#define SOURCE_METRIC_LABELS                                                                                  \
	WEIR_LABELS({"source",                                                                                    \
	             "the stream's name, (others): those beyond 256 of a source, or (ended): counts of what was " \
	             "read before its source was opened anew"})

extern const struct source_metric source_metric_position;    /* the offset within its file */
extern const struct source_metric source_metric_incarnation; /* which of its files that is */
extern const struct source_metric source_metric_offset;      /* the row of position, for kinds without incarnations */
extern const struct source_metric source_metric_lag_seconds;
extern const struct source_metric source_metric_lag_bytes;
extern const struct source_metric source_metric_lag_records;
extern const struct source_metric source_metric_lines;
extern const struct source_metric source_metric_errors;
extern const struct source_metric source_metric_lost_bytes;
extern const struct source_metric source_metric_unknown_losses;
extern const struct source_metric source_metric_lost_records;
extern const struct source_metric source_metric_skipped; /* messages without a line */
extern const struct source_metric source_metric_problem;
extern const struct source_metric source_metric_guarantee;    /* of every kind */
extern const struct source_metric source_metric_replayable;   /* 1 */
extern const struct source_metric source_metric_unreplayable; /* the row of replayable: 0 */

#endif
