/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One bucket's rows go, by the indexes that begin with it: so many in one
 * transaction that archivers, and replicas of the server, continue beside it. What
 * was removed stays so, whatever comes after.
 */
#include "common/store/mysql/internal.h"

#include <stdio.h>

enum { REMOVE_ROWS = 5000 };

struct forget_call {
	struct weir_mysql *mysql;
	const struct weir_archive_bucket *bucket;
	const char *table;
	bool by_name; /* of the zone */
	uint64_t rows;
};

static enum weir_status remove_some(void *context, struct weir_error *error)
{
	struct forget_call *call = context;
	char sql[128];
	snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s = ? AND bucket = ? LIMIT %d", call->table,
	         call->by_name ? "zone" : "zone_id", REMOVE_ROWS);
	struct weir_mysql_statement *statement = weir_mysql_prepare(call->mysql, sql);
	if (call->by_name)
		weir_mysql_put_text(statement, call->bucket->zone_name);
	else
		weir_mysql_put_number(statement, call->bucket->zone);
	weir_mysql_put_bytes(statement, call->bucket->bucket);
	enum weir_status status = weir_mysql_execute(call->mysql, statement, &call->rows, error);
	weir_mysql_statement_free(statement);
	return status;
}

static enum weir_status remove_from(struct weir_mysql *mysql, const struct weir_archive_bucket *bucket,
                                    const char *table, bool by_name, uint64_t *removed, bool *more,
                                    struct weir_error *error)
{
	struct forget_call call = {mysql, bucket, table, by_name, 0};
	enum weir_status status = weir_mysql_write(mysql, remove_some, &call, error);
	if (status == WEIR_OK) {
		*removed += call.rows;
		*more = *more || call.rows == REMOVE_ROWS;
	}
	return status;
}

/* A site makes check_velocity's table, or does without. */
static enum weir_status has_locks(void *context, struct weir_error *error)
{
	struct forget_call *call = context;
	return weir_mysql_number(call->mysql,
	                         "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()"
	                         " AND table_name = 'zone_bucket_lock'",
	                         &call->rows, error);
}

enum weir_status weir_mysql_forget(struct weir_store *store, const struct weir_archive_bucket *bucket,
                                   struct weir_archive_removed *removed, bool *more, struct weir_error *error)
{
	struct weir_mysql *mysql = weir_store_mysql(store)->mysql;
	struct forget_call call = {.mysql = mysql};
	*more = false;
	enum weir_status status = weir_mysql_read(mysql, has_locks, &call, error);
	if (status == WEIR_OK && call.rows > 0)
		status = remove_from(mysql, bucket, "zone_bucket_lock", false, &removed->locks, more, error);
	for (int i = 0; i < WEIR_ARCHIVE_KEYED && status == WEIR_OK; i++)
		status = remove_from(mysql, bucket, weir_archive_names[i].table, weir_archive_names[i].by_name,
		                     &removed->rows[i], more, error);
	return status;
}
