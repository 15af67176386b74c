/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is too old goes, in bounded steps.
 *
 * Where a table's key begins with the time, or its rows are few, what is oldest
 * is found at once. The two large ones whose key begins with a bucket are walked,
 * bucket by bucket, each of which has its oldest rows first: an index by time
 * would cost every row that is added more than a walk costs those that go. It
 * takes many steps, and others write in between.
 */
#include "common/store/sqlite/internal.h"

#include <stdio.h>

enum { REMOVE_ROWS = 10000, WALK_BUCKETS = 5000, WALK_ROWS = 10000 };

/* Keys of the tables whose key begins with the time, or whose rows are few: they have no row numbers to limit by. */
static const char *const keys[WEIR_ARCHIVE_TABLES] = {
	[WEIR_ARCHIVE_DAILY] = "day_ms, zone_id, bucket",
	[WEIR_ARCHIVE_TOTALS] = "zone_id, hour_ms, partition_id",
	[WEIR_ARCHIVE_DECISIONS] = "at_ms, partition_id, log_offset, pair",
	[WEIR_ARCHIVE_SHADOW] = "at_ms, partition_id, log_offset, pair",
};

/* A block that holds stays, however old it is: who is blocked is read from these rows. ?2 is now. */
static const char holds[] = " AND NOT (until_ms > ?2 AND action = 'block' AND mode = 'enforce' AND NOT " WEIR_SQL_LATER(
	"d", "= d.bucket") " AND NOT " WEIR_SQL_LATER("d", "IS NULL") ")";

static enum weir_status remove_oldest(struct weir_database *database, enum weir_archive_table table, int64_t before_ms,
                                      int64_t now_ms, bool *more, struct weir_error *error)
{
	char sql[2048];
	int columns, rows = 0;
	const char *name = weir_archive_names[table].table, *key = keys[table];
	snprintf(sql, sizeof sql,
	         "DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s AS d WHERE %s < ?1 AND ?2 = ?2%s ORDER BY %s LIMIT %d)",
	         name, key, key, name, weir_archive_names[table].time, table == WEIR_ARCHIVE_DECISIONS ? holds : "", key,
	         REMOVE_ROWS);
	struct weir_statement *statement = weir_database_prepare(database, sql, &columns);
	if (statement != NULL) {
		weir_statement_number(statement, 1, (uint64_t)before_ms);
		weir_statement_number(statement, 2, (uint64_t)now_ms);
	}
	enum weir_status status = weir_statement_run(database, statement, &rows, error);
	weir_statement_free(statement);
	*more = rows >= REMOVE_ROWS;
	return status;
}

/* ---- walks ---- */

static struct weir_span bucket_of(const struct weir_store_walk *walk)
{
	return (struct weir_span){.at = walk->bucket.length > 0 ? walk->bucket.at : "",
	                          .length = (uint32_t)walk->bucket.length};
}

/* Goes on to the next bucket. @param oldest_ms  of its rows; @return WEIR_END: there is none */
static enum weir_status walk_on(struct weir_store_sqlite *store, enum weir_store_statement number,
                                struct weir_store_walk *walk, int64_t *oldest_ms, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, number);
	weir_statement_number(statement, 1, walk->zone);
	weir_statement_text(statement, 2, bucket_of(walk));
	enum weir_status status = weir_statement_step(store->database, statement, error);
	if (status != WEIR_OK)
		return status;
	struct weir_span bucket = weir_row_bytes(statement, 1);
	walk->zone = weir_row_number(statement, 0);
	weir_text_clear(&walk->bucket);
	weir_text_append(&walk->bucket, bucket.at, bucket.length);
	*oldest_ms = (int64_t)weir_row_number(statement, 2);
	return WEIR_OK;
}

/* Removes what is too old of the bucket that a walk is at, WALK_ROWS at most and those of the last one's time. */
static enum weir_status remove_there(struct weir_store_sqlite *store, enum weir_store_statement number,
                                     const struct weir_store_walk *walk, int64_t before_ms, int *rows,
                                     struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, number);
	weir_statement_number(statement, 1, walk->zone);
	weir_statement_text(statement, 2, bucket_of(walk));
	weir_statement_number(statement, 3, (uint64_t)before_ms);
	weir_statement_number(statement, 4, WALK_ROWS - 1);
	return weir_statement_run(store->database, statement, rows, error);
}

/* One step of a walk. @param more  set: it has not come to its end */
static enum weir_status walk_step(struct weir_store_sqlite *store, int table, int64_t before_ms, bool *more,
                                  struct weir_error *error)
{
	bool is_hourly = table == WEIR_ARCHIVE_HOURLY;
	enum weir_store_statement next = is_hourly ? WEIR_STORE_NEXT_HOURLY : WEIR_STORE_NEXT_EVENTS;
	enum weir_store_statement remove = is_hourly ? WEIR_STORE_REMOVE_HOURLY : WEIR_STORE_REMOVE_EVENTS;
	struct weir_store_walk *walk = &store->walks[table];
	enum weir_status status = WEIR_OK;
	int buckets = 0, removed = 0;
	while (status == WEIR_OK && buckets < WALK_BUCKETS && removed < WALK_ROWS) {
		int rows = 0;
		int64_t oldest_ms = 0; /* of a bucket that the last step did not get done with: not asked again */
		if (!walk->is_unfinished)
			status = walk_on(store, next, walk, &oldest_ms, error);
		if (status == WEIR_OK && oldest_ms < before_ms)
			status = remove_there(store, remove, walk, before_ms, &rows, error);
		walk->is_unfinished = rows >= WALK_ROWS;
		removed += rows;
		buckets++;
	}
	*more = status == WEIR_OK;
	if (*more)
		return status;
	walk->zone = 0; /* from the start again, at its end and after a failure */
	walk->is_unfinished = false;
	weir_text_clear(&walk->bucket);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_store_keep(struct weir_store *base, const int64_t keep_ms[WEIR_ARCHIVE_TABLES], int64_t now_ms,
                                 bool *more, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	*more = false;
	for (int i = 0; i < WEIR_ARCHIVE_TABLES; i++) {
		bool is_more = false;
		int64_t before_ms = now_ms - keep_ms[i];
		if (keep_ms[i] == 0)
			continue;
		enum weir_status status = weir_database_begin(store->database, error);
		if (status != WEIR_OK)
			return status;
		if (i == WEIR_ARCHIVE_HOURLY || i == WEIR_ARCHIVE_EVENTS)
			status = walk_step(store, i, before_ms, &is_more, error);
		else
			status = remove_oldest(store->database, (enum weir_archive_table)i, before_ms, now_ms, &is_more, error);
		status = weir_database_end(store->database, status, error);
		if (status != WEIR_OK)
			return status;
		*more = *more || is_more;
	}
	return WEIR_OK;
}
