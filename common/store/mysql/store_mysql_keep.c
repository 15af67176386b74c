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
 *
 * Of decisions a block that holds stays: a partition that has one is emptied of
 * the others, row by row, and all such are made one.
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

/* Runs what was composed, and frees it. */
static enum weir_status run(struct weir_mysql *mysql, struct weir_text *sql, struct weir_error *error)
{
	weir_text_append(sql, "", 1);
	enum weir_status status = weir_mysql_run(mysql, sql->at, error);
	weir_text_deinit(sql);
	return status;
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
	return run(mysql, &sql, error);
}

/* Partitions by name: "A, B, C". */
struct names {
	struct weir_text text;
	size_t count;
	int64_t upper_ms; /* of the last one */
};

static void add_name(struct names *names, int64_t upper_ms)
{
	if (names->count++ > 0)
		weir_text_puts(&names->text, ", ");
	name_partition(&names->text, upper_ms);
	names->upper_ms = upper_ms;
}

static void put_names(struct weir_text *sql, const struct names *names)
{
	weir_text_append(sql, names->text.at, names->text.length);
}

/* ---- decisions: a block that holds stays, however old it is, as who is blocked is read from its row ---- */

#define UNTIL_AHEAD "until_ms > %" PRId64 " AND action = 'block' AND mode = 'enforce'"
#define ROWS "10000"

/* How many rows of partitions are blocks whose end is ahead, or are none. */
static enum weir_status count_rows(struct weir_mysql *mysql, const struct names *names, bool ahead, int64_t now_ms,
                                   uint64_t *count, struct weir_error *error)
{
	struct weir_text sql = {0};
	weir_text_puts(&sql, "SELECT COUNT(*) FROM decision_history PARTITION (");
	put_names(&sql, names);
	weir_text_printf(&sql, ahead ? ") WHERE " UNTIL_AHEAD : ") WHERE NOT (" UNTIL_AHEAD ")", now_ms);
	weir_text_append(&sql, "", 1);
	enum weir_status status = weir_mysql_number(mysql, sql.at, count, error);
	weir_text_deinit(&sql);
	return status;
}

/* Removes rows. @param more  set where there were any */
static enum weir_status remove_rows(struct weir_mysql *mysql, struct weir_text *sql, bool *more,
                                    struct weir_error *error)
{
	uint64_t rows = 0;
	enum weir_status status = run(mysql, sql, error);
	if (status == WEIR_OK)
		status = weir_mysql_number(mysql, "SELECT row_count()", &rows, error);
	*more = rows > 0;
	return status;
}

/* Blocks whose end is ahead, but which something came behind that lifts them, or stands for them. */
static enum weir_status remove_lifted(struct weir_mysql *mysql, const struct names *names, int64_t now_ms, bool *more,
                                      struct weir_error *error)
{
	struct weir_text sql = {0};
	weir_text_puts(&sql, "DELETE d FROM decision_history AS d JOIN (SELECT at_ms, partition_id, log_offset, pair"
	                     " FROM decision_history PARTITION (");
	put_names(&sql, names);
	weir_text_printf(&sql, ") AS b WHERE " UNTIL_AHEAD, now_ms);
	weir_text_puts(&sql, " AND (" WEIR_SQL_LATER("b", "= b.bucket") " OR " WEIR_SQL_LATER("b", "IS NULL") ")");
	weir_text_puts(&sql, " LIMIT " ROWS ") AS lifted ON d.at_ms = lifted.at_ms AND d.partition_id = lifted.partition_id"
	                     " AND d.log_offset = lifted.log_offset AND d.pair = lifted.pair");
	return remove_rows(mysql, &sql, more, error);
}

/* A step of removing the other rows; in the end what stays is in one partition. */
static enum weir_status remove_others(struct weir_mysql *mysql, const struct names *names, int64_t now_ms, bool *more,
                                      struct weir_error *error)
{
	struct weir_text sql = {0};
	weir_text_puts(&sql, "DELETE FROM decision_history PARTITION (");
	put_names(&sql, names);
	weir_text_printf(&sql, ") WHERE NOT (" UNTIL_AHEAD ") LIMIT " ROWS, now_ms);
	enum weir_status status = remove_rows(mysql, &sql, more, error);
	if (status != WEIR_OK || *more || names->count == 1)
		return status;
	weir_text_puts(&sql, "ALTER TABLE decision_history REORGANIZE PARTITION ");
	put_names(&sql, names);
	weir_text_puts(&sql, " INTO (PARTITION ");
	name_partition(&sql, names->upper_ms);
	weir_text_printf(&sql, " VALUES LESS THAN (%" PRId64 "))", names->upper_ms);
	return run(mysql, &sql, error);
}

/*
 * Before anything that is too old goes, the blocks go that it lifts, or they would hold. Where nothing is to go none does.
 *
 * @param kept  partitions with blocks whose end is ahead
 */
static enum weir_status prepare(struct weir_mysql *mysql, const struct names *kept, bool others_go, int64_t now_ms,
                                bool *more, struct weir_error *error)
{
	uint64_t others = 0;
	enum weir_status status = WEIR_OK;
	if (kept->count == 0)
		return WEIR_OK;
	if (!others_go && kept->count == 1)
		status = count_rows(mysql, kept, false, now_ms, &others, error);
	if (status != WEIR_OK || (!others_go && kept->count == 1 && others == 0))
		return status;
	return remove_lifted(mysql, kept, now_ms, more, error);
}

/* ---- a table ---- */

/* What is too old, partition by partition: those that go as a whole, and those with blocks whose end is ahead. */
static enum weir_status sort_old(struct weir_mysql *mysql, enum weir_archive_table table, const struct bounds *bounds,
                                 int64_t before_ms, int64_t now_ms, struct names *old, struct names *kept,
                                 struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < bounds->count && bounds->upper_ms[i] <= before_ms && status == WEIR_OK; i++) {
		struct names one = {.count = 0};
		uint64_t ahead = 0;
		add_name(&one, bounds->upper_ms[i]);
		if (table == WEIR_ARCHIVE_DECISIONS)
			status = count_rows(mysql, &one, true, now_ms, &ahead, error);
		weir_text_deinit(&one.text);
		add_name(ahead > 0 ? kept : old, bounds->upper_ms[i]);
	}
	return status;
}

/* What is too old goes. @param more  set: not all of it has */
static enum weir_status drop_old(struct weir_mysql *mysql, enum weir_archive_table table, const struct bounds *bounds,
                                 int64_t keep_ms, int64_t now_ms, bool *more, struct weir_error *error)
{
	struct names old = {.count = 0}, kept = {.count = 0};
	enum weir_status status = sort_old(mysql, table, bounds, now_ms - keep_ms, now_ms, &old, &kept, error);
	if (status == WEIR_OK)
		status = prepare(mysql, &kept, old.count > 0, now_ms, more, error);
	if (status == WEIR_OK && !*more && old.count > 0) {
		struct weir_text sql = {0};
		weir_text_printf(&sql, "ALTER TABLE %s DROP PARTITION ", weir_archive_names[table].table);
		put_names(&sql, &old);
		status = run(mysql, &sql, error);
	}
	if (status == WEIR_OK && !*more && kept.count > 0)
		status = remove_others(mysql, &kept, now_ms, more, error);
	weir_text_deinit(&old.text);
	weir_text_deinit(&kept.text);
	return status;
}

static enum weir_status keep_table(struct weir_store *store, enum weir_archive_table table, int64_t keep_ms,
                                   int64_t now_ms, bool *more, struct weir_error *error)
{
	struct weir_mysql *mysql = weir_store_mysql(store)->mysql;
	const char *name = weir_archive_names[table].table;
	struct bounds bounds;
	int64_t days = keep_ms > 0 && keep_ms <= DAILY_UP_TO_DAYS * (int64_t)WEIR_DAY_MS ? 1 : LONG_SPAN_DAYS;
	uint64_t connection = weir_mysql_connection(mysql);
	enum weir_status status = read_bounds(store, name, &bounds, error);
	if (status == WEIR_OK && weir_mysql_connection(mysql) != connection)
		status = weir_fail(error, WEIR_IO, "%s: the connection was lost, and the lock with it", weir_mysql_name(mysql));
	if (status == WEIR_OK)
		status = make_ahead(mysql, name, &bounds, days * WEIR_DAY_MS, now_ms, error);
	if (status == WEIR_OK && keep_ms > 0)
		status = drop_old(mysql, table, &bounds, keep_ms, now_ms, more, error);
	free(bounds.upper_ms);
	return status;
}

/* A name is the server's, not the database's, and 64 characters at most; MySQL 9.6 has no md5() any more. */
#define LOCK "concat('weir.keep ', left(sha2(database(), 256), 32))"

/* Whoever wants a table's partitions to change waits for all that reads it, and all that comes later waits for him. */
#define LOCK_WAIT "SET SESSION lock_wait_timeout = 1"

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
	uint64_t connection = weir_mysql_connection(mysql);
	if (status == WEIR_OK)
		status = weir_mysql_run(mysql, LOCK_WAIT, error);
	bool ready = status == WEIR_OK;
	/* A table that somebody reads for long does not hold up the others. */
	for (int i = 0; i < WEIR_ARCHIVE_TABLES && ready && weir_mysql_connection(mysql) == connection; i++) {
		struct weir_error words;
		bool table_more = false;
		enum weir_status kept = keep_table(store, (enum weir_archive_table)i, keep_ms[i], now_ms, &table_more, &words);
		*more |= table_more;
		if (kept != WEIR_OK && status == WEIR_OK) {
			status = kept;
			*error = words;
		}
	}
	if (status == WEIR_OK) {
		enum weir_status ignored = weir_mysql_run(mysql, "DO release_lock(" LOCK ")", NULL);
		(void)ignored; /* the connection's end releases it too, a little later */
	}
	weir_mysql_disconnect(mysql);
	return status;
}
