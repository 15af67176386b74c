/* SPDX-License-Identifier: Apache-2.0 */
/* Whole lines: nothing lost, cut or doubled whatever the reads, the limits and the lengths of lines. */
#include "collector/input/input_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <cmocka.h>

static struct input_lines *open_lines(const char *name, size_t line_max, size_t read_bytes)
{
	return input_lines_new(input_new(open(log_path(name), O_RDONLY | O_CLOEXEC), true), line_max, read_bytes);
}

/* The next chunk; false: none just now. */
static bool next(struct input_lines *lines, uint64_t limit, bool final, struct input_lines_chunk *chunk)
{
	struct weir_error error;
	enum weir_status status = input_lines_fill(lines, limit, final, &error);
	assert_true(status == WEIR_OK || status == WEIR_END);
	if (status == WEIR_OK)
		input_lines_take(lines, chunk);
	return status == WEIR_OK;
}

static void expect(struct input_lines *lines, bool final, const char *text, uint64_t offset, bool open)
{
	struct input_lines_chunk chunk;
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, final, &chunk));
	assert_int_equal(chunk.length, strlen(text));
	assert_memory_equal(chunk.data, text, chunk.length);
	assert_int_equal(chunk.offset, offset);
	assert_int_equal(chunk.open, open);
	assert_false(chunk.too_long);
	assert_int_equal(chunk.skipped, 0);
}

static void expect_none(struct input_lines *lines, bool final)
{
	struct input_lines_chunk chunk;
	assert_false(next(lines, INPUT_LINES_NO_LIMIT, final, &chunk));
}

/* Lines are held until something stands behind them: a line that is too long may be all that ever does. */
static void a_long_line_does_not_gather_what_follows(void **state)
{
	(void)state;
	enum { LONGEST = 4096, READ = 4096, SHORT = 40000 };
	char text[LONGEST + 2];
	log_replace("gather.log", "");
	memset(text, 'x', sizeof text);
	text[99] = '\n';
	for (int i = 0; i < 30; i++)
		log_write("gather.log", O_APPEND, text, 100);
	text[99] = 'x';
	text[LONGEST + 1] = '\n';
	log_write("gather.log", O_APPEND, text, sizeof text);
	text[99] = '\n';
	char *many = weir_alloc(SHORT, 100);
	for (int i = 0; i < SHORT; i++)
		memcpy(many + (size_t)i * 100, text, 100);
	log_write("gather.log", O_APPEND, many, (size_t)SHORT * 100);
	free(many);

	struct input_lines *lines = open_lines("gather.log", LONGEST, READ);
	struct input_lines_chunk chunk;
	uint64_t bytes = 0;
	while (next(lines, INPUT_LINES_NO_LIMIT, true, &chunk)) {
		bytes += chunk.length + chunk.skipped;
		assert_true(input_lines_read_offset(lines) - chunk.offset <= LONGEST + 4 * READ);
	}
	assert_int_equal(30 * 100 + LONGEST + 2 + (uint64_t)SHORT * 100, bytes);
	input_lines_free(lines);
}

static void a_line_waits_for_its_newline(void **state)
{
	(void)state;
	log_replace("wait.log", "one\ntwo\nthr");
	struct input_lines *lines = open_lines("wait.log", 100, 4096);
	expect(lines, false, "one\ntwo\n", 0, false);
	expect_none(lines, false);
	assert_int_equal(input_lines_offset(lines), 8);
	assert_int_equal(input_lines_read_offset(lines), 11);
	log_append("wait.log", "ee");
	expect_none(lines, false);
	log_append("wait.log", "\n\n\r\nfour");
	expect(lines, false, "three\n\n\r\n", 8, false);
	expect_none(lines, false);
	expect(lines, true, "four", 17, true);
	expect_none(lines, true);
	/* what comes after that is another line */
	log_append("wait.log", "teen\n");
	expect(lines, true, "teen\n", 21, false);
	input_lines_free(lines);
}

static void any_bytes_are_carried(void **state)
{
	(void)state;
	static const char bytes[] = "a\0b\n\377\376\n\0\n";
	log_write("bytes.log", O_TRUNC, bytes, sizeof bytes - 1);
	struct input_lines *lines = open_lines("bytes.log", 100, 4096);
	struct input_lines_chunk chunk;
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_int_equal(chunk.length, sizeof bytes - 1);
	assert_memory_equal(chunk.data, bytes, sizeof bytes - 1);
	input_lines_free(lines);
}

/* Of a line that has `bytes` more than are given: those, or the last of them, each `byte`. */
static void expect_tail(const struct input_lines_chunk *chunk, int byte, size_t bytes)
{
	assert_int_equal(chunk->tail.length, bytes < INPUT_LINES_TAIL_BYTES ? bytes : INPUT_LINES_TAIL_BYTES);
	for (uint32_t i = 0; i < chunk->tail.length; i++)
		assert_int_equal(chunk->tail.at[i], byte);
}

static void long_lines_cost_no_memory(void **state)
{
	(void)state;
	enum { LONGEST = 1024 };
	size_t lengths[] = {LONGEST, LONGEST + 1, 3, 200000, LONGEST - 1, 70000, 70001, 0, LONGEST + 1};
	size_t count = sizeof lengths / sizeof *lengths, reads[] = {4096, 8192, 65536, 1 << 20};
	log_replace("long.log", "");
	char *text = weir_alloc(200001, 1);
	for (size_t i = 0; i < count; i++) {
		memset(text, 'a' + (int)i, lengths[i]);
		text[lengths[i]] = '\n';
		log_write("long.log", O_APPEND, text, lengths[i] + (i + 1 < count)); /* the last one has no newline */
	}
	for (size_t r = 0; r < sizeof reads / sizeof *reads; r++) {
		struct input_lines *lines = open_lines("long.log", LONGEST, reads[r]);
		struct input_lines_chunk chunk;
		uint64_t offset = 0;
		size_t line = 0;
		while (next(lines, INPUT_LINES_NO_LIMIT, true, &chunk)) {
			assert_int_equal(chunk.offset, offset);
			offset += chunk.length + chunk.skipped;
			assert_int_equal(input_lines_offset(lines), offset);
			assert_true(input_lines_read_offset(lines) >= offset);
			if (chunk.too_long) {
				assert_true(lengths[line] > LONGEST);
				assert_int_equal(chunk.length, LONGEST);
				assert_int_equal(chunk.length + chunk.skipped, lengths[line] + (line + 1 < count));
				assert_int_equal(chunk.open, line + 1 == count);
				assert_int_equal(chunk.data[0], 'a' + (int)line);
				assert_int_equal(chunk.data[LONGEST - 1], 'a' + (int)line);
				expect_tail(&chunk, 'a' + (int)line, chunk.open ? 0 : lengths[line] - LONGEST);
				line++;
				continue;
			}
			for (const char *at = chunk.data; at < chunk.data + chunk.length; line++) {
				const char *newline = memchr(at, '\n', (size_t)(chunk.data + chunk.length - at));
				assert_non_null(newline);
				assert_int_equal(newline - at, lengths[line]);
				assert_true(lengths[line] <= LONGEST);
				at = newline + 1;
			}
		}
		assert_int_equal(line, count);
		input_lines_free(lines);
	}
	free(text);
}

static void a_long_line_may_come_in_pieces(void **state)
{
	(void)state;
	char piece[1500], end[INPUT_LINES_TAIL_BYTES];
	memset(piece, 'x', sizeof piece);
	log_replace("pieces.log", "begin\n");
	struct input_lines *lines = open_lines("pieces.log", 1024, 4096);
	expect(lines, false, "begin\n", 0, false);
	for (int i = 0; i < 10; i++) {
		log_write("pieces.log", O_APPEND, piece, sizeof piece);
		expect_none(lines, false);
		assert_int_equal(input_lines_offset(lines), 6);
		assert_int_equal(input_lines_read_offset(lines), 6 + 1500 * (i + 1));
	}
	log_append("pieces.log", "\nend\n");
	struct input_lines_chunk chunk;
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_true(chunk.too_long && !chunk.open);
	assert_int_equal(chunk.length, 1024);
	assert_int_equal(chunk.skipped, 15001 - 1024);
	expect_tail(&chunk, 'x', 15000 - 1024);
	expect(lines, false, "end\n", 15007, false);
	/* The end is what came last, whatever came before it. */
	for (size_t i = 0; i < sizeof end; i++)
		end[i] = (char)('a' + i % 26);
	for (int i = 0; i < 70; i++) {
		log_write("pieces.log", O_APPEND, piece, sizeof piece);
		expect_none(lines, false);
	}
	log_write("pieces.log", O_APPEND, end, sizeof end);
	expect_none(lines, false);
	log_append("pieces.log", "\nend\n");
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_int_equal(chunk.skipped, 70 * 1500 + sizeof end + 1 - 1024);
	assert_int_equal(chunk.tail.length, sizeof end);
	assert_memory_equal(chunk.tail.at, end, sizeof end);
	expect(lines, false, "end\n", 15011 + 70 * 1500 + sizeof end + 1, false);
	input_lines_free(lines);
}

static void no_byte_behind_a_limit_is_given(void **state)
{
	(void)state;
	log_replace("limit.log", "one\ntwo\nthree\nfour\n");
	struct input_lines *lines = open_lines("limit.log", 100, 4096);
	struct input_lines_chunk chunk;
	assert_true(next(lines, 8, false, &chunk));
	assert_int_equal(chunk.length, 8);
	assert_false(next(lines, 8, false, &chunk));
	/* a limit within a line cuts it there, as it was cut when it was handed out first */
	assert_true(next(lines, 11, false, &chunk));
	assert_memory_equal(chunk.data, "thr", 3);
	assert_true(chunk.open);
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_memory_equal(chunk.data, "ee\nfour\n", 8);
	assert_int_equal(chunk.offset, 11);

	/* the limit lies within what is buffered */
	struct weir_error error;
	assert_int_equal(input_lines_seek(lines, 0, &error), WEIR_OK);
	assert_int_equal(input_lines_fill(lines, INPUT_LINES_NO_LIMIT, false, &error), WEIR_OK);
	assert_true(next(lines, 4, false, &chunk));
	assert_int_equal(chunk.length, 4);
	assert_false(chunk.open);
	assert_false(next(lines, 4, false, &chunk));
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_int_equal(chunk.offset, 4);
	assert_int_equal(chunk.length, 15);
	input_lines_free(lines);
}

static void lines_of_every_size_come_once(void **state)
{
	(void)state;
	struct log_bytes text = {.at = weir_alloc(1 << 21, 1)};
	for (unsigned i = 0; i < 30000; i++) {
		unsigned length = i * 2654435761U % 97;
		memset(text.at + text.length, 'a' + (int)(i % 26), length);
		text.at[text.length + length] = '\n';
		text.length += length + 1;
	}
	struct log_bytes packed = log_zstd(text);
	log_write("sizes.log", O_TRUNC, text.at, text.length);
	log_write("packed.log", O_TRUNC, packed.at, packed.length);
	const char *names[] = {"sizes.log", "packed.log"};
	for (size_t read = 4096; read < 20000; read += 777)
		for (int i = 0; i < 2; i++) {
			struct input_lines *lines = open_lines(names[i], 1024, read);
			struct input_lines_chunk chunk;
			size_t offset = 0;
			while (next(lines, INPUT_LINES_NO_LIMIT, false, &chunk)) {
				assert_int_equal(chunk.offset, offset);
				assert_memory_equal(chunk.data, text.at + offset, chunk.length);
				assert_int_equal(chunk.data[chunk.length - 1], '\n');
				offset += chunk.length;
			}
			assert_int_equal(offset, text.length);
			input_lines_rest(lines);
			expect_none(lines, true);
			input_lines_free(lines);
		}
	free(text.at);
	free(packed.at);
}

static void a_byte_order_mark_is_no_line(void **state)
{
	(void)state;
	log_replace("mark.log", "\xef\xbb");
	struct input_lines *lines = open_lines("mark.log", 100, 4096);
	expect_none(lines, false);
	log_append("mark.log", "\xbf{}\n\xef\xbb\xbf{}\n");
	expect(lines, false, "{}\n\xef\xbb\xbf{}\n", 3, false);
	struct weir_error error;
	assert_int_equal(input_lines_seek(lines, 0, &error), WEIR_OK);
	expect(lines, false, "{}\n\xef\xbb\xbf{}\n", 3, false);
	input_lines_free(lines);
	log_replace("mark.log", "\xef\xbb\xbf");
	lines = open_lines("mark.log", 100, 4096);
	expect_none(lines, true);
	assert_int_equal(input_lines_offset(lines), 3);
	input_lines_free(lines);
}

static void zeros_before_a_line_are_none_of_it(void **state)
{
	(void)state;
	enum { ZEROS = 9000, HOLE = 300 << 20 };
	static const char zeros[ZEROS];
	struct input_lines_chunk chunk;
	log_write("zeros.log", O_TRUNC, zeros, ZEROS);
	struct input_lines *lines = open_lines("zeros.log", 100, 4096);
	expect_none(lines, true);
	assert_int_equal(input_lines_offset(lines), ZEROS);
	assert_int_equal(input_lines_read_offset(lines), ZEROS);
	/* a hole is not read */
	assert_int_equal(truncate(log_path("zeros.log"), HOLE), 0);
	log_append("zeros.log", "one\n");
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_int_equal(chunk.offset, HOLE);
	assert_int_equal(chunk.zeros, HOLE);
	assert_memory_equal(chunk.data, "one\n", 4);
	/* nor behind a limit */
	struct weir_error error;
	assert_int_equal(input_lines_seek(lines, 0, &error), WEIR_OK);
	assert_false(next(lines, HOLE / 2, false, &chunk));
	assert_int_equal(input_lines_offset(lines), HOLE / 2);
	input_lines_free(lines);
}

/* Much of one line: others have their turn. */
static void an_endless_line_comes_in_turns(void **state)
{
	(void)state;
	struct weir_error error;
	struct input_lines_chunk chunk;
	size_t length = 10 << 20;
	char *bytes = weir_alloc(length, 1);
	memset(bytes, 'x', length);
	log_write("endless.log", O_TRUNC, bytes, length);
	struct input_lines *lines = open_lines("endless.log", 100, 64 << 10);
	int turns = 0;
	while (input_lines_fill(lines, INPUT_LINES_NO_LIMIT, false, &error) == WEIR_AGAIN)
		turns++;
	assert_in_range(turns, 2, 3);
	log_append("endless.log", "\n");
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_true(chunk.too_long);
	assert_int_equal(chunk.length + chunk.skipped, length + 1);
	free(bytes);
	input_lines_free(lines);
}

/* Many zeros behind a text that is too long already: they are of the line, and it is not read anew for them. */
static void zeros_within_a_long_line_are_read_once(void **state)
{
	(void)state;
	struct weir_error error;
	struct input_lines_chunk chunk;
	enum { LINE_MAX_BYTES = 100 << 10, TEXT = 150 << 10, TURNS = 10 };
	size_t length = 10 << 20;
	char *bytes = weir_alloc(length, 1);
	memset(bytes, 'x', TEXT);
	log_write("within.log", O_TRUNC, bytes, length);
	struct input_lines *lines = open_lines("within.log", LINE_MAX_BYTES, 64 << 10);
	int turns = 0;
	while (turns < TURNS && input_lines_fill(lines, INPUT_LINES_NO_LIMIT, false, &error) == WEIR_AGAIN)
		turns++;
	assert_in_range(turns, 1, TURNS - 1);
	log_append("within.log", "end\n");
	assert_true(next(lines, INPUT_LINES_NO_LIMIT, false, &chunk));
	assert_true(chunk.too_long);
	assert_int_equal(chunk.length + chunk.skipped, length + 4);
	assert_memory_equal(chunk.tail.at + chunk.tail.length - 3, "end", 3);
	free(bytes);
	input_lines_free(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_waits_for_its_newline),
		cmocka_unit_test(any_bytes_are_carried),
		cmocka_unit_test(long_lines_cost_no_memory),
		cmocka_unit_test(a_long_line_may_come_in_pieces),
		cmocka_unit_test(no_byte_behind_a_limit_is_given),
		cmocka_unit_test(lines_of_every_size_come_once),
		cmocka_unit_test(a_byte_order_mark_is_no_line),
		cmocka_unit_test(zeros_before_a_line_are_none_of_it),
		cmocka_unit_test(zeros_within_a_long_line_are_read_once),
		cmocka_unit_test(an_endless_line_comes_in_turns),
		cmocka_unit_test(a_long_line_does_not_gather_what_follows),
	};
	return cmocka_run_group_tests(tests, log_directory_make, log_directory_remove);
}
