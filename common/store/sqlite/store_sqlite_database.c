/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite, set up for what the store does: blobs of some 100 KB, written by a
 * few threads in turn, durable at every commit.
 *
 * Pages of 16 KiB halve the time that blobs take against the usual 4 KiB.
 * secure_delete (on in Debian's build) would overwrite every removed blob, and
 * make removing as slow as writing. Whoever removes what must not be found again
 * sets it for as long.
 *
 * A transaction that nobody relies on before a later one of the same handle is
 * not synced by itself: the later one's fsync covers it, as both are in the one
 * write-ahead log. If that fails, whoever retries writes both again.
 */
#include "common/store/sqlite/store_sqlite_database.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/shell.h"
#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "common/files/file_damage.h"
#include "common/files/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUSY_STEP_US = 1000,
	BOUND_STEPS = 10000, /* of SQLite's machine, some 0.1 ms, between two looks at the clock */
	BUSY_STEPS = 20000,  /* 20 s and more: what holds the lock so long is no checkpoint */
	EMPTY_LOG_MS = 100,  /* readers end later, and a later one empties it */
};

struct weir_database {
	sqlite3 *handle;
	char *path;
	const char *const *statements;
	sqlite3_stmt **prepared;
	size_t statement_count;
	bool only_looked_at; /* one transaction that reads, for as long as it is open */
	bool synced;         /* the next commit is */
	int64_t end_ms;      /* monotonic: of what runs, where it is bounded */
};

static sqlite3_stmt *handle_of(struct weir_statement *statement)
{
	return (sqlite3_stmt *)statement;
}

void weir_database_say_damaged(const char *path, struct weir_error *error)
{
	static const char lost[] =
		"the archive, the overrides, and the counts and blocks that the log beside it does not have "
		"are lost: a copy of it that is put back keeps them";
	char directory[WEIR_PATH_BYTES], moved[WEIR_PATH_BYTES];
	if (weir_directory_of(path, directory, NULL) != WEIR_OK ||
	    weir_path_format(moved, NULL, "%s/damaged", directory) != WEIR_OK)
		return;
	const struct weir_shell_word word = weir_shell_word(moved);
	(void)weir_damage_without(error, lost, "mkdir -p %s && mv %s* %s/ (runbook: state-file-damaged)", word.text,
	                          weir_shell_word(path).text, word.text);
}

/* Statements are the program's own: what they name is missing where the table of tables is not what it wrote. */
static bool lacks_tables(int code, const char *words)
{
	static const char missing[] = "no such ";
	return code == SQLITE_ERROR && strncmp(words, missing, sizeof missing - 1) == 0;
}

static enum weir_status failed(const struct weir_database *database, struct weir_error *error)
{
	int code = sqlite3_errcode(database->handle) & 0xff;
	const char *words = sqlite3_errmsg(database->handle);
	bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT;
	int reason = code == SQLITE_IOERR || code == SQLITE_CANTOPEN ? sqlite3_system_errno(database->handle) : 0;
	enum weir_status status = weir_fail(error, damaged ? WEIR_INVALID : WEIR_IO, "%s: %s%s%s", database->path, words,
	                                    reason != 0 ? ": " : "", reason != 0 ? weir_errno_words(reason) : "");
	if (damaged || reason == EISDIR || lacks_tables(code, words))
		weir_database_say_damaged(database->path, error);
	return status;
}

/* SQLite's own waits up to 100 ms between two tries; a checkpoint's transaction takes less. */
static int wait_for_turn(void *context, int tries)
{
	(void)context;
	if (tries >= BUSY_STEPS)
		return 0;
	usleep(BUSY_STEP_US);
	return 1;
}

/* Opens the file, which may be a URI of the path, and runs the first SQL. */
static enum weir_status open_file(const char *path, const char *file, int flags, const char *sql,
                                  const char *const *statements, size_t statement_count,
                                  struct weir_database **database, struct weir_error *error)
{
	struct weir_database *opened = weir_alloc(1, sizeof *opened);
	opened->path = weir_copy(path, strlen(path));
	opened->statements = statements;
	opened->statement_count = statement_count;
	opened->synced = true;
	opened->prepared = weir_alloc(statement_count, sizeof *opened->prepared);
	enum weir_status status = WEIR_OK;
	if (sqlite3_open_v2(file, &opened->handle, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		status = opened->handle != NULL ? failed(opened, error) : weir_fail(error, WEIR_IO, "%s: out of memory", path);
	} else {
		sqlite3_extended_result_codes(opened->handle, 1);
		sqlite3_busy_handler(opened->handle, wait_for_turn, NULL);
		status = weir_database_run(opened, sql, error);
	}
	if (status == WEIR_OK)
		*database = opened;
	else
		weir_database_close(opened);
	return status;
}

/*
 * SQLite would let everybody read what it makes; its log and index get the rights of the database. Only a file that was
 * not there is opened here: closing one that SQLite has open would end the locks that this process has on it.
 */
static enum weir_status make_file(const char *path, struct weir_error *error)
{
	int fd = weir_file_make(path, O_RDWR | O_EXCL, 0640);
	if (fd >= 0)
		close(fd);
	else if (errno != EEXIST)
		return weir_file_refused(error, "cannot create", path);
	else if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
		return weir_file_refused(error, "cannot open", path);
	return WEIR_OK;
}

enum weir_status weir_database_open(const char *path, const char *const *statements, size_t statement_count,
                                    struct weir_database **database, struct weir_error *error)
{
	enum weir_status status = make_file(path, error);
	if (status != WEIR_OK)
		return status;
	return open_file(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
	                 "PRAGMA page_size = 16384;"
	                 "PRAGMA journal_mode = WAL;"
	                 "PRAGMA synchronous = FULL;"
	                 "PRAGMA secure_delete = OFF;"
	                 "PRAGMA journal_size_limit = 67108864;"
	                 "PRAGMA cache_size = -2048",
	                 statements, statement_count, database, error);
}

static bool has_log(const char *path)
{
	char log[WEIR_PATH_BYTES];
	struct stat about;
	return weir_path_format(log, NULL, "%s-wal", path) != WEIR_OK || stat(log, &about) == 0 || errno != ENOENT;
}

/* The database as a URI: returned. */
static char *uri_of(const char *path, const char *query)
{
	struct weir_text uri = {0};
	weir_text_puts(&uri, "file:");
	for (const char *at = path; *at != '\0'; at++)
		if (strchr("%?#", *at) != NULL)
			weir_text_printf(&uri, "%%%02x", (unsigned)(unsigned char)*at);
		else
			weir_text_append(&uri, at, 1);
	weir_text_printf(&uri, "?%s", query);
	char *copy = weir_copy(uri.at, uri.length);
	weir_text_deinit(&uri);
	return copy;
}

/*
 * SQLite's readers make files beside a database, and leave them there. What no log stands beside is open nowhere, and is
 * read as a file that nobody changes. A log that a crash has left is read without locks, with its index in memory.
 */
enum weir_status weir_database_open_read_only(const char *path, bool unused, const char *const *statements,
                                              size_t statement_count, struct weir_database **database,
                                              struct weir_error *error)
{
	/* The first read fixes the moment. */
	static const char first[] = "BEGIN; SELECT count(*) FROM sqlite_master";
	static const char alone[] = "PRAGMA locking_mode = EXCLUSIVE; BEGIN; SELECT count(*) FROM sqlite_master";
	bool log = has_log(path);
	enum weir_status status;
	if (log && !unused) {
		status = open_file(path, path, SQLITE_OPEN_READONLY, first, statements, statement_count, database, error);
	} else {
		char *uri = uri_of(path, log ? "vfs=unix-none" : "immutable=1");
		status = open_file(path, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, log ? alone : first, statements,
		                   statement_count, database, error);
		free(uri);
	}
	if (status != WEIR_OK)
		return status;
	(*database)->only_looked_at = true;
	sqlite3_db_config((*database)->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return WEIR_OK;
}

void weir_database_close(struct weir_database *database)
{
	if (database == NULL)
		return;
	for (size_t i = 0; i < database->statement_count; i++)
		sqlite3_finalize(database->prepared[i]);
	sqlite3_close(database->handle);
	free(database->prepared);
	free(database->path);
	free(database);
}

enum weir_status weir_database_run(struct weir_database *database, const char *sql, struct weir_error *error)
{
	return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? WEIR_OK : failed(database, error);
}

enum weir_status weir_database_number(struct weir_database *database, const char *sql, int64_t *number,
                                      struct weir_error *error)
{
	sqlite3_stmt *statement = NULL;
	enum weir_status status = WEIR_OK;
	if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		status = failed(database, error);
	else
		*number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return status;
}

static enum weir_status begin(struct weir_database *database, bool synced, struct weir_error *error)
{
	if (database->only_looked_at)
		return weir_fail(error, WEIR_IO, "%s: it is open read-only", database->path);
	if (database->synced != synced) {
		const char *sql = synced ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
		enum weir_status status = weir_database_run(database, sql, error);
		if (status != WEIR_OK)
			return status;
		database->synced = synced;
	}
	/* A transaction that reads first and then writes could be refused in its middle. */
	return weir_database_run(database, "BEGIN IMMEDIATE", error);
}

enum weir_status weir_database_begin(struct weir_database *database, struct weir_error *error)
{
	return begin(database, true, error);
}

enum weir_status weir_database_begin_unsynced(struct weir_database *database, struct weir_error *error)
{
	return begin(database, false, error);
}

enum weir_status weir_database_begin_reading(struct weir_database *database, struct weir_error *error)
{
	return database->only_looked_at ? WEIR_OK : weir_database_run(database, "BEGIN", error);
}

enum weir_status weir_database_end(struct weir_database *database, enum weir_status status, struct weir_error *error)
{
	for (size_t i = 0; i < database->statement_count; i++)
		sqlite3_reset(database->prepared[i]);
	if (database->only_looked_at)
		return status;
	if (status == WEIR_OK)
		status = weir_database_run(database, "COMMIT", error);
	/* Some errors have ended the transaction already. */
	if (sqlite3_get_autocommit(database->handle) == 0 &&
	    sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK && status == WEIR_OK)
		status = failed(database, error);
	return status;
}

void weir_database_empty_log(struct weir_database *database)
{
	sqlite3_busy_timeout(database->handle, EMPTY_LOG_MS);
	(void)sqlite3_wal_checkpoint_v2(database->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_busy_handler(database->handle, wait_for_turn, NULL);
}

struct weir_statement *weir_database_use(struct weir_database *database, size_t number)
{
	sqlite3_stmt **statement = &database->prepared[number];
	if (*statement == NULL) {
		/* A failure leaves it NULL, and is told by the step. */
		if (sqlite3_prepare_v3(database->handle, database->statements[number], -1, SQLITE_PREPARE_PERSISTENT, statement,
		                       NULL) != SQLITE_OK)
			return NULL;
	} else {
		sqlite3_reset(*statement);
		sqlite3_clear_bindings(*statement);
	}
	return (struct weir_statement *)*statement;
}

struct weir_statement *weir_database_prepare(struct weir_database *database, const char *sql, int *columns)
{
	sqlite3_stmt *statement = NULL;
	if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK)
		return NULL;
	*columns = sqlite3_column_count(statement);
	return (struct weir_statement *)statement;
}

void weir_statement_free(struct weir_statement *statement)
{
	sqlite3_finalize(handle_of(statement));
}

static int is_over(void *context)
{
	const struct weir_database *database = context;
	return weir_monotonic_ms() > database->end_ms;
}

void weir_database_bound(struct weir_database *database, int64_t within_ms)
{
	database->end_ms = weir_monotonic_ms() + within_ms;
	sqlite3_progress_handler(database->handle, BOUND_STEPS, within_ms > 0 ? is_over : NULL, database);
}

void weir_statement_number(struct weir_statement *statement, int parameter, uint64_t number)
{
	sqlite3_bind_int64(handle_of(statement), parameter, (sqlite3_int64)number);
}

void weir_statement_bytes(struct weir_statement *statement, int parameter, struct weir_span bytes)
{
	if (bytes.at != NULL)
		sqlite3_bind_blob64(handle_of(statement), parameter, bytes.at, bytes.length, SQLITE_STATIC);
}

void weir_statement_text(struct weir_statement *statement, int parameter, struct weir_span text)
{
	if (text.at != NULL)
		sqlite3_bind_text64(handle_of(statement), parameter, text.at, text.length, SQLITE_STATIC, SQLITE_UTF8);
}

enum weir_status weir_statement_step(struct weir_database *database, struct weir_statement *statement,
                                     struct weir_error *error)
{
	int code = statement != NULL ? sqlite3_step(handle_of(statement)) : SQLITE_ERROR;
	if (code == SQLITE_ROW)
		return WEIR_OK;
	return code == SQLITE_DONE ? WEIR_END : failed(database, error);
}

enum weir_status weir_statement_run(struct weir_database *database, struct weir_statement *statement, int *rows,
                                    struct weir_error *error)
{
	enum weir_status status;
	do
		status = weir_statement_step(database, statement, error);
	while (status == WEIR_OK);
	if (status != WEIR_END)
		return status;
	if (rows != NULL)
		*rows = sqlite3_changes(database->handle);
	return WEIR_OK;
}

uint64_t weir_row_number(struct weir_statement *statement, int column)
{
	return (uint64_t)sqlite3_column_int64(handle_of(statement), column);
}

struct weir_span weir_row_bytes(struct weir_statement *statement, int column)
{
	struct weir_span bytes = {.at = sqlite3_column_blob(handle_of(statement), column)};
	bytes.length = (uint32_t)sqlite3_column_bytes(handle_of(statement), column);
	/* An empty blob has no address of its own. */
	if (bytes.at == NULL && sqlite3_column_type(handle_of(statement), column) != SQLITE_NULL)
		bytes.at = "";
	return bytes;
}

bool weir_row_is_number(struct weir_statement *statement, int column)
{
	return sqlite3_column_type(handle_of(statement), column) == SQLITE_INTEGER;
}
