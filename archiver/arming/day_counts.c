/* SPDX-License-Identifier: Apache-2.0 */
/* A day's keys lie beside each other in the table's own order: each step takes the next ones. */
#include "archiver/arming/day_counts.h"

#include "common/base/stop.h"

#include <stdlib.h>

#define STEP                                                                                                   \
	WEIR_SQL_SELECT "COUNT(*), CAST(COALESCE(SUM(blocked > 0), 0) AS SIGNED), MAX(bucket) FROM ("              \
					"SELECT bucket, blocked FROM count_daily WHERE day_ms = ? AND zone_id = ? AND bucket > ? " \
					"ORDER BY bucket LIMIT 200000) AS step"

static enum weir_status take_number(void *context, const struct weir_sql_value *columns, unsigned count)
{
	(void)count;
	*(int64_t *)context = columns[0].type == WEIR_SQL_NUMBER ? columns[0].number : -1;
	return WEIR_OK;
}

enum weir_status day_counts_newest_hour(struct weir_store *store, int64_t *hour_ms, struct weir_error *error)
{
	*hour_ms = -1;
	return store->ops->query(store, WEIR_SQL_NEWEST_HOUR, NULL, 0, take_number, hour_ms, error);
}

enum weir_status day_counts_oldest_hour(struct weir_store *store, uint32_t zone, int64_t *hour_ms,
                                        struct weir_error *error)
{
	const struct weir_sql_value of = weir_sql_number(zone);
	*hour_ms = -1;
	return store->ops->query(store, WEIR_SQL_SELECT "MIN(hour_ms) FROM zone_hourly WHERE zone_id = ?", &of, 1,
	                         take_number, hour_ms, error);
}

struct step {
	struct arming_day *day;
	int64_t keys; /* of this step */
	struct weir_text last;
};

static enum weir_status take_step(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct step *step = context;
	(void)count;
	step->keys = columns[0].number;
	step->day->keys += (uint64_t)columns[0].number;
	step->day->blocked += (uint64_t)columns[1].number;
	weir_text_clear(&step->last);
	if (columns[2].type == WEIR_SQL_TEXT)
		weir_text_append(&step->last, columns[2].text.at, columns[2].text.length);
	return WEIR_OK;
}

enum weir_status day_counts_read(struct weir_store *store, uint32_t zone, struct arming_day *day,
                                 struct weir_error *error)
{
	struct step step = {.day = day, .keys = 1};
	enum weir_status status = WEIR_OK;
	day->keys = day->blocked = 0;
	while (status == WEIR_OK && step.keys > 0) {
		if (atomic_load(weir_stop_flag())) {
			status = weir_fail(error, WEIR_END, "the process ends");
			break;
		}
		struct weir_text from = step.last;
		step.last = (struct weir_text){0};
		const struct weir_sql_value values[] = {
			weir_sql_number(day->begin_ms), weir_sql_number(zone),
			weir_sql_text((struct weir_span){from.at != NULL ? from.at : "", (uint32_t)from.length})};
		status = store->ops->query(store, STEP, values, 3, take_step, &step, error);
		weir_text_deinit(&from);
	}
	weir_text_deinit(&step.last);
	return status;
}
