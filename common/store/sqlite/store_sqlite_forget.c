/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bucket's rows go, by the indexes that begin with it. The tables have no
 * row numbers to limit by: the oldest go, up to the time of the last of so many,
 * and those of that same time with it. They are overwritten, and the log that has
 * them as they were is emptied: SQLite by itself leaves their bytes in both files.
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

/* A step in each table. @param some  whether rows went */
static enum weir_status remove_step(struct weir_database *database, const struct weir_archive_bucket *bucket,
                                    struct weir_archive_removed *removed, bool *some, bool *more,
                                    struct weir_error *error)
{
	for (int i = 0; i < WEIR_ARCHIVE_KEYED; i++) {
		int rows = 0;
		enum weir_status status = weir_database_begin(database, error);
		if (status != WEIR_OK)
			return status;
		status = remove_some(database, i, bucket, &rows, error);
		status = weir_database_end(database, status, error);
		if (status != WEIR_OK)
			return status;
		removed->rows[i] += (uint64_t)rows;
		*some = *some || rows > 0;
		*more = *more || rows >= REMOVE_ROWS;
	}
	return WEIR_OK;
}

enum weir_status weir_store_forget(struct weir_store *base, const struct weir_archive_bucket *bucket,
                                   struct weir_archive_removed *removed, bool *more, struct weir_error *error)
{
	struct weir_database *database = weir_store_sqlite(base)->database;
	struct weir_error ignored;
	bool some = false;
	*more = false;
	enum weir_status status = weir_database_run(database, "PRAGMA secure_delete = ON", error);
	if (status == WEIR_OK)
		status = remove_step(database, bucket, removed, &some, more, error);
	(void)!weir_database_run(database, "PRAGMA secure_delete = OFF",
	                         &ignored); /* if left on, removals are only slower */
	if (some)
		weir_database_empty_log(database);
	return status;
}
