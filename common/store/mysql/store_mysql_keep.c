/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Age, by partitions of time: a day each where rows are kept for months, thirty
 * days each where they are kept for longer. What is old goes with its partition,
 * at once, however many rows it has.
 *
 * Partitions are made ahead; a row that comes before its partition lies in
 * `later`, and is moved when that is split: none is ever without a place. Bounds
 * are multiples of the partitions' span since 1970, so whoever makes them makes
 * the same.
 */
#include "common/base/alloc.h"
#include "common/store/mysql/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { DAILY_UP_TO_DAYS = 400, LONG_SPAN_DAYS = 30, AHEAD = 3 };

struct bounds {
	int64_t *upper_ms; /* ascending; of all partitions but `later` */
	size_t count;
};

static enum weir_status keep_bound(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct bounds *bounds = context;
	(void)count;
	bounds->upper_ms = weir_realloc(bounds->upper_ms, bounds->count + 1, sizeof *bounds->upper_ms);
	bounds->upper_ms[bounds->count++] = columns[0].number;
	return WEIR_OK;
}

static enum weir_status read_bounds(struct weir_store *store, const char *table, struct bounds *bounds,
                                    struct weir_error *error)
{
	struct weir_sql_value parameter = weir_sql_text(weir_span_of(table));
	*bounds = (struct bounds){.upper_ms = NULL};
	return weir_mysql_query(
		store,
		"SELECT CAST(partition_description AS SIGNED) FROM information_schema.partitions"
		" WHERE table_schema = database() AND table_name = ? AND partition_description <> 'MAXVALUE'"
		" ORDER BY 1",
		&parameter, 1, keep_bound, bounds, error);
}

static void name_partition(struct weir_text *sql, int64_t upper_ms)
{
	weir_text_printf(sql, "before_day_%" PRId64, upper_ms / WEIR_DAY_MS);
}

/* Those that are missing up to some spans ahead; the first one takes all that is older, too. */
static enum weir_status make_ahead(struct weir_mysql *mysql, const char *table, const struct bounds *bounds,
                                   int64_t span_ms, int64_t now_ms, struct weir_error *error)
{
	int64_t last_ms = weir_begin_of(now_ms, span_ms) + AHEAD * span_ms;
	int64_t next_ms = weir_begin_of(now_ms, span_ms);
	if (bounds->count > 0 && bounds->upper_ms[bounds->count - 1] >= next_ms)
		next_ms = weir_begin_of(bounds->upper_ms[bounds->count - 1], span_ms) + span_ms;
	if (next_ms > last_ms - span_ms && bounds->count > 0)
		return WEIR_OK; /* not for one alone: twice in three spans is often enough */
	struct weir_text sql = {0};
	weir_text_printf(&sql, "ALTER TABLE %s REORGANIZE PARTITION later INTO (", table);
	for (; next_ms <= last_ms; next_ms += span_ms) {
		weir_text_puts(&sql, "PARTITION ");
		name_partition(&sql, next_ms);
		weir_text_printf(&sql, " VALUES LESS THAN (%" PRId64 "), ", next_ms);
	}
	weir_text_puts(&sql, "PARTITION later VALUES LESS THAN MAXVALUE)");
	weir_text_append(&sql, "", 1);
	enum weir_status status = weir_mysql_run(mysql, sql.at, error);
	weir_text_deinit(&sql);
	return status;
}

static enum weir_status drop_old(struct weir_mysql *mysql, const char *table, const struct bounds *bounds,
                                 int64_t before_ms, struct weir_error *error)
{
	struct weir_text sql = {0};
	size_t count = 0;
	weir_text_printf(&sql, "ALTER TABLE %s DROP PARTITION ", table);
	for (; count < bounds->count && bounds->upper_ms[count] <= before_ms; count++) {
		if (count > 0)
			weir_text_puts(&sql, ", ");
		name_partition(&sql, bounds->upper_ms[count]);
	}
	weir_text_append(&sql, "", 1);
	enum weir_status status = count > 0 ? weir_mysql_run(mysql, sql.at, error) : WEIR_OK;
	weir_text_deinit(&sql);
	return status;
}

static enum weir_status keep_table(struct weir_store *store, const struct weir_archive_name *name, int64_t keep_ms,
                                   int64_t now_ms, struct weir_error *error)
{
	struct weir_mysql *mysql = weir_store_mysql(store)->mysql;
	struct bounds bounds;
	int64_t days = keep_ms > 0 && keep_ms <= DAILY_UP_TO_DAYS * (int64_t)WEIR_DAY_MS ? 1 : LONG_SPAN_DAYS;
	uint64_t connection = weir_mysql_connection(mysql);
	enum weir_status status = read_bounds(store, name->table, &bounds, error);
	if (status == WEIR_OK && weir_mysql_connection(mysql) != connection)
		status = weir_fail(error, WEIR_IO, "%s: the connection was lost, and the lock with it", weir_mysql_name(mysql));
	if (status == WEIR_OK)
		status = make_ahead(mysql, name->table, &bounds, days * WEIR_DAY_MS, now_ms, error);
	if (status == WEIR_OK && keep_ms > 0)
		status = drop_old(mysql, name->table, &bounds, now_ms - keep_ms, error);
	free(bounds.upper_ms);
	return status;
}

/* A name is the server's, not the database's, and 64 characters at most; MySQL 9.6 has no md5() any more. */
#define LOCK "concat('weir.keep ', left(sha2(database(), 256), 32))"

enum weir_status weir_mysql_keep(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES], int64_t now_ms,
                                 bool *more, struct weir_error *error)
{
	struct weir_mysql *mysql = weir_store_mysql(store)->mysql;
	uint64_t locked = 0;
	*more = false;
	weir_mysql_disconnect(mysql); /* one that has been idle may be gone without a word */
	enum weir_status status = weir_mysql_connect(mysql, true, error);
	if (status == WEIR_OK)
		status = weir_mysql_number(mysql, "SELECT get_lock(" LOCK ", 0)", &locked, error);
	if (status == WEIR_END || (status == WEIR_OK && locked == 0))
		return WEIR_AGAIN; /* another archiver is about it, or what became of a call of ours that took too long */
	for (int i = 0; i < WEIR_ARCHIVE_TABLES && status == WEIR_OK; i++)
		status = keep_table(store, &weir_archive_names[i], keep_ms[i], now_ms, error);
	if (status == WEIR_OK) {
		enum weir_status ignored = weir_mysql_run(mysql, "DO release_lock(" LOCK ")", NULL);
		(void)ignored; /* the connection's end releases it too, a little later */
	}
	weir_mysql_disconnect(mysql);
	return status;
}
