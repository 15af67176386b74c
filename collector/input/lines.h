/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the lines of a chunk end: many at once.
 *
 * Asking memchr() line by line, the processor learns where the next line begins only when the search for its newline
 * is over, and guesses wrong each time. Found in one sweep ahead of the parsing, the ends cost no such guess.
 */
#ifndef COLLECTOR_LINES_H
#define COLLECTOR_LINES_H

#include <stddef.h>
#include <stdint.h>

enum { LINES_BATCH = 192 }; /* few: what was swept is still in the nearest cache when it is parsed */

struct lines {
	uint32_t count;
	uint32_t ends[LINES_BATCH]; /* offsets of newlines, rising */
};

/**
 * Finds the newlines from an offset on, at most LINES_BATCH of them.
 *
 * @param data    borrowed; less than 4 GiB
 * @param offset  where to begin: 0, then what the last call returned
 * @param lines   what was in it is gone
 * @return the length of data once all are found, else how far it looked
 */
uint32_t lines_find(const char *data, uint32_t length, uint32_t offset, struct lines *lines);

/** A line's length without its newline, at `end`, and without the CR before that. */
static inline uint32_t lines_trim(const char *data, uint32_t begin, uint32_t end)
{
	return end - begin - (end > begin && data[end - 1] == '\r');
}

#endif
