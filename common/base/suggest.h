/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for an unknown name in a configuration or on a command line. */
#ifndef WEIR_COMMON_SUGGEST_H
#define WEIR_COMMON_SUGGEST_H

#include <stddef.h>

/**
 * The nearest of the names: at most two edits away, and no further than half of what was written. Upper case is
 * lower case.
 *
 * @param names  NULL-terminated
 * @return one of the names, or NULL
 */
const char *weir_nearest_name(const char *written, const char *const *names);

/** "a, b, c", each between `quote`s; "a, b, ..." where not all of them, and these dots, have room in the buffer. */
void weir_list_names(const char *const *names, const char *quote, char *buffer, size_t bytes);

#endif
