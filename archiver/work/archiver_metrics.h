/* SPDX-License-Identifier: Apache-2.0 */
/* What an archiver shows on /metrics, in the daemon and in `weir run`. */
#ifndef ARCHIVER_ARCHIVER_METRICS_H
#define ARCHIVER_ARCHIVER_METRICS_H

#include "archiver/work/archiver.h"

/* Metrics that only the daemon has; archiver_metrics() has the others. */
enum archiver_daemon_metric {
	ARCHIVER_IS_WORKING,
	ARCHIVER_PARTITIONS_GIVEN,
	ARCHIVER_LAG_MESSAGES,
	ARCHIVER_LAG_SECONDS,
	ARCHIVER_DAEMON_METRIC_COUNT,
};

extern const struct weir_metric archiver_daemon_metrics[ARCHIVER_DAEMON_METRIC_COUNT];

extern const struct weir_metric_table archiver_metric_table, archiver_daemon_metric_table;

/** @param memory_bytes  archiver.memory @thread any */
void archiver_metrics(const struct archiver_stats *stats, int64_t memory_bytes, struct weir_text *page);

/** Some of the metrics as members of a JSON object, "figures" of the API's status. @thread any */
void archiver_figures(const struct archiver_stats *stats, struct weir_text *members);

#endif
