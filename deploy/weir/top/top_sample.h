/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `weir top` shows, at one moment: a JSON object, which --json prints as
 * it is and tables are made of.
 *
 *   {"at_ms", "hour_ms",                         the archiver's clock, and where its hour begins
 *    "zones": [{"zone", "mode", "passed", "blocked", "late", "per_second"}],  this hour; a second: null until it is known;
 *                                                of a zone in "shadow" mode, "blocked" is what would have been blocked
 *    "zone", "by",                               whose keys these are, and what they are sorted by
 *    "top": [{"key", "passed", "blocked", "late", "hour": {"passed", "blocked", "late"}}],  today, and this hour
 *    "blocks": [{"zone", "key", "at_ms", "until_ms", "limit", …}], "more_blocks"}           as GET /api/v1/blocks
 *
 * Of a span of time, whose sums are of whole hours, or of whole days where the archive has no more of its keys:
 *
 *   {"at_ms", "asked_from_ms", "asked_to_ms",
 *    "from_ms", "to_ms", "grain",                what the sums cover, and "hour" or "day"
 *    "zones", "zone", "by", "top",               as above, but of the span, without "hour"; "per_second" is its average;
 *                                                a zone has "first_ms", its first hour or day with a count; null: none
 *    "blocks", "more_blocks"}                    decided from asked_from_ms on and before asked_to_ms, the newest first
 */
#ifndef DEPLOY_WEIR_TOP_TOP_SAMPLE_H
#define DEPLOY_WEIR_TOP_TOP_SAMPLE_H

#include "deploy/weir/top/top_source.h"

enum { TOP_RATE_SAMPLES = 16, TOP_ROWS_MAX = 50, TOP_ZONE_BYTES = 65 };

struct top_question {
	char zone[TOP_ZONE_BYTES]; /* "": the first of those in force; set to the one that is shown */
	bool by_blocked;           /* else by passed */
	unsigned top_rows, block_rows;
	bool spanned;                        /* a span of time is asked for, not what is now */
	int64_t since_ms, until_ms, last_ms; /* until 0: now; last: so much before that; 0: since */
};

/* Zones' sums of the last samples, to tell rates by. Zero-initialised is empty. */
struct top_rates {
	struct {
		int64_t at_ms, hour_ms;
		json_t *zones;
	} samples[TOP_RATE_SAMPLES];
	uint64_t count;
};

void top_rates_deinit(struct top_rates *rates);

/**
 * Asks the source.
 *
 * @param sample  returned: json_decref()
 * @return as top_source_ask(); WEIR_INVALID also: there is no zone of that name, or none at all; the span is none
 */
WEIR_MUST_USE enum weir_status top_sample_read(struct top_source *source, struct top_question *question,
                                               struct top_rates *rates, json_t **sample, struct weir_error *error);

#endif
