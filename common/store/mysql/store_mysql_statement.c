/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared statements: parameters in, rows out.
 *
 * MariaDB takes the parameters of thousands of rows in one message and adds
 * them about as fast as it loads a file, where a statement that names every
 * row's parameters costs half as much again. So parameters are kept a column
 * after the other, as its library wants them; a single row is read from the
 * first place of each.
 *
 * Rows are fetched as they come, not kept by the client library: a row of
 * segments may be large. A column of bytes is copied when it is asked for, into
 * memory that the statement keeps for the next row.
 */
#include "common/store/mysql/store_mysql_client.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct column {
	uint64_t number;
	unsigned long length;
	char null; /* the library's type for it differs; its size does not */
	struct weir_text bytes;
};

union value {
	uint64_t number;
	const void *bytes;
};

/* Parameters of several rows: of a column's, those of row 0 first. */
struct rows {
	union value *values;
	unsigned long *lengths;
	char *nulls; /* as the library's indicators */
	size_t capacity;
};

struct weir_mysql_statement {
	MYSQL_STMT *handle;
	MYSQL_BIND *parameters;
	struct rows rows;
	bool takes_rows;
	unsigned parameter_count, put; /* in the row that is being put */
	size_t row;                    /* its number */
	size_t put_bytes;
	MYSQL_BIND *results;
	struct column *columns;
	unsigned column_count;
	bool executed;
};

enum {
	/*
	 * Rows and bytes of one message: more of them are hardly faster, every server takes as many bytes, and a slow one
	 * answers before the connection's patience ends.
	 */
	ROWS_MAX = 1024,
	ROWS_BYTES = 1 << 20,
};

static struct rows new_rows(unsigned columns, size_t capacity)
{
	size_t places = columns * capacity + 1; /* a statement may have no parameters */
	return (struct rows){.values = weir_alloc(places, sizeof(union value)),
	                     .lengths = weir_alloc(places, sizeof(unsigned long)),
	                     .nulls = weir_alloc(places, 1),
	                     .capacity = capacity};
}

static void free_rows(struct rows *rows)
{
	free(rows->values);
	free(rows->lengths);
	free(rows->nulls);
}

void weir_mysql_statement_free(struct weir_mysql_statement *statement)
{
	if (statement == NULL)
		return;
	mysql_stmt_close(statement->handle);
	for (unsigned i = 0; i < statement->column_count; i++)
		weir_text_deinit(&statement->columns[i].bytes);
	free(statement->parameters);
	free_rows(&statement->rows);
	free(statement->results);
	free(statement->columns);
	free(statement);
}

/* ---- preparing ---- */

static bool is_number(enum enum_field_types type)
{
	return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_INT24 || type == MYSQL_TYPE_LONG ||
	       type == MYSQL_TYPE_LONGLONG;
}

/* Numbers go to where they are read from; of bytes the length alone is learnt with a row. */
static void describe_columns(struct weir_mysql_statement *statement)
{
	MYSQL_RES *result = mysql_stmt_result_metadata(statement->handle);
	if (result == NULL)
		return;
	unsigned count = mysql_num_fields(result);
	statement->columns = weir_alloc(count, sizeof *statement->columns);
	statement->results = weir_alloc(count, sizeof *statement->results);
	statement->column_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct column *column = &statement->columns[i];
		MYSQL_BIND *bind = &statement->results[i];
		bool number = is_number(mysql_fetch_field_direct(result, i)->type);
		bind->buffer_type = number ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
		bind->buffer = number ? &column->number : NULL;
		bind->buffer_length = number ? sizeof column->number : 0;
		bind->is_unsigned = number;
		bind->length = &column->length;
		bind->is_null = (void *)&column->null;
	}
	mysql_free_result(result);
}

static void compose(const struct weir_mysql_sql *sql, struct weir_text *text)
{
	weir_text_puts(text, sql->before);
	for (unsigned i = 0; i < sql->times; i++) {
		if (i > 0)
			weir_text_puts(text, sql->joint);
		weir_text_puts(text, sql->repeated);
	}
	if (sql->after != NULL)
		weir_text_puts(text, sql->after);
}

static void begin(struct weir_mysql_statement *statement)
{
	statement->row = statement->put_bytes = statement->put = 0;
	for (unsigned i = 0; i < statement->parameter_count; i++)
		statement->parameters[i] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_NULL};
}

static struct weir_mysql_statement *prepare(struct weir_mysql *mysql, const struct weir_mysql_sql *sql)
{
	MYSQL_STMT *handle = mysql_stmt_init(mysql->handle);
	if (handle == NULL) {
		weir_mysql_failed(mysql, mysql_errno(mysql->handle), "no memory for a statement", NULL);
		return NULL;
	}
	struct weir_text text = {0};
	compose(sql, &text);
	int failed = mysql_stmt_prepare(handle, text.at, (unsigned long)text.length);
	weir_text_deinit(&text);
	if (failed != 0) {
		weir_mysql_failed(mysql, mysql_stmt_errno(handle), mysql_stmt_error(handle), NULL);
		mysql_stmt_close(handle);
		return NULL;
	}
	struct weir_mysql_statement *statement = weir_alloc(1, sizeof *statement);
	statement->handle = handle;
	statement->parameter_count = (unsigned)mysql_stmt_param_count(handle);
	statement->parameters = weir_alloc(statement->parameter_count + 1, sizeof *statement->parameters);
	statement->rows = new_rows(statement->parameter_count, 1);
	statement->takes_rows = mysql->takes_rows;
	describe_columns(statement);
	begin(statement);
	return statement;
}

struct weir_mysql_statement *weir_mysql_prepare(struct weir_mysql *mysql, const char *sql)
{
	return prepare(mysql, &(struct weir_mysql_sql){.before = sql});
}

struct weir_mysql_statement *weir_mysql_use(struct weir_mysql *mysql, size_t number)
{
	struct weir_mysql_statement **statement = &mysql->prepared[number];
	if (*statement == NULL)
		*statement = prepare(mysql, &mysql->statements[number]);
	else
		weir_mysql_done(*statement);
	if (*statement != NULL)
		begin(*statement);
	return *statement;
}

/* ---- parameters ---- */

/* The first row of a statement goes to a place of its own: most have no second one. */
static void make_room(struct weir_mysql_statement *statement)
{
	struct rows one = statement->rows;
	if (one.capacity > 1)
		return;
	statement->rows = new_rows(statement->parameter_count, ROWS_MAX);
	for (size_t i = 0; i < statement->parameter_count; i++) {
		statement->rows.values[i * ROWS_MAX] = one.values[i];
		statement->rows.lengths[i * ROWS_MAX] = one.lengths[i];
		statement->rows.nulls[i * ROWS_MAX] = one.nulls[i];
	}
	free_rows(&one);
}

static void next_row(struct weir_mysql_statement *statement)
{
	assert(!weir_mysql_full(statement));
	make_room(statement);
	statement->row++;
	statement->put = 0;
}

/* A column has one type in all rows but where it is NULL. */
static void put(struct weir_mysql_statement *statement, enum enum_field_types type, union value value, size_t length)
{
	struct rows *rows = &statement->rows;
	if (statement->put == statement->parameter_count)
		next_row(statement);
	size_t place = statement->put * rows->capacity + statement->row;
	rows->values[place] = value;
	rows->lengths[place] = (unsigned long)length;
	rows->nulls[place] = type == MYSQL_TYPE_NULL;
	if (type != MYSQL_TYPE_NULL)
		statement->parameters[statement->put].buffer_type = type;
	statement->put++;
	statement->put_bytes += length;
}

bool weir_mysql_full(const struct weir_mysql_statement *statement)
{
	if (statement == NULL)
		return true;
	bool more = statement->takes_rows && statement->row + 1 < ROWS_MAX && statement->put_bytes < ROWS_BYTES;
	return statement->put == statement->parameter_count && !more;
}

void weir_mysql_put_number(struct weir_mysql_statement *statement, uint64_t number)
{
	if (statement == NULL)
		return;
	put(statement, MYSQL_TYPE_LONGLONG, (union value){.number = number}, sizeof number);
	statement->parameters[statement->put - 1].is_unsigned = true;
}

void weir_mysql_put_signed(struct weir_mysql_statement *statement, int64_t number)
{
	if (statement != NULL)
		put(statement, MYSQL_TYPE_LONGLONG, (union value){.number = (uint64_t)number}, sizeof number);
}

void weir_mysql_put_bytes(struct weir_mysql_statement *statement, struct weir_span bytes)
{
	if (statement != NULL)
		put(statement, bytes.at != NULL ? MYSQL_TYPE_BLOB : MYSQL_TYPE_NULL, (union value){.bytes = bytes.at},
		    bytes.length);
}

void weir_mysql_put_text(struct weir_mysql_statement *statement, const char *text)
{
	if (statement != NULL)
		put(statement, MYSQL_TYPE_STRING, (union value){.bytes = text}, strlen(text));
}

/* ---- executing ---- */

static enum weir_status failed(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                               struct weir_error *error)
{
	unsigned number = mysql_stmt_errno(statement->handle);
	if (number != 0)
		return weir_mysql_failed(mysql, number, mysql_stmt_error(statement->handle), error);
	/* Of rows that break off in the middle MariaDB's library tells the connection alone. */
	number = mysql_errno(mysql->handle);
	return weir_mysql_failed(mysql, number != 0 ? number : CR_SERVER_LOST,
	                         number != 0 ? mysql_error(mysql->handle) : "the connection was lost", error);
}

/* A failure like the server's own: it costs the connection, and the next one learns what the server takes by then. */
static enum weir_status too_large(struct weir_mysql *mysql, const struct weir_mysql_statement *statement,
                                  struct weir_error *error)
{
	char words[128];
	snprintf(words, sizeof words, "%zu bytes in one row do not fit the server's max_allowed_packet: raise it",
	         statement->put_bytes);
	return weir_mysql_failed(mysql, CR_NET_PACKET_TOO_LARGE, words, error);
}

static void bind_row(struct weir_mysql_statement *statement)
{
	struct rows *rows = &statement->rows;
	for (size_t i = 0; i < statement->parameter_count; i++) {
		MYSQL_BIND *bind = &statement->parameters[i];
		size_t place = i * rows->capacity;
		bool number = bind->buffer_type == MYSQL_TYPE_LONGLONG;
		bind->buffer = number ? &rows->values[place] : (void *)rows->values[place].bytes;
		bind->buffer_length = rows->lengths[place];
		bind->length = &rows->lengths[place];
	}
}

#ifdef LIBMARIADB
static void bind_rows(struct weir_mysql_statement *statement)
{
	struct rows *rows = &statement->rows;
	for (size_t i = 0; i < statement->parameter_count; i++) {
		MYSQL_BIND *bind = &statement->parameters[i];
		size_t place = i * rows->capacity;
		bind->buffer = &rows->values[place];
		bind->length = &rows->lengths[place];
		bind->u.indicator = &rows->nulls[place];
	}
}

static void bind(struct weir_mysql_statement *statement)
{
	unsigned rows = statement->row > 0 ? (unsigned)statement->row + 1 : 0;
	mysql_stmt_attr_set(statement->handle, STMT_ATTR_ARRAY_SIZE, &rows);
	if (rows > 0)
		bind_rows(statement);
	else
		bind_row(statement);
}
#else
static void bind(struct weir_mysql_statement *statement)
{
	bind_row(statement);
}
#endif

static enum weir_status execute(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                                struct weir_error *error)
{
	if (statement == NULL)
		return weir_fail(error, WEIR_IO, "%s", mysql->last.text);
	assert(statement->put == statement->parameter_count);
	if (statement->put_bytes > mysql->room)
		return too_large(mysql, statement, error);
	bind(statement);
	if (mysql_stmt_bind_param(statement->handle, statement->parameters) != 0 ||
	    mysql_stmt_execute(statement->handle) != 0)
		return failed(mysql, statement, error);
	statement->executed = true;
	if (statement->column_count > 0 && mysql_stmt_bind_result(statement->handle, statement->results) != 0)
		return failed(mysql, statement, error);
	return WEIR_OK;
}

enum weir_status weir_mysql_step(struct weir_mysql *mysql, struct weir_mysql_statement *statement,
                                 struct weir_error *error)
{
	if (statement == NULL || !statement->executed) {
		enum weir_status status = execute(mysql, statement, error);
		if (status != WEIR_OK)
			return status;
	}
	switch (mysql_stmt_fetch(statement->handle)) {
	case 0:
	case MYSQL_DATA_TRUNCATED: return WEIR_OK;
	case MYSQL_NO_DATA: return WEIR_END;
	default: return failed(mysql, statement, error);
	}
}

void weir_mysql_done(struct weir_mysql_statement *statement)
{
	if (statement != NULL && statement->executed && statement->column_count > 0)
		mysql_stmt_free_result(statement->handle);
	if (statement != NULL)
		statement->executed = false;
}

enum weir_status weir_mysql_execute(struct weir_mysql *mysql, struct weir_mysql_statement *statement, uint64_t *rows,
                                    struct weir_error *error)
{
	enum weir_status status = execute(mysql, statement, error);
	if (status == WEIR_OK && rows != NULL)
		*rows = mysql_stmt_affected_rows(statement->handle);
	return status;
}

/* ---- rows ---- */

uint64_t weir_mysql_row_number(const struct weir_mysql_statement *statement, unsigned column)
{
	/* An expression may be of another type on one server than on another, and of none that is taken for a number. */
	assert(statement->results[column].buffer_type == MYSQL_TYPE_LONGLONG);
	return statement->columns[column].number;
}

size_t weir_mysql_row_append(struct weir_mysql_statement *statement, unsigned number, struct weir_text *text)
{
	struct column *column = &statement->columns[number];
	if (column->null != 0 || column->length == 0)
		return 0;
	unsigned long length = 0;
	MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_BLOB,
	                   .buffer = weir_text_reserve(text, column->length),
	                   .buffer_length = column->length,
	                   .length = &length};
	int copied = mysql_stmt_fetch_column(statement->handle, &bind, number, 0);
	assert(copied == 0);
	(void)copied;
	text->length += column->length;
	return column->length;
}

struct weir_span weir_mysql_row_bytes(struct weir_mysql_statement *statement, unsigned number)
{
	struct column *column = &statement->columns[number];
	if (column->null != 0)
		return (struct weir_span){.at = NULL};
	weir_text_clear(&column->bytes);
	size_t length = weir_mysql_row_append(statement, number, &column->bytes);
	return (struct weir_span){.at = length > 0 ? column->bytes.at : "", .length = (uint32_t)length};
}

unsigned weir_mysql_columns(const struct weir_mysql_statement *statement)
{
	return statement->column_count;
}

struct weir_sql_value weir_mysql_row_value(struct weir_mysql_statement *statement, unsigned number)
{
	if (statement->columns[number].null != 0)
		return (struct weir_sql_value){.type = WEIR_SQL_NULL};
	if (statement->results[number].buffer_type == MYSQL_TYPE_LONGLONG)
		return weir_sql_number((int64_t)statement->columns[number].number);
	return weir_sql_text(weir_mysql_row_bytes(statement, number));
}
