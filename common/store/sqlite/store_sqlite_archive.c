/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the archiver keeps, in SQLite: rows, added in a transaction of the
 * caller's; and SQL that reads them.
 */
#include "common/store/sqlite/internal.h"

#include <stdio.h>

static enum weir_status add_count(struct weir_store_sqlite *store, enum weir_store_statement number,
                                  const struct weir_archive_count *row, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, number);
	weir_statement_number(statement, 1, row->zone);
	weir_statement_text(statement, 2, row->bucket);
	weir_statement_number(statement, 3, (uint64_t)row->begin_ms);
	weir_statement_number(statement, 4, row->passed);
	weir_statement_number(statement, 5, row->blocked);
	weir_statement_number(statement, 6, row->late);
	return weir_statement_run(store->database, statement, NULL, error);
}

static enum weir_status add_total(struct weir_store_sqlite *store, const struct weir_archive_total *row,
                                  struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_ADD_TOTAL);
	weir_statement_number(statement, 1, row->zone);
	weir_statement_number(statement, 2, (uint64_t)row->hour_ms);
	weir_statement_number(statement, 3, row->partition);
	weir_statement_number(statement, 4, row->passed);
	weir_statement_number(statement, 5, row->blocked);
	weir_statement_number(statement, 6, row->late);
	return weir_statement_run(store->database, statement, NULL, error);
}

static void put_id(struct weir_statement *statement, int first, const struct weir_archive_id *id)
{
	weir_statement_number(statement, first, id->partition);
	weir_statement_number(statement, first + 1, id->offset);
	weir_statement_number(statement, first + 2, id->pair);
}

static enum weir_status add_decision(struct weir_store_sqlite *store, enum weir_store_statement number,
                                     const struct weir_archive_decision *row, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, number);
	weir_statement_number(statement, 1, (uint64_t)row->at_ms);
	put_id(statement, 2, &row->id);
	weir_statement_text(statement, 5, row->zone);
	weir_statement_text(statement, 6, row->bucket);
	weir_statement_text(statement, 7, row->action);
	weir_statement_number(statement, 8, (uint64_t)row->until_ms);
	weir_statement_text(statement, 9, row->mode);
	if (row->limited) {
		weir_statement_text(statement, 10, row->algorithm);
		weir_statement_number(statement, 11, (uint64_t)row->rate);
		weir_statement_number(statement, 12, (uint64_t)row->window_ms);
		weir_statement_number(statement, 13, (uint64_t)row->held);
	}
	weir_statement_text(statement, 14, row->ordered_by);
	weir_statement_text(statement, 15, row->reason);
	if (row->nth > 0)
		weir_statement_number(statement, 16, row->nth);
	return weir_statement_run(store->database, statement, NULL, error);
}

static enum weir_status add_event(struct weir_store_sqlite *store, const struct weir_archive_event *row,
                                  struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_ADD_EVENT);
	weir_statement_number(statement, 1, row->zone);
	weir_statement_text(statement, 2, row->bucket);
	weir_statement_number(statement, 3, (uint64_t)row->at_ms);
	put_id(statement, 4, &row->id);
	weir_statement_number(statement, 7, row->blocked);
	weir_statement_text(statement, 8, row->fields);
	return weir_statement_run(store->database, statement, NULL, error);
}

enum weir_status weir_store_add_batch(struct weir_store_sqlite *store, const struct weir_archive_batch *batch,
                                      struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < batch->hour_count && status == WEIR_OK; i++)
		status = add_count(store, WEIR_STORE_ADD_HOURLY, &batch->hours[i], error);
	for (size_t i = 0; i < batch->day_count && status == WEIR_OK; i++)
		status = add_count(store, WEIR_STORE_ADD_DAILY, &batch->days[i], error);
	for (size_t i = 0; i < batch->total_count && status == WEIR_OK; i++)
		status = add_total(store, &batch->totals[i], error);
	for (size_t i = 0; i < batch->decision_count && status == WEIR_OK; i++)
		status = add_decision(store, WEIR_STORE_ADD_DECISION, &batch->decisions[i], error);
	for (size_t i = 0; i < batch->shadow_count && status == WEIR_OK; i++)
		status = add_decision(store, WEIR_STORE_ADD_SHADOW, &batch->shadows[i], error);
	for (size_t i = 0; i < batch->event_count && status == WEIR_OK; i++)
		status = add_event(store, &batch->events[i], error);
	return status;
}

/* ---- reading ---- */

enum { COLUMNS_MAX = 32, QUERY_MAX_MS = 10000 };

static enum weir_status read_rows(struct weir_database *database, struct weir_statement *statement, int columns,
                                  weir_sql_row *each, void *context, struct weir_error *error)
{
	struct weir_sql_value row[COLUMNS_MAX];
	enum weir_status status, given = WEIR_OK;
	while (given == WEIR_OK && (status = weir_statement_step(database, statement, error)) == WEIR_OK) {
		for (int i = 0; i < columns; i++) {
			struct weir_span text =
				weir_row_is_number(statement, i) ? (struct weir_span){.at = NULL} : weir_row_bytes(statement, i);
			row[i] = weir_row_is_number(statement, i) ? weir_sql_number((int64_t)weir_row_number(statement, i))
			         : text.at != NULL                ? weir_sql_text(text)
			                                          : (struct weir_sql_value){.type = WEIR_SQL_NULL};
		}
		given = each(context, row, (unsigned)columns);
	}
	if (given != WEIR_OK)
		return given;
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_store_query(struct weir_store *base, const char *sql, const struct weir_sql_value *parameters,
                                  unsigned count, weir_sql_row *each, void *context, struct weir_error *error)
{
	struct weir_database *database = weir_store_sqlite(base)->database;
	int columns = 0;
	struct weir_statement *statement = weir_database_prepare(database, sql, &columns);
	if (statement == NULL)
		return weir_statement_step(database, statement, error); /* says why */
	for (unsigned i = 0; i < count; i++) {
		if (parameters[i].type == WEIR_SQL_NUMBER)
			weir_statement_number(statement, (int)i + 1, (uint64_t)parameters[i].number);
		else if (parameters[i].type == WEIR_SQL_TEXT)
			weir_statement_text(statement, (int)i + 1, parameters[i].text);
	}
	weir_database_bound(database, QUERY_MAX_MS);
	enum weir_status status = columns <= COLUMNS_MAX ? read_rows(database, statement, columns, each, context, error)
	                                                 : weir_fail(error, WEIR_INVALID, "too many columns: %d", columns);
	weir_database_bound(database, 0);
	weir_statement_free(statement);
	return status;
}
