/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of `combined` and `common` lines, which servers of the Apache family write:
 *
 *   ip SP ident SP user SP "[" time "]" SP DQ request DQ SP status SP bytes
 *       [SP DQ referer DQ [SP DQ agent DQ [SP DQ xff DQ]]] anything
 *
 * A user may hold spaces, brackets, anything: it ends at the last " [" before the first "] \"". It may be empty. The
 * quoted parts end at the first quote that has no backslash before it, and stay as they are written.
 */
#ifndef COLLECTOR_COMBINED_LINE_H
#define COLLECTOR_COMBINED_LINE_H

#include "common/base/span.h"

enum combined_part {
	COMBINED_IP,
	COMBINED_IDENT,
	COMBINED_USER,
	COMBINED_TIME,
	COMBINED_METHOD, /* this and the path: absent where the request is no "METHOD target[ protocol]" */
	COMBINED_PATH,   /* the target up to the first '?' */
	COMBINED_STATUS,
	COMBINED_BYTES,
	COMBINED_REFERER,
	COMBINED_AGENT,
	COMBINED_XFF,
	COMBINED_NONE, /* always absent */
	COMBINED_PARTS,
};

/* The parts as they stand in the line, "-" and empty ones too; at is NULL where an optional part is not there. */
struct combined_line {
	struct weir_span parts[COMBINED_PARTS];
};

/**
 * Splits a line, part by part, as the grammar says: what the quick way in format_combined.c must equal.
 *
 * @param text  borrowed
 * @return false: the line has not that form
 */
bool combined_line_split(struct weir_span text, struct combined_line *line);

/** Takes a request from after its opening quote to after its closing one; NULL: it does not end. */
const char *combined_line_request(const char *at, const char *end, struct combined_line *line);

/** Takes the optional parts, from after the bytes. */
void combined_line_tail(const char *at, const char *end, struct combined_line *line);

#endif
