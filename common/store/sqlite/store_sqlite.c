/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of one machine: DIRECTORY/weir.db.
 *
 * Each operation is one transaction. Whoever took a partition last has its
 * epoch; what an older owner still tries to write is refused within the
 * transaction, so the two can never mix.
 */
#include "common/store/sqlite/store_sqlite.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/files/file_owner.h"
#include "common/store/sqlite/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A state is made within milliseconds, on a slow disk within seconds. */
enum { MAKING_TRIES = 40, MAKING_NAP_US = 50 * 1000 };

/* ---- partitions ---- */

/* The partition's row, its `extra` copied into the store's memory. WEIR_END: there is none. */
static enum weir_status read_state(struct weir_store_sqlite *store, int role, uint32_t partition,
                                   struct weir_partition_state *state, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_STATE);
	weir_statement_number(statement, 1, (uint64_t)role);
	weir_statement_number(statement, 2, partition);
	enum weir_status status = weir_statement_step(store->database, statement, error);
	if (status != WEIR_OK)
		return status;
	struct weir_span extra = weir_row_bytes(statement, 5);
	weir_text_clear(&store->extra);
	weir_text_append(&store->extra, extra.at, extra.length);
	weir_text_reserve(&store->extra, 1); /* so that an empty one has an address, too */
	*state = (struct weir_partition_state){
		.partition = partition,
		.epoch = weir_row_number(statement, 0),
		.checkpoint = weir_row_number(statement, 1),
		.next_offset = weir_row_number(statement, 2),
		.clock_ms = (int64_t)weir_row_number(statement, 3),
		.policy_version = weir_row_number(statement, 4),
		.extra = {.at = extra.at != NULL ? store->extra.at : NULL, .length = extra.length},
	};
	return WEIR_OK;
}

/*
 * Blobs that the owner before wrote and did not commit go with it: the new owner numbers its checkpoints from the same
 * one on, and they would become part of its first.
 */
static enum weir_status drop_uncommitted(struct weir_store_sqlite *store, const struct weir_partition_state *state,
                                         struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_DROP_UNCOMMITTED);
	weir_statement_number(statement, 1, state->partition);
	weir_statement_number(statement, 2, state->checkpoint);
	return weir_statement_run(store->database, statement, NULL, error);
}

static enum weir_status take(struct weir_store *base, int role, uint32_t partition, struct weir_partition_state *state,
                             struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	enum weir_status status = weir_database_begin(store->database, error);
	if (status != WEIR_OK)
		return status;
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_TAKE);
	weir_statement_number(statement, 1, (uint64_t)role);
	weir_statement_number(statement, 2, partition);
	status = weir_statement_run(store->database, statement, NULL, error);
	if (status == WEIR_OK)
		status = read_state(store, role, partition, state, error);
	if (status == WEIR_OK && role == WEIR_STORE_ROLE_LIMITER)
		status = drop_uncommitted(store, state, error);
	return weir_database_end(store->database, status, error);
}

static enum weir_status inspect(struct weir_store *base, int role, uint32_t partition,
                                struct weir_partition_state *state, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	enum weir_status status = weir_database_begin_reading(store->database, error);
	if (status != WEIR_OK)
		return status;
	status = read_state(store, role, partition, state, error);
	if (status == WEIR_END) {
		*state = (struct weir_partition_state){.partition = partition};
		status = WEIR_OK;
	}
	return weir_database_end(store->database, status, error);
}

enum weir_status weir_store_check_epoch(struct weir_store_sqlite *store, int role, uint32_t partition, uint64_t epoch,
                                        uint64_t *checkpoint, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_STATE);
	weir_statement_number(statement, 1, (uint64_t)role);
	weir_statement_number(statement, 2, partition);
	enum weir_status status = weir_statement_step(store->database, statement, error);
	if (status == WEIR_END || (status == WEIR_OK && weir_row_number(statement, 0) != epoch))
		return weir_fail(error, WEIR_FENCED, "partition %u now has another owner", partition);
	if (status == WEIR_OK)
		*checkpoint = weir_row_number(statement, 1);
	return status;
}

static enum weir_status put_note(struct weir_store_sqlite *store, const char *name, struct weir_span value,
                                 struct weir_error *error)
{
	struct weir_statement *statement =
		weir_database_use(store->database, value.at != NULL ? WEIR_STORE_NOTE_PUT : WEIR_STORE_NOTE_REMOVE);
	weir_statement_text(statement, 1, weir_span_of(name));
	if (value.at != NULL)
		weir_statement_bytes(statement, 2, value);
	return weir_statement_run(store->database, statement, NULL, error);
}

/* Moves one partition's row, if the epoch is its own and the checkpoint before is there. */
static enum weir_status commit_state(struct weir_store_sqlite *store, int role,
                                     const struct weir_partition_state *state, struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_COMMIT);
	weir_statement_number(statement, 1, state->checkpoint);
	weir_statement_number(statement, 2, state->next_offset);
	weir_statement_number(statement, 3, (uint64_t)state->clock_ms);
	weir_statement_number(statement, 4, state->policy_version);
	weir_statement_bytes(statement, 5, state->extra);
	weir_statement_number(statement, 6, (uint64_t)role);
	weir_statement_number(statement, 7, state->partition);
	weir_statement_number(statement, 8, state->epoch);
	weir_statement_number(statement, 9, state->checkpoint - 1);
	int rows = 0;
	enum weir_status status = weir_statement_run(store->database, statement, &rows, error);
	if (status == WEIR_OK && rows != 1)
		status = weir_fail(error, WEIR_FENCED, "partition %u now has another owner, or its last checkpoint is gone",
		                   state->partition);
	return status;
}

/* Whether the batch has been added: its states are current. WEIR_FENCED: some epoch is not its own. */
static enum weir_status find_added(struct weir_store_sqlite *store, int role, const struct weir_partition_state *states,
                                   size_t count, bool *added, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		uint64_t current;
		status = weir_store_check_epoch(store, role, states[i].partition, states[i].epoch, &current, error);
		if (status == WEIR_OK && current >= states[i].checkpoint)
			*added = true;
	}
	return status;
}

static enum weir_status archive(struct weir_store *base, int role, const struct weir_archive_batch *batch,
                                const struct weir_partition_state *states, size_t count, const char *const *names,
                                const struct weir_span *values, size_t note_count, struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	bool added = false;
	enum weir_status status = weir_database_begin(store->database, error);
	if (status != WEIR_OK)
		return status;
	if (batch != NULL)
		status = find_added(store, role, states, count, &added, error);
	if (status == WEIR_OK && batch != NULL && !added)
		status = weir_store_add_batch(store, batch, error);
	for (size_t i = 0; i < count && status == WEIR_OK && !added; i++)
		status = commit_state(store, role, &states[i], error);
	for (size_t i = 0; i < note_count && status == WEIR_OK; i++)
		status = put_note(store, names[i], values[i], error);
	return weir_database_end(store->database, status, error);
}

static enum weir_status commit(struct weir_store *base, int role, const struct weir_partition_state *states,
                               size_t count, const char *const *names, const struct weir_span *values,
                               size_t note_count, struct weir_error *error)
{
	return archive(base, role, NULL, states, count, names, values, note_count, error);
}

/* ---- notes ---- */

static enum weir_status note_get(struct weir_store *base, const char *name, char **value, size_t *length,
                                 struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	struct weir_statement *statement = weir_database_use(store->database, WEIR_STORE_NOTE_GET);
	weir_statement_text(statement, 1, weir_span_of(name));
	enum weir_status status = weir_statement_step(store->database, statement, error);
	*value = NULL;
	*length = 0;
	if (status == WEIR_OK) {
		struct weir_span bytes = weir_row_bytes(statement, 0);
		*value = weir_copy(bytes.at, bytes.length);
		*length = bytes.length;
	}
	weir_database_use(store->database, WEIR_STORE_NOTE_GET);
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status note_put(struct weir_store *base, const char *name, struct weir_span value,
                                 struct weir_error *error)
{
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	enum weir_status status = weir_database_begin(store->database, error);
	if (status != WEIR_OK)
		return status;
	status = put_note(store, name, value, error);
	return weir_database_end(store->database, status, error);
}

/* ---- opening ---- */

static void store_close(struct weir_store *base)
{
	if (base == NULL)
		return;
	struct weir_store_sqlite *store = weir_store_sqlite(base);
	weir_database_close(store->database);
	weir_text_deinit(&store->extra);
	for (int i = 0; i < WEIR_ARCHIVE_TABLES; i++)
		weir_text_deinit(&store->walks[i].bucket);
	free(store);
}

static const struct weir_store_ops operations = {
	.name = "sqlite",
	.take = take,
	.inspect = inspect,
	.write_segments = weir_store_write_segments,
	.commit = commit,
	.read_segments = weir_store_read_segments,
	.list_segments = weir_store_list_segments,
	.clean = weir_store_clean,
	.policy_put = weir_store_policy_put,
	.policy_each = weir_store_policy_each,
	.note_get = note_get,
	.note_put = note_put,
	.archive = archive,
	.keep = weir_store_keep,
	.forget = weir_store_forget,
	.query = weir_store_query,
	.close = store_close,
};

enum weir_status weir_store_sqlite_open(const char *directory, struct weir_store **store, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(path, error, "%s/weir.db", directory);
	if (status == WEIR_OK)
		status = weir_directory_make(directory, error);
	if (status != WEIR_OK)
		return status;
	struct weir_store_sqlite *opened = weir_alloc(1, sizeof *opened);
	opened->store.ops = &operations;
	status = weir_database_open(path, weir_store_statements, WEIR_STORE_STATEMENTS, &opened->database, error);
	if (status == WEIR_OK)
		status = weir_store_schema_upgrade(opened->database, path, weir_store_schema_steps(), error);
	if (status == WEIR_OK)
		status = weir_directory_sync(directory, error);
	if (status == WEIR_OK)
		*store = &opened->store;
	else
		store_close(&opened->store);
	return status;
}

static bool is_own(const char *path)
{
	struct stat about;
	return stat(path, &about) == 0 && about.st_uid == geteuid();
}

/* Why the file cannot be read. */
static enum weir_status fail_access(const char *directory, const char *path, int reason, struct weir_error *error)
{
	if (reason == EACCES && is_own(path)) {
		errno = reason;
		return weir_file_refused(error, "cannot open", path);
	}
	if (reason == EACCES)
		return weir_fail(error, WEIR_INVALID,
		                 "the state in %s belongs to another user: only its owner, its group and root can read it",
		                 directory);
	if (weir_directory_look(directory) == WEIR_DIRECTORY_HELD)
		return weir_fail(error, WEIR_AGAIN, "the state in %s is just being made by a `weir run` that starts: try again",
		                 directory);
	return weir_fail(error, WEIR_INVALID,
	                 "there is no state in %s: `weir run` creates it; choose another directory with --state (%s)",
	                 directory, weir_errno_words(reason));
}

/* WEIR_AGAIN: it is being made, or somebody has begun to use what was read as a file that nobody changes. */
static enum weir_status try_read_only(const char *directory, const char *path, struct weir_store **store,
                                      struct weir_error *error)
{
	struct stat about;
	if (access(path, R_OK) != 0)
		return fail_access(directory, path, errno, error);
	/* SQLite would remove the log that lies beside it, which a copy of the database may need. */
	if (stat(path, &about) == 0 && about.st_size == 0)
		return weir_store_schema_empty(path, error);
	struct weir_store_sqlite *opened = weir_alloc(1, sizeof *opened);
	opened->store.ops = &operations;
	bool unused = weir_directory_look(directory) == WEIR_DIRECTORY_FREE;
	enum weir_status status = weir_database_open_read_only(path, unused, weir_store_statements, WEIR_STORE_STATEMENTS,
	                                                       &opened->database, error);
	if (status == WEIR_OK)
		status = weir_store_schema_check(opened->database, path, weir_store_schema_steps(), error);
	if (unused && weir_directory_look(directory) == WEIR_DIRECTORY_HELD)
		status = weir_fail(error, WEIR_AGAIN, "%s: a `weir run` is just starting: try again", path);
	if (status == WEIR_OK)
		*store = &opened->store;
	else
		store_close(&opened->store);
	return status;
}

enum weir_status weir_store_sqlite_open_read_only(const char *directory, struct weir_store **store,
                                                  struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(path, error, "%s/weir.db", directory);
	if (status != WEIR_OK)
		return status;
	for (int tries = 0; (status = try_read_only(directory, path, store, error)) == WEIR_AGAIN; tries++) {
		if (tries == MAKING_TRIES || weir_directory_look(directory) != WEIR_DIRECTORY_HELD)
			return WEIR_IO;
		usleep(MAKING_NAP_US);
	}
	return status;
}

void weir_store_sqlite_say_damaged(const char *directory, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	if (weir_path_format(path, NULL, "%s/weir.db", directory) == WEIR_OK)
		weir_database_say_damaged(path, error);
}
