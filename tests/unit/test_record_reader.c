/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of records: bytes of their stream, or numbers that the source gives to its lines. */
#include "collector/follow/record_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdlib.h>

#include <cmocka.h>

static struct format *json_format(const struct weir_field_table *fields)
{
	struct weir_json_document *document;
	struct weir_error error;
	struct format *format;
	static const char config[] = "{\"type\":\"json\",\"unit\":\"s\"}";
	assert_int_equal(weir_json_parse("config", config, sizeof config - 1, &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(format_new(&root, fields, &format, &error), WEIR_OK);
	weir_json_document_free(document);
	return format;
}

static void expect_positions(const struct source_chunk *chunk, const uint64_t *records, size_t count, uint64_t last)
{
	struct weir_field_table fields;
	struct source_stream stream = {.name = (char *)(uintptr_t) "stream"};
	struct record_reader reader;
	weir_field_table_init(&fields);
	record_reader_init(&reader, &stream, json_format(&fields), NULL);
	record_reader_feed(&reader, chunk);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(record_reader_next(&reader), WEIR_OK);
		assert_int_equal(reader.position, records[i]);
		record_reader_take(&reader, 0);
	}
	assert_int_equal(record_reader_next(&reader), WEIR_AGAIN);
	record_reader_take(&reader, 0);
	assert_int_equal(reader.taken_position, last);
	record_reader_deinit(&reader);
	weir_field_table_deinit(&fields);
}

static const char text[] = "{\"time\":1}\nnone\n\n{\"time\":2}\n{\"time\":\"x\"}\n";

static void positions_are_bytes(void **state)
{
	(void)state;
	struct source_chunk chunk = {.data = text, .length = sizeof text - 1, .position = 1000};
	expect_positions(&chunk, (const uint64_t[]){1011, 1028}, 2, 1000 + sizeof text - 1);
}

static void positions_are_what_the_source_says(void **state)
{
	(void)state;
	static const uint64_t positions[] = {7, 9, 10, 500, 501};
	struct source_chunk chunk = {.data = text, .length = sizeof text - 1, .position = 7, .positions = positions};
	expect_positions(&chunk, (const uint64_t[]){7, 500}, 2, 501);
}

static void a_long_line_has_its_position_too(void **state)
{
	(void)state;
	static const uint64_t positions[] = {77};
	struct source_chunk chunk = {.data = text, .length = 5, .position = 10, .too_long = true, .skipped = 3};
	expect_positions(&chunk, NULL, 0, 18);
	chunk.positions = positions;
	expect_positions(&chunk, NULL, 0, 77);
}

/* What a source knows of a long line's end is read with its beginning. */
static void the_end_of_a_long_line_counts(void **state)
{
	(void)state;
	static const char end[] = "aaa\",\"time\":1}\r";
	struct source_chunk chunk = {.data = "{\"ip\":\"192.0.2.7\",\"path\":\"/a",
	                             .length = 28,
	                             .position = 10,
	                             .too_long = true,
	                             .skipped = 1000,
	                             .tail = {.at = end, .length = sizeof end - 1}};
	expect_positions(&chunk, (const uint64_t[]){1038}, 1, 1038);
	chunk.tail = (struct weir_span){0};
	expect_positions(&chunk, NULL, 0, 1038);
}

/* Files that were joined have marks within; only what a line begins with is looked at. */
static void byte_order_marks_and_zeros_before_a_line_are_none_of_it(void **state)
{
	(void)state;
	static const char joined[] = "{\"time\":1}\n"
								 "\xef\xbb\xbf{\"time\":2}\n"
								 "\0\0\xef\xbb\xbf\0{\"time\":3}\n"
								 "\xef\xbb\xbf\n"
								 "\xef\xbb{\"time\":4}\n"
								 "{\"time\":5}\n";
	struct source_chunk chunk = {.data = joined, .length = sizeof joined - 1, .position = 1000};
	expect_positions(&chunk, (const uint64_t[]){1011, 1025, 1042, 1070}, 4, 1000 + sizeof joined - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_are_bytes),
		cmocka_unit_test(positions_are_what_the_source_says),
		cmocka_unit_test(a_long_line_has_its_position_too),
		cmocka_unit_test(the_end_of_a_long_line_counts),
		cmocka_unit_test(byte_order_marks_and_zeros_before_a_line_are_none_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
