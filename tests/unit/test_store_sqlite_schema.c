/* SPDX-License-Identifier: Apache-2.0 */
/* How a database of SQLite gets its tables: made, brought up to date by the steps that it lacks, or refused. */
#include "common/store/schema.h"
#include "common/store/sqlite/internal.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct weir_error error;

enum { TODAY = 4 }; /* the steps of schema.sql */

/* What the next version of weir may bring: a column, and rows that know of it. */
static const char next_step[] = "-- ---- step 5 ----\n"
								"ALTER TABLE note ADD COLUMN written_ms INTEGER NOT NULL DEFAULT 0;\n"
								"UPDATE note SET written_ms = 7;\n";
static const char step_after[] = "-- ---- step 6 ----\n"
								 "CREATE VIEW notes AS SELECT name, written_ms FROM note;\n";
/* It begins well. */
static const char bad_next_step[] = "-- ---- step 5 ----\n"
									"ALTER TABLE note ADD COLUMN written_ms INTEGER NOT NULL DEFAULT 0;\n"
									"DROP TABLE note;\n"
									"CREATE INDEX lost ON nowhere (name);\n";

/* The schema of today with more steps behind it; the caller frees what it points to. */
static struct weir_span with_steps(const char *more, const char *and_more)
{
	struct weir_span today = weir_store_schema_steps();
	struct weir_text text = {0};
	weir_text_append(&text, today.at, today.length);
	weir_text_puts(&text, more);
	weir_text_puts(&text, and_more);
	return (struct weir_span){.at = text.at, .length = (uint32_t)text.length};
}

static void free_schema(struct weir_span schema)
{
	free((char *)(uintptr_t)schema.at);
}

static const char *path_in(const char *directory, char path[512])
{
	assert_in_range(snprintf(path, 512, "%.490s/weir.db", directory), 1, 511);
	return path;
}

static struct weir_database *open_database(const char *directory)
{
	char path[512];
	struct weir_database *database = NULL;
	if (weir_database_open(path_in(directory, path), weir_store_statements, WEIR_STORE_STATEMENTS, &database, &error) !=
	    WEIR_OK) {
		fail_msg("%s", error.text);
		abort();
	}
	return database;
}

static int64_t number(const char *directory, const char *sql)
{
	struct weir_database *database = open_database(directory);
	int64_t found = -1;
	if (weir_database_number(database, sql, &found, &error) != WEIR_OK)
		fail_msg("%s: %s", sql, error.text);
	weir_database_close(database);
	return found;
}

static enum weir_status upgrade(const char *directory, struct weir_span schema)
{
	char path[512];
	struct weir_database *database = open_database(directory);
	enum weir_status status = weir_store_schema_upgrade(database, path_in(directory, path), schema, &error);
	weir_database_close(database);
	return status;
}

/* A state of this version with a note in it. */
static void make_state(const char *directory)
{
	struct weir_store *store = NULL;
	assert_int_equal(WEIR_OK, weir_store_sqlite_open(directory, &store, &error));
	assert_int_equal(WEIR_OK, store->ops->note_put(store, "kept", weir_span_of("all along"), &error));
	store->ops->close(store);
}

static void assert_note_is_there(const char *directory)
{
	struct weir_store *store = NULL;
	char *note = NULL;
	size_t length;
	assert_int_equal(WEIR_OK, weir_store_sqlite_open(directory, &store, &error));
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "kept", &note, &length, &error));
	assert_string_equal("all along", note);
	free(note);
	store->ops->close(store);
}

static void this_version_is_made(void **state)
{
	make_state(*state);
	assert_int_equal(TODAY, number(*state, "SELECT version FROM schema_version"));
	assert_int_equal(WEIR_OK, upgrade(*state, weir_store_schema_steps()));
	assert_note_is_there(*state);
}

static void an_older_one_gets_the_steps_that_it_lacks(void **state)
{
	struct weir_span second = with_steps(next_step, ""), third = with_steps(next_step, step_after);
	make_state(*state);
	for (int times = 0; times < 2; times++) { /* the second time there is nothing to do */
		assert_int_equal(WEIR_OK, upgrade(*state, second));
		assert_int_equal(TODAY + 1, number(*state, "SELECT version FROM schema_version"));
		assert_int_equal(7, number(*state, "SELECT written_ms FROM note WHERE name = 'kept'"));
	}
	assert_int_equal(WEIR_OK, upgrade(*state, third));
	assert_int_equal(TODAY + 2, number(*state, "SELECT version FROM schema_version"));
	assert_int_equal(7, number(*state, "SELECT written_ms FROM notes"));
	free_schema(second);
	free_schema(third);
}

/*
 * A state of the first version: its decisions stay, and are of no list of blocks; its events stay, without fields; and
 * there is room for decisions in shadow mode.
 */
static void a_state_of_the_first_version_is_upgraded(void **state)
{
	struct weir_span steps = weir_store_schema_steps();
	struct weir_span second = weir_schema_step(steps, 2);
	struct weir_span first = {.at = steps.at,
	                          .length = (uint32_t)(second.at - steps.at - (ptrdiff_t)strlen("-- ---- step 2 ----\n"))};
	char path[512];
	assert_int_equal(WEIR_OK, upgrade(*state, first));
	assert_int_equal(1, number(*state, "SELECT version FROM schema_version"));
	struct weir_database *database = open_database(path_in(*state, path) != NULL ? *state : NULL);
	assert_int_equal(WEIR_OK,
	                 weir_database_run(database,
	                                   "INSERT INTO decision_history VALUES (5, 1, 2, 3, 'site', 'ann', 'block', 9, "
	                                   "'enforce', 'sliding_window', 3, 60000, 3, NULL, NULL);"
	                                   "INSERT INTO zone_txn VALUES (7, 'ann', 5, 1, 2, 3, 1);"
	                                   "INSERT INTO zone_master VALUES (7, 1, 'site', '', 'enforce', 'gcra', 1, 1, 0, "
	                                   "0, 0, 0, 0, 0, 1)",
	                                   &error));
	weir_database_close(database);
	make_state(*state);
	assert_int_equal(TODAY, number(*state, "SELECT version FROM schema_version"));
	assert_int_equal(1, number(*state, "SELECT count(*) FROM decisions WHERE zone = 'site' AND nth IS NULL"));
	assert_int_equal(1, number(*state, "SELECT count(*) FROM events WHERE zone = 'site' AND fields IS NULL"));
	assert_int_equal(0, number(*state, "SELECT count(*) FROM shadow_decisions"));
	assert_note_is_there(*state);
}

static void several_steps_are_one(void **state)
{
	struct weir_span third = with_steps(next_step, step_after);
	make_state(*state);
	assert_int_equal(WEIR_OK, upgrade(*state, third));
	assert_int_equal(TODAY + 2, number(*state, "SELECT version FROM schema_version"));
	char path[512];
	snprintf(path, sizeof path, "%s/new", (const char *)*state); /* and an empty one gets them all */
	assert_int_equal(0, mkdir(path, 0700));
	assert_int_equal(WEIR_OK, upgrade(path, third));
	assert_int_equal(TODAY + 2, number(path, "SELECT version FROM schema_version"));
	assert_int_equal(0, number(path, "SELECT count(*) FROM notes"));
	free_schema(third);
}

static void a_step_that_fails_leaves_all_as_it_was(void **state)
{
	struct weir_span bad = with_steps(bad_next_step, step_after);
	make_state(*state);
	assert_int_equal(WEIR_IO, upgrade(*state, bad));
	if (strstr(error.text, "weir.db: no such table: main.nowhere") == NULL)
		fail_msg("%s", error.text);
	assert_int_equal(TODAY, number(*state, "SELECT version FROM schema_version"));
	assert_int_equal(0, number(*state, "SELECT count(*) FROM pragma_table_info('note') WHERE name = 'written_ms'"));
	assert_note_is_there(*state);
	free_schema(bad);
}

static void a_newer_one_is_refused(void **state)
{
	struct weir_span second = with_steps(next_step, "");
	struct weir_store *store = NULL;
	make_state(*state);
	assert_int_equal(WEIR_OK, upgrade(*state, second));
	assert_int_equal(WEIR_NEWER, weir_store_sqlite_open(*state, &store, &error));
	assert_non_null(strstr(error.text, "weir.db: written by a newer version of weir (schema 5, known: 4)"));
	assert_int_equal(WEIR_NEWER, weir_store_sqlite_open_read_only(*state, &store, &error));
	assert_int_equal(7, number(*state, "SELECT written_ms FROM note"));
	free_schema(second);
}

static void a_look_upgrades_nothing(void **state)
{
	struct weir_span second = with_steps(next_step, "");
	char path[512];
	make_state(*state);
	struct weir_database *database = NULL;
	assert_int_equal(WEIR_OK, weir_database_open_read_only(path_in(*state, path), false, weir_store_statements,
	                                                       WEIR_STORE_STATEMENTS, &database, &error));
	assert_int_equal(WEIR_OK, weir_store_schema_check(database, path, weir_store_schema_steps(), &error));
	assert_int_equal(WEIR_INVALID, weir_store_schema_check(database, path, second, &error));
	assert_non_null(strstr(error.text, "written by an older version of weir; `weir run` upgrades it"));
	weir_database_close(database);
	assert_int_equal(TODAY, number(*state, "SELECT version FROM schema_version"));
	free_schema(second);
}

struct opener {
	const char *directory;
	struct weir_span schema;
	enum weir_status status;
};

static void *open_and_close(void *context)
{
	struct opener *opener = context;
	char path[512];
	struct weir_error mine;
	struct weir_database *database = NULL;
	opener->status = weir_database_open(path_in(opener->directory, path), weir_store_statements, WEIR_STORE_STATEMENTS,
	                                    &database, &mine);
	if (opener->status == WEIR_OK)
		opener->status = weir_store_schema_upgrade(database, path, opener->schema, &mine);
	weir_database_close(database);
	return NULL;
}

/* Whoever is first runs the step; a second time it would fail. */
static void several_may_come_at_once(void **state)
{
	struct weir_span second = with_steps(next_step, "");
	for (int round = 0; round < 10; round++) {
		char directory[512];
		pthread_t threads[8];
		struct opener openers[8];
		snprintf(directory, sizeof directory, "%s/%d", (const char *)*state, round);
		make_state(directory);
		for (int i = 0; i < 8; i++) {
			openers[i] = (struct opener){.directory = directory, .schema = second};
			assert_int_equal(0, pthread_create(&threads[i], NULL, open_and_close, &openers[i]));
		}
		for (int i = 0; i < 8; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(WEIR_OK, openers[i].status);
		}
		assert_int_equal(TODAY + 1, number(directory, "SELECT version FROM schema_version"));
	}
	free_schema(second);
}

#define test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(this_version_is_made),     test(an_older_one_gets_the_steps_that_it_lacks),
		test(several_steps_are_one),    test(a_step_that_fails_leaves_all_as_it_was),
		test(a_newer_one_is_refused),   test(a_look_upgrades_nothing),
		test(several_may_come_at_once), test(a_state_of_the_first_version_is_upgraded),
	};
	return cmocka_run_group_tests_name("store_sqlite_schema", tests, NULL, NULL);
}
