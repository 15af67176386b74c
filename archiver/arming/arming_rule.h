/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a zone that waits in shadow mode may enforce: a function of what the archive counted on each whole day, and of
 * nothing else (common/specification/semantics.md, Shadow until).
 *
 * A day with enough keys is below the share or not; a day with fewer says nothing and is passed over. The zone may enforce
 * once the newest days that say something are below, as many in a row as its terms ask for.
 */
#ifndef ARCHIVER_ARMING_RULE_H
#define ARCHIVER_ARMING_RULE_H

#include "common/base/text.h"
#include "common/policy/policy.h"

enum { ARMING_DAY_MS = 86400000, ARMING_PATIENCE = 4 /* times the days that are asked for: so far back is looked */ };

/* One day of a zone. */
struct arming_day {
	int64_t begin_ms;
	uint64_t keys, blocked; /* that came, and those of which a request would have been blocked */
};

/* Zero-initialised: no day was looked at. */
struct arming_verdict {
	bool arms;
	uint32_t below;           /* days in a row, at most as many as are asked for */
	uint32_t days;            /* that were looked at */
	struct arming_day newest; /* of all; where days is above 0 */
	struct arming_day first, last,
		worst;   /* of the row: its oldest and newest day, and the one with the highest share */
	bool broken; /* by this day: */
	struct arming_day above;
};

/** How many days are asked for. */
uint32_t arming_days_needed(const struct weir_arming *terms);

/**
 * Adds a day. They come from the newest to the oldest.
 *
 * @return whether an older one matters
 */
bool arming_rule_add(struct arming_verdict *verdict, const struct weir_arming *terms, const struct arming_day *day);

/** Appends why it may enforce, or why it stays in shadow. */
void arming_rule_words(struct weir_text *text, const struct weir_arming *terms, const struct arming_verdict *verdict);

#endif
