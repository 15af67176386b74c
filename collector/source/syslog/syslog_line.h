/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as a line of the source `syslog`, with a complete header, so that the line's reader needs no clock.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SYSLOG_LINE_H
#define COLLECTOR_SYSLOG_LINE_H

#include "collector/record/time_text.h"
#include "common/base/text.h"

struct syslog_line {
	struct time_reader time; /* reads headers' times, in the given zone if they name none */
	/* caches: the calendar year of the clock, and the text of the last second written */
	int64_t year_from_ms, year_to_ms;
	int32_t year;
	int64_t second;
	char second_text[24];
	struct weir_text flat; /* a message whose newlines were replaced */
};

/** @param zone  taken */
void syslog_line_init(struct syslog_line *line, struct time_zone *zone);
void syslog_line_deinit(struct syslog_line *line);

/**
 * Appends a message and a newline. A complete RFC 5424 header is kept as it is, any other is rewritten as one. A time
 * without a year gets the year that brings it nearest to now_ms; a header without a time gets now_ms. First, newlines,
 * carriage returns and zeros at the message's end are removed, and other newlines become spaces. If nothing is left,
 * nothing is appended.
 *
 * @param message  borrowed
 * @return false: its header cannot be read, and it was appended as it is; or nothing was left
 */
bool syslog_line_put(struct syslog_line *line, struct weir_span message, int64_t now_ms, struct weir_text *text);

#endif
