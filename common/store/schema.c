/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the steps of a schema and the statements of a step. It knows as much of
 * SQL as is needed to tell a semicolon that ends a statement from one in a
 * comment (from "--" to the line's end) or in quotes.
 */
#include "common/store/schema.h"

static const char mark[] = "-- ---- step ";

/* Behind the line in which a byte stands. */
static const char *behind_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));
	return newline != NULL ? newline + 1 : end;
}

/* The line by which the next step begins; the end where there is none. */
static const char *find_mark(const char *at, const char *end)
{
	while (at < end && ((size_t)(end - at) < sizeof mark - 1 || memcmp(at, mark, sizeof mark - 1) != 0))
		at = behind_line(at, end);
	return at;
}

uint32_t weir_schema_version(struct weir_span schema)
{
	const char *end = schema.at + schema.length;
	uint32_t steps = 0;
	for (const char *at = find_mark(schema.at, end); at < end; at = find_mark(behind_line(at, end), end))
		steps++;
	return steps;
}

struct weir_span weir_schema_step(struct weir_span schema, uint32_t number)
{
	const char *end = schema.at + schema.length;
	const char *begin = schema.at;
	for (uint32_t i = 0; i < number; i++)
		begin = behind_line(find_mark(begin, end), end);
	return (struct weir_span){.at = begin, .length = (uint32_t)(find_mark(begin, end) - begin)};
}

static bool is_comment(const char *at, const char *end)
{
	return end - at >= 2 && at[0] == '-' && at[1] == '-';
}

/* Over white space, comments and statements that are empty. */
static const char *skip_nothing(const char *at, const char *end)
{
	while (at < end) {
		if (is_comment(at, end))
			at = behind_line(at, end);
		else if (strchr(" \t\r\n;", *at) != NULL)
			at++;
		else
			break;
	}
	return at;
}

/* Behind the quote that ends what begins at one; a doubled one ends it and begins the next, which comes to the same. */
static const char *behind_quotes(const char *at, const char *end)
{
	const char *closing = memchr(at + 1, *at, (size_t)(end - at - 1));
	return closing != NULL ? closing + 1 : end;
}

bool weir_schema_statement(struct weir_span *sql, struct weir_span *statement)
{
	const char *end = sql->at + sql->length;
	const char *begin = skip_nothing(sql->at, end), *at = begin;
	while (at < end && *at != ';') {
		if (is_comment(at, end))
			at = behind_line(at, end);
		else if (*at == '\'' || *at == '"' || *at == '`')
			at = behind_quotes(at, end);
		else
			at++;
	}
	*statement = (struct weir_span){.at = begin, .length = (uint32_t)(at - begin)};
	*sql = (struct weir_span){.at = at, .length = (uint32_t)(end - at)};
	return begin < end;
}
