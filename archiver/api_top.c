/*
 * /api/v1/top: the keys that came most, of one day or some.
 *
 * The rows of a zone's day lie side by side; the most are found by reading them
 * all, once for a page. CSV goes on behind a number and a key, and reads them
 * again for each part: parts are large.
 */
#include "archiver/api_listing.h"
#include "archiver/api_resources.h"
#include "common/archive.h"
#include "common/clock.h"

#include <inttypes.h>

enum { DAYS_MAX = 31, PART_ROWS = 10000 };

/* Columns: bucket, passed, blocked, late, total. */
enum { COLUMN_BUCKET, COLUMN_PASSED, COLUMN_BLOCKED, COLUMN_LATE, COLUMN_TOTAL };

static bool settle_range(struct api_call *call)
{
	struct api_parameters *asked = &call->parameters;
	unsigned from_to = asked->given & (API_BIT(API_FROM) | API_BIT(API_TO));
	bool day = (asked->given & API_BIT(API_DAY)) != 0;
	if (day && from_to != 0)
		return api_fault_set(&call->fault, 400, "day", "expected either \"day\", or \"from\" and \"to\"");
	if (from_to == API_BIT(API_FROM) || from_to == API_BIT(API_TO))
		return api_fault_set(&call->fault, 400, from_to == API_BIT(API_FROM) ? "to" : "from",
		                     "expected \"from\" and \"to\", or one \"day\"");
	if (from_to == 0) {
		asked->from_ms = weir_day_of(day ? asked->day_ms : weir_wall_ms());
		asked->to_ms = asked->from_ms + WEIR_DAY_MS;
	}
	if (asked->from_ms >= asked->to_ms)
		return api_fault_set(&call->fault, 400, "from", "expected a time before \"to\"");
	asked->from_ms = weir_day_of(asked->from_ms);
	asked->to_ms = weir_day_of(asked->to_ms + WEIR_DAY_MS - 1);
	return (asked->to_ms - asked->from_ms) / WEIR_DAY_MS <= DAYS_MAX ||
	       api_fault_set(&call->fault, 400, "from", "expected at most %d days up to \"to\"", DAYS_MAX);
}

/* One day's rows are read as they lie; of more days each key's are summed first. */
static void add_counts(const struct api_view *view, struct api_sql *sql)
{
	const struct api_parameters *asked = &view->parameters;
	bool day = asked->to_ms - asked->from_ms == WEIR_DAY_MS;
	if (!day)
		api_sql_add(sql,
		            "(SELECT bucket, CAST(SUM(passed) AS SIGNED) AS passed, CAST(SUM(blocked) AS SIGNED) AS blocked,"
		            " CAST(SUM(late) AS SIGNED) AS late FROM ");
	api_sql_number(sql, "count_daily WHERE zone_id = ?", view->zone.id);
	if (day) {
		api_sql_number(sql, " AND day_ms = ? AND ", asked->from_ms); /* which the table is first sorted by */
		return;
	}
	api_sql_number(sql, " AND day_ms >= ?", asked->from_ms);
	api_sql_number(sql, " AND day_ms < ?", asked->to_ms);
	api_sql_add(sql, " GROUP BY bucket) AS counted WHERE ");
}

static void compose(const struct api_view *view, struct api_sql *sql)
{
	static const char *const sorted_by[] = {"passed", "blocked", "passed + blocked"};
	const char *by = sorted_by[view->parameters.by];
	api_sql_add(sql, API_SELECT "bucket, passed, blocked, late, passed + blocked FROM ");
	add_counts(view, sql);
	weir_text_printf(&sql->text, "%s > 0", by);
	if (view->begun) {
		weir_text_printf(&sql->text, " AND (%s", by);
		api_sql_number(sql, " < ?", view->rank.number);
		weir_text_printf(&sql->text, " OR (%s", by);
		api_sql_number(sql, " = ?", view->rank.number);
		api_sql_text(sql, " AND bucket > ?))", (struct weir_span){view->rank.key, view->rank.key_length});
	}
	weir_text_printf(&sql->text, " ORDER BY %s DESC, bucket", by);
}

static void mark(struct api_view *view, const struct weir_sql_value *columns)
{
	static const int sorted_by[] = {COLUMN_PASSED, COLUMN_BLOCKED, COLUMN_TOTAL};
	struct weir_span key = columns[COLUMN_BUCKET].text;
	view->rank.number = columns[sorted_by[view->parameters.by]].number;
	view->rank.key_length = key.length < sizeof view->rank.key ? key.length : sizeof view->rank.key;
	memcpy(view->rank.key, key.at, view->rank.key_length);
}

static void write_json(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	(void)view;
	weir_text_puts(text, "{\"key\":");
	api_json_value(text, &columns[COLUMN_BUCKET]);
	weir_text_printf(text,
	                 ",\"passed\":%" PRId64 ",\"blocked\":%" PRId64 ",\"late\":%" PRId64 ",\"total\":%" PRId64 "}",
	                 columns[COLUMN_PASSED].number, columns[COLUMN_BLOCKED].number, columns[COLUMN_LATE].number,
	                 columns[COLUMN_TOTAL].number);
}

static void write_csv(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	(void)view;
	api_csv_line(text, columns, COLUMN_TOTAL + 1);
}

static const struct api_listing listing = {
	.name = "top",
	.csv_columns = "key,passed,blocked,late,total",
	.part_rows = PART_ROWS,
	.compose = compose,
	.json = write_json,
	.csv = write_csv,
	.mark = mark,
};

bool api_top_answer(struct api_call *call)
{
	struct weir_text *text = &call->reply->body;
	const struct api_parameters *asked = &call->parameters;
	struct api_view view;
	bool more;
	if (!settle_range(call))
		return false;
	api_view_init(&view, call, &listing);
	view.left = asked->limit > 0 ? asked->limit : call->csv ? API_TOP_CSV_ROWS_MAX : API_PAGE_DEFAULT;
	if (call->csv)
		return api_listing_csv(call, &view);
	weir_text_printf(text, "{\"zone\":\"%s\",\"by\":\"%s\",\"from_ms\":%" PRId64 ",\"to_ms\":%" PRId64 ",\"top\":[",
	                 call->zone.name, api_by_name(asked->by), asked->from_ms, asked->to_ms);
	if (!api_listing_page(call, &view, &more))
		return false;
	weir_text_puts(text, "]}\n");
	return true;
}
