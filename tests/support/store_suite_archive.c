/* SPDX-License-Identifier: Apache-2.0 */
/* Any store: what is archived is added once, with its states or not at all, and read back by SQL. */
#include "common/base/alloc.h"
#include "common/base/text.h"
#include "tests/support/store_suite_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARCHIVER = WEIR_STORE_ROLE_ARCHIVER, KEYS = 5000, ROUNDS = 3 };

static struct weir_error error;

static enum weir_status append_row(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct weir_text *text = context;
	for (unsigned i = 0; i < count; i++) {
		if (i > 0)
			weir_text_puts(text, " ");
		if (columns[i].type == WEIR_SQL_NUMBER)
			weir_text_printf(text, "%lld", (long long)columns[i].number);
		else if (columns[i].type == WEIR_SQL_TEXT)
			weir_text_append(text, columns[i].text.at, columns[i].text.length);
		else
			weir_text_puts(text, "-");
	}
	weir_text_puts(text, "; ");
	return WEIR_OK;
}

void assert_rows(struct weir_store *store, const char *sql, const struct weir_sql_value *parameters, unsigned count,
                 const char *expected)
{
	struct weir_text text = {0};
	if (store->ops->query(store, sql, parameters, count, append_row, &text, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_text_append(&text, "", 1);
	assert_string_equal(text.at, expected);
	weir_text_deinit(&text);
}

enum weir_status archive(struct weir_store *store, const struct weir_archive_batch *batch,
                         struct weir_partition_state *state, uint64_t checkpoint)
{
	struct weir_archive_count *days = weir_alloc(batch->hour_count + 1, sizeof *days);
	struct weir_archive_batch whole = *batch;
	whole.days = days;
	whole.day_count = weir_archive_days(batch->hours, batch->hour_count, days);
	state->checkpoint = checkpoint;
	enum weir_status status = store->ops->archive(store, ARCHIVER, &whole, state, 1, NULL, NULL, 0, &error);
	free(days);
	return status;
}

void what_is_archived_is_added_once(void **place)
{
	struct weir_store *store = open_store(*place);
	const struct weir_archive_count counts[] = {
		{1, weir_span_of("10.0.0.1"), 86400000 + 3600000, 5, 2, 1},
		{1, weir_span_of("10.0.0.1"), -3600000, 1, 0, 0}, /* the last hour of 1969 */
		{2, {.at = "a\0\xff", .length = 3}, 86400000, 0, 7, 0},
	};
	const struct weir_archive_total totals[] = {{1, 90000000, 3, 5, 2, 1}, {1, 90000000, 4, 10, 0, 0}};
	const struct weir_archive_batch batch = {.hours = counts, .hour_count = 3, .totals = totals, .total_count = 2};
	struct weir_partition_state state = take(store, ARCHIVER, 3);
	state.next_offset = 10;
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK); /* as after a lost answer */
	assert_int_equal(archive(store, &batch, &state, 2), WEIR_OK);
	const struct weir_sql_value key[] = {weir_sql_number(1), weir_sql_text(weir_span_of("10.0.0.1"))};
	assert_rows(store,
	            "SELECT hour_ms, passed, blocked, late FROM count_hourly WHERE zone_id = ? AND bucket = ?"
	            " ORDER BY hour_ms",
	            key, 2, "-3600000 2 0 0; 90000000 10 4 2; ");
	assert_rows(store, "SELECT day_ms, passed FROM count_daily WHERE zone_id = ? AND bucket = ? ORDER BY day_ms", key,
	            2, "-86400000 2; 86400000 10; ");
	const struct weir_sql_value bytes = weir_sql_text(counts[2].bucket);
	assert_rows(store, "SELECT zone_id, blocked, NULL FROM count_daily WHERE bucket = ?", &bytes, 1, "2 14 -; ");
	assert_rows(store, "SELECT partition_id, zone_id, hour_ms, passed, blocked, late FROM zone_hourly ORDER BY 1", NULL,
	            0, "3 1 90000000 10 4 2; 4 1 90000000 20 0 0; ");
	store->ops->close(store);
}

void who_was_fenced_archives_nothing(void **place)
{
	struct weir_store *store = open_store(*place);
	const struct weir_archive_event event = {{0, 5, 1}, 1,    weir_span_of("k"),
	                                         1000,      true, weir_span_of("{\"path\":\"/\"}")};
	const struct weir_archive_batch batch = {.events = &event, .event_count = 1};
	struct weir_partition_state states[2] = {take(store, ARCHIVER, 0), take(store, ARCHIVER, 1)};
	states[0].checkpoint = states[1].checkpoint = 1;
	take(store, ARCHIVER, 1);
	assert_int_equal(store->ops->archive(store, ARCHIVER, &batch, states, 2, NULL, NULL, 0, &error), WEIR_FENCED);
	assert_rows(store, "SELECT count(*) FROM zone_txn", NULL, 0, "0; ");
	assert_int_equal(store->ops->archive(store, ARCHIVER, &batch, states, 1, NULL, NULL, 0, &error), WEIR_OK);
	assert_rows(store, "SELECT zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked, fields FROM zone_txn",
	            NULL, 0, "1 k 1000 0 5 1 1 {\"path\":\"/\"}; ");
	struct weir_partition_state stored;
	assert_int_equal(store->ops->inspect(store, ARCHIVER, 0, &stored, &error), WEIR_OK);
	assert_int_equal(stored.checkpoint, 1);
	store->ops->close(store);
}

void a_decision_is_kept_as_it_came_first(void **place)
{
	struct weir_store *store = open_store(*place);
	struct weir_archive_decision rows[] = {
		{.id = {1, 7, 0},
	     .at_ms = 100,
	     .until_ms = 200,
	     .zone = weir_span_of("site"),
	     .bucket = weir_span_of("k"),
	     .action = weir_span_of("block"),
	     .mode = weir_span_of("enforce"),
	     .limited = true,
	     .algorithm = weir_span_of("gcra"),
	     .rate = 10,
	     .window_ms = 60000,
	     .held = 9,
	     .nth = 3},
		{.id = {1, 7, 1},
	     .at_ms = 100,
	     .until_ms = 100,
	     .zone = weir_span_of("site"),
	     .action = weir_span_of("lift"),
	     .mode = weir_span_of("enforce"),
	     .ordered_by = weir_span_of("root")},
	};
	struct weir_archive_decision shadow = rows[0]; /* of the same place: they are never in each other's way */
	shadow.zone = weir_span_of("trial");
	shadow.mode = weir_span_of("shadow");
	const struct weir_archive_batch batch = {
		.decisions = rows, .decision_count = 2, .shadows = &shadow, .shadow_count = 1};
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	rows[0].until_ms = shadow.until_ms = 900; /* published again */
	assert_int_equal(archive(store, &batch, &state, 2), WEIR_OK);
	assert_rows(store,
	            "SELECT pair, bucket, action, until_ms, algorithm, rate, window_ms, held, ordered_by, reason, nth"
	            " FROM decision_history ORDER BY at_ms, pair",
	            NULL, 0, "0 k block 200 gcra 10 60000 9 - - 3; 1 - lift 100 - - - - root - -; ");
	assert_rows(store,
	            "SELECT id, zone, key_text, action, until_ms, mode, algorithm, rate, window_ms, held, ordered_by, nth"
	            " FROM shadow_decisions",
	            NULL, 0, "1-7-0 trial k block 200 shadow gcra 10 60000 9 - 3; ");
	store->ops->close(store);
}

/* Many keys and hours: more rows than one statement takes, and a rest. */
void many_counts_are_summed(void **place)
{
	struct weir_store *store = open_store(*place);
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	static char names[KEYS][8];
	static struct weir_archive_count counts[KEYS];
	uint64_t model[2][3] = {{0}}; /* by zone: passed, blocked, late */
	for (unsigned round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < KEYS; i++) {
			snprintf(names[i], sizeof names[i], "u%u", i);
			struct weir_archive_count *row = &counts[i];
			*row = (struct weir_archive_count){
				1 + i % 2, weir_span_of(names[i]), (int64_t)(round % 2) * WEIR_HOUR_MS, i * round, i % 5, i % 3};
			model[i % 2][0] += row->passed;
			model[i % 2][1] += row->blocked;
			model[i % 2][2] += row->late;
		}
		const struct weir_archive_batch batch = {.hours = counts, .hour_count = KEYS};
		assert_int_equal(archive(store, &batch, &state, round), WEIR_OK);
	}
	struct weir_text expected = {0};
	for (unsigned zone = 0; zone < 2; zone++)
		weir_text_printf(&expected, "%u %llu %llu %llu; ", zone + 1, (unsigned long long)model[zone][0],
		                 (unsigned long long)model[zone][1], (unsigned long long)model[zone][2]);
	weir_text_append(&expected, "", 1);
	static const char *const tables[] = {"count_hourly", "count_daily"};
	for (int i = 0; i < 2; i++) {
		char sql[256];
		snprintf(sql, sizeof sql,
		         "SELECT zone_id, CAST(SUM(passed) AS SIGNED), CAST(SUM(blocked) AS SIGNED), CAST(SUM(late) AS SIGNED)"
		         " FROM %s GROUP BY zone_id ORDER BY zone_id",
		         tables[i]);
		assert_rows(store, sql, NULL, 0, expected.at);
	}
	assert_rows(store, "SELECT count(*) FROM count_hourly WHERE bucket = 'u4999'", NULL, 0, "2; ");
	weir_text_deinit(&expected);
	store->ops->close(store);
}

/* What a key may be, but a zero byte, which would end the text that is compared. */
static struct weir_span long_name(char *name, unsigned number)
{
	uint32_t length = number % 100 == 0 || number < 2000 ? 1000 : 1 + number % 20;
	for (uint32_t i = 0; i < length; i++)
		name[i] = (char)(1 + (number + i) % 255);
	return (struct weir_span){name, length};
}

/* More than one statement takes by their number, and by their bytes. */
void many_events_are_kept(void **place)
{
	enum { EVENTS = 9000 };
	struct weir_store *store = open_store(*place);
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	struct weir_archive_event *events = weir_alloc(EVENTS, sizeof *events);
	char(*names)[1000] = weir_alloc(EVENTS, sizeof *names);
	struct weir_text expected = {0};
	for (unsigned i = 0; i < EVENTS; i++) {
		events[i] = (struct weir_archive_event){.id = {i % 7, UINT64_C(1) << (i % 63), i},
		                                        .zone = UINT32_MAX - i % 2,
		                                        .bucket = long_name(names[i], i),
		                                        .at_ms = INT64_C(1700000000000) + i,
		                                        .blocked = i % 3 == 0};
		weir_text_printf(&expected, "%u ", events[i].zone);
		weir_text_append(&expected, names[i], events[i].bucket.length);
		weir_text_printf(&expected, " %lld %u %llu %u %d; ", (long long)events[i].at_ms, i % 7,
		                 (unsigned long long)events[i].id.offset, i, i % 3 == 0);
	}
	weir_text_append(&expected, "", 1);
	const struct weir_archive_batch batch = {.events = events, .event_count = EVENTS};
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	assert_rows(store,
	            "SELECT zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked FROM zone_txn ORDER BY at_ms",
	            NULL, 0, expected.at);
	weir_text_deinit(&expected);
	free(names);
	free(events);
	store->ops->close(store);
}

/* Of which the first have nothing where later ones have something. */
void many_decisions_are_kept(void **place)
{
	enum { DECISIONS = 5000 };
	struct weir_store *store = open_store(*place);
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	struct weir_archive_decision *rows = weir_alloc(DECISIONS, sizeof *rows);
	struct weir_text expected = {0};
	for (unsigned i = 0; i < DECISIONS; i++) {
		bool limited = i % 3 == 2, keyed = i % 7 > 1;
		rows[i] =
			(struct weir_archive_decision){.id = {1, 2, i},
		                                   .at_ms = INT64_C(1700000000000) + i,
		                                   .until_ms = i,
		                                   .zone = weir_span_of("site"),
		                                   .bucket = {.at = keyed ? "key" : NULL, .length = keyed ? 1 + i % 3 : 0},
		                                   .action = weir_span_of("block"),
		                                   .mode = weir_span_of("enforce"),
		                                   .limited = limited,
		                                   .algorithm = weir_span_of("gcra"),
		                                   .rate = i,
		                                   .window_ms = 60000,
		                                   .held = -(int64_t)i,
		                                   .ordered_by = {.at = i % 5 == 4 ? "ann" : NULL, .length = 3}};
		weir_text_printf(&expected, "%u %.*s ", i, keyed ? (int)(1 + i % 3) : 1, keyed ? "key" : "-");
		if (limited)
			weir_text_printf(&expected, "gcra %u 60000 -%u %s; ", i, i, i % 5 == 4 ? "ann" : "-");
		else
			weir_text_printf(&expected, "- - - - %s; ", i % 5 == 4 ? "ann" : "-");
	}
	weir_text_append(&expected, "", 1);
	const struct weir_archive_batch batch = {
		.decisions = rows, .decision_count = DECISIONS, .shadows = rows, .shadow_count = DECISIONS};
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	for (int i = WEIR_ARCHIVE_DECISIONS; i <= WEIR_ARCHIVE_SHADOW; i++) {
		char sql[160];
		snprintf(sql, sizeof sql,
		         "SELECT pair, bucket, algorithm, rate, window_ms, held, ordered_by FROM %s ORDER BY at_ms",
		         weir_archive_names[i].table);
		assert_rows(store, sql, NULL, 0, expected.at);
	}
	weir_text_deinit(&expected);
	free(rows);
	store->ops->close(store);
}

/* Rows at every day around now, before it and after; those that are too old go, others never. */
void old_rows_go(void **place)
{
	enum { DAYS = 90, KEPT_DAYS = 40 };
	struct weir_store *store = open_store(*place);
	const int64_t now_ms = INT64_C(1700000000000), first_ms = weir_day_of(now_ms) - 60 * (int64_t)WEIR_DAY_MS;
	const int64_t keep_ms[WEIR_ARCHIVE_TABLES] = {
		[WEIR_ARCHIVE_HOURLY] = KEPT_DAYS * (int64_t)WEIR_DAY_MS, [WEIR_ARCHIVE_EVENTS] = 1, [WEIR_ARCHIVE_SHADOW] = 1};
	static struct weir_archive_count counts[DAYS];
	static struct weir_archive_event events[DAYS];
	static struct weir_archive_decision decisions[DAYS];
	for (int i = 0; i < DAYS; i++) {
		int64_t at_ms = first_ms + i * (int64_t)WEIR_DAY_MS;
		counts[i] = (struct weir_archive_count){1, weir_span_of("k"), at_ms, 1, 0, 0};
		events[i] = (struct weir_archive_event){{0, 1, (uint32_t)i}, 1, weir_span_of("k"), at_ms, false, {.at = NULL}};
		decisions[i] = (struct weir_archive_decision){.id = {0, 1, (uint32_t)i},
		                                              .at_ms = at_ms,
		                                              .zone = weir_span_of("site"),
		                                              .action = weir_span_of("block"),
		                                              .mode = weir_span_of("shadow")};
	}
	const struct weir_archive_batch batch = {.hours = counts,
	                                         .hour_count = DAYS,
	                                         .decisions = decisions,
	                                         .decision_count = DAYS,
	                                         .shadows = decisions,
	                                         .shadow_count = DAYS,
	                                         .events = events,
	                                         .event_count = DAYS};
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	bool more;
	assert_int_equal(store->ops->keep(store, keep_ms, now_ms - 30 * (int64_t)WEIR_DAY_MS, &more, &error), WEIR_OK);
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	for (int times = 0; times < 3; times++)
		if (store->ops->keep(store, keep_ms, now_ms, &more, &error) != WEIR_OK)
			fail_msg("%s", error.text);
	/* A partition goes when all of it is too old, so that some days more may stay, but never one less. */
	char sql[256], wanted[64];
	snprintf(sql, sizeof sql, "SELECT count(*) FROM count_hourly WHERE hour_ms >= %lld",
	         (long long)(now_ms - keep_ms[WEIR_ARCHIVE_HOURLY]));
	snprintf(wanted, sizeof wanted, "%d; ", DAYS - 60 + KEPT_DAYS - 1); /* the first of them begins earlier */
	assert_rows(store, sql, NULL, 0, wanted);
	snprintf(sql, sizeof sql, "SELECT count(*) FROM count_hourly WHERE hour_ms < %lld",
	         (long long)(now_ms - keep_ms[WEIR_ARCHIVE_HOURLY] - 31 * (int64_t)WEIR_DAY_MS));
	assert_rows(store, sql, NULL, 0, "0; ");
	assert_rows(store, "SELECT count(*) FROM count_daily", NULL, 0, "90; ");
	assert_rows(store, "SELECT count(*) FROM decision_history", NULL, 0, "90; ");
	for (int i = WEIR_ARCHIVE_SHADOW; i <= WEIR_ARCHIVE_EVENTS; i++) {
		const char *table = weir_archive_names[i].table;
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE at_ms >= %lld", table, (long long)now_ms);
		assert_rows(store, sql, NULL, 0, "29; ");
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE at_ms < %lld", table,
		         (long long)(now_ms - 31 * (int64_t)WEIR_DAY_MS));
		assert_rows(store, sql, NULL, 0, "0; ");
	}
	store->ops->close(store);
}

/* ---- forgetting ---- */

enum { EVERY_TABLE = 8 }; /* rows that fill_buckets() gives each bucket in each table */

static struct weir_span name_of(char names[][4], int i)
{
	return (struct weir_span){names[i], (uint32_t)snprintf(names[i], sizeof names[i], "u%d", i)};
}

/* Two buckets in two zones, in every table: rows of EVERY_TABLE hours, which are as many days. */
static void fill_buckets(struct weir_store *store)
{
	enum { BUCKETS = 2, ZONES = 2, ROWS = BUCKETS * ZONES * EVERY_TABLE };
	static char names[BUCKETS][4];
	static struct weir_archive_count counts[ROWS];
	static struct weir_archive_event events[ROWS];
	static struct weir_archive_decision decisions[ROWS + 1];
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	for (int i = 0; i < ROWS; i++) {
		struct weir_span bucket = name_of(names, i % BUCKETS);
		uint32_t zone = 1 + (uint32_t)(i / BUCKETS % ZONES);
		int64_t at_ms = i / (BUCKETS * ZONES) * (int64_t)WEIR_DAY_MS;
		counts[i] = (struct weir_archive_count){zone, bucket, at_ms, 1, 0, 0};
		events[i] = (struct weir_archive_event){{0, 1, (uint32_t)i}, zone, bucket, at_ms, false, {.at = NULL}};
		decisions[i] = (struct weir_archive_decision){.id = {0, 1, (uint32_t)i},
		                                              .at_ms = at_ms,
		                                              .until_ms = at_ms,
		                                              .zone = weir_span_of(zone == 1 ? "site" : "login"),
		                                              .bucket = bucket,
		                                              .action = weir_span_of("block"),
		                                              .mode = weir_span_of("enforce")};
	}
	decisions[ROWS] = decisions[0]; /* of a whole zone: of nobody */
	decisions[ROWS].id.pair = ROWS;
	decisions[ROWS].bucket.at = NULL;
	const struct weir_archive_batch batch = {.hours = counts,
	                                         .hour_count = ROWS,
	                                         .events = events,
	                                         .event_count = ROWS,
	                                         .decisions = decisions,
	                                         .decision_count = ROWS + 1,
	                                         .shadows = decisions,
	                                         .shadow_count = ROWS + 1};
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
}

static struct weir_archive_removed forget(struct weir_store *store, const struct weir_archive_bucket *bucket,
                                          int *steps)
{
	struct weir_archive_removed removed = {.locks = 0};
	bool more = true;
	for (*steps = 0; more; ++*steps)
		if (store->ops->forget(store, bucket, &removed, &more, &error) != WEIR_OK)
			fail_msg("%s", error.text);
	return removed;
}

void a_bucket_is_forgotten(void **place)
{
	struct weir_store *store = open_store(*place);
	const struct weir_archive_bucket bucket = {1, "site", weir_span_of("u1")};
	struct weir_archive_removed removed;
	int steps;
	fill_buckets(store);
	for (unsigned rows = EVERY_TABLE, times = 0; times < 2; times++, rows = 0) { /* the second finds nothing */
		removed = forget(store, &bucket, &steps);
		assert_int_equal(steps, 1);
		for (int i = 0; i < WEIR_ARCHIVE_KEYED; i++)
			assert_int_equal(removed.rows[i], rows);
		assert_int_equal(removed.locks, 0);
	}
	static const char *const by_id[] = {"count_hourly", "count_daily", "zone_txn"};
	for (int i = 0; i < 3; i++) {
		char sql[128];
		snprintf(sql, sizeof sql, "SELECT zone_id, bucket, count(*) FROM %s GROUP BY zone_id, bucket ORDER BY 1, 2",
		         by_id[i]);
		assert_rows(store, sql, NULL, 0, "1 u0 8; 2 u0 8; 2 u1 8; ");
	}
	static const char *const by_name[] = {"decision_history", "shadow_history"};
	for (int i = 0; i < 2; i++) {
		char sql[128];
		snprintf(sql, sizeof sql, "SELECT zone, bucket, count(*) FROM %s GROUP BY zone, bucket ORDER BY 1, 2",
		         by_name[i]);
		assert_rows(store, sql, NULL, 0, "login u0 8; login u1 8; site - 1; site u0 8; ");
	}
	store->ops->close(store);
}

/* More rows than one step takes, some of one time: each step is short, and in the end none is left. */
void a_bucket_of_many_rows_goes_in_steps(void **place)
{
	enum { ROWS = 25000 };
	struct weir_store *store = open_store(*place);
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	struct weir_archive_event *events = malloc((ROWS + 1) * sizeof *events);
	assert_non_null(events);
	for (uint32_t i = 0; i <= ROWS; i++)
		events[i] =
			(struct weir_archive_event){{0, i, 0}, 1, weir_span_of(i < ROWS ? "u" : "v"), i / 3, false, {.at = NULL}};
	const struct weir_archive_batch batch = {.events = events, .event_count = ROWS + 1};
	const struct weir_archive_bucket bucket = {1, "site", weir_span_of("u")};
	int steps;
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	struct weir_archive_removed removed = forget(store, &bucket, &steps);
	assert_in_range(steps, 2, 10);
	assert_int_equal(removed.rows[WEIR_ARCHIVE_EVENTS], ROWS);
	assert_rows(store, "SELECT bucket, at_ms FROM zone_txn", NULL, 0, "v 8333; ");
	free(events);
	store->ops->close(store);
}

void a_wrong_question_is_refused(void **place)
{
	struct weir_store *store = open_store(*place);
	struct weir_text text = {0};
	assert_int_not_equal(store->ops->query(store, "SELECT nothing FROM nowhere", NULL, 0, append_row, &text, &error),
	                     WEIR_OK);
	assert_true(strlen(error.text) > 0);
	assert_rows(store, "SELECT count(*) FROM zone_txn", NULL, 0, "0; ");
	store->ops->close(store);
}

/* Of what is too old a block that holds stays, until it is over or something came behind it. */
void blocks_that_hold_stay(void **place)
{
	enum { AHEAD = 10, ROWS = 8 };
	static const struct {
		const char *bucket, *action, *mode;
		uint32_t partition;
		int days, until_days; /* before and after now */
	} rows[ROWS] = {
		{"holds", "block", "enforce", 0, 20, AHEAD},  {"holds, too", "block", "enforce", 0, 12, AHEAD},
		{"over", "block", "enforce", 0, 20, -19},     {"lifted", "block", "enforce", 0, 20, AHEAD},
		{"lifted", "unblock", "enforce", 0, 15, -15}, {"of a removed zone", "block", "enforce", 1, 20, AHEAD},
		{NULL, "unblock", "enforce", 1, 18, -18},     {"young", "block", "enforce", 0, 0, 0},
	};
	const int64_t now_ms = 20000 * (int64_t)WEIR_DAY_MS + 5;
	const int64_t keep_ms[WEIR_ARCHIVE_TABLES] = {[WEIR_ARCHIVE_DECISIONS] = WEIR_DAY_MS};
	const int64_t longer_ms[WEIR_ARCHIVE_TABLES] = {[WEIR_ARCHIVE_DECISIONS] = 100 * (int64_t)WEIR_DAY_MS};
	struct weir_archive_decision decisions[ROWS];
	struct weir_store *store = open_store(*place);
	for (uint32_t i = 0; i < ROWS; i++)
		decisions[i] = (struct weir_archive_decision){.id = {rows[i].partition, i, 0},
		                                              .at_ms = now_ms - rows[i].days * (int64_t)WEIR_DAY_MS,
		                                              .until_ms = now_ms + rows[i].until_days * (int64_t)WEIR_DAY_MS,
		                                              .zone = weir_span_of("api"),
		                                              .bucket = rows[i].bucket != NULL ? weir_span_of(rows[i].bucket)
		                                                                               : (struct weir_span){.at = NULL},
		                                              .action = weir_span_of(rows[i].action),
		                                              .mode = weir_span_of(rows[i].mode)};
	bool more;
	struct weir_partition_state state = take(store, ARCHIVER, 0);
	for (int days = 40; days > 0;
	     days--) /* partitions are made in time, and all of them are there when keep gets shorter */
		assert_int_equal(store->ops->keep(store, longer_ms, now_ms - days * (int64_t)WEIR_DAY_MS, &more, &error),
		                 WEIR_OK);
	assert_int_equal(
		archive(store, &(const struct weir_archive_batch){.decisions = decisions, .decision_count = ROWS}, &state, 1),
		WEIR_OK);
	for (int day = 0; day < 3; day++) {
		int steps = 0;
		do
			assert_int_equal(store->ops->keep(store, keep_ms, now_ms + day * (int64_t)WEIR_DAY_MS / 4, &more, &error),
			                 WEIR_OK);
		while (more && ++steps < 100);
		assert_false(more);
		assert_rows(store, "SELECT bucket FROM decision_history ORDER BY bucket", NULL, 0,
		            "holds; holds, too; young; ");
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(store->ops->keep(store, keep_ms, now_ms + (AHEAD + 2) * (int64_t)WEIR_DAY_MS, &more, &error),
		                 WEIR_OK);
	assert_rows(store, "SELECT bucket FROM decision_history", NULL, 0, "");
	store->ops->close(store);
}
