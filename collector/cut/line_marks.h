/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an object by which a container engine, a shipper or journald says that the line in it is a part of one.
 *
 * - Docker's fluentd driver: `partial_message`, `partial_id`, `partial_ordinal`, `partial_last`. Older engines have only the
 *   first, on all parts but the last.
 * - Docker's journald driver: the same as CONTAINER_PARTIAL_…, where CONTAINER_PARTIAL_MESSAGE is not on the last part.
 * - CRI's lines that Fluent Bit or Fluentd has taken apart: `logtag` or `_p` is P, or F on the last part and on whole lines.
 * - journald: _LINE_BREAK is line-max, or pid-change, and the next entry of the _STREAM_ID goes on.
 *
 * Parts without an id of their own belong to their stream of their container.
 */
#ifndef COLLECTOR_LINE_MARKS_H
#define COLLECTOR_LINE_MARKS_H

#include "collector/cut/line_parts.h"
#include "collector/record/json_scan.h"

/* Those that each line is looked at for: one of them is on each part, but on a last one that has none at all. */
enum {
	LINE_MARK_PARTIAL,
	LINE_MARK_JOURNAL_PARTIAL,
	LINE_MARK_JOURNAL_ID,
	LINE_MARK_BREAK,
	LINE_MARK_LOGTAG,
	LINE_MARK_P,
	LINE_MARKS,
};

enum { LINE_MARKS_NAMES_MAX = 32 };

/* Owned by one thread. */
struct line_marks {
	uint32_t nodes[LINE_MARKS]; /* in the scan of each line; 0: not looked for */
	/* What else is asked of a line that may be a part, in a scan of its own: most lines are none. */
	struct json_scan names;
	uint32_t name_nodes[LINE_MARKS_NAMES_MAX];
	struct weir_text key;
};

/**
 * Adds the marks to the names that each line is scanned for.
 *
 * @param journal_only  lines are the journal's: they have no others
 */
void line_marks_init(struct line_marks *marks, struct json_scan *scan, bool journal_only);
void line_marks_deinit(struct line_marks *marks);

/**
 * Whether the line of an object may be a part, by the scan that has just been through it: it has a mark, or something
 * waits for its rest.
 */
bool line_marks_may_be_part(const struct line_marks *marks, const struct json_scan *scan,
                            const struct line_parts *parts);

/** What these marks say. @param object  as it was scanned */
struct line_part line_marks_part(struct line_marks *marks, const struct json_scan *scan, struct weir_span object);

#endif
