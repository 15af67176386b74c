/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a path means, in one spelling whatever it was called by: two that would write one file are told by it. */
#ifndef WEIR_COMMON_FILE_PLACE_H
#define WEIR_COMMON_FILE_PLACE_H

#include "common/base/text.h"

/**
 * Appends a path without links, "." and ".."; of what is not there yet, that of the folders that are, and the rest.
 *
 * @param path  relative ones are of the working directory
 */
void weir_file_place_put(struct weir_text *text, const char *path);

/**
 * The descriptor that a path means, which is open already: "-" and /dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N.
 * The file behind it is not ours to cut or to put away.
 *
 * @return -1: it is a path as any other
 */
int weir_file_descriptor_of(const char *path);

#endif
