/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a run: as text, or as one JSON line. */
#ifndef DEPLOY_WEIR_RUN_SUMMARY_H
#define DEPLOY_WEIR_RUN_SUMMARY_H

#include "collector/follow/record_reader.h"
#include "limiter/daemon/late_note.h"
#include "limiter/lane/lane.h"

struct summary {
	struct record_counts counts;
	const struct weir_policy *policy;
	struct lane *const *lanes;
	uint32_t lane_count;
	double seconds;           /* of this process: 0 leaves the rate out */
	uint64_t lines_here;      /* lines that this process read, for the rate */
	const char *decisions;    /* where they lie; "-" is standard output */
	const char *dead_letters; /* the file, or NULL */
	uint64_t dead_letters_written, dead_letters_dropped;
	const char *state; /* the directory, or NULL */
	bool follows;      /* live sources: what helps against late events is another thing there */
	bool earlier;      /* zones and keys are counted since an earlier run with this state, lines of this run alone */
	bool finished;     /* else it was stopped by a signal */
};

/** The zone with the most late events, if they are many. */
struct late_zone summary_late(const struct summary *summary);

/** Appends words for a person, several lines. */
void summary_words(struct weir_text *text, const struct summary *summary);

/** Appends one JSON line with its newline. */
void summary_json(struct weir_text *text, const struct summary *summary);

#endif
