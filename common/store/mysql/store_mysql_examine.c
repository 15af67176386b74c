/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the store could be written to: the server is asked to write no row at all, so that it refuses for its own
 * reasons (read-only, a missing right, a full disk's switch), and nothing is changed.
 */
#include "common/store/mysql/internal.h"

#include <stdio.h>

#define NONE " WHERE 1 = 0"

/* What a limiter writes, then what an archiver does besides. */
static const char *const limiter_writes[] = {
	"INSERT INTO partition_state SELECT * FROM partition_state" NONE,
	"UPDATE partition_state SET epoch = epoch" NONE,
	"INSERT INTO segment_state SELECT * FROM segment_state" NONE,
	"DELETE FROM segment_state" NONE,
	"INSERT INTO note SELECT * FROM note" NONE,
	"DELETE FROM note" NONE,
	NULL,
};
static const char *const archiver_writes[] = {
	"INSERT INTO partition_state SELECT * FROM partition_state" NONE,
	"UPDATE partition_state SET epoch = epoch" NONE,
	"INSERT INTO count_hourly SELECT * FROM count_hourly" NONE,
	"UPDATE count_hourly SET passed = passed" NONE,
	"INSERT INTO count_daily SELECT * FROM count_daily" NONE,
	"INSERT INTO zone_hourly SELECT * FROM zone_hourly" NONE,
	"INSERT INTO decision_history SELECT * FROM decision_history" NONE,
	"INSERT INTO shadow_history SELECT * FROM shadow_history" NONE,
	"INSERT INTO zone_txn SELECT * FROM zone_txn" NONE,
	NULL,
};

enum weir_status weir_store_mysql_try_writes(struct weir_store *base, int role, struct weir_error *error)
{
	struct weir_mysql *mysql = weir_store_mysql(base)->mysql;
	const char *const *writes = role == WEIR_STORE_ROLE_ARCHIVER ? archiver_writes : limiter_writes;
	enum weir_status status = weir_mysql_connect(mysql, true, error);
	if (status == WEIR_OK)
		status = weir_mysql_run(mysql, "START TRANSACTION", error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && writes[i] != NULL; i++)
		status = weir_mysql_run(mysql, writes[i], error);
	if (status == WEIR_OK)
		return weir_mysql_run(mysql, "ROLLBACK", error);
	return WEIR_INVALID;
}

enum weir_status weir_store_mysql_clock(struct weir_store *base, int64_t *now_ms, struct weir_error *error)
{
	uint64_t now = 0;
	enum weir_status status = weir_mysql_number(
		weir_store_mysql(base)->mysql,
		"SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS UNSIGNED)", &now, error);
	*now_ms = (int64_t)now;
	return status;
}
