/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's tables by name, for code that walks all of them; and the day of an hour. */
#include "common/store/archive.h"

#include <string.h>

const struct weir_archive_name weir_archive_names[WEIR_ARCHIVE_TABLES] = {
	[WEIR_ARCHIVE_HOURLY] = {"count_hourly", "hour_ms", false},
	[WEIR_ARCHIVE_DAILY] = {"count_daily", "day_ms", false},
	[WEIR_ARCHIVE_TOTALS] = {"zone_hourly", "hour_ms", false},
	[WEIR_ARCHIVE_DECISIONS] = {"decision_history", "at_ms", true},
	[WEIR_ARCHIVE_SHADOW] = {"shadow_history", "at_ms", true},
	[WEIR_ARCHIVE_EVENTS] = {"zone_txn", "at_ms", false},
};

static bool is_of_day(const struct weir_archive_count *day, const struct weir_archive_count *hour)
{
	return day->zone == hour->zone && day->begin_ms == weir_day_of(hour->begin_ms) &&
	       day->bucket.length == hour->bucket.length &&
	       (hour->bucket.length == 0 || memcmp(day->bucket.at, hour->bucket.at, hour->bucket.length) == 0);
}

size_t weir_archive_days(const struct weir_archive_count *hours, size_t count, struct weir_archive_count *days)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		const struct weir_archive_count *hour = &hours[i];
		if (used > 0 && is_of_day(&days[used - 1], hour)) {
			days[used - 1].passed += hour->passed;
			days[used - 1].blocked += hour->blocked;
			days[used - 1].late += hour->late;
			continue;
		}
		days[used] = *hour;
		days[used++].begin_ms = weir_day_of(hour->begin_ms);
	}
	return used;
}
