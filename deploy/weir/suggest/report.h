/* SPDX-License-Identifier: Apache-2.0 */
/* What is suggested, for people and for programs, and the zone itself. */
#ifndef DEPLOY_WEIR_SUGGEST_REPORT_H
#define DEPLOY_WEIR_SUGGEST_REPORT_H

#include "collector/follow/record_reader.h"
#include "deploy/weir/suggest/trial.h"

enum { REPORT_TOP = 5 };

struct suggest_report {
	const struct setting *setting; /* borrowed, as all */
	const struct trial *trial;
	const struct peak_table *table;
	const struct peaks_seen *seen;          /* of all partitions */
	const char *share;                      /* as it was written */
	bool spares;                            /* keys that must not be blocked were named */
	uint64_t allowed;                       /* keys that may be blocked */
	int64_t alone[WEIR_ZONE_LIMITS_MAX];    /* by window: its limit where it is the only one */
	int64_t unspared[WEIR_ZONE_LIMITS_MAX]; /* the limits if no key was spared */
	struct blocked_key top[REPORT_TOP];     /* the most blocked by what is suggested, the first one first */
	uint32_t top_count;
	struct record_counts counts; /* of lines */
};

/** Appends tables for a person, and the zone behind them. */
void suggest_words(struct weir_text *text, const struct suggest_report *report);
/** Appends the zone, with where its numbers come from as comments. */
void suggest_zone(struct weir_text *text, const struct suggest_report *report);
/** Appends one JSON object with its newline: every step of the curves. */
void suggest_json(struct weir_text *text, const struct suggest_report *report);

/** A window is longer than the log: its limit is one of all that a key does in the log. */
bool suggest_is_longer(const struct suggest_report *report, uint32_t window);
/** Whether it is the spared keys that keep a limit from being one lower. */
bool suggest_is_spared(const struct suggest_report *report, uint32_t window);

#endif
