/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people write them on a command line. */
#ifndef DEPLOY_WEIR_TERMINAL_WHEN_H
#define DEPLOY_WEIR_TERMINAL_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Reads Unix ms, ISO 8601, or a time of day of today, in its own zone. A time without a zone is in the time zone of whoever
 * writes it (TZ).
 *
 * @param now_ms  which day is today
 * @return false: it is none of these
 */
bool when_read(const char *text, int64_t now_ms, int64_t *time_ms);

#endif
