/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input: lines as they come, at most once, plain or packed. */
#include "collector/source/file/source_stdin.h"
#include "collector/source/kinds/source_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <cmocka.h>

static struct source *open_source(const char *config, bool once, struct weir_json_document **document)
{
	struct weir_error error;
	struct source *source = NULL;
	assert_int_equal(weir_json_parse("config", config, strlen(config), document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(*document);
	struct source_context context = {.once = once};
	if (source_new(&root, &context, &source, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return source;
}

/* Puts the reading end in the place of standard input; gives the writing end. */
static int replace_input(void)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	return ends[1];
}

static void expect(struct source *source, enum weir_status expected, const char *text)
{
	struct source_chunk chunk;
	struct weir_error error;
	assert_int_equal(source->ops->collect(source, NULL, &chunk, &error), expected);
	if (text == NULL)
		return;
	assert_int_equal(chunk.length, strlen(text));
	assert_memory_equal(chunk.data, text, chunk.length);
}

static void lines_come_as_they_are_written(void **state)
{
	(void)state;
	int writer = replace_input();
	struct weir_json_document *document;
	struct source *source = open_source("{\"type\":\"stdin\",\"path\":\"-\"}", false, &document);
	struct source_stream **streams;
	struct source_status status;
	struct weir_error error;
	assert_int_equal(source->ops->fd(source), STDIN_FILENO);
	assert_int_equal(source->ops->streams(source, &streams), 1);
	assert_string_equal(streams[0]->name, "-");
	expect(source, WEIR_AGAIN, NULL);
	assert_int_equal(write(writer, "one\ntw", 6), 6);
	expect(source, WEIR_OK, "one\n");
	expect(source, WEIR_AGAIN, NULL);
	assert_int_equal(source->ops->status(source, &status, 1), 1);
	assert_int_equal(status.position, (UINT64_C(1) << SOURCE_OFFSET_BITS) + 4);
	assert_false(source->ops->replayable);
	assert_int_equal(write(writer, "o\nend", 5), 5);
	expect(source, WEIR_OK, "two\n");
	close(writer);
	expect(source, WEIR_OK, "end");
	expect(source, WEIR_END, NULL);
	expect(source, WEIR_END, NULL);
	assert_int_equal(source->ops->resume(source, streams[0], 0, &error), WEIR_OK);
	assert_int_equal(source->ops->resume(source, streams[0], 5, &error), WEIR_INVALID);
	source->ops->free(source);
	weir_json_document_free(document);
}

static void each_start_has_an_id_of_its_own(void **state)
{
	(void)state;
	close(replace_input());
	uint8_t ids[2][SOURCE_ID_BYTES];
	for (int i = 0; i < 2; i++) {
		struct weir_json_document *document;
		struct source *source = open_source("{\"type\":\"stdin\"}", true, &document);
		struct source_stream **streams;
		source->ops->streams(source, &streams);
		memcpy(ids[i], streams[0]->id, SOURCE_ID_BYTES);
		expect(source, WEIR_END, NULL);
		source->ops->free(source);
		weir_json_document_free(document);
	}
	assert_memory_not_equal(ids[0], ids[1], SOURCE_ID_BYTES);
}

static void packed_input_is_unpacked(void **state)
{
	(void)state;
	struct log_bytes plain = {.at = "one\ntwo\n", .length = 8}, packed = log_gzip(plain);
	int writer = replace_input();
	assert_int_equal(write(writer, packed.at, packed.length), packed.length);
	close(writer);
	struct weir_json_document *document;
	struct source *source = open_source("{\"type\":\"stdin\"}", true, &document);
	expect(source, WEIR_OK, "one\ntwo\n");
	expect(source, WEIR_END, NULL);
	source->ops->free(source);
	/* cut in the middle: an error, said once */
	writer = replace_input();
	assert_int_equal(write(writer, packed.at, packed.length - 9), packed.length - 9);
	close(writer);
	weir_json_document_free(document);
	source = open_source("{\"type\":\"stdin\"}", true, &document);
	expect(source, WEIR_OK, "one\ntwo\n");
	expect(source, WEIR_IO, NULL);
	expect(source, WEIR_END, NULL);
	source->ops->free(source);
	weir_json_document_free(document);
	free(packed.at);
}

/* A pipe may live longer than one incarnation's positions reach. */
static void positions_go_on_in_another_incarnation(void **state)
{
	(void)state;
	int writer = replace_input();
	struct weir_json_document *document;
	struct source *source = open_source("{\"type\":\"stdin\"}", false, &document);
	source_stdin_set_bound(source, 10);
	static const struct {
		const char *lines;
		uint64_t incarnation, offset;
		const char *before;
	} expected[] = {{"head\none\n", 1, 0, ""},
	                {"two\n", 1, 9, ""},
	                {"three\n", 2, 0, "head\none\ntwo\n"},
	                {"four\nfive\n", 2, 6, ""},
	                {"six\n", 3, 0, "head\none\n"}};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		struct source_chunk chunk;
		struct weir_error error;
		const char *lines = expected[i].lines, *before = expected[i].before;
		assert_int_equal(write(writer, lines, strlen(lines)), strlen(lines));
		assert_int_equal(source->ops->collect(source, NULL, &chunk, &error), WEIR_OK);
		assert_int_equal(chunk.length, strlen(lines));
		assert_memory_equal(chunk.data, lines, chunk.length);
		assert_int_equal(chunk.position, expected[i].incarnation << SOURCE_OFFSET_BITS | expected[i].offset);
		assert_true(chunk.before.length >= strlen(before) && (*before != '\0' || chunk.before.length == 0));
		if (*before != '\0')
			assert_memory_equal(chunk.before.at, before, strlen(before));
		struct source_status status;
		source->ops->status(source, &status, 1);
		assert_int_equal(status.position, chunk.position + chunk.length);
	}
	close(writer);
	expect(source, WEIR_END, NULL);
	source->ops->free(source);
	weir_json_document_free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_go_on_in_another_incarnation),
		cmocka_unit_test(lines_come_as_they_are_written),
		cmocka_unit_test(each_start_has_an_id_of_its_own),
		cmocka_unit_test(packed_input_is_unpacked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
