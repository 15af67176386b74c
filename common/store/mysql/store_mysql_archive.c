/* SPDX-License-Identifier: Apache-2.0 */
/* What the archiver keeps, in MySQL: rows, added in a transaction of the caller's; and SQL that reads them. */
#include "common/store/mysql/internal.h"

/* ---- rows ---- */

typedef void put_row(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number);

static void put_count(struct weir_mysql_statement *statement, const struct weir_archive_count *row)
{
	weir_mysql_put_number(statement, row->zone);
	weir_mysql_put_bytes(statement, row->bucket);
	weir_mysql_put_signed(statement, row->begin_ms);
	weir_mysql_put_number(statement, row->passed);
	weir_mysql_put_number(statement, row->blocked);
	weir_mysql_put_number(statement, row->late);
}

static void put_hourly(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	put_count(statement, &batch->hours[number]);
}

static void put_daily(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	put_count(statement, &batch->days[number]);
}

static void put_total(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	const struct weir_archive_total *row = &batch->totals[number];
	weir_mysql_put_number(statement, row->zone);
	weir_mysql_put_signed(statement, row->hour_ms);
	weir_mysql_put_number(statement, row->partition);
	weir_mysql_put_number(statement, row->passed);
	weir_mysql_put_number(statement, row->blocked);
	weir_mysql_put_number(statement, row->late);
}

static void put_id(struct weir_mysql_statement *statement, const struct weir_archive_id *id)
{
	weir_mysql_put_number(statement, id->partition);
	weir_mysql_put_number(statement, id->offset);
	weir_mysql_put_number(statement, id->pair);
}

static void put_limit(struct weir_mysql_statement *statement, const struct weir_archive_decision *row)
{
	static const struct weir_span absent = {.at = NULL};
	if (!row->limited) {
		for (int i = 0; i < 4; i++)
			weir_mysql_put_bytes(statement, absent);
		return;
	}
	weir_mysql_put_bytes(statement, row->algorithm);
	weir_mysql_put_signed(statement, row->rate);
	weir_mysql_put_signed(statement, row->window_ms);
	weir_mysql_put_signed(statement, row->held);
}

static void put_decision_row(struct weir_mysql_statement *statement, const struct weir_archive_decision *row)
{
	weir_mysql_put_signed(statement, row->at_ms);
	put_id(statement, &row->id);
	weir_mysql_put_bytes(statement, row->zone);
	weir_mysql_put_bytes(statement, row->bucket);
	weir_mysql_put_bytes(statement, row->action);
	weir_mysql_put_signed(statement, row->until_ms);
	weir_mysql_put_bytes(statement, row->mode);
	put_limit(statement, row);
	weir_mysql_put_bytes(statement, row->ordered_by);
	weir_mysql_put_bytes(statement, row->reason);
	if (row->nth > 0)
		weir_mysql_put_number(statement, row->nth);
	else
		weir_mysql_put_bytes(statement, (struct weir_span){.at = NULL});
}

static void put_decision(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	put_decision_row(statement, &batch->decisions[number]);
}

static void put_shadow(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	put_decision_row(statement, &batch->shadows[number]);
}

static void put_event(struct weir_mysql_statement *statement, const struct weir_archive_batch *batch, size_t number)
{
	const struct weir_archive_event *row = &batch->events[number];
	weir_mysql_put_number(statement, row->zone);
	weir_mysql_put_bytes(statement, row->bucket);
	weir_mysql_put_signed(statement, row->at_ms);
	put_id(statement, &row->id);
	weir_mysql_put_number(statement, row->blocked);
	weir_mysql_put_bytes(statement, row->fields);
}

enum { MANY_BYTES = 1 << 20 }; /* a server's max_allowed_packet may be 4 MiB */

/* Whether as many rows as the statement for many has are small: an event's fields are what strangers wrote. */
static bool are_small(const struct weir_archive_batch *batch, size_t first, put_row *put)
{
	size_t bytes = 0;
	for (size_t i = first; put == put_event && i < first + WEIR_MYSQL_ARCHIVE_ROWS; i++)
		bytes += batch->events[i].fields.length;
	return bytes <= MANY_BYTES;
}

/* A server that takes one row at a time gets as many as fit by the statement for many, the rest one by one. */
static enum weir_status add_rows(struct weir_mysql *mysql, const struct weir_archive_batch *batch, size_t count,
                                 put_row *put, enum weir_mysql_statement_number one,
                                 enum weir_mysql_statement_number many, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t done = 0; done < count && status == WEIR_OK;) {
		bool single =
			weir_mysql_takes_rows(mysql) || count - done < WEIR_MYSQL_ARCHIVE_ROWS || !are_small(batch, done, put);
		struct weir_mysql_statement *statement = weir_mysql_use(mysql, single ? one : many);
		do
			put(statement, batch, done++);
		while (done < count && !weir_mysql_full(statement));
		status = weir_mysql_execute(mysql, statement, NULL, error);
	}
	return status;
}

enum weir_status weir_mysql_add_batch(struct weir_mysql *mysql, const struct weir_archive_batch *batch,
                                      struct weir_error *error)
{
	enum weir_status status =
		add_rows(mysql, batch, batch->hour_count, put_hourly, WEIR_MYSQL_ADD_HOURLY, WEIR_MYSQL_ADD_HOURLY_MANY, error);
	if (status == WEIR_OK)
		status =
			add_rows(mysql, batch, batch->day_count, put_daily, WEIR_MYSQL_ADD_DAILY, WEIR_MYSQL_ADD_DAILY_MANY, error);
	if (status == WEIR_OK)
		status = add_rows(mysql, batch, batch->total_count, put_total, WEIR_MYSQL_ADD_TOTAL, WEIR_MYSQL_ADD_TOTAL_MANY,
		                  error);
	if (status == WEIR_OK)
		status = add_rows(mysql, batch, batch->decision_count, put_decision, WEIR_MYSQL_ADD_DECISION,
		                  WEIR_MYSQL_ADD_DECISION_MANY, error);
	if (status == WEIR_OK)
		status = add_rows(mysql, batch, batch->shadow_count, put_shadow, WEIR_MYSQL_ADD_SHADOW,
		                  WEIR_MYSQL_ADD_SHADOW_MANY, error);
	if (status == WEIR_OK)
		status = add_rows(mysql, batch, batch->event_count, put_event, WEIR_MYSQL_ADD_EVENT, WEIR_MYSQL_ADD_EVENT_MANY,
		                  error);
	return status;
}

/* ---- reading ---- */

struct query_call {
	struct weir_mysql *mysql;
	const char *sql;
	const struct weir_sql_value *parameters;
	unsigned count;
	weir_sql_row *each;
	void *context;
};

enum { COLUMNS_MAX = 32 };

static enum weir_status read_rows(const struct query_call *call, struct weir_mysql_statement *statement,
                                  struct weir_error *error)
{
	struct weir_sql_value row[COLUMNS_MAX];
	unsigned columns = weir_mysql_columns(statement);
	enum weir_status status, given = WEIR_OK;
	if (columns > COLUMNS_MAX)
		return weir_fail(error, WEIR_INVALID, "too many columns: %u", columns);
	while (given == WEIR_OK && (status = weir_mysql_step(call->mysql, statement, error)) == WEIR_OK) {
		for (unsigned i = 0; i < columns; i++)
			row[i] = weir_mysql_row_value(statement, i);
		given = call->each(call->context, row, columns);
	}
	if (given != WEIR_OK)
		return given;
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status query(void *context, struct weir_error *error)
{
	const struct query_call *call = context;
	struct weir_mysql_statement *statement = weir_mysql_prepare(call->mysql, call->sql);
	for (unsigned i = 0; i < call->count; i++) {
		if (call->parameters[i].type == WEIR_SQL_NUMBER)
			weir_mysql_put_signed(statement, call->parameters[i].number);
		else
			weir_mysql_put_bytes(statement, call->parameters[i].text);
	}
	if (statement == NULL)
		return weir_mysql_step(call->mysql, statement, error); /* says why */
	enum weir_status status = read_rows(call, statement, error);
	weir_mysql_done(statement);
	weir_mysql_statement_free(statement);
	return status;
}

enum weir_status weir_mysql_query(struct weir_store *base, const char *sql, const struct weir_sql_value *parameters,
                                  unsigned count, weir_sql_row *each, void *context, struct weir_error *error)
{
	struct query_call call = {weir_store_mysql(base)->mysql, sql, parameters, count, each, context};
	return weir_mysql_read(call.mysql, query, &call, error);
}
