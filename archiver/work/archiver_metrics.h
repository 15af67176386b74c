/* What an archiver shows on /metrics, in the daemon and in `weir run`. */
#ifndef ARCHIVER_ARCHIVER_METRICS_H
#define ARCHIVER_ARCHIVER_METRICS_H

#include "archiver/work/archiver.h"

void archiver_metrics(const struct archiver_stats *stats, struct weir_text *page);

/** The gauges of them as members of a JSON object: "figures" of the API's status. @param context  struct archiver_stats */
void archiver_figures(void *context, struct weir_text *members);

#endif
