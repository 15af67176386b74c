/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/events: every event of a key, newest first, in zones that keep them. */
#include "archiver/api/api_listing.h"
#include "archiver/api/api_resources.h"

#include "common/json/json.h"

enum { PART_ROWS = 2000 };

/* Columns: at_ms, partition_id, log_offset, pair, blocked, fields. */
enum { COLUMN_AT, COLUMN_BLOCKED = 4, COLUMN_FIELDS };

static void compose(const struct api_view *view, struct api_sql *sql)
{
	api_sql_number(sql,
	               API_SELECT "at_ms, partition_id, log_offset, pair, blocked, fields FROM zone_txn WHERE zone_id = ?",
	               view->zone.id);
	api_sql_text(sql, " AND bucket = ?", api_view_key(view));
	api_sql_newest_first(sql, view);
}

/* Whoever may write the table may have put something there that is no object: then there are none. */
static void write_fields(struct weir_json_writer *json, const struct weir_sql_value *fields)
{
	struct weir_json_document *document = NULL;
	bool parsed = fields->type == WEIR_SQL_TEXT &&
	              weir_json_parse_record("fields", fields->text.at, fields->text.length, &document, NULL) == WEIR_OK;
	if (parsed && json_is_object(weir_json_root(document).value))
		weir_text_append(weir_json_write_value(json, "fields"), fields->text.at, fields->text.length);
	else
		weir_json_write_null(json, "fields");
	weir_json_document_free(document);
}

static void write_json(const struct api_view *view, const struct weir_sql_value *columns, struct weir_json_writer *json)
{
	(void)view;
	weir_json_write_object(json, NULL);
	api_json_id(json, columns);
	weir_json_write_int(json, "at_ms", columns[COLUMN_AT].number);
	weir_json_write_bool(json, "blocked", columns[COLUMN_BLOCKED].number != 0);
	write_fields(json, &columns[COLUMN_FIELDS]);
	weir_json_write_end(json);
}

static void write_csv(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	api_id(text, columns);
	weir_text_puts(text, ",");
	api_csv_time(text, columns[COLUMN_AT].number, view->parameters.format == API_SPREADSHEET);
	weir_text_printf(text, ",%d,", columns[COLUMN_BLOCKED].number != 0);
	api_csv_value(text, &columns[COLUMN_FIELDS], view->parameters.format == API_SPREADSHEET);
	weir_text_puts(text, "\r\n");
}

static const struct api_listing listing = {
	.name = "events",
	.csv_columns = "id,at_ms,blocked,fields",
	.sheet_columns = "id,at_utc,blocked,fields",
	.part_rows = PART_ROWS,
	.compose = compose,
	.json = write_json,
	.csv = write_csv,
	.mark = api_mark_place,
};

static void write_time(struct weir_json_writer *json, const char *name, const struct api_view *view,
                       enum api_parameter which, int64_t time_ms)
{
	if (api_view_given(view, which))
		weir_json_write_int(json, name, time_ms);
	else
		weir_json_write_null(json, name);
}

bool api_events_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	const struct api_parameters *asked = &call->parameters;
	struct api_view view;
	bool more;
	if ((asked->given & API_BIT(API_KEY)) == 0)
		return api_fault_set(&call->fault, 400, "key", "missing: expected a key");
	api_view_init(&view, call, &listing);
	view.left = asked->limit > 0 ? asked->limit : call->csv ? API_CSV_ROWS_MAX : API_PAGE_DEFAULT;
	if (call->csv)
		return api_listing_csv(call, &view);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "zone", call->zone.name);
	weir_json_write_string(&json, "key", asked->key);
	weir_json_write_bool(&json, "history", call->zone.history);
	write_time(&json, "from_ms", &view, API_FROM, asked->from_ms);
	write_time(&json, "to_ms", &view, API_TO, asked->to_ms);
	weir_json_write_array(&json, "events");
	if (!api_listing_page(call, &view, &json, &more))
		return false;
	api_listing_next(&json, &view, more);
	return true;
}
