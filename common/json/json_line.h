/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a value in a JSON text: jansson keeps none, and an error without one sends people searching. */
#ifndef WEIR_COMMON_JSON_LINE_H
#define WEIR_COMMON_JSON_LINE_H

#include "common/base/span.h"

/**
 * The line (from 1) where the value of a path begins, or that of the nearest value around it which is there.
 *
 * @param text  valid JSON: what jansson has taken
 * @param path  "zones[0].limits[1].rate", as a cursor has it; a name may hold dots and brackets itself
 */
unsigned weir_json_line(struct weir_span text, const char *path);

#endif
