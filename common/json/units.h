/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as people write them ("10s", "64KiB"), and back. */
#ifndef WEIR_COMMON_UNITS_H
#define WEIR_COMMON_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** False where the text is neither a number nor a number with one of the units. */
bool weir_parse_duration(const char *text, int64_t *out_ms);
bool weir_parse_size(const char *text, int64_t *out_bytes);
/** "1m30s" style is not used: the largest unit that divides it: "90s", "1h". Buffer of at least 24 bytes. */
const char *weir_format_duration(int64_t duration_ms, char *buffer, size_t bytes);
const char *weir_format_size(int64_t size_bytes, char *buffer, size_t bytes);

#endif
