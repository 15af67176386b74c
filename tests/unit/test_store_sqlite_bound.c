/* SPDX-License-Identifier: Apache-2.0 */
/* A statement of SQLite that would run for ever ends when its time is over, and the next one runs. */
#include "common/store/sqlite/store_sqlite_database.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const no_statements[] = {""};

static enum weir_status run(struct weir_database *database, const char *sql, struct weir_error *error)
{
	int columns;
	struct weir_statement *statement = weir_database_prepare(database, sql, &columns);
	assert_non_null(statement);
	enum weir_status status = weir_statement_step(database, statement, error);
	weir_statement_free(statement);
	return status;
}

static void what_takes_too_long_is_ended(void **state)
{
	static const char endless[] =
		"WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g) SELECT count(*) FROM g";
	struct weir_database *database;
	struct weir_error error;
	char path[300];
	snprintf(path, sizeof path, "%s/weir.db", (const char *)*state);
	assert_int_equal(WEIR_OK, weir_database_open(path, no_statements, 0, &database, &error));
	weir_database_bound(database, 50);
	assert_int_equal(WEIR_IO, run(database, endless, &error));
	assert_non_null(strstr(error.text, "interrupted"));
	weir_database_bound(database, 0);
	assert_int_equal(WEIR_OK, run(database, "SELECT 1", &error));
	weir_database_close(database);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_takes_too_long_is_ended, scratch_setup, scratch_teardown)};
	return cmocka_run_group_tests_name("store_sqlite_bound", tests, NULL, NULL);
}
