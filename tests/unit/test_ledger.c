/* SPDX-License-Identifier: Apache-2.0 */
/* Counts against a list that is searched from its beginning; ledgers against frames that come twice. */
#include "archiver/ledger/ledger.h"
#include "archiver/work/batch.h"
#include "common/bytes/hash.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 30, STEPS = 4000, MODEL_MAX = 4000 };

struct model_row {
	uint32_t zone;
	char bucket[16];
	uint32_t length;
	int64_t hour_ms;
	uint64_t passed, blocked, late;
};

struct model {
	struct model_row rows[MODEL_MAX];
	size_t count;
};

static struct model_row *find(struct model *model, uint32_t zone, struct weir_span bucket, int64_t hour_ms)
{
	for (size_t i = 0; i < model->count; i++) {
		struct model_row *row = &model->rows[i];
		if (row->zone == zone && row->hour_ms == hour_ms &&
		    weir_span_equal((struct weir_span){row->bucket, row->length}, bucket))
			return row;
	}
	return NULL;
}

static void model_add(struct model *model, uint32_t zone, struct weir_span bucket, int64_t hour_ms, bool blocked,
                      bool late)
{
	struct model_row *row = find(model, zone, bucket, hour_ms);
	if (row == NULL) {
		row = &model->rows[model->count++];
		*row = (struct model_row){.zone = zone, .length = bucket.length, .hour_ms = hour_ms};
		memcpy(row->bucket, bucket.at, bucket.length);
	}
	row->passed += !blocked;
	row->blocked += blocked;
	row->late += late;
}

static void require_equal(const struct counts *counts, struct model *model)
{
	assert_int_equal(counts_size(counts), model->count);
	for (size_t i = 0; i < counts_size(counts); i++) {
		struct weir_archive_count row;
		counts_row(counts, i, &row);
		const struct model_row *wanted = find(model, row.zone, row.bucket, row.begin_ms);
		assert_non_null(wanted);
		assert_int_equal(row.passed, wanted->passed);
		assert_int_equal(row.blocked, wanted->blocked);
		assert_int_equal(row.late, wanted->late);
	}
}

static void counts_equal_a_list(void **state)
{
	(void)state;
	static struct model model;
	struct counts *counts = counts_new();
	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		int keys = 1 + rand() % 300, zones = 1 + rand() % 3, hours = 1 + rand() % 4;
		model.count = 0;
		for (int step = 0; step < STEPS; step++) {
			char name[16];
			int length = rand() % 20 == 0 ? 0 : snprintf(name, sizeof name, "k%d", rand() % keys);
			struct weir_span bucket = {name, (uint32_t)length};
			uint32_t zone = 1 + (uint32_t)(rand() % zones);
			int64_t hour_ms = (int64_t)(rand() % hours - 1) * WEIR_HOUR_MS;
			bool blocked = rand() % 3 == 0, late = rand() % 9 == 0;
			counts_add(counts, zone, bucket, counts_hash(counts, bucket), hour_ms, !blocked, blocked, late);
			model_add(&model, zone, bucket, hour_ms, blocked, late);
		}
		require_equal(counts, &model);
		counts_clear(counts);
		assert_int_equal(counts_size(counts), 0);
	}
	counts_free(counts);
}

/* Two keys of one hash are two rows: bytes decide. */
static void equal_hashes_are_told_apart(void **state)
{
	(void)state;
	struct counts *counts = counts_new();
	counts_add(counts, 1, weir_span_of("a"), 42, 0, 1, 0, 0);
	counts_add(counts, 1, weir_span_of("b"), 42, 0, 0, 1, 0);
	counts_add(counts, 1, weir_span_of("a"), 42, 0, 0, 1, 1);
	assert_int_equal(counts_size(counts), 2);
	struct weir_archive_count row;
	counts_row(counts, 0, &row);
	assert_int_equal(row.passed + row.blocked * 10 + row.late * 100, 111);
	counts_free(counts);
}

static size_t allocated(void)
{
	struct mallinfo2 all = mallinfo2(); /* nothing, where a sanitizer allocates */
	return all.uordblks + all.hblkhd;
}

/* An hour with many keys leaves no room behind that nobody needs any more. */
static void what_a_busy_hour_needed_is_given_back(void **state)
{
	enum { BUSY = 200000, KEPT_MOST = 8 << 20 };
	(void)state;
	struct counts *counts = counts_new();
	size_t before = allocated();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < BUSY; i++) {
			char name[16];
			struct weir_span bucket = {name, (uint32_t)snprintf(name, sizeof name, "key%d", i)};
			counts_add(counts, 1, bucket, counts_hash(counts, bucket), 0, 1, 0, 0);
		}
		assert_int_equal(counts_size(counts), BUSY);
		counts_clear(counts);
		assert_int_equal(counts_size(counts), 0);
		assert_true(allocated() <= before + KEPT_MOST);
	}
	counts_free(counts);
}

/* ---- ledgers ---- */

/* A judged frame of two events of one key, the first passed and late, the second blocked: its length. */
static size_t judged_message(uint64_t offset, char *out)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {1};
	const struct weir_frame_zone zone = {.id = 3};
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_span key = weir_span_of("u1");
	weir_frame_begin(writer, source, 1, 7200000, 0);
	for (uint64_t position = 1; position <= 2; position++)
		assert_int_equal(weir_frame_add(writer, key, 1, 7200000 + (int64_t)position, position, 1, &zone, 1), WEIR_OK);
	struct weir_span message = weir_frame_finish(writer, 9000000);
	const uint8_t verdicts = WEIR_VERDICT_LATE | WEIR_VERDICT_BLOCK << 4;
	size_t length = weir_frame_judged(message, offset, &verdicts, 2, out);
	weir_frame_writer_free(writer);
	return length;
}

static bool take(struct ledger *ledger, uint64_t at, uint64_t judged_offset)
{
	static char message[4096];
	struct weir_frame frame;
	struct weir_error error;
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct histories *none = histories_new();
	struct weir_span span = {message, (uint32_t)judged_message(judged_offset, message)};
	assert_int_equal(weir_frame_decode(reader, span, &frame, &error), WEIR_OK);
	bool counted = ledger_judged(ledger, at, &frame, none);
	histories_free(none);
	weir_frame_reader_free(reader);
	return counted;
}

static void what_is_judged_again_counts_once(void **state)
{
	(void)state;
	struct ledger *ledger = ledger_new(0);
	struct weir_archive_count row;
	assert_true(take(ledger, 0, 10));
	assert_true(take(ledger, 1, 12)); /* between them a policy */
	assert_false(take(ledger, 2, 10));
	assert_false(take(ledger, 3, 12));
	assert_true(take(ledger, 4, 13));
	assert_int_equal(ledger->positions[WEIR_TOPIC_JUDGED].next, 5);
	assert_int_equal(counts_size(ledger->counts), 1);
	counts_row(ledger->counts, 0, &row);
	assert_int_equal(row.begin_ms, 7200000);
	assert_int_equal(row.passed, 3);
	assert_int_equal(row.blocked, 3);
	assert_int_equal(row.late, 3);
	assert_int_equal(ledger->clock_ms, 9000000);
	ledger_free(ledger);
}

static void a_ledger_goes_on_where_it_was_stored(void **state)
{
	(void)state;
	struct weir_partition_state stored;
	struct weir_text extra = {0};
	struct weir_error error;
	struct ledger *ledger = ledger_new(5);
	take(ledger, 0, 10);
	ledger_mark(ledger, &(struct weir_message){.topic = WEIR_TOPIC_JUDGED, .offset = 0, .payload = weir_span_of("a")});
	ledger_skip(ledger, WEIR_TOPIC_DECISIONS, 8);
	ledger_mark(ledger,
	            &(struct weir_message){.topic = WEIR_TOPIC_DECISIONS, .offset = 8, .payload = weir_span_of("b")});
	ledger_skip(ledger, WEIR_TOPIC_SHADOW, 20);
	ledger_mark(ledger, &(struct weir_message){.topic = WEIR_TOPIC_SHADOW, .offset = 20, .payload = weir_span_of("c")});
	ledger_state(ledger, &stored, &extra);
	ledger_stored(ledger);
	assert_int_equal(ledger_size(ledger), 0);
	assert_false(ledger->changed);
	assert_int_equal(stored.checkpoint, 1);
	struct ledger *next = ledger_new(5);
	stored.epoch = 4;
	assert_int_equal(ledger_restore(next, &stored, &error), WEIR_OK);
	assert_int_equal(next->positions[WEIR_TOPIC_JUDGED].next, 1);
	assert_int_equal(next->positions[WEIR_TOPIC_DECISIONS].next, 9);
	assert_int_equal(next->positions[WEIR_TOPIC_SHADOW].next, 21);
	assert_int_equal(next->checkpoint, 1);
	assert_true(weir_mark_equal(&next->positions[WEIR_TOPIC_JUDGED].last, &ledger->positions[WEIR_TOPIC_JUDGED].last));
	assert_true(
		weir_mark_equal(&next->positions[WEIR_TOPIC_DECISIONS].last, &ledger->positions[WEIR_TOPIC_DECISIONS].last));
	assert_int_equal(next->positions[WEIR_TOPIC_DECISIONS].last.offset, 8);
	assert_true(weir_mark_equal(&next->positions[WEIR_TOPIC_SHADOW].last, &ledger->positions[WEIR_TOPIC_SHADOW].last));
	assert_int_equal(next->positions[WEIR_TOPIC_SHADOW].last.offset, 20);
	assert_false(take(next, 1, 10));
	assert_true(take(next, 2, 11));
	stored.extra.length--;
	assert_int_equal(ledger_restore(next, &stored, &error), WEIR_INVALID);
	extra.at[0] = 9;
	stored.extra.length++;
	assert_int_equal(ledger_restore(next, &stored, &error), WEIR_NEWER);
	ledger_free(ledger);
	ledger_free(next);
	weir_text_deinit(&extra);
}

/* What weir 0.1 stored had no marks. */
static void a_state_without_marks_is_read(void **state)
{
	(void)state;
	static char extra[1 + 8 + 8] = {1, 9, 0, 0, 0, 0, 0, 0, 0, 11};
	struct weir_partition_state stored = {
		.checkpoint = 3, .next_offset = 5, .extra = {.at = extra, .length = sizeof extra}};
	struct weir_error error;
	struct ledger *ledger = ledger_new(5);
	assert_int_equal(ledger_restore(ledger, &stored, &error), WEIR_OK);
	assert_int_equal(ledger->positions[WEIR_TOPIC_JUDGED].next, 5);
	assert_int_equal(ledger->positions[WEIR_TOPIC_DECISIONS].next, 9);
	assert_int_equal(ledger->events_next, 11);
	assert_false(weir_mark_is_set(&ledger->positions[WEIR_TOPIC_JUDGED].last) ||
	             weir_mark_is_set(&ledger->positions[WEIR_TOPIC_DECISIONS].last));
	ledger_free(ledger);
}

/* What was stored before decisions in shadow mode were archived: they begin with the first that there is. */
static void a_state_without_shadow_is_read(void **state)
{
	(void)state;
	struct weir_partition_state stored;
	struct weir_text extra = {0};
	struct weir_error error;
	struct ledger *ledger = ledger_new(5), *next = ledger_new(5);
	take(ledger, 0, 10);
	ledger_skip(ledger, WEIR_TOPIC_DECISIONS, 8);
	ledger_mark(ledger,
	            &(struct weir_message){.topic = WEIR_TOPIC_DECISIONS, .offset = 8, .payload = weir_span_of("b")});
	ledger_skip(ledger, WEIR_TOPIC_SHADOW, 20);
	ledger_state(ledger, &stored, &extra);
	extra.at[0] = 2;
	stored.extra.length -= 8 + WEIR_MARK_STORED_BYTES;
	assert_int_equal(ledger_restore(next, &stored, &error), WEIR_OK);
	assert_int_equal(next->positions[WEIR_TOPIC_DECISIONS].next, 9);
	assert_int_equal(next->events_next, 11);
	assert_true(
		weir_mark_equal(&next->positions[WEIR_TOPIC_DECISIONS].last, &ledger->positions[WEIR_TOPIC_DECISIONS].last));
	assert_int_equal(next->positions[WEIR_TOPIC_SHADOW].next, 0);
	assert_false(weir_mark_is_set(&next->positions[WEIR_TOPIC_SHADOW].last));
	ledger_free(ledger);
	ledger_free(next);
	weir_text_deinit(&extra);
}

/* The days of a key are rows in its order, each once, and hold what is in the model. */
static void assert_days(const struct weir_archive_batch *rows, uint64_t model[][60][2], unsigned zones)
{
	uint64_t wanted = 0, found = 0;
	for (unsigned i = 0; i < zones * 60 * 2; i++)
		wanted += model[i / 120][i / 2 % 60][i % 2];
	for (size_t i = 0; i < rows->day_count; i++) {
		const struct weir_archive_count *row = &rows->days[i];
		unsigned ledger, key;
		assert_int_equal(sscanf(row->bucket.at, "%u-%02u", &ledger, &key), 2);
		uint64_t sum = model[row->zone][ledger * 30 + key][row->begin_ms / WEIR_DAY_MS];
		assert_int_equal(row->begin_ms % WEIR_DAY_MS, 0);
		assert_true(row->passed == sum && row->blocked == 2 * sum && row->late == 3 * sum);
		found += sum;
		if (i > 0 && row[-1].zone == row->zone && memcmp(row[-1].bucket.at, row->bucket.at, 4) == 0)
			assert_true(row[-1].begin_ms < row->begin_ms);
	}
	assert_int_equal(found, wanted);
}

/* Rows in the tables' order; the days and totals are the sums of the hours. */
static void a_batch_sums_what_ledgers_have(void **state)
{
	(void)state;
	enum { ZONES = 3, HOURS = 40, KEYS = 30 };
	static uint64_t days[ZONES][2 * KEYS][2];
	uint64_t model[ZONES][HOURS] = {{0}}, more = 0;
	struct ledger *ledgers[] = {ledger_new(4), ledger_new(9)};
	struct batch *batch = batch_new(NULL);
	for (int i = 0; i < 5000; i++) {
		int zone = rand() % ZONES, hour = rand() % HOURS, ledger = rand() % 2, number = rand() % KEYS;
		char name[16];
		struct weir_span key = {name, (uint32_t)snprintf(name, sizeof name, "%d-%02d", ledger, number)};
		counts_add(ledgers[ledger]->counts, (uint32_t)zone, key, counts_hash(ledgers[ledger]->counts, key),
		           hour * (int64_t)WEIR_HOUR_MS, 1, 2, 3);
		model[zone][hour]++;
		days[zone][ledger * KEYS + number][hour / 24]++;
	}
	for (int times = 0; times < 2; times++) {
		const struct weir_archive_batch *rows = batch_fill(batch, ledgers, 2);
		assert_days(rows, days, ZONES);
		for (size_t i = 0; i < rows->total_count; i++) {
			const struct weir_archive_total *row = &rows->totals[i];
			uint64_t wanted = model[row->zone][row->hour_ms / WEIR_HOUR_MS];
			assert_int_equal(row->partition, 4);
			assert_true(row->passed == wanted && row->blocked == 2 * wanted && row->late == 3 * wanted);
			more += wanted;
			if (i > 0)
				assert_true(row[-1].zone < row->zone || (row[-1].zone == row->zone && row[-1].hour_ms < row->hour_ms));
		}
	}
	assert_int_equal(more, 2 * 5000);
	batch_free(batch);
	ledger_free(ledgers[0]);
	ledger_free(ledgers[1]);
}

/* ---- decisions ---- */

static void add_decision(struct ledger *ledger, enum weir_topic topic, uint64_t offset, const char *mode, int at)
{
	struct decision_row row;
	struct weir_error error;
	char text[256];
	int length = snprintf(text, sizeof text,
	                      "{\"id\":\"4-%d-0\",\"zone\":\"z\",\"key\":[\"k\"],\"action\":\"block\",\"at\":%d,"
	                      "\"until\":99,\"mode\":\"%s\"}",
	                      at, at, mode);
	const struct weir_message message = {
		.topic = topic, .key = weir_span_of("z|k"), .payload = {text, (uint32_t)length}};
	assert_int_equal(decision_row_read(&message, &row, &error), WEIR_OK);
	ledger_decision(ledger, topic, offset, &row);
}

/* Each in its own rows, both sorted; their topics' positions move apart. */
static void a_batch_tells_decisions_in_shadow_mode_apart(void **state)
{
	(void)state;
	struct ledger *ledger = ledger_new(4);
	struct batch *batch = batch_new(NULL);
	for (int i = 9; i >= 0; i--)
		add_decision(ledger, i % 3 == 0 ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS, i % 3 == 0 ? 50 : 7,
		             i % 3 == 0 ? "shadow" : "enforce", i);
	assert_int_equal(ledger->positions[WEIR_TOPIC_DECISIONS].next, 8);
	assert_int_equal(ledger->positions[WEIR_TOPIC_SHADOW].next, 51);
	const struct weir_archive_batch *rows = batch_fill(batch, &ledger, 1);
	assert_int_equal(rows->decision_count, 6);
	assert_int_equal(rows->shadow_count, 4);
	for (size_t i = 0; i < rows->shadow_count; i++)
		assert_int_equal(rows->shadows[i].at_ms, 3 * i);
	for (size_t i = 0; i < rows->decision_count; i++)
		assert_int_equal(rows->decisions[i].at_ms, 1 + i / 2 * 3 + i % 2);
	batch_free(batch);
	ledger_free(ledger);
}

/* ---- events ---- */

static void keep_event(struct ledger *ledger, const struct weir_archive_event *row)
{
	ledger->events = realloc(ledger->events, (ledger->event_count + 1) * sizeof *ledger->events);
	struct ledger_event *event = &ledger->events[ledger->event_count++];
	*event = (struct ledger_event){.row = *row, .bucket_at = ledger->names.length};
	event->row.bucket.at = NULL;
	weir_text_append(&ledger->names, row->bucket.at, row->bucket.length);
}

/* The primary key of zone_txn, compared as the server does: a number after the other, bytes as bytes. */
static bool comes_before(const struct weir_archive_event *a, const struct weir_archive_event *b)
{
	uint32_t shorter = a->bucket.length < b->bucket.length ? a->bucket.length : b->bucket.length;
	int order = memcmp(a->bucket.at, b->bucket.at, shorter);
	if (a->zone != b->zone)
		return a->zone < b->zone;
	if (order != 0 || a->bucket.length != b->bucket.length)
		return order != 0 ? order < 0 : a->bucket.length < b->bucket.length;
	if (a->at_ms != b->at_ms)
		return a->at_ms < b->at_ms;
	if (a->id.partition != b->id.partition)
		return a->id.partition < b->id.partition;
	return a->id.offset != b->id.offset ? a->id.offset < b->id.offset : a->id.pair < b->id.pair;
}

/* Keys that differ early, late, in length only, by bytes above 127 and by zeros; times before 1970, too. */
static void events_lie_in_the_tables_order(void **state)
{
	(void)state;
	enum { EVENTS = 3000 };
	struct ledger *ledgers[] = {ledger_new(4), ledger_new(9)};
	struct batch *batch = batch_new(NULL);
	uint64_t given = 0;
	for (uint32_t i = 0; i < EVENTS; i++) {
		unsigned char key[40];
		uint32_t length = (uint32_t)(rand() % (int)sizeof key), place = (uint32_t)(rand() % (int)sizeof key);
		memset(key, 'a', sizeof key);
		key[place] = (unsigned char)(rand() % 3 * 100);
		struct weir_archive_event row = {.id = {4 + (uint32_t)rand() % 2 * 5, (uint64_t)rand() % 3, i},
		                                 .zone = (uint32_t)rand() % 3,
		                                 .bucket = {(const char *)key, length},
		                                 .at_ms = rand() % 5 - 2,
		                                 .blocked = i % 2 != 0};
		keep_event(ledgers[i % 2], &row);
		given += (uint64_t)i * (length + 1) + row.blocked;
	}
	for (int times = 0; times < 2; times++) {
		const struct weir_archive_batch *rows = batch_fill(batch, ledgers, 2);
		uint64_t found = 0;
		assert_int_equal(rows->event_count, EVENTS);
		for (size_t i = 0; i < EVENTS; i++) {
			const struct weir_archive_event *row = &rows->events[i];
			assert_true(i == 0 || comes_before(row - 1, row));
			found += (uint64_t)row->id.pair * (row->bucket.length + 1) + row->blocked;
		}
		assert_int_equal(found, given);
	}
	batch_free(batch);
	ledger_free(ledgers[0]);
	ledger_free(ledgers[1]);
}

/* ---- decisions ---- */

static enum weir_status read(const char *key, const char *json, struct decision_row *row)
{
	struct weir_error error;
	struct weir_message message = {.key = weir_span_of(key), .payload = weir_span_of(json)};
	return decision_row_read(&message, row, &error);
}

static void a_decision_becomes_a_row(void **state)
{
	(void)state;
	struct decision_row row;
	assert_int_equal(read("site|a|b\xff",
	                      "{\"id\":\"3-1841-17\",\"zone\":\"site\",\"key\":[\"a\",\"b\"],\"action\":\"block\",\"at\":5,"
	                      "\"until\":9,\"limit\":{\"algorithm\":\"queue\",\"length\":4,\"hold\":60},\"count\":4,"
	                      "\"mode\":\"enforce\"}",
	                      &row),
	                 WEIR_OK);
	assert_int_equal(row.row.id.partition, 3);
	assert_int_equal(row.row.id.offset, 1841);
	assert_int_equal(row.row.id.pair, 17);
	assert_true(weir_span_equal(row.row.bucket, weir_span_of("a|b\xff")));
	assert_true(row.row.limited);
	assert_int_equal(row.row.rate * 1000 + row.row.window_ms, 4060);
	assert_null(row.row.reason.at);
	decision_row_deinit(&row);
	assert_int_equal(read("site|",
	                      "{\"id\":\"0-1-0\",\"zone\":\"site\",\"key\":null,\"action\":\"lift\",\"at\":5,"
	                      "\"until\":5,\"by\":\"ann\",\"reason\":\"\",\"mode\":\"enforce\"}",
	                      &row),
	                 WEIR_OK);
	assert_null(row.row.bucket.at);
	assert_true(weir_span_equal(row.row.ordered_by, weir_span_of("ann")));
	assert_false(row.row.limited);
	decision_row_deinit(&row);
}

static void other_messages_are_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		"{\"id\":\"0-1\",\"zone\":\"z\",\"action\":\"block\",\"mode\":\"enforce\",\"at\":1,\"until\":2}",
		"{\"id\":\"0-1-2x\",\"zone\":\"z\",\"action\":\"block\",\"mode\":\"enforce\",\"at\":1,\"until\":2}",
		"{\"id\":\"0-1-2\",\"zone\":\"z\",\"action\":\"block\",\"mode\":\"enforce\",\"at\":\"now\",\"until\":2}",
		"{\"id\":\"0-1-2\",\"zone\":7,\"action\":\"block\",\"mode\":\"enforce\",\"at\":1,\"until\":2}",
		"{\"id\":\"0-1-2\",\"zone\":\"z\",\"action\":\"a word that is too long\",\"mode\":\"enforce\",\"at\":1,\"until\":2}",
	};
	struct decision_row row;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(read("z|k", wrong[i], &row), WEIR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_equal_a_list),
		cmocka_unit_test(equal_hashes_are_told_apart),
		cmocka_unit_test(what_a_busy_hour_needed_is_given_back),
		cmocka_unit_test(what_is_judged_again_counts_once),
		cmocka_unit_test(a_ledger_goes_on_where_it_was_stored),
		cmocka_unit_test(a_state_without_marks_is_read),
		cmocka_unit_test(a_state_without_shadow_is_read),
		cmocka_unit_test(a_batch_tells_decisions_in_shadow_mode_apart),
		cmocka_unit_test(a_batch_sums_what_ledgers_have),
		cmocka_unit_test(events_lie_in_the_tables_order),
		cmocka_unit_test(a_decision_becomes_a_row),
		cmocka_unit_test(other_messages_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
