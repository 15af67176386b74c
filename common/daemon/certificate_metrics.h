/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_COMMON_CERTIFICATE_METRICS_H
#define WEIR_COMMON_CERTIFICATE_METRICS_H

#include "common/config/config.h"
#include "common/log/metrics.h"

extern const struct weir_metric_table weir_certificate_metric_table;

/**
 * Appends when the certificates of the files end that a configuration or an address names, 64 at most. They are read
 * each time, so that a renewed one is seen.
 *
 * @param config   looked through as a whole; NULL: a program was started without one
 * @param address  where a command line says to write, such as "rediss://HOST?ca=FILE"; NULL: it says nothing
 * @thread any
 */
void weir_certificate_metrics(const struct weir_config *config, const char *address, struct weir_text *page);

#endif
