/* SPDX-License-Identifier: Apache-2.0 */
/* What every program's page says of its process: processor time, memory, open files, when it started, its version. */
#ifndef WEIR_COMMON_PROCESS_METRICS_H
#define WEIR_COMMON_PROCESS_METRICS_H

#include "common/log/metrics.h"

extern const struct weir_metric_table weir_process_metric_table;

/**
 * Appends the process's metrics, read from /proc/self. What cannot be read there is absent.
 *
 * @param role  "limiter", "run", ...: the label of weir_build_info
 * @thread any
 */
void weir_process_metrics(const char *role, struct weir_text *page);

#endif
