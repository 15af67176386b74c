/* SPDX-License-Identifier: Apache-2.0 */
/* A whole file into memory, when it is known to be small. */
#ifndef WEIR_COMMON_READ_FILE_H
#define WEIR_COMMON_READ_FILE_H

#include "common/base/status.h"

#include <stddef.h>

/**
 * @param most  bytes that are accepted; so a device that never ends is refused too
 * @param text  returned, the caller frees; not terminated
 * @return WEIR_OK; WEIR_IO: it cannot be opened or read; WEIR_INVALID: it is larger. "PATH: words"
 */
WEIR_MUST_USE enum weir_status weir_read_file(const char *path, size_t most, char **text, size_t *length,
                                              struct weir_error *error);

/**
 * The first line of a file, without its end, as a secret is written.
 *
 * @param line  returned, the caller frees
 * @return as weir_read_file(), of 64 KiB
 */
WEIR_MUST_USE enum weir_status weir_read_first_line(const char *path, char **line, struct weir_error *error);

#endif
