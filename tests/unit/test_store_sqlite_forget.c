/* SPDX-License-Identifier: Apache-2.0 */
/* A key that is forgotten is in none of the database's files any more, while the store is open and after it was closed. */
#include "common/base/read_file.h"
#include "common/store/sqlite/store_sqlite.h"
#include "common/store/store.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROLE = WEIR_STORE_ROLE_ARCHIVER, HOURS = 40 };

static const char forgotten[] = "198.51.100.77", kept[] = "203.0.113.99";
static struct weir_error error;
static struct weir_partition_state state;

static struct weir_store *open_store(const char *folder)
{
	struct weir_store *store;
	if (weir_store_sqlite_open(folder, &store, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return store;
}

/* Rows of a key in every table that has keys. */
static void add(struct weir_store *store, const char *key)
{
	static struct weir_archive_count hours[HOURS];
	static struct weir_archive_event events[HOURS];
	static struct weir_archive_decision decisions[HOURS];
	struct weir_span bucket = weir_span_of(key);
	for (uint32_t i = 0; i < HOURS; i++) {
		int64_t at_ms = i * (int64_t)WEIR_HOUR_MS;
		hours[i] = (struct weir_archive_count){1, bucket, at_ms, 1, 0, 0};
		events[i] = (struct weir_archive_event){{0, state.checkpoint, i}, 1, bucket, at_ms, false, {.at = NULL}};
		decisions[i] = (struct weir_archive_decision){.id = {0, state.checkpoint, i},
		                                              .at_ms = at_ms,
		                                              .until_ms = at_ms,
		                                              .zone = weir_span_of("site"),
		                                              .bucket = bucket,
		                                              .action = weir_span_of("block"),
		                                              .mode = weir_span_of("enforce")};
	}
	const struct weir_archive_batch batch = {.hours = hours,
	                                         .hour_count = HOURS,
	                                         .events = events,
	                                         .event_count = HOURS,
	                                         .decisions = decisions,
	                                         .decision_count = HOURS,
	                                         .shadows = decisions,
	                                         .shadow_count = HOURS};
	state.checkpoint++;
	if (store->ops->archive(store, ROLE, &batch, &state, 1, NULL, NULL, 0, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void forget(struct weir_store *store, const char *key)
{
	const struct weir_archive_bucket bucket = {1, "site", weir_span_of(key)};
	struct weir_archive_removed removed = {.locks = 0};
	for (bool more = true; more;)
		if (store->ops->forget(store, &bucket, &removed, &more, &error) != WEIR_OK)
			fail_msg("%s", error.text);
	assert_int_equal(removed.rows[WEIR_ARCHIVE_HOURLY], HOURS);
	assert_int_equal(removed.rows[WEIR_ARCHIVE_EVENTS], HOURS);
}

/* Whether the database or its log has a key's bytes. */
static bool files_have(const char *folder, const char *key)
{
	static const char *const names[] = {"weir.db", "weir.db-wal"};
	bool has = false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[300], *bytes;
		size_t length, size = strlen(key);
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		if (access(path, F_OK) != 0)
			continue;
		if (weir_read_file(path, 64 << 20, &bytes, &length, &error) != WEIR_OK)
			fail_msg("%s", error.text);
		for (size_t at = 0; at + size <= length && !has; at++)
			has = memcmp(bytes + at, key, size) == 0;
		free(bytes);
	}
	return has;
}

static void a_forgotten_key_is_in_no_file(void **folder)
{
	struct weir_store *store = open_store(*folder);
	assert_int_equal(store->ops->take(store, ROLE, 0, &state, &error), WEIR_OK);
	add(store, kept);
	add(store, forgotten);
	assert_true(files_have(*folder, forgotten));
	forget(store, forgotten);
	assert_false(files_have(*folder, forgotten));
	assert_true(files_have(*folder, kept));
	store->ops->close(store);
	assert_false(files_have(*folder, forgotten));
	assert_true(files_have(*folder, kept));
}

/* One who reads an older state has a right to it: to forget takes its time for the log, and fails for nothing. */
static void a_reader_holds_up_nobody(void **folder)
{
	struct weir_store *store = open_store(*folder), *reader;
	assert_int_equal(store->ops->take(store, ROLE, 0, &state, &error), WEIR_OK);
	add(store, forgotten);
	if (weir_store_sqlite_open_read_only(*folder, &reader, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	forget(store, forgotten);
	reader->ops->close(reader);
	store->ops->close(store);
	assert_false(files_have(*folder, forgotten));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_forgotten_key_is_in_no_file, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_reader_holds_up_nobody, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("store_sqlite_forget", tests, NULL, NULL);
}
