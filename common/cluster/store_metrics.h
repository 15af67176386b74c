/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages of a cluster's programs say of their store. */
#ifndef WEIR_COMMON_STORE_METRICS_H
#define WEIR_COMMON_STORE_METRICS_H

#include "common/log/metrics.h"

extern const struct weir_metric_table weir_store_metric_table;

/**
 * Appends whether the store answers, and how often it failed.
 *
 * @param known  false: it has not been asked yet
 * @param up     whether the last attempt succeeded
 */
void weir_store_metrics(bool known, bool up, uint64_t failures, struct weir_text *page);

#endif
