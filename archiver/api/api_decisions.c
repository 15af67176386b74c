/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/decisions: the decisions, newest first, and those of zones in shadow mode
 * where they are asked for; and /api/v1/blocks: who is blocked now, which follows
 * from the decisions still in force.
 */
#include "archiver/api/api_listing.h"
#include "archiver/api/api_resources.h"
#include "common/base/clock.h"

#include <inttypes.h>

enum { PART_ROWS = 2000 };

#define COLUMNS                                                                                                   \
	"d.at_ms, d.partition_id, d.log_offset, d.pair, d.zone, d.bucket, d.action, d.until_ms, d.mode, d.algorithm," \
	" d.rate, d.window_ms, d.held, d.ordered_by, d.reason, d.nth"

enum {
	COLUMN_AT,
	COLUMN_ZONE = 4,
	COLUMN_BUCKET,
	COLUMN_ACTION,
	COLUMN_UNTIL,
	COLUMN_MODE,
	COLUMN_ALGORITHM,
	COLUMN_RATE,
	COLUMN_WINDOW,
	COLUMN_HELD,
	COLUMN_BY,
	COLUMN_REASON,
	COLUMN_NTH,
};

static void write_limit(struct weir_json_writer *json, const struct weir_sql_value *columns)
{
	if (columns[COLUMN_ALGORITHM].type == WEIR_SQL_NULL) {
		weir_json_write_null(json, "limit");
		return;
	}
	weir_json_write_object(json, "limit");
	api_json_value(json, "algorithm", &columns[COLUMN_ALGORITHM]);
	weir_json_write_int(json, "rate", columns[COLUMN_RATE].number);
	weir_json_write_int(json, "window_ms", columns[COLUMN_WINDOW].number);
	weir_json_write_end(json);
}

static void write_json(const struct api_view *view, const struct weir_sql_value *columns, struct weir_json_writer *json)
{
	(void)view;
	weir_json_write_object(json, NULL);
	api_json_id(json, columns);
	api_json_value(json, "zone", &columns[COLUMN_ZONE]);
	api_json_value(json, "key", &columns[COLUMN_BUCKET]);
	api_json_value(json, "action", &columns[COLUMN_ACTION]);
	weir_json_write_int(json, "at_ms", columns[COLUMN_AT].number);
	weir_json_write_int(json, "until_ms", columns[COLUMN_UNTIL].number);
	api_json_value(json, "mode", &columns[COLUMN_MODE]);
	write_limit(json, columns);
	api_json_value(json, "held", &columns[COLUMN_HELD]);
	api_json_value(json, "ordered_by", &columns[COLUMN_BY]);
	api_json_value(json, "reason", &columns[COLUMN_REASON]);
	api_json_value(json, "nth", &columns[COLUMN_NTH]);
	weir_json_write_end(json);
}

static void write_csv(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text)
{
	bool sheet = view->parameters.format == API_SPREADSHEET;
	api_id(text, columns);
	for (int i = COLUMN_ZONE; i <= COLUMN_NTH; i++) {
		weir_text_puts(text, ",");
		if (i == COLUMN_UNTIL) {
			api_csv_time(text, columns[COLUMN_AT].number, sheet);
			weir_text_puts(text, ",");
			api_csv_time(text, columns[i].number, sheet);
		} else {
			api_csv_value(text, &columns[i], sheet);
		}
	}
	weir_text_puts(text, "\r\n");
}

/* What a table has, in order. */
static void compose_from(const struct api_view *view, struct api_sql *sql, const char *table)
{
	weir_text_printf(&sql->text, COLUMNS " FROM %s AS d WHERE 1 = 1", table);
	/* A zone's name is of letters that need no quoting; as a literal it has the column's collation: an index serves. */
	if (api_view_given(view, API_ZONE))
		weir_text_printf(&sql->text, " AND d.zone = '%s'", view->zone.name);
	if (api_view_given(view, API_KEY))
		api_sql_text(sql, " AND d.bucket = ?", api_view_key(view));
	if (view->parameters.action != NULL)
		weir_text_printf(&sql->text, " AND d.action = '%s'", view->parameters.action);
	api_sql_newest_first(sql, view);
}

/* Of each table no more than the part has, by an index: so two cost twice as much as one, however many rows they have. */
static void compose_both(const struct api_view *view, struct api_sql *sql)
{
	static const char *const tables[] = {"decision_history", "shadow_history"};
	api_sql_add(sql, API_SELECT "* FROM (");
	for (int i = 0; i < 2; i++) {
		api_sql_add(sql, i == 0 ? "SELECT * FROM (SELECT " : " UNION ALL SELECT * FROM (SELECT ");
		compose_from(view, sql, tables[i]);
		api_sql_number(sql, " LIMIT ?", view->part + 1);
		weir_text_printf(&sql->text, ") AS of_%s", tables[i]);
	}
	api_sql_add(sql, ") AS found ORDER BY at_ms DESC, partition_id DESC, log_offset DESC, pair DESC");
}

static void compose(const struct api_view *view, struct api_sql *sql)
{
	if (view->parameters.mode == API_BOTH_MODES) {
		compose_both(view, sql);
		return;
	}
	api_sql_add(sql, API_SELECT);
	compose_from(view, sql, view->parameters.mode == API_SHADOW ? "shadow_history" : "decision_history");
}

static const struct api_listing decisions = {
	.name = "decisions",
	.csv_columns = "id,zone,key,action,at_ms,until_ms,mode,algorithm,rate,window_ms,held,ordered_by,reason,nth",
	.sheet_columns = "id,zone,key,action,at_utc,until_utc,mode,algorithm,rate,window_ms,held,ordered_by,reason,nth",
	.part_rows = PART_ROWS,
	.compose = compose,
	.json = write_json,
	.csv = write_csv,
	.mark = api_mark_place,
};

bool api_decisions_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	const struct api_parameters *asked = &call->parameters;
	struct api_view view;
	bool more;
	if ((asked->given & API_BIT(API_KEY)) != 0 && (asked->given & API_BIT(API_ZONE)) == 0)
		return api_fault_set(&call->fault, 400, "zone", "missing: \"key\" needs a zone");
	api_view_init(&view, call, &decisions);
	view.left = asked->limit > 0 ? asked->limit : call->csv ? API_CSV_ROWS_MAX : API_PAGE_DEFAULT;
	if (call->csv)
		return api_listing_csv(call, &view);
	weir_json_write_object(&json, NULL);
	weir_json_write_array(&json, "decisions");
	if (!api_listing_page(call, &view, &json, &more))
		return false;
	api_listing_next(&json, &view, more);
	return true;
}

/* ---- who is blocked now ---- */

/* Of a bucket's blocks, whose ends are ahead though something lifted them, only the last one is asked whether it holds. */
#define LAST_OF_BUCKET \
	"ROW_NUMBER() OVER (PARTITION BY zone, bucket, partition_id ORDER BY log_offset DESC, pair DESC) AS place"

/*
 * The few whose end is ahead are found by the index on it. The signs before a zone and behind an order keep SQLite from
 * other indexes, which it takes for better without knowing how few they are; other servers pass over them.
 */
static void compose_blocks(const struct api_view *view, struct api_sql *sql)
{
	api_sql_add(sql, API_SELECT COLUMNS " FROM (SELECT h.*, " LAST_OF_BUCKET " FROM decision_history AS h");
	api_sql_number(sql, " WHERE until_ms > ?", view->parameters.to_ms);
	api_sql_add(sql, " AND action = 'block' AND mode = 'enforce'");
	if (api_view_given(view, API_ZONE))
		weir_text_printf(&sql->text, " AND +zone = '%s'", view->zone.name);
	api_sql_add(sql, ") AS d WHERE d.place = 1 AND NOT " WEIR_SQL_LATER("d", "= d.bucket"));
	api_sql_add(sql, " AND NOT " WEIR_SQL_LATER("d", "IS NULL"));
	api_sql_add(sql, " ORDER BY d.at_ms + 0 DESC, d.partition_id DESC, d.log_offset DESC, d.pair DESC");
}

static const struct api_listing blocks = {
	.name = "blocks", .compose = compose_blocks, .json = write_json, .mark = api_mark_place};

bool api_blocks_answer(struct api_call *call)
{
	struct weir_json_writer json = weir_json_writer(&call->reply->body);
	struct api_view view;
	bool more;
	call->parameters.to_ms = weir_wall_ms();
	api_view_init(&view, call, &blocks);
	view.left = call->parameters.limit > 0 ? call->parameters.limit : API_PAGE_DEFAULT;
	weir_json_write_object(&json, NULL);
	weir_json_write_int(&json, "now_ms", call->parameters.to_ms);
	weir_json_write_array(&json, "blocks");
	if (!api_listing_page(call, &view, &json, &more))
		return false;
	weir_json_write_end(&json);
	weir_json_write_bool(&json, "more", more);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return true;
}
