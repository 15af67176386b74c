/* SPDX-License-Identifier: Apache-2.0 */
/* What the archive has of days: read in bounded steps, as a day may have millions of keys. */
#ifndef ARCHIVER_ARMING_DAY_COUNTS_H
#define ARCHIVER_ARMING_DAY_COUNTS_H

#include "archiver/arming/arming_rule.h"
#include "common/store/store.h"

#define DAY_COUNTS_STEP 200000 /* keys */

/** The beginning of the newest hour that any zone has, of those that have begun by now: not by a clock that was ahead. */
WEIR_MUST_USE enum weir_status day_counts_newest_hour(struct weir_store *store, int64_t now_ms, int64_t *hour_ms,
                                                      struct weir_error *error);
/** The beginning of the oldest hour that a zone has; -1: there is none. */
WEIR_MUST_USE enum weir_status day_counts_oldest_hour(struct weir_store *store, uint32_t zone, int64_t *hour_ms,
                                                      struct weir_error *error);
/* A day of which keys have been counted up to one. Zero-initialised but for the day's begin_ms: none has. */
struct day_count {
	struct arming_day day;
	struct weir_text last; /* the key up to which they have, in their order */
};

/**
 * Counts the next keys of a zone on a day: at most DAY_COUNTS_STEP.
 *
 * @return WEIR_OK: *whole says whether these were the last
 */
WEIR_MUST_USE enum weir_status day_counts_step(struct weir_store *store, uint32_t zone, struct day_count *count,
                                               bool *whole, struct weir_error *error);
void day_count_deinit(struct day_count *count);

#endif
