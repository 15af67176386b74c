/*
 * The store in one SQLite file, for one machine: write-ahead log, every commit
 * on disk before it returns.
 *
 * A handle keeps its statements prepared. Each call is one transaction; what it
 * gives borrowed lives in the handle until its next call. Handles of several
 * threads share the file: readers do not wait for a writer, writers wait for
 * each other up to the busy timeout.
 */
#include "common/store_sqlite.h"

#include "common/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { BUSY_TIMEOUT_MS = 30000 };

static const char *const sql[SQL_COUNT] = {
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_TAKE] = "INSERT INTO partition_state (role, partition, epoch) VALUES (?1, ?2, 1)"
				 " ON CONFLICT (role, partition) DO UPDATE SET epoch = epoch + 1",
	[SQL_STATE] = "SELECT epoch, checkpoint, next_offset, clock_ms, policy_version, extra FROM partition_state"
				  " WHERE role = ?1 AND partition = ?2",
	[SQL_ADVANCE] = "UPDATE partition_state SET checkpoint = ?4, next_offset = ?5, clock_ms = ?6, policy_version = ?7,"
					" extra = ?8 WHERE role = ?1 AND partition = ?2 AND epoch = ?3",
	[SQL_EPOCH] = "SELECT epoch FROM partition_state WHERE role = ?1 AND partition = ?2",
	[SQL_WRITE] = "INSERT OR REPLACE INTO segment_state (partition, segment, checkpoint, base, bytes)"
				  " VALUES (?1, ?2, ?3, ?4, ?5)",
	[SQL_READ] = "SELECT checkpoint, base, bytes FROM segment_state WHERE partition = ?1 AND segment = ?2"
				 " AND checkpoint <= ?3 AND checkpoint >= coalesce((SELECT max(checkpoint) FROM segment_state"
				 " WHERE partition = ?1 AND segment = ?2 AND checkpoint <= ?3 AND base), 0) ORDER BY checkpoint",
	[SQL_LIST] = "SELECT segment, base, length(bytes) FROM segment_state WHERE partition = ?1 AND checkpoint <= ?2"
				 " ORDER BY segment, checkpoint",
	[SQL_CLEAN_OLD] = "DELETE FROM segment_state WHERE rowid IN (SELECT old.rowid FROM segment_state AS old"
					  " JOIN segment_state AS new ON new.partition = old.partition AND new.segment = old.segment"
					  " AND new.base AND new.checkpoint > old.checkpoint AND new.checkpoint <= ?2"
					  " WHERE old.partition = ?1 LIMIT ?3)",
	[SQL_CLEAN_DEAD] = "DELETE FROM segment_state WHERE partition = ?1 AND checkpoint > ?2",
	[SQL_POLICY_GET] = "SELECT text FROM policy_version WHERE version = ?1",
	[SQL_POLICY_PUT] = "INSERT INTO policy_version (version, text) VALUES (?1, ?2)",
	[SQL_POLICY_EACH] = "SELECT version, text FROM policy_version WHERE version >= ?1 ORDER BY version",
	[SQL_NOTE_GET] = "SELECT value FROM note WHERE name = ?1",
	[SQL_NOTE_PUT] = "INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)",
	[SQL_NOTE_REMOVE] = "DELETE FROM note WHERE name = ?1",
};

/* ---- statements ---- */

enum weir_status store_sqlite_fail(struct store_sqlite *store, struct weir_error *error, const char *what)
{
	int code = sqlite3_errcode(store->database);
	enum weir_status status =
		code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_MISMATCH ? WEIR_INVALID : WEIR_IO;
	return weir_fail(error, status, "%s: %s: %s", store->path, what, sqlite3_errmsg(store->database));
}

/* The statement, ready for its arguments; NULL: it cannot be prepared. */
static sqlite3_stmt *statement(struct store_sqlite *store, enum sql_name name)
{
	sqlite3_stmt **slot = &store->statements[name];
	if (*slot == NULL &&
	    sqlite3_prepare_v3(store->database, sql[name], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_reset(*slot);
	sqlite3_clear_bindings(*slot);
	return *slot;
}

static void bind_int(sqlite3_stmt *statement, int at, uint64_t number)
{
	sqlite3_bind_int64(statement, at, (sqlite3_int64)number);
}

static void bind_bytes(sqlite3_stmt *statement, int at, struct weir_span bytes)
{
	sqlite3_bind_blob(statement, at, bytes.length > 0 ? bytes.at : "", (int)bytes.length, SQLITE_STATIC);
}

static struct weir_span column_bytes(sqlite3_stmt *statement, int at)
{
	const char *bytes = sqlite3_column_blob(statement, at);
	return (struct weir_span){.at = bytes != NULL ? bytes : "",
	                          .length = (uint32_t)sqlite3_column_bytes(statement, at)};
}

/* Runs a statement that gives no rows. */
static enum weir_status finish(struct store_sqlite *store, sqlite3_stmt *statement, struct weir_error *error)
{
	int code = statement != NULL ? sqlite3_step(statement) : SQLITE_ERROR;
	enum weir_status status = code == SQLITE_DONE ? WEIR_OK : store_sqlite_fail(store, error, "cannot write");
	if (statement != NULL)
		sqlite3_reset(statement);
	return status;
}

static enum weir_status run(struct store_sqlite *store, enum sql_name name, struct weir_error *error)
{
	return finish(store, statement(store, name), error);
}

/* Ends a transaction: commits what went well, rolls back what did not. The first error stays. */
static enum weir_status end(struct store_sqlite *store, enum weir_status status, struct weir_error *error)
{
	if (status == WEIR_OK)
		status = run(store, SQL_COMMIT, error);
	if (status != WEIR_OK && !sqlite3_get_autocommit(store->database)) {
		enum weir_status ignored = run(store, SQL_ROLLBACK, NULL);
		(void)ignored;
	}
	return status;
}

/* ---- partitions ---- */

static enum weir_status read_state(struct store_sqlite *store, int role, uint32_t partition,
                                   struct weir_partition_state *state, struct weir_error *error)
{
	sqlite3_stmt *row = statement(store, SQL_STATE);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, (uint64_t)role);
	bind_int(row, 2, partition);
	if (sqlite3_step(row) != SQLITE_ROW)
		return store_sqlite_fail(store, error, "cannot read a partition's state");
	*state = (struct weir_partition_state){
		.partition = partition,
		.epoch = (uint64_t)sqlite3_column_int64(row, 0),
		.checkpoint = (uint64_t)sqlite3_column_int64(row, 1),
		.next_offset = (uint64_t)sqlite3_column_int64(row, 2),
		.clock_ms = sqlite3_column_int64(row, 3),
		.policy_version = (uint64_t)sqlite3_column_int64(row, 4),
	};
	struct weir_span extra = column_bytes(row, 5);
	free(store->extra);
	store->extra = weir_copy(extra.at, extra.length);
	state->extra = (struct weir_span){.at = store->extra, .length = extra.length};
	sqlite3_reset(row);
	return WEIR_OK;
}

static enum weir_status take(struct weir_store *base, int role, uint32_t partition, struct weir_partition_state *state,
                             struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	enum weir_status status = run(store, SQL_BEGIN, error);
	if (status != WEIR_OK)
		return status;
	sqlite3_stmt *row = statement(store, SQL_TAKE);
	if (row != NULL) {
		bind_int(row, 1, (uint64_t)role);
		bind_int(row, 2, partition);
	}
	status = finish(store, row, error);
	if (status == WEIR_OK)
		status = read_state(store, role, partition, state, error);
	return end(store, status, error);
}

/* Refuses a writer that is no longer the owner. */
static enum weir_status check_epoch(struct store_sqlite *store, int role, uint32_t partition, uint64_t epoch,
                                    struct weir_error *error)
{
	sqlite3_stmt *row = statement(store, SQL_EPOCH);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, (uint64_t)role);
	bind_int(row, 2, partition);
	int code = sqlite3_step(row);
	bool owner = code == SQLITE_ROW && (uint64_t)sqlite3_column_int64(row, 0) == epoch;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return store_sqlite_fail(store, error, "cannot read");
	sqlite3_reset(row);
	return owner ? WEIR_OK : weir_fail(error, WEIR_FENCED, "partition %u has another owner now", partition);
}

static enum weir_status advance(struct store_sqlite *store, int role, const struct weir_partition_state *state,
                                struct weir_error *error)
{
	sqlite3_stmt *row = statement(store, SQL_ADVANCE);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot write");
	bind_int(row, 1, (uint64_t)role);
	bind_int(row, 2, state->partition);
	bind_int(row, 3, state->epoch);
	bind_int(row, 4, state->checkpoint);
	bind_int(row, 5, state->next_offset);
	bind_int(row, 6, (uint64_t)state->clock_ms);
	bind_int(row, 7, state->policy_version);
	bind_bytes(row, 8, state->extra);
	enum weir_status status = finish(store, row, error);
	if (status == WEIR_OK && sqlite3_changes(store->database) != 1)
		return weir_fail(error, WEIR_FENCED, "partition %u has another owner now", state->partition);
	return status;
}

static enum weir_status put_note(struct store_sqlite *store, const char *name, struct weir_span value,
                                 struct weir_error *error)
{
	sqlite3_stmt *row = statement(store, value.at != NULL ? SQL_NOTE_PUT : SQL_NOTE_REMOVE);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot write");
	sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	if (value.at != NULL)
		bind_bytes(row, 2, value);
	return finish(store, row, error);
}

static enum weir_status commit(struct weir_store *base, int role, const struct weir_partition_state *states,
                               size_t count, const char *const *names, const struct weir_span *values,
                               size_t note_count, struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	enum weir_status status = run(store, SQL_BEGIN, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = advance(store, role, &states[i], error);
	for (size_t i = 0; status == WEIR_OK && i < note_count; i++)
		status = put_note(store, names[i], values[i], error);
	return end(store, status, error);
}

/* ---- segments ---- */

static enum weir_status write_segments(struct weir_store *base, uint32_t partition, uint64_t epoch,
                                       const struct weir_segment_blob *blobs, size_t count, struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	enum weir_status status = run(store, SQL_BEGIN, error);
	if (status != WEIR_OK)
		return status;
	status = check_epoch(store, WEIR_STORE_ROLE_LIMITER, partition, epoch, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		sqlite3_stmt *row = statement(store, SQL_WRITE);
		if (row != NULL) {
			bind_int(row, 1, partition);
			bind_int(row, 2, blobs[i].segment);
			bind_int(row, 3, blobs[i].checkpoint);
			bind_int(row, 4, blobs[i].base);
			bind_bytes(row, 5, blobs[i].bytes);
		}
		status = finish(store, row, error);
	}
	return end(store, status, error);
}

static enum weir_status read_segment(struct store_sqlite *store, uint32_t partition, uint32_t segment, uint64_t upto,
                                     enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                     void *context, struct weir_error *error)
{
	sqlite3_stmt *row = statement(store, SQL_READ);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, partition);
	bind_int(row, 2, segment);
	bind_int(row, 3, upto);
	enum weir_status status = WEIR_OK;
	int code;
	while (status == WEIR_OK && (code = sqlite3_step(row)) != SQLITE_DONE) {
		if (code != SQLITE_ROW) {
			status = store_sqlite_fail(store, error, "cannot read a segment");
			break;
		}
		struct weir_segment_blob blob = {.segment = segment,
		                                 .checkpoint = (uint64_t)sqlite3_column_int64(row, 0),
		                                 .base = sqlite3_column_int(row, 1) != 0,
		                                 .bytes = column_bytes(row, 2)};
		status = each(context, &blob);
	}
	sqlite3_reset(row);
	return status;
}

static enum weir_status read_segments(struct weir_store *base, uint32_t partition, const uint32_t *segments,
                                      size_t count, uint64_t upto,
                                      enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                      void *context, struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = read_segment(store, partition, segments[i], upto, each, context, error);
	return status;
}

static enum weir_status list_segments(struct weir_store *base, uint32_t partition, uint64_t upto,
                                      void (*each)(void *context, uint32_t segment, uint32_t deltas,
                                                   uint64_t base_bytes, uint64_t delta_bytes),
                                      void *context, struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	sqlite3_stmt *row = statement(store, SQL_LIST);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, partition);
	bind_int(row, 2, upto);
	bool any = false;
	uint32_t segment = 0, deltas = 0;
	uint64_t base_bytes = 0, delta_bytes = 0;
	int code;
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		uint32_t next = (uint32_t)sqlite3_column_int(row, 0);
		uint64_t bytes = (uint64_t)sqlite3_column_int64(row, 2);
		if (any && next != segment)
			each(context, segment, deltas, base_bytes, delta_bytes);
		bool begins = !any || next != segment || sqlite3_column_int(row, 1) != 0;
		bool is_base = sqlite3_column_int(row, 1) != 0;
		deltas = begins ? !is_base : deltas + 1;
		base_bytes = begins ? (is_base ? bytes : 0) : base_bytes;
		delta_bytes = begins ? (is_base ? 0 : bytes) : delta_bytes + bytes;
		segment = next;
		any = true;
	}
	if (any)
		each(context, segment, deltas, base_bytes, delta_bytes);
	sqlite3_reset(row);
	return code == SQLITE_DONE ? WEIR_OK : store_sqlite_fail(store, error, "cannot read");
}

static enum weir_status clean(struct weir_store *base, uint32_t partition, uint64_t epoch, struct weir_error *error)
{
	enum { CLEAN_ROWS = 4096 };
	struct store_sqlite *store = (struct store_sqlite *)base;
	struct weir_partition_state state;
	enum weir_status status = run(store, SQL_BEGIN, error);
	if (status != WEIR_OK)
		return status;
	status = check_epoch(store, WEIR_STORE_ROLE_LIMITER, partition, epoch, error);
	if (status == WEIR_OK)
		status = read_state(store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
	static const enum sql_name steps[] = {SQL_CLEAN_DEAD, SQL_CLEAN_OLD};
	for (int i = 0; status == WEIR_OK && i < 2; i++) {
		sqlite3_stmt *row = statement(store, steps[i]);
		if (row != NULL) {
			bind_int(row, 1, partition);
			bind_int(row, 2, state.checkpoint);
			if (steps[i] == SQL_CLEAN_OLD)
				bind_int(row, 3, CLEAN_ROWS);
		}
		status = finish(store, row, error);
	}
	return end(store, status, error);
}

/* ---- policies and notes ---- */

static enum weir_status policy_put(struct weir_store *base, uint64_t version, struct weir_span text,
                                   struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	sqlite3_stmt *row = statement(store, SQL_POLICY_GET);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, version);
	if (sqlite3_step(row) == SQLITE_ROW) {
		bool same = weir_span_equal(column_bytes(row, 0), text);
		sqlite3_reset(row);
		return same ? WEIR_OK
		            : weir_fail(error, WEIR_INVALID, "policy %llu is another one already", (unsigned long long)version);
	}
	sqlite3_reset(row);
	row = statement(store, SQL_POLICY_PUT);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot write");
	bind_int(row, 1, version);
	bind_bytes(row, 2, text);
	return finish(store, row, error);
}

static enum weir_status policy_each(struct weir_store *base, uint64_t first,
                                    enum weir_status (*each)(void *context, uint64_t version, struct weir_span text),
                                    void *context, struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	sqlite3_stmt *row = statement(store, SQL_POLICY_EACH);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	bind_int(row, 1, first);
	enum weir_status status = WEIR_OK;
	int code = SQLITE_DONE;
	while (status == WEIR_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
		status = each(context, (uint64_t)sqlite3_column_int64(row, 0), column_bytes(row, 1));
		if (status != WEIR_OK)
			weir_fail(error, status, "policy %lld of the store cannot be used",
			          (long long)sqlite3_column_int64(row, 0));
	}
	if (status == WEIR_OK && code != SQLITE_DONE)
		status = store_sqlite_fail(store, error, "cannot read");
	sqlite3_reset(row);
	return status;
}

static enum weir_status note_get(struct weir_store *base, const char *name, char **value, size_t *length,
                                 struct weir_error *error)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	sqlite3_stmt *row = statement(store, SQL_NOTE_GET);
	if (row == NULL)
		return store_sqlite_fail(store, error, "cannot read");
	*value = NULL;
	*length = 0;
	sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
	int code = sqlite3_step(row);
	if (code == SQLITE_ROW) {
		struct weir_span bytes = column_bytes(row, 0);
		*value = weir_copy(bytes.at, bytes.length);
		*length = bytes.length;
	}
	enum weir_status status =
		code == SQLITE_ROW || code == SQLITE_DONE ? WEIR_OK : store_sqlite_fail(store, error, "cannot read");
	sqlite3_reset(row);
	return status;
}

static enum weir_status note_put(struct weir_store *base, const char *name, struct weir_span value,
                                 struct weir_error *error)
{
	return put_note((struct store_sqlite *)base, name, value, error);
}

/* ---- the handle ---- */

static void close_store(struct weir_store *base)
{
	struct store_sqlite *store = (struct store_sqlite *)base;
	for (int i = 0; i < SQL_COUNT; i++)
		sqlite3_finalize(store->statements[i]);
	sqlite3_close(store->database);
	free(store->extra);
	free(store->path);
	free(store);
}

static const struct weir_store_ops sqlite_ops = {
	.name = "sqlite",
	.take = take,
	.write_segments = write_segments,
	.commit = commit,
	.read_segments = read_segments,
	.list_segments = list_segments,
	.clean = clean,
	.policy_put = policy_put,
	.policy_each = policy_each,
	.note_get = note_get,
	.note_put = note_put,
	.close = close_store,
};

enum weir_status weir_store_sqlite_open(const char *directory, struct weir_store **out, struct weir_error *error)
{
	struct store_sqlite *store = weir_alloc(1, sizeof *store);
	store->base.ops = &sqlite_ops;
	store->path = weir_alloc(strlen(directory) + sizeof "/weir.db", 1);
	strcpy(store->path, directory);
	strcat(store->path, "/weir.db");
	enum weir_status status = WEIR_OK;
	if (sqlite3_open_v2(store->path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
	                    NULL) != SQLITE_OK)
		status = store_sqlite_fail(store, error, "cannot open");
	if (status == WEIR_OK) {
		sqlite3_busy_timeout(store->database, BUSY_TIMEOUT_MS);
		sqlite3_extended_result_codes(store->database, 0);
		status = store_sqlite_upgrade(store, error);
	}
	if (status != WEIR_OK) {
		close_store(&store->base);
		return status;
	}
	*out = &store->base;
	return WEIR_OK;
}
