/* SPDX-License-Identifier: Apache-2.0 */
/* What a backtest has to say, for people and for programs: all forms have the same numbers. */
#ifndef DEPLOY_WEIR_BACKTEST_REPORT_H
#define DEPLOY_WEIR_BACKTEST_REPORT_H

#include "collector/follow/record_reader.h"
#include "deploy/weir/backtest/policies.h"

struct report {
	const struct backtest_policies *policies; /* borrowed, as are the figures */
	const struct figures *figures;            /* of all partitions */
	struct record_counts counts;              /* of the lines that were read */
	bool from_log;                            /* no lines were read, but events: counts.records of them */
	double seconds;
	bool finished; /* else it was stopped by a signal: the numbers are of what was judged until then */
};

/** Appends tables for a person. */
void report_words(struct weir_text *text, const struct report *report);

/** Appends one JSON object with its newline. */
void report_json(struct weir_text *text, const struct report *report);

/** Appends what got through over time, a line for each bin, policy and zone, behind a line of headings. */
void report_csv(struct weir_text *text, const struct report *report);

/** Appends a page that is whole by itself, with charts and tables. It asks no network for anything. */
void report_html(struct weir_text *text, const struct report *report);

#endif
