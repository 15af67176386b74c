/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bucket's rows go, by the indexes that begin with it. The tables have no
 * row numbers to limit by: the oldest go, up to the time of the last of so many,
 * and those of that same time with it.
 */
#include "common/store/sqlite/internal.h"

#include <stdio.h>

enum { REMOVE_ROWS = 10000 };

static enum weir_status remove_some(struct weir_database *database, int table, const struct weir_archive_bucket *bucket,
                                    int *rows, struct weir_error *error)
{
	const struct weir_archive_name *name = &weir_archive_names[table];
	const char *zone = name->by_name ? "zone" : "zone_id";
	char sql[320];
	int columns;
	snprintf(sql, sizeof sql,
	         "DELETE FROM %s WHERE %s = ?1 AND bucket = ?2 AND %s <= coalesce((SELECT %s FROM %s"
	         " WHERE %s = ?1 AND bucket = ?2 ORDER BY %s LIMIT 1 OFFSET %d), %lld)",
	         name->table, zone, name->time, name->time, name->table, zone, name->time, REMOVE_ROWS - 1,
	         (long long)INT64_MAX);
	struct weir_statement *statement = weir_database_prepare(database, sql, &columns);
	if (statement != NULL && name->by_name)
		weir_statement_text(statement, 1, weir_span_of(bucket->zone_name));
	else if (statement != NULL)
		weir_statement_number(statement, 1, bucket->zone);
	if (statement != NULL)
		weir_statement_text(statement, 2, bucket->bucket);
	enum weir_status status = weir_statement_run(database, statement, rows, error);
	weir_statement_free(statement);
	return status;
}

enum weir_status weir_store_forget(struct weir_store *base, const struct weir_archive_bucket *bucket,
                                   struct weir_archive_removed *removed, bool *more, struct weir_error *error)
{
	struct weir_database *database = weir_store_sqlite(base)->database;
	enum weir_status status = WEIR_OK;
	*more = false;
	for (int i = 0; i < WEIR_ARCHIVE_KEYED && status == WEIR_OK; i++) {
		int rows = 0;
		status = weir_database_begin(database, error);
		if (status != WEIR_OK)
			return status;
		status = remove_some(database, i, bucket, &rows, error);
		status = weir_database_end(database, status, error);
		if (status != WEIR_OK)
			return status;
		removed->rows[i] += (uint64_t)rows;
		*more = *more || rows >= REMOVE_ROWS;
	}
	return WEIR_OK;
}
