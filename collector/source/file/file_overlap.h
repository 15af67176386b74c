/* SPDX-License-Identifier: Apache-2.0 */
/* A log that was edited: a new file lies at its path, with lines that were read of the old one. */
#ifndef COLLECTOR_SOURCE_FILE_OVERLAP_H
#define COLLECTOR_SOURCE_FILE_OVERLAP_H

#include <stdint.h>

/**
 * Where in a file the lines end that were read last of another one. Reads its last 256 MiB at most.
 *
 * @param fd    the other, of which `upto` bytes were read
 * @param path  the file; not compressed
 * @return 0: it does not hold them, or more than once
 */
uint64_t file_overlap(int fd, uint64_t upto, const char *path);

#endif
