/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement on the tables of the SQLite store, and how the tables come
 * to be: by the steps of schema.sql. All steps that a database lacks run in one
 * transaction, so that one which fails leaves it as it was.
 */
#include "common/store/sqlite/internal.h"

#include "common/store/schema.h"

#include <inttypes.h>
#include <stdio.h>

/* "weir" in ASCII: tells its databases from others'. */
#define APPLICATION_ID 2003134834

/* schema.sql, put in by the build. */
extern const unsigned char weir_sqlite_schema[];
extern const unsigned long weir_sqlite_schema_bytes;

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

#define ADD_DECISION(table)                                                                                \
	"INSERT INTO " table " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)" \
	" ON CONFLICT DO NOTHING"

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
	[WEIR_STORE_ZONE_PUT] = "INSERT INTO zone_master SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
							" ?14, ?15"
							" WHERE NOT EXISTS (SELECT 1 FROM zone_master WHERE zone_id = ?1 AND policy_version > ?15)",
	[WEIR_STORE_NOTE_GET] = "SELECT value FROM note WHERE name = ?1",
	[WEIR_STORE_NOTE_PUT] = "INSERT OR REPLACE INTO note VALUES (?1, ?2)",
	[WEIR_STORE_NOTE_REMOVE] = "DELETE FROM note WHERE name = ?1",
	[WEIR_STORE_ADD_HOURLY] = "INSERT INTO count_hourly VALUES (?1, ?2, ?3, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_DAILY] = "INSERT INTO count_daily VALUES (?3, ?1, ?2, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_TOTAL] = "INSERT INTO zone_hourly VALUES (?1, ?2, ?3, ?4, ?5, ?6)" ADD_COUNTS,
	[WEIR_STORE_ADD_DECISION] = ADD_DECISION("decision_history"),
	[WEIR_STORE_ADD_SHADOW] = ADD_DECISION("shadow_history"),
	[WEIR_STORE_ADD_EVENT] = "INSERT INTO zone_txn VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[WEIR_STORE_NEXT_HOURLY] = NEXT_BUCKET("count_hourly", "hour_ms"),
	[WEIR_STORE_NEXT_EVENTS] = NEXT_BUCKET("zone_txn", "at_ms"),
	[WEIR_STORE_REMOVE_HOURLY] = REMOVE_OLD("count_hourly", "hour_ms"),
	[WEIR_STORE_REMOVE_EVENTS] = REMOVE_OLD("zone_txn", "at_ms"),
};

/* ---- steps ---- */

struct weir_span weir_store_schema_steps(void)
{
	return (struct weir_span){.at = (const char *)weir_sqlite_schema, .length = (uint32_t)weir_sqlite_schema_bytes};
}

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
		return weir_fail(error, WEIR_INVALID, "%s: this database belongs to another program", path);
	return weir_database_number(database, "SELECT version FROM schema_version", version, error);
}

static enum weir_status run_steps(struct weir_database *database, struct weir_span schema, uint32_t version,
                                  struct weir_error *error)
{
	uint32_t last = weir_schema_version(schema);
	struct weir_text sql = {0};
	for (uint32_t step = version + 1; step <= last; step++) {
		struct weir_span text = weir_schema_step(schema, step);
		weir_text_append(&sql, text.at, text.length);
	}
	weir_text_printf(&sql,
	                 "DELETE FROM schema_version; INSERT INTO schema_version VALUES (%" PRIu32 ");"
	                 "PRAGMA application_id = %d",
	                 last, APPLICATION_ID);
	weir_text_append(&sql, "", 1);
	enum weir_status status = weir_database_run(database, sql.at, error);
	weir_text_deinit(&sql);
	return status;
}

static enum weir_status refuse_newer(const char *path, int64_t version, uint32_t known, struct weir_error *error)
{
	return weir_fail(error, WEIR_NEWER,
	                 "%s: written by a newer version of weir (schema %" PRId64 ", known: %" PRIu32 ")", path, version,
	                 known);
}

enum weir_status weir_store_schema_upgrade(struct weir_database *database, const char *path, struct weir_span schema,
                                           struct weir_error *error)
{
	uint32_t known = weir_schema_version(schema);
	int64_t version;
	enum weir_status status = weir_database_begin(database, error);
	if (status != WEIR_OK)
		return status;
	status = find_version(database, path, &version, error);
	if (status == WEIR_OK && version > known)
		status = refuse_newer(path, version, known, error);
	else if (status == WEIR_OK && version < known)
		status = run_steps(database, schema, (uint32_t)version, error);
	return weir_database_end(database, status, error);
}

enum weir_status weir_store_schema_empty(const char *path, struct weir_error *error)
{
	return weir_fail(error, WEIR_AGAIN,
	                 "%s: this state is empty: `weir run` makes it, and one that starts may just be at it", path);
}

enum weir_status weir_store_schema_check(struct weir_database *database, const char *path, struct weir_span schema,
                                         struct weir_error *error)
{
	uint32_t known = weir_schema_version(schema);
	int64_t version;
	enum weir_status status = find_version(database, path, &version, error);
	if (status == WEIR_OK && version > known)
		return refuse_newer(path, version, known, error);
	if (status == WEIR_OK && version == 0)
		return weir_store_schema_empty(path, error);
	if (status == WEIR_OK && version < known)
		return weir_fail(error, WEIR_INVALID, "%s: written by an older version of weir; `weir run` upgrades it", path);
	return status;
}
