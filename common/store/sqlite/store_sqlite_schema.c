/*
 * The tables of the SQLite store and every statement on them.
 *
 * The schema has a number and grows by steps: step N brings version N-1 to N
 * and is never changed once it has been released. All steps that are missing
 * run in one transaction.
 */
#include "common/store/sqlite/internal.h"

#include <inttypes.h>
#include <stdio.h>

/* "weir" in ASCII: tells its databases from others'. */
#define APPLICATION_ID 2003134834

#define KEY_TEXT "bucket AS key_text,"
#define TIME_OF(ms) "strftime('%Y-%m-%d %H:%M:%f', " ms " / 1000.0, 'unixepoch')"
#define EVENT_ID "partition_id || '-' || log_offset || '-' || pair AS id,"
/* No LEFT JOIN: SQLite would not begin with the zone then. Every zone of every policy has its row. */
#define ZONE_OF_ID " JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1"

static const char *const steps[] = {
	"CREATE TABLE partition_state ("
	"  role INTEGER NOT NULL,"
	"  partition INTEGER NOT NULL,"
	"  epoch INTEGER NOT NULL,"
	"  checkpoint INTEGER NOT NULL,"
	"  next_offset INTEGER NOT NULL,"
	"  clock_ms INTEGER NOT NULL,"
	"  policy_version INTEGER NOT NULL,"
	"  extra BLOB,"
	"  PRIMARY KEY (role, partition));"
	"CREATE TABLE segment_state ("
	"  partition INTEGER NOT NULL,"
	"  segment INTEGER NOT NULL,"
	"  checkpoint INTEGER NOT NULL,"
	"  base INTEGER NOT NULL,"
	"  bytes BLOB NOT NULL,"
	"  PRIMARY KEY (partition, segment, checkpoint));"
	/* What is older than a base is found without a look at the rows, which are large. */
	"CREATE INDEX segment_base ON segment_state (partition, segment, checkpoint) WHERE base = 1;"
	"CREATE TABLE policy_version ("
	"  version INTEGER PRIMARY KEY,"
	"  text BLOB NOT NULL);"
	"CREATE TABLE note ("
	"  name TEXT PRIMARY KEY,"
	"  value BLOB NOT NULL);"
	"CREATE TABLE schema_version ("
	"  version INTEGER NOT NULL);"
	"INSERT INTO schema_version VALUES (0);",
	/* What the archiver keeps: the columns as in deploy/mysql/schema.sql, which says what they mean. */
	"CREATE TABLE zone_master ("
	"  zone_id INTEGER NOT NULL,"
	"  limit_number INTEGER NOT NULL,"
	"  name TEXT NOT NULL,"
	"  description TEXT NOT NULL,"
	"  mode TEXT NOT NULL,"
	"  algorithm TEXT NOT NULL,"
	"  rate INTEGER NOT NULL,"
	"  window_ms INTEGER NOT NULL,"
	"  burst INTEGER NOT NULL,"
	"  block_for_ms INTEGER NOT NULL,"
	"  policy_version INTEGER NOT NULL,"
	"  PRIMARY KEY (zone_id, limit_number)) WITHOUT ROWID;"
	"CREATE TABLE count_hourly ("
	"  zone_id INTEGER NOT NULL,"
	"  bucket BLOB NOT NULL,"
	"  hour_ms INTEGER NOT NULL,"
	"  passed INTEGER NOT NULL,"
	"  blocked INTEGER NOT NULL,"
	"  late INTEGER NOT NULL,"
	"  PRIMARY KEY (zone_id, bucket, hour_ms)) WITHOUT ROWID;"
	"CREATE TABLE count_daily ("
	"  day_ms INTEGER NOT NULL,"
	"  zone_id INTEGER NOT NULL,"
	"  bucket BLOB NOT NULL,"
	"  passed INTEGER NOT NULL,"
	"  blocked INTEGER NOT NULL,"
	"  late INTEGER NOT NULL,"
	"  PRIMARY KEY (day_ms, zone_id, bucket)) WITHOUT ROWID;"
	"CREATE INDEX count_daily_bucket ON count_daily (zone_id, bucket, day_ms);"
	"CREATE TABLE zone_hourly ("
	"  zone_id INTEGER NOT NULL,"
	"  hour_ms INTEGER NOT NULL,"
	"  partition_id INTEGER NOT NULL,"
	"  passed INTEGER NOT NULL,"
	"  blocked INTEGER NOT NULL,"
	"  late INTEGER NOT NULL,"
	"  PRIMARY KEY (zone_id, hour_ms, partition_id)) WITHOUT ROWID;"
	"CREATE TABLE decision_history ("
	"  at_ms INTEGER NOT NULL,"
	"  partition_id INTEGER NOT NULL,"
	"  log_offset INTEGER NOT NULL,"
	"  pair INTEGER NOT NULL,"
	"  zone TEXT NOT NULL,"
	"  bucket BLOB,"
	"  action TEXT NOT NULL,"
	"  until_ms INTEGER NOT NULL,"
	"  mode TEXT NOT NULL,"
	"  algorithm TEXT,"
	"  rate INTEGER,"
	"  window_ms INTEGER,"
	"  held INTEGER,"
	"  ordered_by TEXT,"
	"  reason TEXT,"
	"  PRIMARY KEY (at_ms, partition_id, log_offset, pair)) WITHOUT ROWID;"
	"CREATE INDEX decision_bucket ON decision_history (zone, bucket, at_ms);"
	"CREATE INDEX decision_zone ON decision_history (zone, at_ms);"
	"CREATE INDEX decision_until ON decision_history (until_ms);"
	"CREATE TABLE zone_txn ("
	"  zone_id INTEGER NOT NULL,"
	"  bucket BLOB NOT NULL,"
	"  at_ms INTEGER NOT NULL,"
	"  partition_id INTEGER NOT NULL,"
	"  log_offset INTEGER NOT NULL,"
	"  pair INTEGER NOT NULL,"
	"  blocked INTEGER NOT NULL,"
	"  PRIMARY KEY (zone_id, bucket, at_ms, partition_id, log_offset, pair)) WITHOUT ROWID;",
	/* For people, as deploy/mysql/schema.sql says. */
	"CREATE INDEX zone_name ON zone_master (name);"
	"CREATE VIEW hourly AS SELECT name AS zone, " KEY_TEXT
	" date(hour_ms / 1000, 'unixepoch') AS day, datetime(hour_ms / 1000, 'unixepoch') AS hour,"
	" passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, hour_ms"
	" FROM count_hourly AS c" ZONE_OF_ID ";"
	"CREATE VIEW daily AS SELECT name AS zone, " KEY_TEXT " date(day_ms / 1000, 'unixepoch') AS day,"
	" passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, day_ms"
	" FROM count_daily AS c" ZONE_OF_ID ";"
	"CREATE VIEW decisions AS SELECT " EVENT_ID " zone, " KEY_TEXT
	" date(at_ms / 1000.0, 'unixepoch') AS day, " TIME_OF("at_ms") " AS at, action, " TIME_OF(
		"until_ms") " AS until,"
					" mode, algorithm, rate, window_ms, held, ordered_by, reason, bucket, at_ms, until_ms"
					" FROM decision_history;"
					"CREATE VIEW events AS SELECT " EVENT_ID " name AS zone, " KEY_TEXT
					" date(at_ms / 1000.0, 'unixepoch') AS day, " TIME_OF(
						"at_ms") " AS at, blocked, c.zone_id, bucket, at_ms"
								 " FROM zone_txn AS c" ZONE_OF_ID ";",
};

enum { SCHEMA_VERSION = sizeof steps / sizeof steps[0] };

#define ADD_COUNTS                                                                                        \
	" ON CONFLICT DO UPDATE SET passed = passed + excluded.passed, blocked = blocked + excluded.blocked," \
	" late = late + excluded.late"

/* Of a table whose key is zone, bucket, time, ...: the next bucket and its oldest time; and what is old of one. */
#define NEXT_BUCKET(table, time)                   \
	"SELECT zone_id, bucket, " time " FROM " table \
	" WHERE (zone_id, bucket) > (?1, ?2) ORDER BY zone_id, bucket, " time " LIMIT 1"
#define REMOVE_OLD(table, time)                                                                                        \
	"DELETE FROM " table " WHERE zone_id = ?1 AND bucket = ?2 AND " time " < ?3 AND " time                             \
	" <= coalesce((SELECT " time " FROM " table " WHERE zone_id = ?1 AND bucket = ?2 AND " time " < ?3 ORDER BY " time \
	" LIMIT 1 OFFSET ?4), ?3)"

const char *const weir_store_statements[WEIR_STORE_STATEMENTS] = {
	[WEIR_STORE_TAKE] = "INSERT INTO partition_state VALUES (?1, ?2, 1, 0, 0, 0, 0, NULL)"
						" ON CONFLICT (role, partition) DO UPDATE SET epoch = epoch + 1",
	[WEIR_STORE_STATE] = "SELECT epoch, checkpoint, next_offset, clock_ms, policy_version, extra FROM partition_state"
						 " WHERE role = ?1 AND partition = ?2",
	[WEIR_STORE_DROP_UNCOMMITTED] = "DELETE FROM segment_state WHERE partition = ?1 AND checkpoint > ?2",
	[WEIR_STORE_COMMIT] = "UPDATE partition_state SET checkpoint = ?1, next_offset = ?2, clock_ms = ?3,"
						  " policy_version = ?4, extra = ?5 WHERE role = ?6 AND partition = ?7 AND epoch = ?8"
						  " AND checkpoint >= ?9",
	[WEIR_STORE_SEGMENT_PUT] = "INSERT OR REPLACE INTO segment_state VALUES (?1, ?2, ?3, ?4, ?5)",
	[WEIR_STORE_SEGMENT_READ] =
		"SELECT checkpoint, base, bytes FROM segment_state WHERE partition = ?1 AND segment = ?2 AND checkpoint <= ?3"
		" AND checkpoint >= coalesce((SELECT max(checkpoint) FROM segment_state"
		"  WHERE partition = ?1 AND segment = ?2 AND checkpoint <= ?3 AND base = 1), 0)"
		" ORDER BY checkpoint",
	[WEIR_STORE_SEGMENT_LIST] = "SELECT segment, base, length(bytes) FROM segment_state"
								" WHERE partition = ?1 AND checkpoint <= ?2 ORDER BY segment, checkpoint",
	[WEIR_STORE_SEGMENT_CLEAN] =
		"DELETE FROM segment_state WHERE rowid IN ("
		" SELECT old.rowid FROM segment_state AS newer INDEXED BY segment_base"
		" CROSS JOIN segment_state AS old ON old.partition = newer.partition AND old.segment = newer.segment"
		"  AND old.checkpoint < newer.checkpoint"
		" WHERE newer.partition = ?1 AND newer.base = 1 AND newer.checkpoint <= ?2 LIMIT ?3)",
	[WEIR_STORE_POLICY_PUT] = "INSERT INTO policy_version VALUES (?1, ?2)",
	[WEIR_STORE_POLICY_GET] = "SELECT text FROM policy_version WHERE version = ?1",
	[WEIR_STORE_POLICY_EACH] = "SELECT version, text FROM policy_version WHERE version >= ?1 ORDER BY version",
	[WEIR_STORE_ZONE_REMOVE] = "DELETE FROM zone_master WHERE zone_id = ?1 AND policy_version <= ?2",
	[WEIR_STORE_ZONE_PUT] = "INSERT INTO zone_master SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11"
							" WHERE NOT EXISTS (SELECT 1 FROM zone_master WHERE zone_id = ?1 AND policy_version > ?11)",
	[WEIR_STORE_NOTE_GET] = "SELECT value FROM note WHERE name = ?1",
	[WEIR_STORE_NOTE_PUT] = "INSERT OR REPLACE INTO note VALUES (?1, ?2)",
	[WEIR_STORE_NOTE_REMOVE] = "DELETE FROM note WHERE name = ?1",
	[WEIR_STORE_ADD_HOURLY] = "INSERT INTO count_hourly VALUES (?1, ?2, ?3, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_DAILY] = "INSERT INTO count_daily VALUES (?3, ?1, ?2, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_TOTAL] = "INSERT INTO zone_hourly VALUES (?1, ?2, ?3, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_DECISION] = "INSERT INTO decision_history"
								" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
								" ON CONFLICT DO NOTHING",
	[WEIR_STORE_ADD_EVENT] = "INSERT INTO zone_txn VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[WEIR_STORE_NEXT_HOURLY] = NEXT_BUCKET("count_hourly", "hour_ms"),
	[WEIR_STORE_NEXT_EVENTS] = NEXT_BUCKET("zone_txn", "at_ms"),
	[WEIR_STORE_REMOVE_HOURLY] = REMOVE_OLD("count_hourly", "hour_ms"),
	[WEIR_STORE_REMOVE_EVENTS] = REMOVE_OLD("zone_txn", "at_ms"),
};

/* The version that is there; 0 for an empty database. */
static enum weir_status find_version(struct weir_database *database, const char *path, int64_t *version,
                                     struct weir_error *error)
{
	int64_t application, tables;
	*version = 0;
	enum weir_status status = weir_database_number(database, "PRAGMA application_id", &application, error);
	if (status == WEIR_OK)
		status = weir_database_number(database, "SELECT count(*) FROM sqlite_master", &tables, error);
	if (status != WEIR_OK || (application == 0 && tables == 0))
		return status;
	if (application != APPLICATION_ID)
		return weir_fail(error, WEIR_INVALID, "%s: another program's database", path);
	return weir_database_number(database, "SELECT version FROM schema_version", version, error);
}

static enum weir_status run_steps(struct weir_database *database, int64_t version, struct weir_error *error)
{
	char sql[96];
	enum weir_status status = WEIR_OK;
	for (int64_t next = version; next < SCHEMA_VERSION && status == WEIR_OK; next++)
		status = weir_database_run(database, steps[next], error);
	snprintf(sql, sizeof sql, "UPDATE schema_version SET version = %d; PRAGMA application_id = %d", SCHEMA_VERSION,
	         APPLICATION_ID);
	return status == WEIR_OK ? weir_database_run(database, sql, error) : status;
}

static enum weir_status refuse_newer(const char *path, int64_t version, struct weir_error *error)
{
	return weir_fail(error, WEIR_NEWER, "%s: written by a newer version of weir (schema %" PRId64 ", known: %d)", path,
	                 version, SCHEMA_VERSION);
}

enum weir_status weir_store_schema_upgrade(struct weir_database *database, const char *path, struct weir_error *error)
{
	int64_t version;
	enum weir_status status = weir_database_begin(database, error);
	if (status != WEIR_OK)
		return status;
	status = find_version(database, path, &version, error);
	if (status == WEIR_OK && version > SCHEMA_VERSION)
		status = refuse_newer(path, version, error);
	else if (status == WEIR_OK && version < SCHEMA_VERSION)
		status = run_steps(database, version, error);
	return weir_database_end(database, status, error);
}

enum weir_status weir_store_schema_check(struct weir_database *database, const char *path, struct weir_error *error)
{
	int64_t version;
	enum weir_status status = find_version(database, path, &version, error);
	if (status == WEIR_OK && version > SCHEMA_VERSION)
		return refuse_newer(path, version, error);
	if (status == WEIR_OK && version < SCHEMA_VERSION)
		return weir_fail(error, WEIR_INVALID, "%s: written by an older version of weir; a run brings it up to date",
		                 path);
	return status;
}
