/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a server of MySQL or MariaDB, as the store uses it:
 * prepared statements, transactions that are retried where that helps,
 * errors in words, a new connection after a broken one.
 *
 * The one place that knows the client library's own interface is its .c file.
 *
 * @thread a connection, with its statements, belongs to one thread at a time
 */
#ifndef WEIR_COMMON_STORE_MYSQL_DATABASE_H
#define WEIR_COMMON_STORE_MYSQL_DATABASE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/store/archive.h"

/* How long a session waits for a row that another holds, unless it says otherwise. */
#define WEIR_MYSQL_ROW_WAIT "SET SESSION innodb_lock_wait_timeout = 3"

struct weir_mysql;
struct weir_mysql_statement;

/* A statement's SQL: before, then `repeated` so many times with `joint` between, then after. */
struct weir_mysql_sql {
	const char *before, *repeated, *joint, *after; /* NULL: nothing */
	unsigned times;
};

/** The errors that callers tell apart, by the server's numbers; 0: the last call did not fail at the server. */
enum weir_mysql_error {
	WEIR_MYSQL_NO_DATABASE = 1049,
	WEIR_MYSQL_NO_COLUMN = 1054,
	WEIR_MYSQL_NO_TABLE = 1146,
};

/**
 * A connection to be made when it is first needed.
 *
 * @param config      its "store"; borrowed for as long as the connection is
 * @param statements  prepared when first used; borrowed likewise
 */
struct weir_mysql *weir_mysql_new(const struct weir_config *config, const struct weir_mysql_sql *statements,
                                  size_t statement_count);
/** NULL is fine. */
void weir_mysql_free(struct weir_mysql *mysql);

/** "weir@127.0.0.1:3306/weir", for words. */
const char *weir_mysql_name(const struct weir_mysql *mysql);
/** Which connection this is: another number after each that broke. */
uint64_t weir_mysql_connection(const struct weir_mysql *mysql);
/** Of the last failure: an enum weir_mysql_error, or another number of the server's or the client library's. */
unsigned weir_mysql_error_number(const struct weir_mysql *mysql);

/**
 * Connects, if it is not connected. Bounded: connecting, each read and each write take some seconds at most.
 *
 * @param database  false: to no database yet
 * @return WEIR_OK; WEIR_INVALID: the server's max_allowed_packet is too small; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_mysql_connect(struct weir_mysql *mysql, bool database, struct weir_error *error);
void weir_mysql_disconnect(struct weir_mysql *mysql);

/** Runs SQL without parameters and results. */
WEIR_MUST_USE enum weir_status weir_mysql_run(struct weir_mysql *mysql, const char *sql, struct weir_error *error);
/** The first column of the first row, a number. WEIR_END: there is no row. */
WEIR_MUST_USE enum weir_status weir_mysql_number(struct weir_mysql *mysql, const char *sql, uint64_t *number,
                                                 struct weir_error *error);

typedef enum weir_status weir_mysql_body(void *context, struct weir_error *error);

/**
 * Runs a transaction that writes: commits if the body gives WEIR_OK, else rolls back and passes its status on.
 *
 * The body is run again, a few times at most, after a deadlock, after another transaction that did not let go of a row,
 * and where the connection broke while the server was asked to commit, as nobody knows then whether it did: so running
 * it twice must do what running it once does.
 *
 * @return what the body gives; WEIR_IO: nothing was written, but where the commit's answer was lost, and the server
 *         could not be reached again
 */
WEIR_MUST_USE enum weir_status weir_mysql_write(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                                struct weir_error *error);
/**
 * Runs one that writes, as above, but whose row another transaction does not let go of is not waited for again: for a
 * caller that has other things to do, and comes back.
 */
WEIR_MUST_USE enum weir_status weir_mysql_write_or_leave(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                                         struct weir_error *error);
/** Runs one that reads, once: everything in it is seen as of one moment. */
WEIR_MUST_USE enum weir_status weir_mysql_read(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                               struct weir_error *error);

/** How many bytes of parameters one statement may have. */
size_t weir_mysql_room(const struct weir_mysql *mysql);

/**
 * A statement, ready for its parameters. Any use of it before is done with.
 *
 * @return NULL: it could not be prepared; the next step says why
 */
struct weir_mysql_statement *weir_mysql_use(struct weir_mysql *mysql, size_t number);

/** A statement of SQL that is not among those; NULL as above. Its end: weir_mysql_statement_free(). */
struct weir_mysql_statement *weir_mysql_prepare(struct weir_mysql *mysql, const char *sql);
/** NULL is fine. */
void weir_mysql_statement_free(struct weir_mysql_statement *statement);

/**
 * Parameters, in their order. Bytes are borrowed until the statement is executed; a span without `at` is NULL.
 * The statement may be NULL: weir_mysql_use() failed.
 */
void weir_mysql_put_number(struct weir_mysql_statement *statement, uint64_t number);
void weir_mysql_put_signed(struct weir_mysql_statement *statement, int64_t number);
void weir_mysql_put_bytes(struct weir_mysql_statement *statement, struct weir_span bytes);
void weir_mysql_put_text(struct weir_mysql_statement *statement, const char *text);

/**
 * Whether to execute now what is put: always after a row, where the server takes one at a time. Else parameters of
 * further rows may follow, of the same types, and one execution does as one of each row would, until it is full.
 */
bool weir_mysql_full(const struct weir_mysql_statement *statement);
/** Whether it takes more than one. */
bool weir_mysql_takes_rows(const struct weir_mysql *mysql);

/** The next row; the first call executes the statement. @return WEIR_OK; WEIR_END: there is none (any more); WEIR_IO */
WEIR_MUST_USE enum weir_status weir_mysql_step(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                                               struct weir_error *error);
/** Ends the reading of its rows, wherever it is. */
void weir_mysql_done(struct weir_mysql_statement *statement);
/** Executes one without rows. @param rows  how many matched (of an UPDATE) or went (of a DELETE); may be NULL */
WEIR_MUST_USE enum weir_status weir_mysql_execute(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                                                  uint64_t *rows, struct weir_error *error);

/** Columns count from 0, of the present row. */
uint64_t weir_mysql_row_number(const struct weir_mysql_statement *statement, unsigned column);
/** Borrowed until the next step. at is NULL for a NULL alone. */
struct weir_span weir_mysql_row_bytes(struct weir_mysql_statement *statement, unsigned column);
unsigned weir_mysql_columns(const struct weir_mysql_statement *statement);
/** A column as a number or bytes; borrowed likewise. */
struct weir_sql_value weir_mysql_row_value(struct weir_mysql_statement *statement, unsigned column);
/** Appends the column's bytes to a text: how many. */
size_t weir_mysql_row_append(struct weir_mysql_statement *statement, unsigned column, struct weir_text *text);

#endif
