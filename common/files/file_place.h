/* SPDX-License-Identifier: Apache-2.0 */
/* Which file a path means, in one spelling whatever it was called by: two that would write one file are told by it. */
#ifndef WEIR_COMMON_FILE_PLACE_H
#define WEIR_COMMON_FILE_PLACE_H

#include "common/base/text.h"
#include "common/files/durable_file.h"

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

/**
 * Where the file stands that a rename is to replace: behind links, so that a link stays and leads to the new file.
 *
 * @return WEIR_INVALID: there is something that a rename must not replace: a descriptor that is open already, a device, a
 *         pipe, a socket, a directory; WEIR_IO: it cannot be told, or the path is too long
 */
WEIR_MUST_USE enum weir_status weir_file_replaced(const char *path, char place[WEIR_PATH_BYTES],
                                                  struct weir_error *error);

#endif
