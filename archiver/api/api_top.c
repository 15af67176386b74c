/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/top: the busiest keys of one or several days, or of some hours.
 *
 * The rows of a zone's day lie side by side; the most are found by reading them
 * all, once for a page. Only those are sorted that reach the least of the page
 * that the first rows alone would make: the page itself has none below it. CSV
 * continues after a number and a key, and reads them again for each part: parts
 * are large.
 */
#include "archiver/api/api_listing.h"
#include "archiver/api/api_resources.h"
#include "common/base/clock.h"
#include "common/store/archive.h"

#include <inttypes.h>

enum { DAYS_MAX = 366, PART_ROWS = 10000, FIRST_ROWS = 8000 };

/* Columns: bucket, passed, blocked, late, total. */
enum { COLUMN_BUCKET, COLUMN_PASSED, COLUMN_BLOCKED, COLUMN_LATE, COLUMN_TOTAL };

/*
 * Rounds outwards to whole days at an end where the hours of a part of a day are deleted: their sum would lack them, and
 * the day's own row has them all. CSV has no place to say so.
 */
static bool round_where_hours_are_gone(struct api_call *call)
{
	struct api_parameters *asked = &call->parameters;
	int64_t from_ms = asked->from_ms, to_ms = asked->to_ms;
	int64_t hours_from_ms = api_kept_from(call, WEIR_ARCHIVE_HOURLY, WEIR_HOUR_MS);
	if (asked->from_ms != weir_day_of(asked->from_ms) && asked->from_ms < hours_from_ms)
		asked->from_ms = weir_day_of(asked->from_ms);
	int64_t last_day_ms = weir_day_of(asked->to_ms);
	int64_t part_from_ms = last_day_ms > asked->from_ms ? last_day_ms : asked->from_ms;
	if (asked->to_ms != last_day_ms && part_from_ms < hours_from_ms)
		asked->to_ms = last_day_ms + WEIR_DAY_MS;
	if (call->csv && (asked->from_ms != from_ms || asked->to_ms != to_ms))
		return api_fault_set(&call->fault, 400, "grain",
		                     "expected \"day\", or times of after %lld ms: older hours may be deleted",
		                     (long long)hours_from_ms);
	return true;
}

static bool settle_range(struct api_call *call)
{
	struct api_parameters *asked = &call->parameters;
	unsigned from_to = asked->given & (API_BIT(API_FROM) | API_BIT(API_TO));
	bool day = (asked->given & API_BIT(API_DAY)) != 0;
	bool hours = (asked->given & API_BIT(API_GRAIN)) != 0 && asked->grain == API_HOUR;
	int64_t grain_ms = hours ? WEIR_HOUR_MS : WEIR_DAY_MS;
	if (day && from_to != 0)
		return api_fault_set(&call->fault, 400, "day", "expected either \"day\", or \"from\" and \"to\"");
	if (from_to == API_BIT(API_FROM) || from_to == API_BIT(API_TO))
		return api_fault_set(&call->fault, 400, from_to == API_BIT(API_FROM) ? "to" : "from",
		                     "expected \"from\" and \"to\", or one \"day\"");
	if (from_to == 0) {
		asked->from_ms = weir_day_of(day ? asked->day_ms : weir_wall_ms());
		asked->to_ms = asked->from_ms + WEIR_DAY_MS;
	}
	asked->from_ms = weir_begin_of(asked->from_ms, grain_ms);
	asked->to_ms = weir_begin_of(asked->to_ms + grain_ms - 1, grain_ms);
	if (asked->to_ms - asked->from_ms > DAYS_MAX * (int64_t)WEIR_DAY_MS)
		return api_fault_set(&call->fault, 400, "from", "expected at most %d days before \"to\"", DAYS_MAX);
	return round_where_hours_are_gone(call);
}

static const char *sorted_by(const struct api_view *view)
{
	static const char *const expressions[] = {"passed", "blocked", "passed + blocked"};
	return expressions[view->parameters.by];
}

/* ` AND …`: what comes behind the last row. */
static void add_rank(const struct api_view *view, struct api_sql *sql)
{
	const char *by = sorted_by(view);
	weir_text_printf(&sql->text, " AND %s > 0", by);
	if (!view->begun)
		return;
	weir_text_printf(&sql->text, " AND (%s", by);
	api_sql_number(sql, " < ?", view->rank.number);
	weir_text_printf(&sql->text, " OR (%s", by);
	api_sql_number(sql, " = ?", view->rank.number);
	api_sql_text(sql, " AND bucket > ?))", (struct weir_span){view->rank.key, view->rank.key_length});
}

static void add_day(const struct api_view *view, struct api_sql *sql)
{
	api_sql_number(sql, " FROM count_daily WHERE zone_id = ?", view->zone.id);
	api_sql_number(sql, " AND day_ms = ?", view->parameters.from_ms);
}

/* Without its limit the servers would merge the inner query into the outer one, and sort all. */
static void add_most_of_day(const struct api_view *view, struct api_sql *sql)
{
	const char *by = sorted_by(view);
	api_sql_add(sql, "SELECT bucket, passed, blocked, late");
	add_day(view, sql);
	weir_text_printf(&sql->text, " AND %s >= COALESCE((SELECT %s FROM (SELECT bucket, passed, blocked", by, by);
	add_day(view, sql);
	api_sql_number(sql, " LIMIT ?) AS first_rows WHERE TRUE", FIRST_ROWS);
	add_rank(view, sql);
	weir_text_printf(&sql->text, " ORDER BY %s DESC LIMIT 1", by);
	api_sql_number(sql, " OFFSET ?), 1)", view->part);
	api_sql_number(sql, " LIMIT ?", INT64_MAX);
}

/* Some hours of one day: of the keys that the day has, as a key's hours lie side by side. The servers keep the order. */
static void add_hours(const struct api_view *view, struct api_sql *sql, int64_t from_ms, int64_t to_ms)
{
	if (from_ms >= to_ms)
		return;
	api_sql_add(sql, " UNION ALL SELECT h.bucket, h.passed, h.blocked, h.late FROM count_daily AS d"
	                 " CROSS JOIN count_hourly AS h WHERE h.zone_id = d.zone_id AND h.bucket = d.bucket");
	api_sql_number(sql, " AND d.zone_id = ?", view->zone.id);
	api_sql_number(sql, " AND d.day_ms = ?", weir_day_of(from_ms));
	api_sql_number(sql, " AND h.hour_ms >= ?", from_ms);
	api_sql_number(sql, " AND h.hour_ms < ?", to_ms);
}

/* Whole days as they are, what stands over at both ends by hours. */
static void add_sums(const struct api_view *view, struct api_sql *sql)
{
	int64_t from_ms = view->parameters.from_ms, to_ms = view->parameters.to_ms;
	int64_t first_day_ms = weir_day_of(from_ms + WEIR_DAY_MS - 1), last_day_ms = weir_day_of(to_ms);
	api_sql_add(sql, "SELECT bucket, CAST(SUM(passed) AS SIGNED) AS passed, CAST(SUM(blocked) AS SIGNED) AS blocked,"
	                 " CAST(SUM(late) AS SIGNED) AS late FROM (");
	api_sql_number(sql, "SELECT bucket, passed, blocked, late FROM count_daily WHERE zone_id = ?", view->zone.id);
	api_sql_number(sql, " AND day_ms >= ?", first_day_ms);
	api_sql_number(sql, " AND day_ms < ?", last_day_ms);
	add_hours(view, sql, from_ms, first_day_ms < to_ms ? first_day_ms : to_ms);
	if (last_day_ms >= first_day_ms)
		add_hours(view, sql, last_day_ms, to_ms);
	api_sql_add(sql, ") AS parts GROUP BY bucket");
}

static bool is_one_day(const struct api_view *view)
{
	return view->parameters.to_ms - view->parameters.from_ms == WEIR_DAY_MS &&
	       view->parameters.from_ms == weir_day_of(view->parameters.from_ms);
}

static void compose(const struct api_view *view, struct api_sql *sql)
{
	api_sql_add(sql, API_SELECT "bucket, passed, blocked, late, passed + blocked FROM (");
	if (is_one_day(view))
		add_most_of_day(view, sql);
	else
		add_sums(view, sql);
	api_sql_add(sql, ") AS counted WHERE TRUE");
	add_rank(view, sql);
	weir_text_printf(&sql->text, " ORDER BY %s DESC, bucket", sorted_by(view));
}

static void mark(struct api_view *view, const struct weir_sql_value *columns)
{
	static const int columns_of[] = {COLUMN_PASSED, COLUMN_BLOCKED, COLUMN_TOTAL};
	struct weir_span key = columns[COLUMN_BUCKET].text;
	view->rank.number = columns[columns_of[view->parameters.by]].number;
	view->rank.key_length = key.length < sizeof view->rank.key ? key.length : sizeof view->rank.key;
	memcpy(view->rank.key, key.at, view->rank.key_length);
}

static void write_json(const struct api_view *view, const struct weir_sql_value *columns, struct weir_json_writer *json)
{
	(void)view;
	weir_json_write_object(json, NULL);
	api_json_value(json, "key", &columns[COLUMN_BUCKET]);
	weir_json_write_int(json, "passed", columns[COLUMN_PASSED].number);
	weir_json_write_int(json, "blocked", columns[COLUMN_BLOCKED].number);
	weir_json_write_int(json, "late", columns[COLUMN_LATE].number);
	weir_json_write_int(json, "total", columns[COLUMN_TOTAL].number);
	weir_json_write_end(json);
}

static void write_csv(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	api_csv_line(text, columns, COLUMN_TOTAL + 1, view->parameters.format == API_SPREADSHEET);
}

static const struct api_listing listing = {
	.name = "top",
	.csv_columns = "key,passed,blocked,late,total",
	.sheet_columns = "key,passed,blocked,late,total",
	.part_rows = PART_ROWS,
	.compose = compose,
	.json = write_json,
	.csv = write_csv,
	.mark = mark,
};

bool api_top_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	const struct api_parameters *asked = &call->parameters;
	struct api_view view;
	if (!settle_range(call))
		return false;
	api_view_init(&view, call, &listing);
	view.left = asked->limit > 0 ? asked->limit : call->csv ? API_TOP_CSV_ROWS_MAX : API_PAGE_DEFAULT;
	if (call->csv)
		return api_listing_csv(call, &view);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "zone", call->zone.name);
	weir_json_write_words(&json, "by", api_by_name(asked->by));
	weir_json_write_int(&json, "from_ms", asked->from_ms);
	weir_json_write_int(&json, "to_ms", asked->to_ms);
	api_write_kept_from(&json, api_kept_from(call, WEIR_ARCHIVE_DAILY, WEIR_DAY_MS));
	weir_json_write_array(&json, "top");
	if (!api_listing_page(call, &view, &json, NULL))
		return false;
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return true;
}
