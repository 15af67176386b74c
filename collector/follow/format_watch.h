/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the lines of a source still have the form that its "format" says: most of
 * its last lines could not be read, so its log is written in another one.
 *
 * It looks at a window of lines: a thousand, or what came within a minute where the
 * source has few, and at least ten within ten minutes: fewer than that say nothing.
 * Where no line has fitted since the start, ten are enough: a format that was wrong
 * from the beginning is told at once. The share at which a format counts as changed
 * is well above that at which it fits again, so that a log with some foreign lines
 * does not flap.
 */
#ifndef COLLECTOR_FORMAT_WATCH_H
#define COLLECTOR_FORMAT_WATCH_H

#include "common/log/log.h"

/* Of one source. Zero-initialised; of the thread that reads, but for `changed`. */
struct format_watch {
	_Atomic bool changed;
	bool fitted;                         /* a line has */
	uint64_t lines, malformed;           /* in the present window */
	uint64_t last_lines, last_malformed; /* in the last whole one */
	int64_t began_ms;                    /* monotonic: the window's first lines; 0: there are none */
	struct weir_fault fault;
};

/**
 * Counts lines that were read.
 *
 * @param records    those of them that fitted
 * @param malformed  those that did not; others are empty, or heads, or what the format skips
 * @return whether a window is over: `changed` is then as of it
 */
bool format_watch_add(struct format_watch *watch, uint64_t lines, uint64_t records, uint64_t malformed, int64_t now_ms);

#endif
