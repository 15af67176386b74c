/* SPDX-License-Identifier: Apache-2.0 */
/* What is said where many events are late: which zone it is, what late means, and what helps. */
#ifndef LIMITER_LATE_NOTE_H
#define LIMITER_LATE_NOTE_H

#include "common/base/text.h"
#include "common/log/log.h"
#include "limiter/daemon/limiter_metrics.h"

/* The zone with the largest share of late events. Zero-initialised: there is none. */
struct late_zone {
	const struct weir_zone *zone; /* borrowed; NULL: no zone has more than 1 % of them */
	uint64_t late, judged;
};

/** Takes a zone's numbers into account. */
void late_zone_consider(struct late_zone *worst, const struct weir_zone *zone, uint64_t late, uint64_t judged);

/** Appends the zone, its share, what late means and what helps: --sort, or lateness. @param sorts  --once reads it */
void late_zone_words(struct weir_text *text, const struct late_zone *worst, bool sorts);

/* What a process that follows has said. Zero-initialised; of the thread that watches. */
struct late_note {
	bool is_said, over_is_said, ahead_is_said;
	int64_t look_ms;
};

/**
 * Logs it once, as soon as some zone has enough events; and once that a decision was over as it was made; and each time
 * that the log's clock comes to be ahead of this machine's. Called often: it looks once a second.
 */
void late_note_watch(struct late_note *note, const struct limiter_parts *parts, const struct weir_log *log);

#endif
