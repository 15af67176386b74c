/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as a line of the source `syslog`: its head complete, so that whoever reads the line needs no clock.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SYSLOG_LINE_H
#define COLLECTOR_SYSLOG_LINE_H

#include "collector/record/time_text.h"
#include "common/base/text.h"

struct syslog_line {
	struct time_reader time; /* for heads that name no zone */
	/* the calendar year of the clock's newest time, and the text of the newest second written */
	int64_t year_from_ms, year_to_ms;
	int32_t year;
	int64_t second;
	char second_text[24];
	struct weir_text flat; /* a message that had newlines */
};

/** @param zone  taken */
void syslog_line_init(struct syslog_line *line, struct time_zone *zone);
void syslog_line_deinit(struct syslog_line *line);

/**
 * Appends a message with its newline: a whole head of RFC 5424 as it stands, any other rewritten as one. A time
 * without a year is of the year that brings it nearest to now_ms; without a time it is now_ms. Newlines in the message
 * become spaces, before anything else; what follows its last byte (newlines, zeros) is left out, and of nothing else nothing is appended.
 *
 * @param message  borrowed
 * @return false: its head cannot be read, and it was appended as it is
 */
bool syslog_line_put(struct syslog_line *line, struct weir_span message, int64_t now_ms, struct weir_text *text);

#endif
