/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a rotated output file, PATH, PATH.1 … PATH.<keep>: putting a
 * full file away, and undoing that when a run resumes at an older mark.
 */
#ifndef WEIR_COMMON_LINE_FILE_NAMES_H
#define WEIR_COMMON_LINE_FILE_NAMES_H

#include "common/files/line_file.h"

#include <stdbool.h>

/**
 * Says which file it is, its size as length.
 *
 * @param fd    of the file where path is "", else AT_FDCWD
 * @return false: it is no regular file, or cannot be looked at; the mark is then all zeros
 */
bool weir_line_names_identify(int fd, const char *path, struct weir_line_file_mark *mark);

/**
 * PATH.<keep> is dropped, every other file moves up by one, PATH becomes PATH.1.
 *
 * @param protect  a file that must not be dropped
 * @return WEIR_OK; WEIR_FULL: the next to be dropped is that file: nothing was changed; WEIR_IO: as far as it came,
 *         the names are in order and PATH is what it was
 */
WEIR_MUST_USE enum weir_status weir_line_names_rotate(const char *path, uint32_t keep,
                                                      const struct weir_line_file_mark *protect,
                                                      struct weir_error *error);

/** Cuts the marked file behind its mark and gives it its name back: weir_line_file_resume says how. */
WEIR_MUST_USE enum weir_status weir_line_names_restore(const char *path, uint32_t keep,
                                                       const struct weir_line_file_mark *mark,
                                                       struct weir_error *error);

#endif
