/*
 * The tables of the MySQL store and every statement on them.
 *
 * The schema has a number and grows by steps: step N brings version N-1 to N
 * and is never changed once it has been released. Servers end a transaction at
 * each change of a table, so a step's statements do nothing where they have
 * been done: one that was cut off is run again. deploy/mysql/schema.sql holds
 * the same statements for people; a test compares the two.
 */
#include "common/store/mysql/internal.h"

#include <inttypes.h>
#include <stdio.h>

#define TABLE_OPTIONS ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
#define BLOB_TABLE_OPTIONS ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

static const char *const step_1[] = {
	"CREATE TABLE IF NOT EXISTS schema_version ("
	"  program VARCHAR(16) NOT NULL,"
	"  version INT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (program)" TABLE_OPTIONS,
	"INSERT IGNORE INTO schema_version (program, version) VALUES ('weir', 0)",
	"CREATE TABLE IF NOT EXISTS partition_state ("
	"  role TINYINT UNSIGNED NOT NULL,"
	"  partition_id INT UNSIGNED NOT NULL,"
	"  epoch BIGINT UNSIGNED NOT NULL,"
	"  checkpoint BIGINT UNSIGNED NOT NULL,"
	"  next_offset BIGINT UNSIGNED NOT NULL,"
	"  clock_ms BIGINT NOT NULL,"
	"  policy_version BIGINT UNSIGNED NOT NULL,"
	"  extra LONGBLOB NULL,"
	"  PRIMARY KEY (role, partition_id)" BLOB_TABLE_OPTIONS,
	"CREATE TABLE IF NOT EXISTS segment_state ("
	"  partition_id INT UNSIGNED NOT NULL,"
	"  segment INT UNSIGNED NOT NULL,"
	"  checkpoint BIGINT UNSIGNED NOT NULL,"
	"  base TINYINT UNSIGNED NOT NULL,"
	"  length INT UNSIGNED NOT NULL,"
	"  bytes LONGBLOB NOT NULL,"
	"  PRIMARY KEY (partition_id, segment, checkpoint),"
	"  KEY segment_index (partition_id, segment, checkpoint, base, length)" BLOB_TABLE_OPTIONS,
	"CREATE TABLE IF NOT EXISTS policy_version ("
	"  version BIGINT UNSIGNED NOT NULL,"
	"  text LONGBLOB NOT NULL,"
	"  PRIMARY KEY (version)" BLOB_TABLE_OPTIONS,
	"CREATE TABLE IF NOT EXISTS zone_master ("
	"  zone_id INT UNSIGNED NOT NULL,"
	"  limit_number TINYINT UNSIGNED NOT NULL,"
	"  name VARCHAR(64) NOT NULL,"
	"  description VARCHAR(1024) NOT NULL,"
	"  mode VARCHAR(16) NOT NULL,"
	"  algorithm VARCHAR(32) NOT NULL,"
	"  rate BIGINT NOT NULL,"
	"  window_ms BIGINT NOT NULL,"
	"  burst BIGINT NOT NULL,"
	"  block_for_ms BIGINT NOT NULL,"
	"  policy_version BIGINT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (zone_id, limit_number),"
	"  KEY zone_name (name)" TABLE_OPTIONS,
	"CREATE TABLE IF NOT EXISTS note ("
	"  name VARCHAR(255) NOT NULL,"
	"  value LONGBLOB NOT NULL,"
	"  PRIMARY KEY (name)" BLOB_TABLE_OPTIONS,
	"UPDATE schema_version SET version = 1 WHERE program = 'weir' AND version < 1",
	NULL,
};

static const char *const step_2[] = {
	"CREATE TABLE IF NOT EXISTS count_hourly ("
	"  zone_id INT UNSIGNED NOT NULL,"
	"  bucket VARBINARY(1024) NOT NULL,"
	"  hour_ms BIGINT NOT NULL,"
	"  passed BIGINT UNSIGNED NOT NULL,"
	"  blocked BIGINT UNSIGNED NOT NULL,"
	"  late BIGINT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (zone_id, bucket, hour_ms)" TABLE_OPTIONS
	" PARTITION BY RANGE (hour_ms) (PARTITION later VALUES LESS THAN MAXVALUE)",
	"CREATE TABLE IF NOT EXISTS count_daily ("
	"  day_ms BIGINT NOT NULL,"
	"  zone_id INT UNSIGNED NOT NULL,"
	"  bucket VARBINARY(1024) NOT NULL,"
	"  passed BIGINT UNSIGNED NOT NULL,"
	"  blocked BIGINT UNSIGNED NOT NULL,"
	"  late BIGINT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (day_ms, zone_id, bucket),"
	"  KEY count_daily_bucket (zone_id, bucket, day_ms)" TABLE_OPTIONS
	" PARTITION BY RANGE (day_ms) (PARTITION later VALUES LESS THAN MAXVALUE)",
	"CREATE TABLE IF NOT EXISTS zone_hourly ("
	"  zone_id INT UNSIGNED NOT NULL,"
	"  hour_ms BIGINT NOT NULL,"
	"  partition_id INT UNSIGNED NOT NULL,"
	"  passed BIGINT UNSIGNED NOT NULL,"
	"  blocked BIGINT UNSIGNED NOT NULL,"
	"  late BIGINT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (zone_id, hour_ms, partition_id)" TABLE_OPTIONS
	" PARTITION BY RANGE (hour_ms) (PARTITION later VALUES LESS THAN MAXVALUE)",
	"CREATE TABLE IF NOT EXISTS decision_history ("
	"  at_ms BIGINT NOT NULL,"
	"  partition_id INT UNSIGNED NOT NULL,"
	"  log_offset BIGINT UNSIGNED NOT NULL,"
	"  pair INT UNSIGNED NOT NULL,"
	"  zone VARCHAR(64) NOT NULL,"
	"  bucket VARBINARY(1024) NULL,"
	"  action VARCHAR(16) NOT NULL,"
	"  until_ms BIGINT NOT NULL,"
	"  mode VARCHAR(16) NOT NULL,"
	"  algorithm VARCHAR(32) NULL,"
	"  rate BIGINT NULL,"
	"  window_ms BIGINT NULL,"
	"  held BIGINT NULL,"
	"  ordered_by TEXT NULL,"
	"  reason TEXT NULL,"
	"  PRIMARY KEY (at_ms, partition_id, log_offset, pair),"
	"  KEY decision_bucket (zone, bucket, at_ms),"
	"  KEY decision_zone (zone, at_ms),"
	"  KEY decision_until (until_ms)" TABLE_OPTIONS
	" PARTITION BY RANGE (at_ms) (PARTITION later VALUES LESS THAN MAXVALUE)",
	"CREATE TABLE IF NOT EXISTS zone_txn ("
	"  zone_id INT UNSIGNED NOT NULL,"
	"  bucket VARBINARY(1024) NOT NULL,"
	"  at_ms BIGINT NOT NULL,"
	"  partition_id INT UNSIGNED NOT NULL,"
	"  log_offset BIGINT UNSIGNED NOT NULL,"
	"  pair INT UNSIGNED NOT NULL,"
	"  blocked TINYINT UNSIGNED NOT NULL,"
	"  PRIMARY KEY (zone_id, bucket, at_ms, partition_id, log_offset, pair)" TABLE_OPTIONS
	" PARTITION BY RANGE (at_ms) (PARTITION later VALUES LESS THAN MAXVALUE)",
	"UPDATE schema_version SET version = 2 WHERE program = 'weir' AND version < 2",
	NULL,
};

/* For people: a view's readable columns come first, what its table is indexed by last. */
#define CREATE_VIEW "CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW "
#define KEY_TEXT                                                             \
	"CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket" \
	" THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,"
#define EPOCH_PLUS "TIMESTAMP '1970-01-01 00:00:00' + INTERVAL "
#define EVENT_ID "CONCAT(partition_id, '-', log_offset, '-', pair) AS id,"
#define ZONE_OF_ID " LEFT JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1"

static const char *const step_3[] = {
	CREATE_VIEW "hourly AS SELECT name AS zone, " KEY_TEXT " CAST(" EPOCH_PLUS
				"hour_ms DIV 1000 SECOND AS DATE) AS day,"
				" " EPOCH_PLUS "hour_ms DIV 1000 SECOND AS hour,"
				" passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, hour_ms"
				" FROM count_hourly AS c" ZONE_OF_ID,
	CREATE_VIEW "daily AS SELECT name AS zone, " KEY_TEXT " CAST(" EPOCH_PLUS "day_ms DIV 1000 SECOND AS DATE) AS day,"
				" passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, day_ms"
				" FROM count_daily AS c" ZONE_OF_ID,
	CREATE_VIEW "decisions AS SELECT " EVENT_ID " zone, " KEY_TEXT " CAST(" EPOCH_PLUS
				"at_ms * 0.001 SECOND AS DATE) AS day,"
				" CAST(" EPOCH_PLUS "at_ms * 0.001 SECOND AS DATETIME(3)) AS at, action,"
				" CAST(" EPOCH_PLUS "until_ms * 0.001 SECOND AS DATETIME(3)) AS until, mode,"
				" algorithm, rate, window_ms, held, ordered_by, reason, bucket, at_ms, until_ms"
				" FROM decision_history",
	CREATE_VIEW "events AS SELECT " EVENT_ID " name AS zone, " KEY_TEXT " CAST(" EPOCH_PLUS
				"at_ms * 0.001 SECOND AS DATE) AS day,"
				" CAST(" EPOCH_PLUS "at_ms * 0.001 SECOND AS DATETIME(3)) AS at,"
				" blocked, c.zone_id, bucket, at_ms"
				" FROM zone_txn AS c" ZONE_OF_ID,
	"UPDATE schema_version SET version = 3 WHERE program = 'weir' AND version < 3",
	NULL,
};

static const char *const *const steps[] = {step_1, step_2, step_3};

enum { SCHEMA_VERSION = sizeof steps / sizeof steps[0] };

/*
 * An epoch is never given twice: a server that replaces another may have lost the last one, and would count on from
 * the one before. So it is the time, or above what is there.
 */
#define NOW_MS "CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS UNSIGNED)"
#define STATE "SELECT epoch, checkpoint, next_offset, clock_ms, policy_version, extra FROM partition_state"
#define EPOCH "SELECT epoch, checkpoint FROM partition_state WHERE role = ? AND partition_id = ?"
#define SEGMENT_PUT "REPLACE INTO segment_state (partition_id, segment, checkpoint, base, length, bytes) VALUES "
#define SEGMENT_ROW "(?, ?, ?, ?, ?, ?)"
/* The index alone holds what these need. */
#define SEGMENT_BASES                                                                \
	"SELECT segment, max(checkpoint) FROM segment_state FORCE INDEX (segment_index)" \
	" WHERE partition_id = ? AND checkpoint <= ? AND base = 1 AND segment IN ("
#define SEGMENT_READ                                                                   \
	"SELECT segment, checkpoint, base, bytes FROM segment_state FORCE INDEX (PRIMARY)" \
	" WHERE partition_id = ? AND checkpoint <= ? AND ("
#define SEGMENT_RANGE "(segment = ? AND checkpoint >= ?)"

#define ADD_HOURLY "INSERT INTO count_hourly (zone_id, bucket, hour_ms, passed, blocked, late) VALUES "
#define ADD_DAILY "INSERT INTO count_daily (zone_id, bucket, day_ms, passed, blocked, late) VALUES "
#define ADD_TOTAL "INSERT INTO zone_hourly (zone_id, hour_ms, partition_id, passed, blocked, late) VALUES "
#define COUNT_ROW "(?, ?, ?, ?, ?, ?)"
#define ADD_COUNTS                                                                                    \
	" ON DUPLICATE KEY UPDATE passed = passed + VALUES(passed), blocked = blocked + VALUES(blocked)," \
	" late = late + VALUES(late)"
#define ADD_DECISION                                                                                             \
	"INSERT INTO decision_history (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode," \
	" algorithm, rate, window_ms, held, ordered_by, reason) VALUES "
#define DECISION_ROW "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define KEEP_FIRST " ON DUPLICATE KEY UPDATE decision_history.pair = decision_history.pair"
#define ADD_EVENT "INSERT INTO zone_txn (zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked) VALUES "
#define EVENT_ROW "(?, ?, ?, ?, ?, ?, ?)"

const struct weir_mysql_sql weir_mysql_statements[WEIR_MYSQL_STATEMENTS] = {
	[WEIR_MYSQL_TAKE] = {.before =
                             "INSERT INTO partition_state"
                             " (role, partition_id, epoch, checkpoint, next_offset, clock_ms, policy_version, extra)"
                             " VALUES (?, ?, " NOW_MS ", 0, 0, 0, 0, NULL)"
                             " ON DUPLICATE KEY UPDATE epoch = GREATEST(epoch + 1, " NOW_MS ")"},
	[WEIR_MYSQL_STATE] = {.before = STATE " WHERE role = ? AND partition_id = ?"},
	/* Without `extra`, which may be large: this is asked in every transaction that writes. */
	[WEIR_MYSQL_EPOCH] = {.before = EPOCH},
	[WEIR_MYSQL_EPOCH_LOCKED] = {.before = EPOCH " FOR UPDATE"},
	[WEIR_MYSQL_COMMIT] = {.before = "UPDATE partition_state SET checkpoint = ?, next_offset = ?, clock_ms = ?,"
                                     " policy_version = ?, extra = ? WHERE role = ? AND partition_id = ? AND epoch = ?"
                                     " AND checkpoint >= ?"},
	[WEIR_MYSQL_SEGMENT_PUT] = {.before = SEGMENT_PUT SEGMENT_ROW},
	[WEIR_MYSQL_SEGMENT_PUT_FEW] = {SEGMENT_PUT, SEGMENT_ROW, ", ", NULL, WEIR_MYSQL_FEW_ROWS},
	[WEIR_MYSQL_SEGMENT_PUT_MANY] = {SEGMENT_PUT, SEGMENT_ROW, ", ", NULL, WEIR_MYSQL_ROWS},
	[WEIR_MYSQL_SEGMENT_BASE] = {.before = SEGMENT_BASES "?) GROUP BY segment"},
	[WEIR_MYSQL_SEGMENT_BASES] = {SEGMENT_BASES, "?", ", ", ") GROUP BY segment", WEIR_MYSQL_SEGMENTS},
	[WEIR_MYSQL_SEGMENT_READ] = {.before = SEGMENT_READ SEGMENT_RANGE ") ORDER BY segment, checkpoint"},
	[WEIR_MYSQL_SEGMENTS_READ] = {SEGMENT_READ, SEGMENT_RANGE, " OR ", ") ORDER BY segment, checkpoint",
                                  WEIR_MYSQL_SEGMENTS},
	[WEIR_MYSQL_SEGMENT_LIST] = {.before = "SELECT segment, base, length FROM segment_state FORCE INDEX (segment_index)"
                                           " WHERE partition_id = ? AND checkpoint <= ? ORDER BY segment, checkpoint"},
	[WEIR_MYSQL_SEGMENTS_UNCOMMITTED] = {.before = "SELECT segment, checkpoint, length"
                                                   " FROM segment_state FORCE INDEX (segment_index)"
                                                   " WHERE partition_id = ? AND checkpoint > ? LIMIT ?"},
	[WEIR_MYSQL_SEGMENTS_BEHIND] =
		{.before = "SELECT STRAIGHT_JOIN old.segment, old.checkpoint, old.length"
                   " FROM segment_state AS newer FORCE INDEX (segment_index)"
                   " JOIN segment_state AS old FORCE INDEX (segment_index)"
                   " ON old.partition_id = newer.partition_id AND old.segment = newer.segment"
                   " AND old.checkpoint < newer.checkpoint"
                   " WHERE newer.partition_id = ? AND newer.base = 1 AND newer.checkpoint <= ? LIMIT ?"},
	/* As if from several tables: only so can an index be named. Any other would lock rows of other partitions. */
	[WEIR_MYSQL_SEGMENTS_REMOVE] = {"DELETE gone FROM segment_state AS gone FORCE INDEX (PRIMARY)"
                                    " WHERE gone.partition_id = ? AND (",
                                    "(gone.segment = ? AND gone.checkpoint = ?)", " OR ", ")", WEIR_MYSQL_SEGMENTS},
	[WEIR_MYSQL_POLICY_PUT] = {.before = "INSERT INTO policy_version (version, text) VALUES (?, ?)"},
	[WEIR_MYSQL_POLICY_GET] = {.before = "SELECT text FROM policy_version WHERE version = ? FOR UPDATE"},
	[WEIR_MYSQL_POLICY_EACH] = {.before =
                                    "SELECT version, text FROM policy_version WHERE version >= ? ORDER BY version"},
	[WEIR_MYSQL_ZONE_REMOVE] = {.before = "DELETE FROM zone_master WHERE zone_id = ?"},
	[WEIR_MYSQL_ZONE_PUT] =
		{.before = "INSERT INTO zone_master (zone_id, limit_number, name, description, mode, algorithm, rate,"
                   " window_ms, burst, block_for_ms, policy_version)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
	[WEIR_MYSQL_ZONE_NEWER] = {.before = "SELECT 1 FROM zone_master WHERE zone_id = ? AND policy_version > ? LIMIT 1"},
	[WEIR_MYSQL_NOTE_GET] = {.before = "SELECT value FROM note WHERE name = ?"},
	[WEIR_MYSQL_NOTE_PUT] = {.before = "REPLACE INTO note (name, value) VALUES (?, ?)"},
	[WEIR_MYSQL_NOTE_REMOVE] = {.before = "DELETE FROM note WHERE name = ?"},
	[WEIR_MYSQL_ADD_HOURLY] = {ADD_HOURLY, COUNT_ROW, ", ", ADD_COUNTS, 1},
	[WEIR_MYSQL_ADD_HOURLY_MANY] = {ADD_HOURLY, COUNT_ROW, ", ", ADD_COUNTS, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_DAILY] = {ADD_DAILY, COUNT_ROW, ", ", ADD_COUNTS, 1},
	[WEIR_MYSQL_ADD_DAILY_MANY] = {ADD_DAILY, COUNT_ROW, ", ", ADD_COUNTS, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_TOTAL] = {ADD_TOTAL, COUNT_ROW, ", ", ADD_COUNTS, 1},
	[WEIR_MYSQL_ADD_TOTAL_MANY] = {ADD_TOTAL, COUNT_ROW, ", ", ADD_COUNTS, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_DECISION] = {ADD_DECISION, DECISION_ROW, ", ", KEEP_FIRST, 1},
	[WEIR_MYSQL_ADD_DECISION_MANY] = {ADD_DECISION, DECISION_ROW, ", ", KEEP_FIRST, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_EVENT] = {ADD_EVENT, EVENT_ROW, ", ", NULL, 1},
	[WEIR_MYSQL_ADD_EVENT_MANY] = {ADD_EVENT, EVENT_ROW, ", ", NULL, WEIR_MYSQL_ARCHIVE_ROWS},
};

/* ---- steps ---- */

/* The version that is there. WEIR_END: there is none. */
static enum weir_status find_version(struct weir_mysql *mysql, uint64_t *version, struct weir_error *error)
{
	enum weir_status status =
		weir_mysql_number(mysql, "SELECT version FROM schema_version WHERE program = 'weir'", version, error);
	if (status == WEIR_IO && weir_mysql_error_number(mysql) == WEIR_MYSQL_NO_TABLE)
		return WEIR_END;
	if (status == WEIR_IO && weir_mysql_error_number(mysql) == WEIR_MYSQL_NO_COLUMN)
		return weir_fail(error, WEIR_INVALID, "%s: its schema_version is another program's", weir_mysql_name(mysql));
	if (status == WEIR_OK && *version > SCHEMA_VERSION)
		return weir_fail(error, WEIR_NEWER, "%s: written by a newer version of weir (schema %" PRIu64 ", known: %d)",
		                 weir_mysql_name(mysql), *version, SCHEMA_VERSION);
	return status;
}

/* A database with tables, but without a version, is not ours. */
static enum weir_status check_empty(struct weir_mysql *mysql, struct weir_error *error)
{
	uint64_t tables = 0, ours = 0;
	enum weir_status status = weir_mysql_number(
		mysql, "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()", &tables, error);
	if (status == WEIR_OK)
		status = weir_mysql_number(mysql,
		                           "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()"
		                           " AND table_name = 'schema_version'",
		                           &ours, error);
	if (status == WEIR_OK && tables > 0 && ours == 0)
		status = weir_fail(error, WEIR_INVALID, "%s: another program's database: give weir one of its own",
		                   weir_mysql_name(mysql));
	return status;
}

static enum weir_status run_steps(struct weir_mysql *mysql, uint64_t version, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint64_t step = version; step < SCHEMA_VERSION && status == WEIR_OK; step++)
		for (const char *const *sql = steps[step]; *sql != NULL && status == WEIR_OK; sql++)
			status = weir_mysql_run(mysql, *sql, error);
	return status;
}

static enum weir_status upgrade_alone(struct weir_mysql *mysql, struct weir_error *error)
{
	uint64_t version = 0;
	enum weir_status status = find_version(mysql, &version, error);
	if (status == WEIR_END)
		status = check_empty(mysql, error);
	return status == WEIR_OK ? run_steps(mysql, version, error) : status;
}

enum weir_status weir_mysql_schema_look(struct weir_mysql *mysql, struct weir_text *missing, struct weir_error *error)
{
	uint64_t version = 0;
	enum weir_status status = find_version(mysql, &version, error);
	bool none = status == WEIR_END;
	if (none)
		status = check_empty(mysql, error);
	if (status == WEIR_OK && none)
		weir_text_printf(missing, "the tables of %s", weir_mysql_name(mysql));
	else if (status == WEIR_OK && version < SCHEMA_VERSION)
		weir_text_printf(missing, "the step from schema %" PRIu64 " to %d in %s", version, SCHEMA_VERSION,
		                 weir_mysql_name(mysql));
	return status;
}

enum weir_status weir_mysql_schema_upgrade(struct weir_mysql *mysql, struct weir_error *error)
{
	uint64_t version = 0, locked = 0;
	enum weir_status status = find_version(mysql, &version, error);
	if ((status == WEIR_OK && version == SCHEMA_VERSION) || (status != WEIR_OK && status != WEIR_END))
		return status;
	/* Daemons start together: one makes the tables, the others wait. */
	status = weir_mysql_number(mysql, "SELECT get_lock('weir.schema', 8)", &locked, error);
	if (status == WEIR_END || (status == WEIR_OK && locked == 0))
		return weir_fail(error, WEIR_IO, "%s: another process has been making the tables for some seconds",
		                 weir_mysql_name(mysql));
	if (status != WEIR_OK)
		return status;
	status = upgrade_alone(mysql, error);
	uint64_t released;
	enum weir_status ignored = weir_mysql_number(mysql, "SELECT release_lock('weir.schema')", &released, NULL);
	(void)ignored; /* the connection's end releases it too */
	return status;
}
