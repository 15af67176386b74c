/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_COMMON_CERTIFICATE_METRICS_H
#define WEIR_COMMON_CERTIFICATE_METRICS_H

#include "common/config/config.h"
#include "common/log/metrics.h"

extern const struct weir_metric_table weir_certificate_metric_table;

/**
 * Appends when the certificates of the files end that a configuration names, anywhere in it, 64 at most. They are read
 * each time, so that a renewed one is seen. config is NULL where a program was started without one: it names none.
 *
 * @thread any
 */
void weir_certificate_metrics(const struct weir_config *config, struct weir_text *page);

#endif
