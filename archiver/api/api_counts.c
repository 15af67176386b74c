/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/counts: the counts of one key, or of all keys of a zone.
 *
 * A key's hours or days are adjacent in its table. A zone's hours are in another
 * table, with a few rows each. So reading thousands of them is fast.
 */
#include "archiver/api/api_resources.h"
#include "common/base/clock.h"
#include "common/store/archive.h"

#include <inttypes.h>

enum {
	BUCKETS_MAX = 10000,
	ALL_KEYS_DAYS_MAX = 3660, /* of 24 rows and more */
	DEFAULT_HOURS = 24,
	DEFAULT_DAYS = 30
};

struct counts {
	struct weir_text *text; /* of CSV */
	struct weir_json_writer json;
	bool csv, sheet;
	int64_t sums[3]; /* passed, blocked, late */
};

static bool given(const struct api_call *call, enum api_parameter parameter)
{
	return (call->parameters.given & API_BIT(parameter)) != 0;
}

/* Rounds the range to whole buckets, and bounds it. */
static bool settle_range(struct api_call *call)
{
	struct api_parameters *asked = &call->parameters;
	bool daily = asked->grain == API_DAILY;
	int64_t span_ms = daily ? WEIR_DAY_MS : WEIR_HOUR_MS;
	if (!given(call, API_TO))
		asked->to_ms = weir_wall_ms();
	if (!given(call, API_FROM))
		asked->from_ms = asked->to_ms - (daily ? DEFAULT_DAYS : DEFAULT_HOURS) * span_ms;
	if (asked->from_ms >= asked->to_ms)
		return api_fault_set(&call->fault, 400, "from", "expected a time before \"to\"");
	asked->from_ms = weir_begin_of(asked->from_ms, span_ms);
	asked->to_ms = weir_begin_of(asked->to_ms + span_ms - 1, span_ms);
	int64_t most = daily && !given(call, API_KEY) ? ALL_KEYS_DAYS_MAX : BUCKETS_MAX;
	return (asked->to_ms - asked->from_ms) / span_ms <= most ||
	       api_fault_set(&call->fault, 400, "from", "expected at most %" PRId64 " %ss before \"to\"", most,
	                     api_grain_name(asked->grain));
}

static enum weir_status take_count(void *context, const struct weir_sql_value *columns, unsigned count)
{
	static const char *const names[] = {"at_ms", "passed", "blocked", "late"};
	struct counts *counts = context;
	if (counts->csv) {
		api_csv_time(counts->text, columns[0].number, counts->sheet);
		weir_text_puts(counts->text, ",");
		api_csv_line(counts->text, columns + 1, count - 1, false);
	} else {
		weir_json_write_object(&counts->json, NULL);
		for (unsigned i = 0; i < 4; i++)
			weir_json_write_int(&counts->json, names[i], columns[i].number);
		weir_json_write_end(&counts->json);
	}
	for (unsigned i = 0; i < 3; i++)
		counts->sums[i] += columns[i + 1].number;
	return WEIR_OK;
}

static void ask_for_key(const struct api_call *call, struct api_sql *sql)
{
	const struct api_parameters *asked = &call->parameters;
	bool daily = asked->grain == API_DAILY;
	const char *time = daily ? "day_ms" : "hour_ms";
	weir_text_printf(&sql->text, API_SELECT "%s, passed, blocked, late FROM %s", time,
	                 daily ? "count_daily" : "count_hourly");
	api_sql_number(sql, " WHERE zone_id = ?", call->zone.id);
	api_sql_text(sql, " AND bucket = ?", call->bucket);
	weir_text_printf(&sql->text, " AND %s", time);
	api_sql_number(sql, " >= ?", asked->from_ms);
	weir_text_printf(&sql->text, " AND %s", time);
	api_sql_number(sql, " < ?", asked->to_ms);
	weir_text_printf(&sql->text, " ORDER BY %s", time);
}

static void ask_for_zone(const struct api_call *call, struct api_sql *sql)
{
	const struct api_parameters *asked = &call->parameters;
	/* A remainder has the sign of what is divided: before 1970 a day is added. */
	static const char hour[] = "hour_ms", day[] = "hour_ms - (hour_ms % 86400000 + 86400000) % 86400000";
	weir_text_printf(&sql->text,
	                 API_SELECT "%s AS at_ms, CAST(SUM(passed) AS SIGNED), CAST(SUM(blocked) AS SIGNED),"
	                            " CAST(SUM(late) AS SIGNED) FROM zone_hourly",
	                 asked->grain == API_DAILY ? day : hour);
	api_sql_number(sql, " WHERE zone_id = ?", call->zone.id);
	api_sql_number(sql, " AND hour_ms >= ?", asked->from_ms);
	api_sql_number(sql, " AND hour_ms < ?", asked->to_ms);
	api_sql_add(sql, " GROUP BY at_ms ORDER BY at_ms");
}

static enum weir_status read_counts(const struct api_call *call, struct counts *counts, struct weir_error *error)
{
	struct api_sql sql = {.count = 0};
	(given(call, API_KEY) ? ask_for_key : ask_for_zone)(call, &sql);
	return api_sql_run(&sql, call->store, take_count, counts, error);
}

static int64_t kept_from(const struct api_call *call)
{
	bool daily = call->parameters.grain == API_DAILY;
	enum weir_archive_table table = !given(call, API_KEY) ? WEIR_ARCHIVE_TOTALS
	                                : daily               ? WEIR_ARCHIVE_DAILY
	                                                      : WEIR_ARCHIVE_HOURLY;
	return api_kept_from(call, table, daily ? WEIR_DAY_MS : WEIR_HOUR_MS);
}

static void begin_object(const struct api_call *call, struct weir_json_writer *json)
{
	const struct api_parameters *asked = &call->parameters;
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "zone", call->zone.name);
	if (given(call, API_KEY))
		weir_json_write_string(json, "key", asked->key);
	else
		weir_json_write_null(json, "key");
	weir_json_write_words(json, "grain", api_grain_name(asked->grain));
	weir_json_write_int(json, "from_ms", asked->from_ms);
	weir_json_write_int(json, "to_ms", asked->to_ms);
	api_write_kept_from(json, kept_from(call));
	weir_json_write_array(json, "counts");
}

static void end_object(struct weir_json_writer *json, const int64_t *sums)
{
	weir_json_write_end(json);
	weir_json_write_object(json, "total");
	weir_json_write_int(json, "passed", sums[0]);
	weir_json_write_int(json, "blocked", sums[1]);
	weir_json_write_int(json, "late", sums[2]);
	weir_json_write_end(json);
	weir_json_write_end(json);
	weir_json_write_newline(json);
}

bool api_counts_answer(struct api_call *call)
{
	struct weir_text *text = &call->reply->body;
	struct counts counts = {.text = text, .json = weir_json_writer(text), .csv = call->csv};
	struct weir_error error;
	counts.sheet = call->parameters.format == API_SPREADSHEET;
	if (!settle_range(call))
		return false;
	if (call->csv)
		weir_text_printf(text, "%s,passed,blocked,late\r\n", counts.sheet ? "at_utc" : "at_ms");
	else
		begin_object(call, &counts.json);
	if (read_counts(call, &counts, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	if (!call->csv)
		end_object(&counts.json, counts.sums);
	return true;
}
