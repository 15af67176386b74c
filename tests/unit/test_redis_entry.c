/* SPDX-License-Identifier: Apache-2.0 */
/* Entries as lines, and their ids as positions. */
#include "collector/source/redis/redis_entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void ids_are_positions(void **state)
{
	(void)state;
	static const struct {
		const char *id;
		uint64_t position; /* 0: none */
	} cases[] = {
		{"0-1", 1},
		{"1-0", 1 << 21},
		{"1700000000000-3", UINT64_C(1700000000000) << 21 | 3},
		{"5-2097151", (UINT64_C(5) << 21) + 2097151},
		{"4398046511103-2097151", (UINT64_C(1) << 63) - 1},
		{"5-2097152", 0},
		{"4398046511104-0", 0},
		{"5", 0},
		{"5-", 0},
		{"-5", 0},
		{"", 0},
		{"a-1", 0},
		{"1-1x", 0},
		{"18446744073709551615-18446744073709551615", 0},
		{"99999999999999999999999999999-1", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t position = 0;
		char id[REDIS_ID_BYTES];
		bool good = redis_id_position(weir_span_of(cases[i].id), &position);
		assert_int_equal(good, cases[i].position > 0);
		if (!good)
			continue;
		assert_true(position == cases[i].position);
		redis_position_id(position, id);
		assert_string_equal(id, cases[i].id);
	}
}

/* The line of an entry of pairs, a NULL at their end. */
static void ids_have_numbers(void **state)
{
	(void)state;
	static const uint64_t numbers[] = {0, 1, 2097152, UINT64_C(1000000000000000), (UINT64_C(1) << 59) - 1};
	static const char *const bad[] = {"5", "5-", "-5", "", "a-1", "5-1x", "5-576460752303423488"};
	uint64_t position = UINT64_C(4398046511103) << 21 | 3, number;
	char id[REDIS_ID_BYTES];
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		redis_number_id(position, numbers[i], id);
		assert_true(redis_id_number(weir_span_of(id), &number));
		assert_int_equal(number, numbers[i]);
		assert_int_equal(strncmp(id, "4398046511103-", 14), 0);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(redis_id_number(weir_span_of(bad[i]), &number));
}

static void expect(struct redis_entry *entry, const char *const *pairs, const char *line)
{
	redis_entry_begin(entry, weir_span_of("jo\"bs"), UINT64_C(1700000000123) << 21 | 4);
	for (; pairs[0] != NULL; pairs += 2) {
		redis_entry_name(entry, weir_span_of(pairs[0]));
		redis_entry_value(entry, weir_span_of(pairs[1]), strlen(pairs[1]));
	}
	redis_entry_end(entry);
	weir_text_append(&entry->text, "", 1);
	assert_string_equal(entry->text.at, line);
}

#define HEAD "{\"_stream\":\"jo\\\"bs\",\"time\":\"2023-11-14T22:13:20.123Z\",\"_id\":\"1700000000123-4\""

static void whole_entries_are_objects(void **state)
{
	(void)state;
	struct redis_entry entry = {.line_max = 1000};
	expect(&entry, (const char *[]){NULL}, HEAD "}");
	expect(&entry, (const char *[]){"a", "1", "b\n", "x\"\\\x01\xff", NULL},
	       HEAD ",\"a\":\"1\",\"b\\u000a\":\"x\\\"\\\\\\u0001\xff\"}");
	/* nobody who writes entries says what weir says */
	expect(&entry,
	       (const char *[]){"_stream", "other", "_id", "1-1", "_event", "departed", "time", "1", "c", "3", NULL},
	       HEAD ",\"c\":\"3\"}");
	redis_entry_departed(&entry, weir_span_of("q"), 1700000000007);
	weir_text_append(&entry.text, "", 1);
	assert_string_equal(entry.text.at,
	                    "{\"_stream\":\"q\",\"time\":\"2023-11-14T22:13:20.007Z\",\"_event\":\"departed\"}");
	weir_text_deinit(&entry.text);
}

static void one_field_may_be_the_line(void **state)
{
	(void)state;
	struct redis_entry entry = {.line_max = 1000, .field = "line"};
	expect(&entry, (const char *[]){"a", "1", "line", "x\n", "line", "second", NULL}, "x\n");
	assert_true(entry.found);
	expect(&entry, (const char *[]){"a\x1b", "1", "b", "2", NULL}, "");
	assert_false(entry.found);
	assert_string_equal(entry.names, "a?, b");
	weir_text_deinit(&entry.text);
}

static void a_line_is_bounded(void **state)
{
	(void)state;
	struct redis_entry entry = {.line_max = 200};
	redis_entry_begin(&entry, weir_span_of("q"), 1);
	for (int i = 0; i < 100000; i++) {
		redis_entry_name(&entry, weir_span_of("name"));
		redis_entry_value(&entry, weir_span_of("\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"), 10);
	}
	redis_entry_end(&entry);
	assert_in_range(entry.text.length, 201, 2000);
	redis_entry_begin(&entry, weir_span_of("q"), 1);
	redis_entry_name(&entry, weir_span_of("n"));
	redis_entry_value(&entry, weir_span_of("x"), 1 << 30); /* of which the beginning came */
	redis_entry_end(&entry);
	assert_true(entry.full);
	weir_text_deinit(&entry.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_positions),         cmocka_unit_test(ids_have_numbers),
		cmocka_unit_test(whole_entries_are_objects), cmocka_unit_test(one_field_may_be_the_line),
		cmocka_unit_test(a_line_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
