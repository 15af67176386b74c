/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas as text: steps, statements, and what holds for those that weir carries. */
#include "common/store/mysql/internal.h"
#include "common/store/schema.h"
#include "common/store/sqlite/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool begins_with(struct weir_span text, const char *words)
{
	return text.length >= strlen(words) && memcmp(text.at, words, strlen(words)) == 0;
}

static void assert_next(struct weir_span *sql, const char *expected)
{
	struct weir_span statement;
	if (!weir_schema_statement(sql, &statement)) {
		fail_msg("there is no \"%s\"", expected);
		abort();
	}
	if (!weir_span_equal(statement, weir_span_of(expected)))
		fail_msg("\"%.*s\" in place of \"%s\"", (int)statement.length, statement.at, expected);
}

static void assert_no_more(struct weir_span sql)
{
	struct weir_span statement;
	if (weir_schema_statement(&sql, &statement))
		fail_msg("one more: \"%.*s\"", (int)statement.length, statement.at);
}

static void steps_are_found(void **state)
{
	(void)state;
	struct weir_span schema = weir_span_of("-- For people; -- ---- step 7 ---- is no mark here.\n\n"
	                                       "-- ---- step 1 ----\nA;\nB;\n"
	                                       "-- ---- Another heading ----\nC;\n"
	                                       "-- ---- step 2: more ----\n"
	                                       "-- ---- step 3 ----\nD;");
	assert_int_equal(3, weir_schema_version(schema));
	struct weir_span first = weir_schema_step(schema, 1), third = weir_schema_step(schema, 3);
	assert_next(&first, "A");
	assert_next(&first, "B");
	assert_next(&first, "C");
	assert_no_more(first);
	assert_no_more(weir_schema_step(schema, 2));
	assert_next(&third, "D");
	assert_no_more(third);
	assert_int_equal(0, weir_schema_version(weir_span_of("")));
	assert_int_equal(0, weir_schema_version(weir_span_of("-- step 1\nA;")));
	assert_int_equal(1, weir_schema_version(weir_span_of("-- ---- step 1 ----")));
}

static void statements_are_told_apart(void **state)
{
	(void)state;
	struct weir_span sql = weir_span_of("-- first; it's a comment\n \t;;A (x, -- a; 'remark\n  y);\n"
	                                    "B 'a;b', \"c;'d\", `e;`, 'it''s; one';C --;\n\n;\r\n"
	                                    "-- nothing but a comment;\nD 5-3;E");
	assert_next(&sql, "A (x, -- a; 'remark\n  y)");
	assert_next(&sql, "B 'a;b', \"c;'d\", `e;`, 'it''s; one'");
	assert_next(&sql, "C --;\n\n");
	assert_next(&sql, "D 5-3");
	assert_next(&sql, "E");
	assert_no_more(sql);
	assert_no_more(weir_span_of(" ; -- the end"));
	sql = weir_span_of("F 'never closed; G");
	assert_next(&sql, "F 'never closed; G");
	assert_no_more(sql);
}

/* Steps are numbered from 1 on, in order, and none is empty. */
static void assert_numbered(struct weir_span schema)
{
	uint32_t last = weir_schema_version(schema);
	assert_true(last >= 1);
	for (uint32_t step = 1; step <= last; step++) {
		char heading[32];
		struct weir_span text = weir_schema_step(schema, step), statement;
		snprintf(heading, sizeof heading, "-- ---- step %u ", step);
		const char *line = text.at - 1; /* its newline */
		while (line > schema.at && line[-1] != '\n')
			line--;
		assert_true(begins_with((struct weir_span){line, (uint32_t)(text.at - line)}, heading));
		assert_true(weir_schema_statement(&text, &statement));
	}
}

static void steps_are_numbered(void **state)
{
	(void)state;
	assert_numbered(weir_mysql_schema_steps());
	assert_numbered(weir_store_schema_steps());
	assert_int_equal(weir_schema_version(weir_mysql_schema_steps()), weir_schema_version(weir_store_schema_steps()));
}

/* A server may be left in the middle of a step: each statement must do nothing where it has been done. */
static void statements_for_servers_may_be_run_again(void **state)
{
	(void)state;
	static const char *const repeatable[] = {
		"CREATE TABLE IF NOT EXISTS ", "CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW ",
		"INSERT IGNORE INTO schema_version ", "UPDATE schema_version SET version = ",
		/* what is done only where it was not done: whether it was stands in the condition */
		"SET @weir_step = IF((SELECT COUNT(*) FROM information_schema.columns ", "PREPARE weir_step ",
		"EXECUTE weir_step", "DEALLOCATE PREPARE weir_step"};
	for (uint32_t step = 1; step <= weir_schema_version(weir_mysql_schema_steps()); step++) {
		struct weir_span text = weir_schema_step(weir_mysql_schema_steps(), step), statement;
		while (weir_schema_statement(&text, &statement)) {
			bool found = false;
			for (size_t i = 0; i < sizeof repeatable / sizeof *repeatable; i++)
				found |= begins_with(statement, repeatable[i]);
			if (!found)
				fail_msg("not to be run twice: %.*s", (int)statement.length, statement.at);
		}
	}
}

/* Else a step that was cut off would pass for done. */
static void a_step_for_servers_sets_its_version_at_its_end(void **state)
{
	(void)state;
	for (uint32_t step = 1; step <= weir_schema_version(weir_mysql_schema_steps()); step++) {
		char expected[128];
		struct weir_span text = weir_schema_step(weir_mysql_schema_steps(), step), statement;
		int set = 0;
		bool last = false;
		if (step == 1)
			snprintf(expected, sizeof expected,
			         "INSERT IGNORE INTO schema_version (program, version) VALUES ('weir', 1)");
		else
			snprintf(expected, sizeof expected,
			         "UPDATE schema_version SET version = %u WHERE program = 'weir' AND version < %u", step, step);
		while (weir_schema_statement(&text, &statement)) {
			last = weir_span_equal(statement, weir_span_of(expected));
			set += begins_with(statement, "INSERT IGNORE INTO schema_version") ||
			       begins_with(statement, "UPDATE schema_version");
		}
		if (!last || set != 1)
			fail_msg("step %u does not end, and only end, by: %s", step, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_found),
		cmocka_unit_test(statements_are_told_apart),
		cmocka_unit_test(steps_are_numbered),
		cmocka_unit_test(statements_for_servers_may_be_run_again),
		cmocka_unit_test(a_step_for_servers_sets_its_version_at_its_end),
	};
	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
