/* SPDX-License-Identifier: Apache-2.0 */
/* A log that was edited: a new file lies at its path, with lines that were read of the old one. */
#ifndef COLLECTOR_SOURCE_FILE_OVERLAP_H
#define COLLECTOR_SOURCE_FILE_OVERLAP_H

#include "collector/source/file/file_identity.h"

enum { FILE_TAIL_BYTES = 256 };

/* What was read last of a file. Zero-initialised: nothing. */
struct file_tail {
	char bytes[FILE_TAIL_BYTES];
	bool known;
};

/** Reads it from an open file, of which `upto` bytes were read. Not known where these are fewer. */
void file_tail_read(struct file_tail *tail, int fd, uint64_t upto);

/**
 * Where these bytes end in a file. Reads its last 256 MiB at most.
 *
 * @param candidate  not compressed
 * @return 0: it does not hold them, or more than once, or is another by now
 */
uint64_t file_tail_find(const struct file_tail *tail, const struct file_candidate *candidate);

#endif
