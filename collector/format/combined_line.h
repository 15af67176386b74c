/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of `combined` and `common` lines, which servers of the Apache family write:
 *
 *   [vhost SP] ip SP ident SP user SP "[" time "]" [SP DQ request DQ [SP status [SP bytes
 *       [SP DQ referer DQ [SP DQ agent DQ [SP DQ xff DQ]]]]]] anything
 *
 * The head must be whole: who asked, and when. What follows it is taken as far as it goes, for a line that is no record
 * counts for nobody, and what follows is partly the client's to write, or is cut off by a server or by line_max.
 *
 * A user may hold spaces, brackets, anything: it ends at the last " [" before the first "] \"". It may be empty. The
 * quoted parts end at the first quote that has no backslash before it, and stay as they are written. A request may hold
 * quotes that its server did not escape: it ends at the first one behind which a status and bytes follow.
 */
#ifndef COLLECTOR_COMBINED_LINE_H
#define COLLECTOR_COMBINED_LINE_H

#include "common/base/span.h"

enum combined_part {
	COMBINED_IP,
	COMBINED_IDENT,
	COMBINED_USER,
	COMBINED_TIME,
	COMBINED_METHOD, /* this and the target: absent where the request is no "METHOD target[ protocol]" */
	COMBINED_TARGET,
	COMBINED_PATH, /* the target, or of it what was served, where that is told by the way */
	COMBINED_STATUS,
	COMBINED_BYTES,
	COMBINED_REFERER,
	COMBINED_AGENT,
	COMBINED_XFF,
	COMBINED_HOST, /* the virtual host before the client, without its port */
	COMBINED_PARTS,
};

/* The parts as they stand in the line, "-" and empty ones too; at is NULL where an optional part is not there. */
struct combined_line {
	struct weir_span parts[COMBINED_PARTS];
	bool served; /* the path is what was served */
	bool cut;    /* it ends within a quoted part, or before the bytes */
};

/**
 * Splits a line, part by part, as the grammar says: what the quick way in format_combined.c must equal.
 *
 * @param text  borrowed
 * @return false: the line has not that form
 */
bool combined_line_split(struct weir_span text, struct combined_line *line);

/**
 * Whether a line may begin with this word and an ident of "-": an address, a name of a host, "unix:" or "-". Else the line
 * has another head, such as syslog's, or a virtual host with its port.
 */
bool combined_line_client(struct weir_span word);

/** Takes a request from after its opening quote to after its closing one; to the end, where it does not end. */
const char *combined_line_request(const char *at, const char *end, struct combined_line *line);

/** Takes the optional parts, from after the bytes. */
void combined_line_tail(const char *at, const char *end, struct combined_line *line);

#endif
