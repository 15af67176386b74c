/* SPDX-License-Identifier: Apache-2.0 */
/* Files read to their end: in order, each once, whatever they are packed in; and again only what was appended. */
#include "tests/unit/source_fixture.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source.h"

static const char *const glob = "{\"type\":\"file\",\"path\":\"%s/*.log*\",\"format\":\"combined\"}";

static int each_begin(void **state)
{
	return log_directory_make(state);
}

static int each_end(void **state)
{
	return log_directory_remove(state);
}

static void a_globs_files_are_read_by_path_bytes(void **state)
{
	(void)state;
	log_replace("b.log", "b1\nb2\n");
	log_replace("a.log", "a1\n");
	log_replace("B.log", "B1\r\n");
	log_replace("empty.log", "");
	struct reader reader;
	reader_open(&reader, glob, true, NULL);
	struct source_stream **streams;
	assert_int_equal(reader.source->ops->streams(reader.source, &streams), 4);
	const char *names[] = {"B.log", "a.log", "b.log", "empty.log"};
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(file_identity_base(streams[i]->name), names[i]);
		assert_int_equal(streams[i]->order, i);
		for (uint32_t j = 0; j < i; j++)
			assert_memory_not_equal(streams[i]->id, streams[j]->id, SOURCE_ID_BYTES);
	}
	assert_int_equal(reader.source->ops->fd(reader.source), -1);
	reader_finish(&reader);
	assert_string_equal(reader.text, "B1\r\na1\nb1\nb2\n");
	assert_int_equal(reader.failures, 0);
	reader_close(&reader);
}

static void patterns_keep_their_place(void **state)
{
	(void)state;
	log_replace("a.log", "a\n");
	log_replace("b.log", "b\n");
	log_replace("c.log", "c\n");
	struct reader reader;
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/b.log\",\"%s/*.log\",\"%s/a.log\"]}", true, NULL);
	reader_finish(&reader);
	assert_string_equal(reader.text, "b\na\nc\n");
	reader_close(&reader);
}

static void one_stream_can_be_asked(void **state)
{
	(void)state;
	log_replace("a.log", "a1\n");
	log_replace("b.log", "b1\n");
	struct reader reader;
	struct source_chunk chunk;
	struct weir_error error;
	reader_open(&reader, glob, true, NULL);
	struct source_stream **streams;
	reader.source->ops->streams(reader.source, &streams);
	assert_int_equal(reader.source->ops->collect(reader.source, streams[1], &chunk, &error), WEIR_OK);
	assert_ptr_equal(chunk.stream, streams[1]);
	assert_memory_equal(chunk.data, "b1\n", 3);
	assert_int_equal(reader.source->ops->collect(reader.source, streams[1], &chunk, &error), WEIR_END);
	assert_int_equal(reader.source->ops->collect(reader.source, streams[0], &chunk, &error), WEIR_OK);
	assert_memory_equal(chunk.data, "a1\n", 3);
	reader_finish(&reader);
	reader_close(&reader);
}

static void the_last_line_needs_no_newline(void **state)
{
	(void)state;
	struct log_bytes plain = {.at = "x1\nx2", .length = 5}, gzip = log_gzip(plain), zstd = log_zstd(plain);
	log_replace("a.log", "a1\na2");
	log_write("b.log.gz", O_TRUNC, gzip.at, gzip.length);
	log_write("c.log.zst", O_TRUNC, zstd.at, zstd.length - 0);
	struct reader reader;
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/a.log\",\"%s/b.log.gz\"]}", true, NULL);
	reader_finish(&reader);
	assert_string_equal(reader.text, "a1\nx1\na2$x2$");
	reader_close(&reader);
	free(gzip.at);
	free(zstd.at);
}

static void a_name_for_a_known_file_is_no_new_source(void **state)
{
	(void)state;
	log_replace("a.log", "a1\na2\n");
	assert_int_equal(link(log_path("a.log"), log_path("b.log")), 0);
	assert_int_equal(symlink("a.log", log_path("c.log")), 0);
	struct log_bytes plain = log_read("a.log"), gzip = log_gzip(plain);
	log_write("d.log.gz", O_TRUNC, gzip.at, gzip.length);
	struct reader reader;
	reader_open(&reader, glob, true, NULL);
	assert_int_equal(reader_stream_count(&reader), 1);
	reader_finish(&reader);
	assert_string_equal(reader.text, "a1\na2\n");
	reader_close(&reader);
	free(plain.at);
	free(gzip.at);
}

static void files_that_only_begin_alike_are_all_read(void **state)
{
	(void)state;
	/* A banner of 5 KiB, and then what each has of its own. */
	struct log_bytes banner = log_lines("# banner line %d of a program that says very much, %d\n", 1, 100);
	const char *names[] = {"app.log", "app.log.1", "app.log.2.gz", "other.log.gz"};
	for (int i = 0; i < 4; i++) {
		char own[32];
		snprintf(own, sizeof own, "own line of file %d\n", i);
		struct log_bytes text = log_joined(banner, own, strlen(own), (struct log_bytes){.at = NULL});
		struct log_bytes gzip = log_gzip(text);
		if (i < 2)
			log_write(names[i], O_TRUNC, text.at, text.length);
		else
			log_write(names[i], O_TRUNC, gzip.at, gzip.length);
		free(text.at);
		free(gzip.at);
	}
	struct reader reader;
	reader_open(&reader, glob, true, NULL);
	assert_int_equal(reader_stream_count(&reader), 4);
	reader_finish(&reader);
	for (int i = 0; i < 4; i++) {
		char own[32];
		snprintf(own, sizeof own, "own line of file %d\n", i);
		assert_non_null(strstr(reader.text, own));
	}
	reader_close(&reader);
	free(banner.at);
}

static void a_longer_file_is_no_copy_of_a_shorter_one(void **state)
{
	(void)state;
	struct log_bytes rows = {.at = "time,ip\n1,a\n2,b\n", .length = 16}, gzip = log_gzip(rows);
	log_replace("a.csv", "time,ip\n");
	log_write("b.csv.gz", O_TRUNC, gzip.at, gzip.length);
	struct reader reader;
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/a.csv\",\"%s/b.csv.gz\"]}", true, NULL);
	reader_finish(&reader);
	assert_string_equal(reader.text, "time,ip\ntime,ip\n1,a\n2,b\n");
	reader_close(&reader);
	free(gzip.at);
}

static void what_cannot_be_read_is_one_failure(void **state)
{
	(void)state;
	log_replace("a.log", "a1\n");
	struct log_bytes plain = log_lines("line %d %d\n", 1, 5000), gzip = log_gzip(plain);
	log_write("cut.log.gz", O_TRUNC, gzip.at, gzip.length / 2);
	struct reader reader;
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/none.log\",\"%s/cut.log.gz\",\"%s/a.log\"]}", true, NULL);
	char failure[256];
	struct source_chunk chunk;
	struct weir_error error;
	struct source_stream **streams;
	reader.source->ops->streams(reader.source, &streams);
	assert_int_equal(reader.source->ops->collect(reader.source, streams[0], &chunk, &error), WEIR_IO);
	snprintf(failure, sizeof failure, "cannot open %s: No such file or directory", log_path("none.log"));
	assert_string_equal(error.text, failure);
	assert_int_equal(reader.source->ops->collect(reader.source, streams[0], &chunk, &error), WEIR_END);
	reader_finish(&reader);
	assert_int_equal(reader.failures, 1);
	snprintf(failure, sizeof failure, "%s: ends in the middle of its gzip data, at byte %zu: the rest is missing",
	         log_path("cut.log.gz"), gzip.length / 2);
	assert_string_equal(reader.failure, failure);
	assert_non_null(strstr(reader.text, "a1\n"));
	assert_non_null(strstr(reader.text, "line 1000 7000\n"));
	struct source_status status = reader_status(&reader, 1);
	assert_int_equal(status.errors, 1);
	assert_string_equal(status.problem, failure);
	reader_close(&reader);
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/none*.log\"}", true, NULL);
	reader_finish(&reader);
	assert_int_equal(reader.failures, 1);
	assert_non_null(strstr(reader.failure, "none*.log: No such file or directory"));
	reader_close(&reader);
	assert_int_equal(symlink("/proc/self/mem", log_path("bad.log")), 0); /* its first page cannot be read */
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/bad.log\",\"%s/a.log\"]}", true, NULL);
	reader_finish(&reader);
	assert_int_equal(reader.failures, 1);
	assert_non_null(strstr(reader.failure, "bad.log: cannot read it: Input/output error"));
	assert_string_equal(reader.text, "a1\n");
	reader_close(&reader);
	free(plain.at);
	free(gzip.at);
}

static void a_second_run_reads_only_what_was_appended(void **state)
{
	(void)state;
	log_replace("access.log", "1\n2\n3");
	struct reader reader;
	struct source_memory *memory = source_memory_new(NULL);
	reader_open(&reader, glob, true, memory);
	reader_finish(&reader);
	assert_string_equal(reader.text, "1\n2\n3$");
	reader_acknowledge(&reader);
	reader_close(&reader);
	log_append("access.log", "3b\n4\n");
	struct source_memory *again = memory_again(memory);
	reader_open(&reader, glob, true, again);
	reader_finish(&reader);
	assert_string_equal(reader.text, "3b\n4\n");
	reader_acknowledge(&reader);
	reader_close(&reader);
	/* rotated between two runs, and packed */
	log_append("access.log", "5\n");
	log_pack("access.log", "access.log.1.gz");
	log_replace("access.log", "6\n");
	struct source_memory *third = memory_again(again);
	reader_open(&reader, glob, true, third);
	assert_int_equal(reader_stream_count(&reader), 1);
	reader_finish(&reader);
	assert_string_equal(reader.text, "5\n6\n");
	reader_close(&reader);
	source_memory_free(memory);
	source_memory_free(again);
	source_memory_free(third);
}

/* What lies beside a log is not asked for, though the log moves while it is read. */
static void a_log_that_moves_is_read_and_nothing_beside_it(void **state)
{
	(void)state;
	enum { LINES = 30000 };
	log_replace("a.log", "oldest\n");
	log_pack("a.log", "a.log.3.gz");
	log_replace("a.log.1", "old\n");
	struct log_bytes lines = log_lines("line %d of %d\n", 1, LINES);
	log_write("a.log", O_CREAT | O_TRUNC, lines.at, lines.length);
	struct reader reader;
	reader_open(&reader, "{\"type\": \"file\", \"path\": \"%s/a.log\"}", true, NULL);
	assert_int_equal(reader_step(&reader), WEIR_OK);
	assert_true(reader.length < lines.length);
	log_rename("a.log.3.gz", "a.log.4.gz");
	log_rename("a.log.1", "a.log.2");
	log_rename("a.log", "a.log.1");
	log_replace("a.log", "new\n");
	reader_finish(&reader);
	assert_memory_equal(reader.text, lines.at, lines.length);
	assert_string_equal(reader.text + lines.length, "new\n");
	reader_close(&reader);
	free(lines.at);
}

static void a_cut_run_goes_on_where_it_was_told(void **state)
{
	(void)state;
	log_replace("a.log", "1\n22\n333\n4444\n");
	log_replace("b.log", "b\n");
	struct reader reader;
	struct weir_error error;
	struct source_memory *memory = source_memory_new(NULL);
	reader_open(&reader, glob, true, memory);
	reader_finish(&reader);
	reader_close(&reader);
	struct source_memory *again = memory_again(memory);
	reader_open(&reader, glob, true, again);
	struct source_stream **streams;
	reader.source->ops->streams(reader.source, &streams);
	uint64_t position = source_position(1, 5);
	assert_int_equal(reader.source->ops->resume(reader.source, streams[0], position, &error), WEIR_OK);
	assert_int_equal(reader.source->ops->resume(reader.source, streams[1], source_position(1, 2), &error), WEIR_OK);
	assert_int_equal(reader.source->ops->resume(reader.source, streams[1], source_position(7, 2), &error),
	                 WEIR_INVALID);
	assert_non_null(strstr(error.text, "unknown position 7:2"));
	reader_finish(&reader);
	assert_string_equal(reader.text, "333\n4444\n");
	reader_close(&reader);
	source_memory_free(memory);
	source_memory_free(again);
}

static void lines_that_are_too_long_are_marked(void **state)
{
	(void)state;
	char line[3001];
	memset(line, 'x', 3000);
	line[3000] = '\0';
	log_replace("a.log", "before\n");
	log_append("a.log", line);
	log_append("a.log", "\nafter\n");
	struct reader reader;
	struct source_chunk chunk;
	struct weir_error error;
	reader_open(&reader, glob, true, NULL);
	assert_int_equal(reader_step(&reader), WEIR_OK);
	assert_int_equal(reader.source->ops->collect(reader.source, NULL, &chunk, &error), WEIR_OK);
	assert_true(chunk.too_long);
	assert_int_equal(chunk.length, 1024);
	assert_int_equal(chunk.skipped, 3001 - 1024);
	assert_int_equal(source_position_offset(chunk.position), 7);
	reader_finish(&reader);
	assert_string_equal(reader.text, "before\nafter\n");
	reader_close(&reader);
}

/* More of them than are read at a time, where no hole can be skipped. */
static void millions_of_zeros_are_passed_over(void **state)
{
	(void)state;
	enum { ZEROS = 9 << 20 };
	char *bytes = calloc(1, ZEROS + 4);
	memcpy(bytes, "a\n", 2);
	memcpy(bytes + 2 + ZEROS, "b\n", 2);
	log_write("a.log.bytes", O_TRUNC, bytes, ZEROS + 4);
	log_pack("a.log.bytes", "a.log.gz");
	bytes[0] = 'c'; /* else it is a copy */
	log_write("b.log", O_TRUNC, bytes, ZEROS + 4);
	free(bytes);
	struct reader reader;
	reader_open(&reader, "{\"type\": \"file\", \"path\": \"%s/*.log*\"}", true, NULL);
	enum weir_status status;
	int turns = 0;
	while ((status = reader_step(&reader)) != WEIR_END && ++turns < 1000)
		assert_true(status == WEIR_OK || status == WEIR_AGAIN);
	assert_int_equal(status, WEIR_END);
	assert_int_equal(reader.length, strlen("a\nb\nc\nb\n"));
	reader_close(&reader);
}

static void the_first_lines_are_known_further_down(void **state)
{
	(void)state;
	log_replace("a.log", "time,ip\n1,2\n");
	struct reader reader;
	struct source_chunk chunk;
	struct weir_error error;
	struct source_memory *memory = source_memory_new(NULL);
	reader_open(&reader, glob, true, memory);
	reader_finish(&reader);
	reader_acknowledge(&reader);
	reader_close(&reader);
	log_append("a.log", "3,4\n");
	reader_open(&reader, glob, true, memory);
	assert_int_equal(reader.source->ops->collect(reader.source, NULL, &chunk, &error), WEIR_OK);
	assert_memory_equal(chunk.data, "3,4\n", 4);
	assert_int_equal(chunk.before.length, 12);
	assert_memory_equal(chunk.before.at, "time,ip\n1,2\n", 12);
	assert_int_equal(reader.source->ops->collect(reader.source, NULL, &chunk, &error), WEIR_END);
	reader_close(&reader);
	source_memory_free(memory);
}

/* Whoever is named first: a packed file and what it was packed from have the same lines. */
static void a_log_and_its_packed_copy_are_read_once(void **state)
{
	(void)state;
	struct log_bytes lines = log_lines("line %d of %d\n", 1, 20000);
	log_write("b.log", O_CREAT | O_TRUNC, lines.at, lines.length);
	struct log_bytes gzip = log_gzip(lines);
	log_write("b.log.gz", O_CREAT | O_TRUNC, gzip.at, gzip.length);
	struct reader reader;
	struct source_memory *memory = source_memory_new(NULL);
	struct reader first;
	reader_open(&first, "{\"type\": \"file\", \"path\": \"%s/b.log.gz\"}", true, memory);
	reader_open(&reader, "{\"type\": \"file\", \"path\": \"%s/b.log\"}", true, memory);
	assert_int_equal(reader_stream_count(&reader), 0);
	reader_close(&reader);
	reader_close(&first);
	source_memory_free(memory);
	/* one that has grown since is another */
	log_append("b.log", "more\n");
	memory = source_memory_new(NULL);
	reader_open(&first, "{\"type\": \"file\", \"path\": \"%s/b.log.gz\"}", true, memory);
	reader_open(&reader, "{\"type\": \"file\", \"path\": \"%s/b.log\"}", true, memory);
	assert_int_equal(reader_stream_count(&reader), 1);
	reader_close(&reader);
	reader_close(&first);
	source_memory_free(memory);
	free(lines.at);
	free(gzip.at);
}

/* A pattern that names some files still tells what it cannot see. */
static void what_a_pattern_cannot_see_is_told(void **state)
{
	(void)state;
	static const char *const config = "{\"type\": \"file\", \"path\": \"%s/*/l.log\"}";
	struct reader reader;
	assert_int_equal(mkdir(log_path("open"), 0755), 0);
	assert_int_equal(mkdir(log_path("closed"), 0755), 0);
	log_replace("open/l.log", "1\n");
	assert_int_equal(symlink("nowhere", log_path("closed/l.log")), 0);
	reader_open(&reader, config, true, NULL);
	reader_finish(&reader);
	assert_string_equal(reader.text, "1\n");
	assert_int_equal(reader.failures, 1);
	assert_non_null(strstr(reader.failure, "closed/l.log: it is a link to a file that is not there"));
	reader_close(&reader);
	assert_int_equal(chmod(log_path("open/l.log"), 0644), 0);
	assert_int_equal(chmod(log_path("closed"), 0), 0);
	assert_int_equal(chmod(log_directory, 0755), 0);
	bool root = geteuid() == 0;
	if (root)
		assert_int_equal(seteuid(65534), 0);
	reader_open(&reader, config, true, NULL);
	reader_finish(&reader);
	reader_close(&reader);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_string_equal(reader.failure + strlen(reader.failure) - 17, "Permission denied");
	if (strstr(reader.failure, "closed") == NULL)
		fail_msg("%s", reader.failure);
	assert_int_equal(chmod(log_path("closed"), 0755), 0);
}

static void status_tells_the_progress(void **state)
{
	(void)state;
	log_replace("a.log", "1\n22\n");
	struct reader reader;
	reader_open(&reader, glob, true, NULL);
	struct source_status status = reader_status(&reader, 0);
	assert_int_equal(status.size_bytes, 5);
	assert_int_equal(status.lag_bytes, 5);
	assert_int_equal(status.position, 0);
	assert_string_equal(reader.source->ops->type, "file");
	assert_true(reader.source->ops->replayable);
	assert_int_equal(reader_step(&reader), WEIR_OK);
	status = reader_status(&reader, 0);
	assert_int_equal(status.lag_bytes, 0);
	assert_int_equal(status.position, source_position(1, 5));
	assert_string_equal(status.problem, "");
	reader_close(&reader);
}

static void expect_refused(const char *config, const char *words)
{
	struct weir_error error;
	struct weir_json_document *document;
	struct source *source;
	assert_int_equal(weir_json_parse("weir.json", config, strlen(config), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	struct source_context context = {.once = true};
	assert_int_equal(source_new(&root, &context, &source, &error), WEIR_INVALID);
	if (strstr(error.text, words) == NULL)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
}

static void a_wrong_configuration_is_refused(void **state)
{
	(void)state;
	expect_refused("{}", "type: is missing");
	expect_refused("{\"type\":\"files\"}", "\"file\"");
	expect_refused("{\"type\":\"file\"}", "path: is missing");
	expect_refused("{\"type\":\"file\",\"path\":[]}", "path");
	expect_refused("{\"type\":\"file\",\"path\":[\"a\",3]}", "path[1]");
	expect_refused("{\"type\":\"file\",\"path\":\"\"}", "is empty");
	expect_refused("{\"type\":\"file\",\"path\":\"/var/log/**/*.log\"}", "list a glob for each level");
	expect_refused("{\"type\":\"file\",\"path\":\"a\",\"exclude\":\"**/b\"}", "exclude: has \"**\"");
	expect_refused("{\"type\":\"file\",\"path\":\"a\",\"folow\":true}", "follow");
	expect_refused("{\"type\":\"file\",\"path\":\"a\",\"start\":\"middle\"}", "start");
	expect_refused("{\"type\":\"file\",\"path\":\"a\",\"line_max\":\"1B\"}", "line_max");
	expect_refused("{\"type\":\"file\",\"path\":\"a\",\"line_max\":10}", "line_max");
	expect_refused("{\"type\":\"stdin\",\"path\":\"a\"}", "use \"-\" for standard input");
	expect_refused("{\"type\":\"stdin\",\"start\":\"end\"}", "start");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_globs_files_are_read_by_path_bytes, each_begin, each_end),
		cmocka_unit_test_setup_teardown(patterns_keep_their_place, each_begin, each_end),
		cmocka_unit_test_setup_teardown(one_stream_can_be_asked, each_begin, each_end),
		cmocka_unit_test_setup_teardown(the_last_line_needs_no_newline, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_name_for_a_known_file_is_no_new_source, each_begin, each_end),
		cmocka_unit_test_setup_teardown(files_that_only_begin_alike_are_all_read, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_longer_file_is_no_copy_of_a_shorter_one, each_begin, each_end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_one_failure, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_second_run_reads_only_what_was_appended, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_log_that_moves_is_read_and_nothing_beside_it, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_cut_run_goes_on_where_it_was_told, each_begin, each_end),
		cmocka_unit_test_setup_teardown(lines_that_are_too_long_are_marked, each_begin, each_end),
		cmocka_unit_test_setup_teardown(millions_of_zeros_are_passed_over, each_begin, each_end),
		cmocka_unit_test_setup_teardown(the_first_lines_are_known_further_down, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_log_and_its_packed_copy_are_read_once, each_begin, each_end),
		cmocka_unit_test_setup_teardown(what_a_pattern_cannot_see_is_told, each_begin, each_end),
		cmocka_unit_test_setup_teardown(status_tells_the_progress, each_begin, each_end),
		cmocka_unit_test_setup_teardown(a_wrong_configuration_is_refused, each_begin, each_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
