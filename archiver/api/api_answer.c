/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of answers: refusals, SQL, values as JSON and as CSV. */
#include "archiver/api/api_answer.h"

#include "common/bytes/bits.h"
#include "common/store/archive.h"

#include <assert.h>
#include <time.h>

void api_refuse(struct weir_http_reply *reply, unsigned status, const char *parameter, const char *message)
{
	weir_text_clear(&reply->body);
	reply->status = status;
	reply->content_type = "application/json";
	struct weir_json_writer json = weir_json_writer(&reply->body);
	weir_json_write_object(&json, NULL);
	weir_json_write_object(&json, "error");
	weir_json_write_uint(&json, "status", status);
	weir_json_write_words(&json, "parameter", parameter);
	weir_json_write_words(&json, "message", message);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

/* ---- SQL ---- */

void api_sql_add(struct api_sql *sql, const char *words)
{
	weir_text_puts(&sql->text, words);
}

static void add(struct api_sql *sql, const char *words, struct weir_sql_value value)
{
	assert(sql->count < API_SQL_VALUES_MAX);
	weir_text_puts(&sql->text, words);
	sql->values[sql->count++] = value;
}

void api_sql_number(struct api_sql *sql, const char *words, int64_t value)
{
	add(sql, words, weir_sql_number(value));
}

void api_sql_text(struct api_sql *sql, const char *words, struct weir_span value)
{
	add(sql, words, weir_sql_text(value));
}

enum weir_status api_sql_run(struct api_sql *sql, struct weir_store *store, weir_sql_row *each, void *context,
                             struct weir_error *error)
{
	weir_text_append(&sql->text, "", 1);
	enum weir_status status = store->ops->query(store, sql->text.at, sql->values, sql->count, each, context, error);
	weir_text_deinit(&sql->text);
	sql->count = 0;
	return status;
}

/* ---- values ---- */

void api_json_value(struct weir_json_writer *json, const char *name, const struct weir_sql_value *value)
{
	switch (value->type) {
	case WEIR_SQL_NULL: weir_json_write_null(json, name); break;
	case WEIR_SQL_NUMBER: weir_json_write_int(json, name, value->number); break;
	case WEIR_SQL_TEXT: weir_json_write_string(json, name, value->text); break;
	}
}

/* Also behind what ends a cell in some countries' spreadsheets in spite of the quotes around it. */
static bool starts_formula(struct weir_span text, uint32_t at)
{
	return at + 1 < text.length && memchr("=+-@", text.at[at], 4) != NULL &&
	       (at == 0 || memchr("; \t\r\n\"", text.at[at - 1], 6) != NULL);
}

static void put_csv(struct weir_text *text, struct weir_span bytes, bool spreadsheet)
{
	uint32_t from = 0;
	for (uint32_t i = 0; i < bytes.length; i++) {
		bool formula = spreadsheet && starts_formula(bytes, i);
		if (!formula && bytes.at[i] != '"')
			continue;
		weir_text_utf8(text, (struct weir_span){bytes.at + from, i - from});
		weir_text_puts(text, formula ? "'" : "\"");
		from = i;
	}
	weir_text_utf8(text, (struct weir_span){bytes.at + from, bytes.length - from});
}

void api_csv_value(struct weir_text *text, const struct weir_sql_value *value, bool spreadsheet)
{
	if (value->type == WEIR_SQL_NUMBER)
		weir_text_int(text, value->number);
	if (value->type != WEIR_SQL_TEXT)
		return;
	bool plain = true;
	for (uint32_t i = 0; i < value->text.length && plain; i++)
		plain = memchr("\",\r\n", value->text.at[i], 4) == NULL;
	weir_text_puts(text, plain ? "" : "\"");
	put_csv(text, value->text, spreadsheet);
	weir_text_puts(text, plain ? "" : "\"");
}

void api_csv_time(struct weir_text *text, int64_t time_ms, bool spreadsheet)
{
	int64_t second_ms = weir_begin_of(time_ms, 1000);
	time_t second = (time_t)(second_ms / 1000);
	struct tm civil;
	if (!spreadsheet)
		weir_text_int(text, time_ms);
	else if (time_ms >= WEIR_TIME_END_MS || gmtime_r(&second, &civil) == NULL)
		weir_text_puts(text, "no end");
	else
		weir_text_printf(text, "%04d-%02d-%02d %02d:%02d:%02d.%03d", civil.tm_year + 1900, civil.tm_mon + 1,
		                 civil.tm_mday, civil.tm_hour, civil.tm_min, civil.tm_sec, (int)(time_ms - second_ms));
}

void api_csv_line(struct weir_text *text, const struct weir_sql_value *values, unsigned count, bool spreadsheet)
{
	for (unsigned i = 0; i < count; i++) {
		weir_text_puts(text, i > 0 ? "," : "");
		api_csv_value(text, &values[i], spreadsheet);
	}
	weir_text_puts(text, "\r\n");
}
