/* SPDX-License-Identifier: Apache-2.0 */
/* Two rows, which limiter and archiver share. */
#include "common/cluster/store_metrics.h"

enum { UP, FAILURES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[UP] =
		{"weir_store_up", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
         "1 if the last attempt to read from the store or to write to it succeeded, 0 while attempts fail (/readyz "
         "and the log say why) and until it answers for the first time. Absent while the process waits for its brokers."},
	[FAILURES] = {"weir_store_failures_total", WEIR_COUNTER, "attempts", WEIR_NO_LABELS,
                  "Attempts to read from the store or to write to it that failed and were made again."},
};

const struct weir_metric_table weir_store_metric_table = {metrics, METRIC_COUNT};

void weir_store_metrics(bool known, bool up, uint64_t failures, struct weir_text *page)
{
	weir_metrics_family(page, &metrics[UP]);
	if (known)
		weir_metrics_uint(page, &metrics[UP], NULL, up);
	weir_metrics_counter(page, &metrics[FAILURES], failures);
}
