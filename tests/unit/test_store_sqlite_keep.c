/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old rows of the SQLite store go in bounded steps, bucket by bucket: at the end of a walk none is left that was there
 * when it began, and no other is gone, however many buckets there are and however many rows one of them has.
 */
#include "common/store/sqlite/store_sqlite.h"
#include "common/store/store.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum {
	ROLE = WEIR_STORE_ROLE_ARCHIVER,
	BUCKETS = 12000, /* more than a step looks at */
	MANY = 25000,    /* rows of one bucket, more than two steps remove */
	STEP_ROWS = 10000,
	HOURS = 4,
};

static const int64_t before_ms = 2 * (int64_t)WEIR_HOUR_MS;
static struct weir_error error;
static struct weir_partition_state state;

static struct weir_store *open_store(const char *folder)
{
	char path[300];
	struct weir_store *store;
	snprintf(path, sizeof path, "%s/weir.db", folder);
	if (weir_store_sqlite_open(path, &store, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_int_equal(store->ops->take(store, ROLE, 0, &state, &error), WEIR_OK);
	return store;
}

static void add(struct weir_store *store, const struct weir_archive_batch *batch)
{
	state.checkpoint++;
	if (store->ops->archive(store, ROLE, batch, &state, 1, NULL, NULL, 0, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static enum weir_status take_number(void *context, const struct weir_sql_value *columns, unsigned count)
{
	assert_int_equal(count, 1);
	*(int64_t *)context = columns[0].number;
	return WEIR_OK;
}

static int64_t number(struct weir_store *store, const char *sql)
{
	int64_t result = -1;
	if (store->ops->query(store, sql, NULL, 0, take_number, &result, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return result;
}

/* One step; as if it were `before_ms` after the age at which rows go. */
static bool step(struct weir_store *store)
{
	const int64_t keep_ms[WEIR_ARCHIVE_TABLES] = {[WEIR_ARCHIVE_HOURLY] = 1, [WEIR_ARCHIVE_EVENTS] = 1};
	bool more = false;
	if (store->ops->keep(store, keep_ms, before_ms + 1, &more, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return more;
}

/* Steps until a walk is over. @param most  of rows that one may remove of count_sql's table; @return steps */
static int walk(struct weir_store *store, const char *count_sql, int64_t most)
{
	int steps = 0;
	bool more = true;
	for (int64_t held = number(store, count_sql); more; steps++) {
		assert_true(steps < 20);
		more = step(store);
		int64_t left = number(store, count_sql);
		assert_true(held - left <= most);
		held = left;
	}
	return steps;
}

/* Any bytes, some that begin others, some that are empty. */
static struct weir_span name_of(char (*names)[8], unsigned i)
{
	unsigned length = 0;
	for (unsigned rest = i; rest > 0; rest /= 200)
		names[i][length++] = (char)(rest % 200);
	return (struct weir_span){names[i], length};
}

static void old_hours_of_many_buckets_go(void **folder)
{
	static char names[BUCKETS][8];
	static struct weir_archive_count counts[BUCKETS];
	struct weir_store *store = open_store(*folder);
	int64_t old = 0, young = 0;
	for (unsigned hour = 0; hour < HOURS; hour++) {
		uint32_t count = 0;
		for (unsigned i = 0; i < BUCKETS; i++) {
			if ((i * 7 + hour) % 3 == 0) /* not every bucket has every hour */
				continue;
			int64_t at_ms = hour * (int64_t)WEIR_HOUR_MS;
			counts[count++] = (struct weir_archive_count){1 + i % 5, name_of(names, i), at_ms, 1, 0, 0};
			*(at_ms < before_ms ? &old : &young) += 1;
		}
		add(store, &(const struct weir_archive_batch){.hours = counts, .hour_count = count});
	}
	assert_int_equal(number(store, "SELECT count(*) FROM count_hourly"), old + young);
	int steps = walk(store, "SELECT count(*) FROM count_hourly", STEP_ROWS + HOURS);
	assert_true(steps >= BUCKETS / 5000);
	assert_int_equal(number(store, "SELECT count(*) FROM count_hourly"), young);
	assert_int_equal(number(store, "SELECT min(hour_ms) FROM count_hourly"), before_ms);

	/* What comes later behind a walk goes with the next one. */
	assert_true(step(store));
	counts[0] = (struct weir_archive_count){1, name_of(names, 0), 0, 1, 0, 0};
	add(store, &(const struct weir_archive_batch){.hours = counts, .hour_count = 1});
	walk(store, "SELECT count(*) FROM count_hourly", 1);
	assert_int_equal(number(store, "SELECT count(*) FROM count_hourly WHERE hour_ms = 0"), 1);
	walk(store, "SELECT count(*) FROM count_hourly", 1);
	assert_int_equal(number(store, "SELECT count(*) FROM count_hourly WHERE hour_ms = 0"), 0);
	store->ops->close(store);
}

static void old_events_of_one_bucket_go_in_steps(void **folder)
{
	static struct weir_archive_event events[MANY];
	struct weir_store *store = open_store(*folder);
	for (uint32_t i = 0; i < MANY; i++)
		events[i] =
			(struct weir_archive_event){{0, 1, i}, 1, weir_span_of("hot"), (int64_t)(i / 2) * 720, false, {.at = NULL}};
	add(store, &(const struct weir_archive_batch){.events = events, .event_count = MANY});
	int64_t young = number(store, "SELECT count(*) FROM zone_txn WHERE at_ms >= 2 * 3600000");
	assert_in_range(young, 1, MANY - 1);
	int steps = walk(store, "SELECT count(*) FROM zone_txn", STEP_ROWS + 1);
	assert_true(steps >= (MANY - young) / STEP_ROWS);
	assert_int_equal(number(store, "SELECT count(*) FROM zone_txn"), young);
	assert_int_equal(number(store, "SELECT min(at_ms) FROM zone_txn"), before_ms);
	store->ops->close(store);
}

/* All keys of a day have its time. */
static void a_day_of_many_buckets_goes_in_steps(void **folder)
{
	static char names[MANY][8];
	static struct weir_archive_count counts[MANY];
	const int64_t keep_ms[WEIR_ARCHIVE_TABLES] = {[WEIR_ARCHIVE_DAILY] = 1};
	static const char count_sql[] = "SELECT count(*) FROM count_daily";
	struct weir_store *store = open_store(*folder);
	for (unsigned i = 0; i < MANY; i++)
		counts[i] = (struct weir_archive_count){1 + i % 2, name_of(names, i), i == 7 ? WEIR_DAY_MS : 0, 1, 0, 0};
	add(store, &(const struct weir_archive_batch){.days = counts, .day_count = MANY});
	bool more = true;
	for (int64_t held = number(store, count_sql); more;) {
		assert_int_equal(store->ops->keep(store, keep_ms, WEIR_DAY_MS + 1, &more, &error), WEIR_OK);
		int64_t left = number(store, count_sql);
		assert_true(held - left <= STEP_ROWS && (held > left || !more));
		held = left;
	}
	assert_int_equal(number(store, count_sql), 1);
	store->ops->close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_day_of_many_buckets_goes_in_steps, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(old_hours_of_many_buckets_go, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(old_events_of_one_bucket_go_in_steps, scratch_setup, scratch_teardown)};
	return cmocka_run_group_tests_name("store_sqlite_keep", tests, NULL, NULL);
}
