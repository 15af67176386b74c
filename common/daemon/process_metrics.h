/* SPDX-License-Identifier: Apache-2.0 */
/* What every program's page says of its process: processor time, memory, open files, when it started, its version. */
#ifndef WEIR_COMMON_PROCESS_METRICS_H
#define WEIR_COMMON_PROCESS_METRICS_H

#include "common/log/metrics.h"

extern const struct weir_metric_table weir_process_metric_table;

/** When this process started, as Unix time; 0: not known. To be read once: it moves when the wall clock is set. */
double weir_process_start_s(void);

/**
 * Appends the process's metrics, read from /proc/self. What cannot be read there is absent.
 *
 * @param role     "limiter", "run", ...: the label of weir_build_info
 * @param start_s  weir_process_start_s(), as read at the start
 * @thread any
 */
void weir_process_metrics(const char *role, double start_s, struct weir_text *page);

#endif
