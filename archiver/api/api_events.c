/* /api/v1/events: every event of a key, newest first, in zones that keep them. */
#include "archiver/api/api_listing.h"
#include "archiver/api/api_resources.h"

#include <inttypes.h>

enum { PART_ROWS = 2000 };

/* Columns: at_ms, partition_id, log_offset, pair, blocked. */
enum { COLUMN_AT, COLUMN_BLOCKED = 4 };

static void compose(const struct api_view *view, struct api_sql *sql)
{
	api_sql_number(sql, API_SELECT "at_ms, partition_id, log_offset, pair, blocked FROM zone_txn WHERE zone_id = ?",
	               view->zone.id);
	api_sql_text(sql, " AND bucket = ?", api_view_key(view));
	api_sql_newest_first(sql, view);
}

static void write_json(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	(void)view;
	weir_text_puts(text, "{\"id\":\"");
	api_id(text, columns);
	weir_text_printf(text, "\",\"at_ms\":%" PRId64 ",\"blocked\":%s}", columns[COLUMN_AT].number,
	                 columns[COLUMN_BLOCKED].number != 0 ? "true" : "false");
}

static void write_csv(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	(void)view;
	api_id(text, columns);
	weir_text_printf(text, ",%" PRId64 ",%d\r\n", columns[COLUMN_AT].number, columns[COLUMN_BLOCKED].number != 0);
}

static const struct api_listing listing = {
	.name = "events",
	.csv_columns = "id,at_ms,blocked",
	.part_rows = PART_ROWS,
	.compose = compose,
	.json = write_json,
	.csv = write_csv,
	.mark = api_mark_place,
};

static void write_time(const struct api_view *view, enum api_parameter which, int64_t time_ms, struct weir_text *text)
{
	weir_text_printf(text, ",\"%s_ms\":", api_parameter_name(which));
	if (api_view_given(view, which))
		weir_text_int(text, time_ms);
	else
		weir_text_puts(text, "null");
}

bool api_events_answer(struct api_call *call)
{
	struct weir_text *text = &call->reply->body;
	const struct api_parameters *asked = &call->parameters;
	struct api_view view;
	bool more;
	if ((asked->given & API_BIT(API_KEY)) == 0)
		return api_fault_set(&call->fault, 400, "key", "missing: expected the key whose events are asked for");
	api_view_init(&view, call, &listing);
	view.left = asked->limit > 0 ? asked->limit : call->csv ? API_CSV_ROWS_MAX : API_PAGE_DEFAULT;
	if (call->csv)
		return api_listing_csv(call, &view);
	weir_text_printf(text, "{\"zone\":\"%s\",\"key\":", call->zone.name);
	weir_text_json(text, asked->key);
	weir_text_printf(text, ",\"history\":%s", call->zone.history ? "true" : "false");
	write_time(&view, API_FROM, asked->from_ms, text);
	write_time(&view, API_TO, asked->to_ms, text);
	weir_text_puts(text, ",\"events\":[");
	if (!api_listing_page(call, &view, &more))
		return false;
	api_listing_next(text, &view, more);
	return true;
}
