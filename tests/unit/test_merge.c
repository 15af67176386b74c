/* SPDX-License-Identifier: Apache-2.0 */
/* The merged order of several streams, their counts, and what a cut between two records remembers. */
#include "collector/follow/merge.h"

#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* A source of one stream over a text, some bytes a chunk. */
struct text_source {
	struct source source;
	struct source_stream stream, *streams;
	const char *text;
	size_t at;
	size_t silent_at; /* there it has nothing yet, once; 0: nowhere */
};

static enum weir_status collect(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
                                struct weir_error *error)
{
	struct text_source *own = (struct text_source *)source;
	(void)error;
	const char *start = own->text + own->at;
	if (own->silent_at > 0 && own->at == own->silent_at) {
		own->silent_at = 0;
		return WEIR_AGAIN;
	}
	if (*start == '\0')
		return WEIR_END;
	const char *end = strchr(start, '\n');
	size_t length = end != NULL ? (size_t)(end - start) + 1 : strlen(start);
	*chunk = (struct source_chunk){.stream = stream, .data = start, .length = length, .position = own->at};
	own->at += length;
	return WEIR_OK;
}

static const struct source_ops text_ops = {.type = "text", .collect = collect};

/* "TIME NAME": the time in ms; anything else is malformed. */
static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	(void)format;
	char *end;
	record->time_ms = strtoll(line, &end, 10);
	record->cost = 1;
	record->fields[WEIR_FIELD_USER] = (struct weir_span){.at = line, .length = length};
	return end > line ? FORMAT_OK : FORMAT_MALFORMED;
}

static void free_format(struct format *format)
{
	free(format);
}

enum { STREAMS = 3 };

struct fixture {
	struct text_source sources[STREAMS];
	struct record_reader readers[STREAMS];
	struct merge_input inputs[STREAMS];
	struct merge *merge;
};

static void setup(struct fixture *fixture, const char *const texts[STREAMS])
{
	for (int i = 0; i < STREAMS; i++) {
		struct text_source *source = &fixture->sources[i];
		*source = (struct text_source){.source = {.ops = &text_ops}, .text = texts[i]};
		source->stream.name = (char *)"text";
		struct format *format = weir_alloc(1, sizeof *format);
		format->parse = parse;
		format->free = free_format;
		record_reader_init(&fixture->readers[i], &source->stream, format, NULL);
		fixture->inputs[i] = (struct merge_input){
			.source = &source->source, .reader = &fixture->readers[i], .maximum_ms = -1, .given_maximum_ms = -1};
	}
	fixture->merge = merge_new(fixture->inputs, STREAMS);
}

static void teardown(struct fixture *fixture)
{
	merge_free(fixture->merge);
	for (int i = 0; i < STREAMS; i++)
		record_reader_deinit(&fixture->readers[i]);
}

static void expect_order(const char *const texts[STREAMS], const char *expected)
{
	struct fixture fixture;
	struct weir_error error;
	struct merge_input *input;
	char order[512] = "";
	setup(&fixture, texts);
	while (merge_next(fixture.merge, &input, &error) == WEIR_OK) {
		struct weir_span line = input->reader->line;
		snprintf(order + strlen(order), sizeof order - strlen(order), "%.*s;", (int)line.length, line.at);
	}
	assert_string_equal(order, expected);
	teardown(&fixture);
}

static void streams_are_merged_by_time(void **state)
{
	(void)state;
	expect_order((const char *const[]){"1 a\n4 a\n", "2 b\n3 b\n", "5 c\n"}, "1 a;2 b;3 b;4 a;5 c;");
}

static void equal_times_go_by_place(void **state)
{
	(void)state;
	expect_order((const char *const[]){"1 a\n1 a2\n", "1 b\n", "0 c\n1 c\n"}, "0 c;1 a;1 a2;1 b;1 c;");
}

static void a_stream_keeps_its_own_order(void **state)
{
	(void)state;
	/* the late 2 counts as 9, the running maximum */
	expect_order((const char *const[]){"9 a\n2 a\n10 a\n", "3 b\n9 b\n", ""}, "3 b;9 a;2 a;9 b;10 a;");
}

static void a_cut_counts_what_was_taken_and_no_more(void **state)
{
	(void)state;
	struct fixture fixture;
	struct weir_error error;
	struct merge_input *input;
	setup(&fixture, (const char *const[]){"1 a\r\nbad\n\n3 a\nworse\n", "2 b\n", ""});
	struct record_reader *reader = &fixture.readers[0];

	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_OK);
	assert_ptr_equal(input->reader, reader);
	assert_int_equal(reader->record.fields[WEIR_FIELD_USER].length, 3); /* the CR is gone */
	merge_take(fixture.merge);
	assert_int_equal(reader->counts.lines, 1);
	assert_int_equal(reader->taken_position, 5);
	assert_int_equal(fixture.inputs[0].given_maximum_ms, 1);

	assert_int_equal(merge_next(fixture.merge, &input, &error),
	                 WEIR_OK); /* 2 b; 3 a is read ahead, with the bad line */
	merge_take(fixture.merge);
	assert_int_equal(reader->counts.lines, 1);
	assert_int_equal(reader->counts.malformed[FORMAT_MALFORMED], 0);
	assert_int_equal(reader->taken_position, 5);
	assert_int_equal(fixture.inputs[0].given_maximum_ms, 1);

	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_OK);
	merge_take(fixture.merge);
	assert_int_equal(reader->counts.lines, 4);
	assert_int_equal(reader->counts.records, 2);
	assert_int_equal(reader->counts.malformed[FORMAT_MALFORMED], 1);
	assert_int_equal(reader->taken_position, 14);

	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_END);
	assert_int_equal(reader->counts.lines, 5);
	assert_int_equal(reader->counts.malformed[FORMAT_MALFORMED], 2);
	assert_int_equal(reader->taken_position, 20);
	teardown(&fixture);
}

static void a_silent_stream_keeps_its_place(void **state)
{
	(void)state;
	struct fixture fixture;
	struct weir_error error;
	struct merge_input *input;
	setup(&fixture, (const char *const[]){"1 a\nbad\n3 a\n", "2 b\n", ""});
	struct record_reader *reader = &fixture.readers[0];
	fixture.sources[0].silent_at = 8; /* behind the bad line */

	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_OK);
	assert_ptr_equal(input->reader, reader);
	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_AGAIN);
	merge_take(fixture.merge);
	assert_int_equal(reader->counts.lines, 1); /* a cut here has the record, and not what was read behind it */
	assert_int_equal(reader->taken_position, 4);
	assert_int_equal(fixture.inputs[0].given_maximum_ms, 1);

	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_OK);
	assert_ptr_equal(input->reader, &fixture.readers[1]);
	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_OK);
	assert_ptr_equal(input->reader, reader);
	assert_int_equal(merge_next(fixture.merge, &input, &error), WEIR_END);
	assert_int_equal(reader->counts.lines, 3);
	assert_int_equal(reader->counts.records, 2);
	teardown(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_merged_by_time),      cmocka_unit_test(equal_times_go_by_place),
		cmocka_unit_test(a_stream_keeps_its_own_order),    cmocka_unit_test(a_cut_counts_what_was_taken_and_no_more),
		cmocka_unit_test(a_silent_stream_keeps_its_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
