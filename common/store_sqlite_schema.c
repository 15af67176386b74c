/*
 * The schema by numbered steps: user_version says how many a database has seen.
 * A step is never changed once released; a new need is a new step.
 */
#include "common/store_sqlite.h"

static const char *const steps[] = {
	/* 1: checkpoints, policies, notes */
	"CREATE TABLE partition_state ("
	" role INTEGER NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,"
	" checkpoint INTEGER NOT NULL DEFAULT 0, next_offset INTEGER NOT NULL DEFAULT 0,"
	" clock_ms INTEGER NOT NULL DEFAULT 0, policy_version INTEGER NOT NULL DEFAULT 0,"
	" extra BLOB NOT NULL DEFAULT x'', PRIMARY KEY (role, partition)) WITHOUT ROWID;"
	"CREATE TABLE segment_state ("
	" partition INTEGER NOT NULL, segment INTEGER NOT NULL, checkpoint INTEGER NOT NULL,"
	" base INTEGER NOT NULL, bytes BLOB NOT NULL);"
	"CREATE UNIQUE INDEX segment_state_place ON segment_state (partition, segment, checkpoint);"
	"CREATE TABLE policy_version (version INTEGER PRIMARY KEY, text BLOB NOT NULL);"
	"CREATE TABLE note (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;",
};

enum { STEP_COUNT = sizeof steps / sizeof steps[0] };

static enum weir_status execute(struct store_sqlite *store, const char *statements, struct weir_error *error)
{
	if (sqlite3_exec(store->database, statements, NULL, NULL, NULL) != SQLITE_OK)
		return store_sqlite_fail(store, error, "cannot set up");
	return WEIR_OK;
}

static enum weir_status read_version(struct store_sqlite *store, int *version, struct weir_error *error)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(store->database, "PRAGMA user_version", -1, &row, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	*version = code == SQLITE_ROW ? sqlite3_column_int(row, 0) : 0;
	enum weir_status status = code == SQLITE_ROW ? WEIR_OK : store_sqlite_fail(store, error, "cannot read");
	sqlite3_finalize(row);
	return status;
}

static enum weir_status take_step(struct store_sqlite *store, int step, struct weir_error *error)
{
	char *done = sqlite3_mprintf("PRAGMA user_version = %d", step + 1);
	enum weir_status status = execute(store, steps[step], error);
	if (status == WEIR_OK)
		status = execute(store, done, error);
	sqlite3_free(done);
	return status;
}

enum weir_status store_sqlite_upgrade(struct store_sqlite *store, struct weir_error *error)
{
	int version = 0;
	enum weir_status status =
		execute(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY", error);
	if (status == WEIR_OK)
		status = read_version(store, &version, error);
	if (status == WEIR_OK && version > STEP_COUNT)
		return weir_fail(error, WEIR_NEWER, "%s was written by a newer weir (schema %d, this program knows %d)",
		                 store->path, version, STEP_COUNT);
	if (status != WEIR_OK || version == STEP_COUNT)
		return status;
	/* another process may be at it: the version counts again once the write lock is held */
	status = execute(store, "BEGIN IMMEDIATE", error);
	if (status == WEIR_OK)
		status = read_version(store, &version, error);
	for (int step = version; status == WEIR_OK && step < STEP_COUNT; step++)
		status = take_step(store, step, error);
	if (status == WEIR_OK)
		return execute(store, "COMMIT", error);
	sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
	return status;
}
