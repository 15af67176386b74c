/* SPDX-License-Identifier: Apache-2.0 */
/* A day's keys lie beside each other in the table's own order: each step takes the next ones. */
#include "archiver/arming/day_counts.h"

#define DIGITS_OF(number) #number
#define DIGITS(number) DIGITS_OF(number)
#define STEP                                                                                                   \
	WEIR_SQL_SELECT "COUNT(*), CAST(COALESCE(SUM(blocked > 0), 0) AS SIGNED), MAX(bucket) FROM ("              \
					"SELECT bucket, blocked FROM count_daily WHERE day_ms = ? AND zone_id = ? AND bucket > ? " \
					"ORDER BY bucket LIMIT " DIGITS(DAY_COUNTS_STEP) ") AS step"

static enum weir_status take_number(void *context, const struct weir_sql_value *columns, unsigned count)
{
	(void)count;
	*(int64_t *)context = columns[0].type == WEIR_SQL_NUMBER ? columns[0].number : -1;
	return WEIR_OK;
}

enum weir_status day_counts_newest_hour(struct weir_store *store, int64_t now_ms, int64_t *hour_ms,
                                        struct weir_error *error)
{
	const struct weir_sql_value until = weir_sql_number(now_ms);
	*hour_ms = -1;
	return store->ops->query(store, WEIR_SQL_NEWEST_HOUR(" AND h.hour_ms <= ?"), &until, 1, take_number, hour_ms,
	                         error);
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
	struct day_count *count;
	int64_t keys; /* of this step */
};

static enum weir_status take_step(void *context, const struct weir_sql_value *columns, unsigned number)
{
	struct step *step = context;
	(void)number;
	step->keys = columns[0].number;
	step->count->day.keys += (uint64_t)columns[0].number;
	step->count->day.blocked += (uint64_t)columns[1].number;
	weir_text_clear(&step->count->last);
	if (columns[2].type == WEIR_SQL_TEXT)
		weir_text_append(&step->count->last, columns[2].text.at, columns[2].text.length);
	return WEIR_OK;
}

enum weir_status day_counts_step(struct weir_store *store, uint32_t zone, struct day_count *count, bool *whole,
                                 struct weir_error *error)
{
	struct step step = {.count = count};
	struct weir_text from = count->last; /* the query holds it while the next is taken */
	const struct weir_sql_value values[] = {
		weir_sql_number(count->day.begin_ms), weir_sql_number(zone),
		weir_sql_text((struct weir_span){from.at != NULL ? from.at : "", (uint32_t)from.length})};
	count->last = (struct weir_text){0};
	enum weir_status status = store->ops->query(store, STEP, values, 3, take_step, &step, error);
	weir_text_deinit(&from);
	*whole = step.keys < DAY_COUNTS_STEP;
	return status;
}

void day_count_deinit(struct day_count *count)
{
	weir_text_deinit(&count->last);
	*count = (struct day_count){0};
}
