/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One piece of code for every list: rows are read by a statement that begins
 * after a place, and handed to the resource to be written.
 */
#include "archiver/api/api_listing.h"

#include "common/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
	struct api_view *view;
	struct weir_text *text;        /* of CSV; NULL: */
	struct weir_json_writer *json; /* of a page */
	const struct weir_text *out;   /* of either */
	size_t begin;                  /* what it had before */
	bool whole;                    /* bytes do not end it */
	int64_t rows;                  /* that were written */
	bool more;                     /* there are others behind them */
};

void api_view_init(struct api_view *view, const struct api_call *call, const struct api_listing *listing)
{
	const struct api_parameters *asked = &call->parameters;
	*view = (struct api_view){.api = call->api, .listing = listing, .parameters = *asked, .zone = call->zone};
	view->parameters.zone = view->parameters.key = (struct weir_span){.at = NULL};
	view->key_length = call->bucket.length;
	if (call->bucket.length > 0)
		memcpy(view->key, call->bucket.at, call->bucket.length);
	view->begun = (asked->given & API_BIT(API_AFTER)) != 0;
	view->place = asked->after;
}

static enum weir_status take_row(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct reading *reading = context;
	const struct api_listing *listing = reading->view->listing;
	(void)count;
	if (reading->rows == reading->view->part ||
	    (!reading->whole && reading->out->length - reading->begin > API_PART_BYTES)) {
		reading->more = true;
		return WEIR_END;
	}
	reading->rows++;
	if (reading->text != NULL)
		listing->csv(reading->view, columns, reading->text);
	else
		listing->json(reading->view, columns, reading->json);
	listing->mark(reading->view, columns);
	reading->view->begun = true;
	return WEIR_OK;
}

static enum weir_status read_rows(struct reading *reading, struct weir_store *store, struct weir_error *error)
{
	struct api_sql sql = {.count = 0};
	reading->view->listing->compose(reading->view, &sql);
	api_sql_number(&sql, " LIMIT ?", reading->view->part + 1);
	reading->begin = reading->out->length;
	enum weir_status status = api_sql_run(&sql, store, take_row, reading, error);
	return status == WEIR_END ? WEIR_OK : status;
}

bool api_listing_page(struct api_call *call, struct api_view *view, struct weir_json_writer *json, bool *more)
{
	struct reading reading = {.view = view, .json = json, .out = &call->reply->body, .whole = more == NULL};
	struct weir_error error;
	view->part = view->left;
	if (read_rows(&reading, call->store, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error);
	if (more != NULL)
		*more = reading.more;
	return true;
}

/* ---- CSV ---- */

static enum weir_status read_part(struct api_view *view, struct weir_store *store, struct weir_text *part,
                                  struct weir_error *error)
{
	struct reading reading = {.view = view, .text = part, .out = part};
	view->part = view->left < view->listing->part_rows ? view->left : view->listing->part_rows;
	enum weir_status status = read_rows(&reading, store, error);
	if (status != WEIR_OK)
		return status;
	view->left -= reading.rows;
	return reading.more && view->left > 0 ? WEIR_OK : WEIR_END;
}

static enum weir_status next_part(void *stream, unsigned worker, struct weir_text *part)
{
	struct api_view *view = stream;
	struct weir_store *store;
	struct weir_error error;
	struct api_fault fault;
	enum weir_status status = api_store(view->api, worker, &store, &error);
	if (status == WEIR_OK)
		status = read_part(view, store, part, &error);
	api_store_leave(view->api, worker);
	if (status != WEIR_OK && status != WEIR_END)
		api_store_failed(view->api, &fault, &error);
	return status;
}

void api_listing_next(struct weir_json_writer *json, const struct api_view *view, bool more)
{
	char place[API_PLACE_BYTES];
	weir_json_write_end(json);
	weir_json_write_words(json, "next", more ? api_place_write(&view->place, place) : NULL);
	weir_json_write_end(json);
	weir_json_write_newline(json);
}

bool api_listing_csv(struct api_call *call, const struct api_view *view)
{
	struct api_view *kept = weir_alloc(1, sizeof *kept);
	struct weir_error error;
	*kept = *view;
	bool sheet = view->parameters.format == API_SPREADSHEET;
	weir_text_printf(&call->reply->body, "%s\r\n", sheet ? view->listing->sheet_columns : view->listing->csv_columns);
	enum weir_status status = read_part(kept, call->store, &call->reply->body, &error);
	if (status == WEIR_OK) {
		call->reply->more = next_part;
		call->reply->end = free;
		call->reply->stream = kept;
	} else {
		free(kept);
	}
	weir_http_header(call->reply, "Content-Disposition", "attachment; filename=\"weir-%s.csv\"", view->listing->name);
	return status == WEIR_OK || status == WEIR_END || api_store_failed(call->api, &call->fault, &error);
}

/* ---- rows of the log ---- */

void api_sql_newest_first(struct api_sql *sql, const struct api_view *view)
{
	const struct api_place *place = &view->place;
	if (api_view_given(view, API_FROM))
		api_sql_number(sql, " AND at_ms >= ?", view->parameters.from_ms);
	if (api_view_given(view, API_TO))
		api_sql_number(sql, " AND at_ms < ?", view->parameters.to_ms);
	if (view->begun) {
		/* The first bound alone is what an index can seek. */
		api_sql_number(sql, " AND at_ms <= ?", place->at_ms);
		api_sql_number(sql, " AND (at_ms < ?", place->at_ms);
		api_sql_number(sql, " OR partition_id < ?", place->partition);
		api_sql_number(sql, " OR (partition_id = ?", place->partition);
		api_sql_number(sql, " AND (log_offset < ?", place->offset);
		api_sql_number(sql, " OR (log_offset = ?", place->offset);
		api_sql_number(sql, " AND pair < ?))))", place->pair);
	}
	api_sql_add(sql, " ORDER BY at_ms DESC, partition_id DESC, log_offset DESC, pair DESC");
}

void api_mark_place(struct api_view *view, const struct weir_sql_value *columns)
{
	view->place = (struct api_place){columns[0].number, columns[1].number, columns[2].number, columns[3].number};
}

void api_id(struct weir_text *text, const struct weir_sql_value *columns)
{
	weir_text_printf(text, "%" PRId64 "-%" PRId64 "-%" PRId64, columns[1].number, columns[2].number, columns[3].number);
}

void api_json_id(struct weir_json_writer *json, const struct weir_sql_value *columns)
{
	char id[64];
	snprintf(id, sizeof id, "%" PRId64 "-%" PRId64 "-%" PRId64, columns[1].number, columns[2].number,
	         columns[3].number);
	weir_json_write_words(json, "id", id);
}
