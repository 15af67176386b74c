/* The names of the archive's tables, for whatever goes through all of them. */
#include "common/archive.h"

const struct weir_archive_name weir_archive_names[WEIR_ARCHIVE_TABLES] = {
	[WEIR_ARCHIVE_HOURLY] = {"count_hourly", "hour_ms"}, [WEIR_ARCHIVE_DAILY] = {"count_daily", "day_ms"},
	[WEIR_ARCHIVE_TOTALS] = {"zone_hourly", "hour_ms"},  [WEIR_ARCHIVE_DECISIONS] = {"decision_history", "at_ms"},
	[WEIR_ARCHIVE_EVENTS] = {"zone_txn", "at_ms"},
};
