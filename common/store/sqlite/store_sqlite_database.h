/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SQLite database, as the store uses it: prepared statements, transactions
 * that wait their turn, errors in words.
 *
 * The one place that knows SQLite's own interface is its .c file.
 *
 * @thread a database, with its statements, belongs to one thread at a time
 */
#ifndef WEIR_COMMON_STORE_SQLITE_DATABASE_H
#define WEIR_COMMON_STORE_SQLITE_DATABASE_H

#include "common/base/span.h"
#include "common/base/status.h"

struct weir_database;
struct weir_statement;

/** Says of an error what a start without this database loses, and how to move it away (file_damage.h). */
void weir_database_say_damaged(const char *path, struct weir_error *error);

/**
 * Opens or makes a database in WAL mode; every commit is on disk when it returns.
 *
 * Every function that fails gives WEIR_INVALID where the file is damaged or no database, WEIR_IO for everything that may
 * pass: no room, a failing disk, another writer that does not end.
 *
 * @param statements  SQL, prepared when first used; borrowed for as long as the database is open
 */
WEIR_MUST_USE enum weir_status weir_database_open(const char *path, const char *const *statements,
                                                  size_t statement_count, struct weir_database **database,
                                                  struct weir_error *error);
/**
 * Opens a database that is there, to read it as of this moment: what others write meanwhile is not seen. No file is made
 * or changed, unless somebody may be writing: then the index of their log has a mark for each reader.
 *
 * @param unused  nobody has it open, though a log stands beside it
 */
WEIR_MUST_USE enum weir_status weir_database_open_read_only(const char *path, bool unused,
                                                            const char *const *statements, size_t statement_count,
                                                            struct weir_database **database, struct weir_error *error);
/** NULL is fine. */
void weir_database_close(struct weir_database *database);

/** Runs SQL without parameters and results. */
WEIR_MUST_USE enum weir_status weir_database_run(struct weir_database *database, const char *sql,
                                                 struct weir_error *error);
/** The first column of the first row: a number. */
WEIR_MUST_USE enum weir_status weir_database_number(struct weir_database *database, const char *sql, int64_t *number,
                                                    struct weir_error *error);

/** Begins a transaction that writes; waits for another writer, at most some seconds. */
WEIR_MUST_USE enum weir_status weir_database_begin(struct weir_database *database, struct weir_error *error);
/** The same, but a crash of the machine may take it until a later transaction of this handle was committed. */
WEIR_MUST_USE enum weir_status weir_database_begin_unsynced(struct weir_database *database, struct weir_error *error);
/** Begins one that reads: everything is seen as of now. */
WEIR_MUST_USE enum weir_status weir_database_begin_reading(struct weir_database *database, struct weir_error *error);
/** Ends the transaction: commits if `status` is WEIR_OK, else rolls back and passes the status on. */
WEIR_MUST_USE enum weir_status weir_database_end(struct weir_database *database, enum weir_status status,
                                                 struct weir_error *error);

/**
 * Writes the write-ahead log into the database and empties it, as far as others who read or write let it within a moment.
 * Not within a transaction.
 */
void weir_database_empty_log(struct weir_database *database);

/**
 * A statement, ready for its parameters. Any that was used before is done with.
 *
 * @return NULL: it could not be prepared; the next step says why
 */
struct weir_statement *weir_database_use(struct weir_database *database, size_t number);

/** A statement of SQL that is not among those; NULL as above. weir_statement_free() ends it. */
struct weir_statement *weir_database_prepare(struct weir_database *database, const char *sql, int *columns);
/** NULL is fine. */
void weir_statement_free(struct weir_statement *statement);

/** Ends a statement that still runs so many ms from here on: its step gives WEIR_IO. 0: no bound. */
void weir_database_bound(struct weir_database *database, int64_t within_ms);

/** Parameters count from 1. Bytes are borrowed until the statement is used again. A span without `at` is NULL. */
void weir_statement_number(struct weir_statement *statement, int parameter, uint64_t number);
void weir_statement_bytes(struct weir_statement *statement, int parameter, struct weir_span bytes);
void weir_statement_text(struct weir_statement *statement, int parameter, struct weir_span text);

/** The next row. @return WEIR_OK; WEIR_END: there is none (any more); WEIR_INVALID, WEIR_IO */
WEIR_MUST_USE enum weir_status weir_statement_step(struct weir_database *database, struct weir_statement *statement,
                                                   struct weir_error *error);
/** Runs a statement without rows to its end. @param rows  how many it changed; may be NULL */
WEIR_MUST_USE enum weir_status weir_statement_run(struct weir_database *database, struct weir_statement *statement,
                                                  int *rows, struct weir_error *error);
/** Columns count from 0, of the present row. */
uint64_t weir_row_number(struct weir_statement *statement, int column);
/** Borrowed until the next step. at is NULL for a NULL alone. */
struct weir_span weir_row_bytes(struct weir_statement *statement, int column);
bool weir_row_is_number(struct weir_statement *statement, int column);

#endif
