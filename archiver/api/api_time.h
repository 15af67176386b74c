/* SPDX-License-Identifier: Apache-2.0 */
/* The form of times in a query. */
#ifndef ARCHIVER_API_TIME_H
#define ARCHIVER_API_TIME_H

#include "common/base/span.h"

#define API_TIME_LEAST_MS INT64_C(-62135596800000) /* 0001-01-01 */
#define API_TIME_MOST_MS INT64_C(253402300799999)  /* 9999-12-31T23:59:59.999 */

#define API_TIME_FORMS \
	"Unix ms, or ISO 8601 such as 2024-11-21, 2024-11-21T10:00Z or 2024-11-21T10:00:00.250+01:00 (UTC without a zone)"

/** @return false: it is not one of API_TIME_FORMS, or before the year 1 or after 9999 */
bool api_time_read(struct weir_span text, int64_t *time_ms);

#endif
