/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of rows in a fixed order: a page of them as JSON, or all of them as
 * CSV, in parts. Each part continues after the last row of the one before, so no
 * part costs more than another, and between parts nothing is held open.
 */
#ifndef ARCHIVER_API_LISTING_H
#define ARCHIVER_API_LISTING_H

#include "archiver/api/api_answer.h"

enum {
	API_PAGE_DEFAULT = 100,
	API_PAGE_MAX = 1000,
	API_CSV_ROWS_MAX = 1000000,
	API_PART_BYTES = 1024 * 1024, /* a page, or a part of CSV, ends with the row that goes beyond */
};

/* What is asked for, and where the reading stands. Owns its bytes: it outlives the request. */
struct api_view {
	struct api *api;
	const struct api_listing *listing;
	struct api_parameters parameters; /* its zone and key are absent: they are below */
	struct api_zone zone;
	char key[WEIR_KEY_MAX_BYTES]; /* as the store has it */
	uint32_t key_length;
	int64_t left; /* rows that may still come */
	int64_t part; /* of which so many are read now */
	bool begun;   /* there is a last row: one of the two below, by the listing */
	struct api_place place;
	struct {
		int64_t number;
		char key[WEIR_KEY_MAX_BYTES];
		uint32_t key_length;
	} rank;
};

struct api_listing {
	const char *name;          /* of the file that a browser makes of it */
	const char *csv_columns;   /* its first line */
	const char *sheet_columns; /* likewise, for a spreadsheet, which gets times as words */
	unsigned part_rows;        /* of CSV */
	/** The statement for the next rows, without its end: the caller adds the limit. */
	void (*compose)(const struct api_view *view, struct api_sql *sql);
	void (*json)(const struct api_view *view, const struct weir_sql_value *columns, struct weir_json_writer *json);
	void (*csv)(const struct api_view *view, const struct weir_sql_value *columns, struct weir_text *text);
	/** Remembers a row as the last. */
	void (*mark)(struct api_view *view, const struct weir_sql_value *columns);
};

static inline bool api_view_given(const struct api_view *view, enum api_parameter parameter)
{
	return (view->parameters.given & API_BIT(parameter)) != 0;
}

static inline struct weir_span api_view_key(const struct api_view *view)
{
	return (struct weir_span){view->key, view->key_length};
}

void api_view_init(struct api_view *view, const struct api_call *call, const struct api_listing *listing);

/**
 * Writes a page: the rows' objects, as elements of the array that is open.
 *
 * @param more  set: whether there are rows after it; NULL: no page leads on from here, and API_PART_BYTES do not end it
 */
bool api_listing_page(struct api_call *call, struct api_view *view, struct weir_json_writer *json, bool *more);

/** The end of an answer whose page leads on by places: the array's, "next", the object's. */
void api_listing_next(struct weir_json_writer *json, const struct api_view *view, bool more);

/** Makes the whole reply, as CSV of at most view->left rows. */
bool api_listing_csv(struct api_call *call, const struct api_view *view);

/** ` AND at_ms >= ? …` of from, to and the place after which the rows are, newest first; and the order. */
void api_sql_newest_first(struct api_sql *sql, const struct api_view *view);
/** The place of a row whose first columns are at_ms, partition_id, log_offset, pair. */
void api_mark_place(struct api_view *view, const struct weir_sql_value *columns);
/** "partition-offset-pair" of such a row. */
void api_id(struct weir_text *text, const struct weir_sql_value *columns);
void api_json_id(struct weir_json_writer *json, const struct weir_sql_value *columns);

#endif
