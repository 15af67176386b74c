/* SPDX-License-Identifier: Apache-2.0 */
/* What the archive has of days: read in bounded steps, as a day may have millions of keys. */
#ifndef ARCHIVER_ARMING_DAY_COUNTS_H
#define ARCHIVER_ARMING_DAY_COUNTS_H

#include "archiver/arming/arming_rule.h"
#include "common/store/store.h"

/** The beginning of the newest hour that any zone has; -1: there is none. */
WEIR_MUST_USE enum weir_status day_counts_newest_hour(struct weir_store *store, int64_t *hour_ms,
                                                      struct weir_error *error);
/** The beginning of the oldest hour that a zone has; -1: there is none. */
WEIR_MUST_USE enum weir_status day_counts_oldest_hour(struct weir_store *store, uint32_t zone, int64_t *hour_ms,
                                                      struct weir_error *error);
/** Counts a zone's keys of one day. @param day  begin_ms is set; the rest is filled in */
WEIR_MUST_USE enum weir_status day_counts_read(struct weir_store *store, uint32_t zone, struct arming_day *day,
                                               struct weir_error *error);

#endif
