/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement on the tables of the MySQL store, and how the tables come to
 * be: by the steps of deploy/mysql/schema.sql. Servers end a transaction at each
 * change of a table, so a step's statements do nothing where they have been done,
 * and its last one sets the version: a step that was cut off is run again.
 */
#include "common/store/mysql/internal.h"

#include "common/store/schema.h"

#include <inttypes.h>
#include <stdio.h>

/* deploy/mysql/schema.sql, put in by the build. */
extern const unsigned char weir_mysql_schema[];
extern const unsigned long weir_mysql_schema_bytes;

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
#define ADD_DECISION(table)                                                                               \
	"INSERT INTO " table " (at_ms, partition_id, log_offset, pair, zone, bucket, action, until_ms, mode," \
	" algorithm, rate, window_ms, held, ordered_by, reason, nth) VALUES "
#define DECISION_ROW "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define KEEP_FIRST(table) " ON DUPLICATE KEY UPDATE " table ".pair = " table ".pair"
#define ADD_ENFORCED ADD_DECISION("decision_history"), DECISION_ROW, ", ", KEEP_FIRST("decision_history")
#define ADD_SHADOW ADD_DECISION("shadow_history"), DECISION_ROW, ", ", KEEP_FIRST("shadow_history")
#define ADD_EVENT \
	"INSERT INTO zone_txn (zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked, fields) VALUES "
#define EVENT_ROW "(?, ?, ?, ?, ?, ?, ?, ?)"

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
                   " window_ms, burst, precision_ms, lateness_ms, offset_ms, penalize, block_for_ms, policy_version)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
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
	[WEIR_MYSQL_ADD_DECISION] = {ADD_ENFORCED, 1},
	[WEIR_MYSQL_ADD_DECISION_MANY] = {ADD_ENFORCED, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_SHADOW] = {ADD_SHADOW, 1},
	[WEIR_MYSQL_ADD_SHADOW_MANY] = {ADD_SHADOW, WEIR_MYSQL_ARCHIVE_ROWS},
	[WEIR_MYSQL_ADD_EVENT] = {ADD_EVENT, EVENT_ROW, ", ", NULL, 1},
	[WEIR_MYSQL_ADD_EVENT_MANY] = {ADD_EVENT, EVENT_ROW, ", ", NULL, WEIR_MYSQL_ARCHIVE_ROWS},
};

/* ---- steps ---- */

struct weir_span weir_mysql_schema_steps(void)
{
	return (struct weir_span){.at = (const char *)weir_mysql_schema, .length = (uint32_t)weir_mysql_schema_bytes};
}

/* The version that is there. WEIR_END: there is none. WEIR_NEWER: it is above the known one. */
static enum weir_status find_version(struct weir_mysql *mysql, uint32_t known, uint64_t *version,
                                     struct weir_error *error)
{
	enum weir_status status =
		weir_mysql_number(mysql, "SELECT version FROM schema_version WHERE program = 'weir'", version, error);
	if (status == WEIR_IO && weir_mysql_error_number(mysql) == WEIR_MYSQL_NO_TABLE)
		return WEIR_END;
	if (status == WEIR_IO && weir_mysql_error_number(mysql) == WEIR_MYSQL_NO_COLUMN)
		return weir_fail(error, WEIR_INVALID, "%s: this database's schema_version belongs to another program",
		                 weir_mysql_name(mysql));
	if (status == WEIR_OK && *version > known)
		return weir_fail(error, WEIR_NEWER,
		                 "%s: written by a newer version of weir (schema %" PRIu64 ", known: %" PRIu32 ")",
		                 weir_mysql_name(mysql), *version, known);
	return status;
}

/* A database with tables, but without a version, is not ours. */
static enum weir_status check_empty(struct weir_mysql *mysql, struct weir_error *error)
{
	uint64_t tables = 0, ours = 0, states = 0;
	enum weir_status status = weir_mysql_number(
		mysql, "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()", &tables, error);
	if (status == WEIR_OK)
		status = weir_mysql_number(mysql,
		                           "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()"
		                           " AND table_name = 'schema_version'",
		                           &ours, error);
	if (status == WEIR_OK && tables > 0 && ours == 0)
		status = weir_mysql_number(mysql,
		                           "SELECT count(*) FROM information_schema.tables WHERE table_schema = database()"
		                           " AND table_name = 'partition_state'",
		                           &states, error);
	if (status == WEIR_OK && states > 0 && ours == 0)
		status = weir_fail(error, WEIR_INVALID,
		                   "%s: the database has weir's tables, and not schema_version (1146): restore it (runbook: "
		                   "store-tables)",
		                   weir_mysql_name(mysql));
	if (status == WEIR_OK && tables > 0 && ours == 0)
		status = weir_fail(error, WEIR_INVALID, "%s: this database belongs to another program: give weir its own",
		                   weir_mysql_name(mysql));
	return status;
}

static enum weir_status run_step(struct weir_mysql *mysql, struct weir_span step, struct weir_error *error)
{
	struct weir_text sql = {0};
	struct weir_span statement;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && weir_schema_statement(&step, &statement)) {
		weir_text_clear(&sql);
		weir_text_append(&sql, statement.at, statement.length);
		weir_text_append(&sql, "", 1);
		status = weir_mysql_run(mysql, sql.at, error);
	}
	weir_text_deinit(&sql);
	return status;
}

static enum weir_status upgrade_alone(struct weir_mysql *mysql, struct weir_span schema, struct weir_error *error)
{
	uint32_t last = weir_schema_version(schema);
	uint64_t version = 0;
	enum weir_status status = find_version(mysql, last, &version, error);
	if (status == WEIR_END)
		status = check_empty(mysql, error);
	for (uint32_t step = (uint32_t)version + 1; step <= last && status == WEIR_OK; step++)
		status = run_step(mysql, weir_schema_step(schema, step), error);
	return status;
}

enum weir_status weir_mysql_schema_inspect(struct weir_mysql *mysql, struct weir_span schema, struct weir_text *missing,
                                           struct weir_error *error)
{
	uint32_t last = weir_schema_version(schema);
	uint64_t version = 0;
	enum weir_status status = find_version(mysql, last, &version, error);
	bool none = status == WEIR_END;
	if (none)
		status = check_empty(mysql, error);
	if (status == WEIR_OK && none)
		weir_text_printf(missing, "the tables of %s", weir_mysql_name(mysql));
	else if (status == WEIR_OK && version < last)
		weir_text_printf(missing, "schema %" PRIu32 " in %s (which has schema %" PRIu64 ")", last,
		                 weir_mysql_name(mysql), version);
	return status;
}

enum weir_status weir_mysql_schema_upgrade(struct weir_mysql *mysql, struct weir_span schema, struct weir_error *error)
{
	uint32_t last = weir_schema_version(schema);
	uint64_t version = 0, locked = 0;
	enum weir_status status = find_version(mysql, last, &version, error);
	if ((status == WEIR_OK && version == last) || (status != WEIR_OK && status != WEIR_END))
		return status;
	/* Daemons start together: one makes the tables, the others wait. */
	status = weir_mysql_number(mysql, "SELECT get_lock('weir.schema', 8)", &locked, error);
	if (status == WEIR_END || (status == WEIR_OK && locked == 0))
		return weir_fail(error, WEIR_IO, "%s: another process is still creating the tables", weir_mysql_name(mysql));
	if (status != WEIR_OK)
		return status;
	status = upgrade_alone(mysql, schema, error);
	uint64_t released;
	enum weir_status ignored = weir_mysql_number(mysql, "SELECT release_lock('weir.schema')", &released, NULL);
	(void)ignored; /* the connection's end releases it too */
	return status;
}
