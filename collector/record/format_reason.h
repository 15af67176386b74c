/* SPDX-License-Identifier: Apache-2.0 */
/* Why a line is no record. */
#ifndef COLLECTOR_FORMAT_REASON_H
#define COLLECTOR_FORMAT_REASON_H

/* format_reason_text() gives the words that counters and the dead letter show. */
enum format_reason {
	FORMAT_OK = 0,
	FORMAT_SKIP, /* no record and nothing wrong: an empty line, a header, what a pattern is told to skip */
	FORMAT_NO_TIME,
	FORMAT_BAD_TIME,
	FORMAT_TIME_RANGE,
	FORMAT_LINE_TOO_LONG, /* the caller's: no format is asked */
	FORMAT_BAD_COST,
	FORMAT_NO_CLIENT,    /* a trusted proxy does not say for whom it asked */
	FORMAT_SEARCH_LIMIT, /* a pattern took too long, or too much memory */
	FORMAT_AMBIGUOUS,    /* the address stands in two places, and which of them a stranger wrote cannot be told */
	FORMAT_NO_MESSAGE,   /* an outer line without the message that its format has */
	FORMAT_LEFT_OUT,     /* the same, where its writer says so: the message is null */
	FORMAT_MALFORMED, /* from here on: not of the format, each kind of which has a number (struct format, malformed) */
	FORMAT_KINDS_MAX = 32,
	FORMAT_REASON_COUNT = FORMAT_MALFORMED + FORMAT_KINDS_MAX,
};

#endif
