/* SPDX-License-Identifier: Apache-2.0 */
/* Going on behind a mark: what was written after it is cut off, wherever rotation or people have put it. */
#include "line_file_fixture.h"

static enum weir_status resume(const char *path, int64_t rotate_bytes, uint32_t keep,
                               const struct weir_line_file_mark *mark, struct weir_line_file **file)
{
	struct weir_line_file_options options = {.path = path, .rotate_bytes = rotate_bytes, .keep = keep};
	struct weir_error error = {.text = ""};
	enum weir_status status = weir_line_file_resume(&options, mark, file, &error);
	assert_true(status == WEIR_OK || strstr(error.text, path) != NULL);
	return status;
}

static void a_resume_cuts_behind_the_mark(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	struct weir_line_file_mark mark = weir_line_file_mark(file);
	append(file, "two\n");
	close_file(file);
	assert_int_equal(WEIR_OK, resume(path, 0, 0, &mark, &file));
	append(file, "new\n");
	close_file(file);
	assert_file(path, "one\nnew\n");

	assert_int_equal(0, truncate(path, 2));
	assert_int_equal(WEIR_END, resume(path, 0, 0, &mark, &file));
	assert_file(path, "on");
	put(path, "other lines\n"); /* it was cut, and has grown past the mark */
	assert_int_equal(WEIR_END, resume(path, 0, 0, &mark, &file));
	assert_file(path, "other lines\n");
	rename(path, in(state, "elsewhere"));
	put(path, "another's\n");
	assert_int_equal(WEIR_INVALID, resume(path, 0, 0, &mark, &file));
	assert_file(path, "another's\n");
}

static void a_marked_file_that_was_moved_is_cut_there(void **state)
{
	const char *path = in(state, "a"), *moved = in(state, "a-20261121");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	struct weir_line_file_mark mark = weir_line_file_mark(file);
	append(file, "two\n");
	close_file(file);
	rename(path, moved);
	put(path, "");
	assert_int_equal(WEIR_OK, resume(path, 0, 0, &mark, &file));
	append(file, "new\n");
	close_file(file);
	assert_file(moved, "one\n");
	assert_file(path, "new\n");

	unlink(path);
	/* Under a name of its own it is taken for another file, whose inode may just be the removed one's. */
	const char *foreign = in(state, "notes");
	rename(moved, foreign);
	assert_int_equal(WEIR_END, resume(path, 0, 0, &mark, &file));
	assert_file(path, NULL);
	assert_file(foreign, "one\n");
	mark.length = 0;
	assert_int_equal(WEIR_OK, resume(path, 0, 0, &mark, &file));
	close_file(file);
	assert_file(foreign, "one\n");
	assert_file(path, "");
}

static void a_resume_undoes_rotations(void **state)
{
	unsigned seed = 3;
	for (int round = 0; round < 60; round++) {
		uint32_t keep = 1 + (uint32_t)rand_r(&seed) % 6;
		int total = 40 + rand_r(&seed) % 40, cut_at = rand_r(&seed) % total,
			crash_at = cut_at + rand_r(&seed) % (total - cut_at);
		char plain[16], broken[16];
		snprintf(plain, sizeof plain, "p%d", round);
		snprintf(broken, sizeof broken, "b%d", round);
		const char *path = in(state, broken);
		struct weir_line_file *file = open_file(path, 150, keep);
		write_lines(file, 0, cut_at, &seed);
		struct weir_line_file_mark mark = weir_line_file_mark(file);
		/* The mark names the file of the last flush: a checkpoint syncs before it marks. */
		assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
		mark = weir_line_file_mark(file);
		weir_line_file_protect(file, &mark);
		uint32_t rotations = 0;
		for (int i = cut_at; i < crash_at && rotations < keep; i++) {
			struct weir_line_file_mark before = weir_line_file_mark(file);
			write_lines(file, i, i + 1, &seed);
			flush(file);
			rotations += same_file(before, weir_line_file_mark(file)) ? 0 : 1;
		}
		close_file(file);
		assert_int_equal(WEIR_OK, resume(path, 150, keep, &mark, &file));
		for (int i = cut_at; i < total; i++) {
			write_lines(file, i, i + 1, &seed);
			assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
			mark = weir_line_file_mark(file);
			weir_line_file_protect(file, &mark);
		}
		close_file(file);
		file = open_file(in(state, plain), 150, keep);
		write_lines(file, 0, total, &seed);
		close_file(file);
		assert_same_files(state, plain, broken, (int)keep + 1);
	}
}

#define test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_resume_cuts_behind_the_mark),
		test(a_marked_file_that_was_moved_is_cut_there),
		test(a_resume_undoes_rotations),
	};
	return cmocka_run_group_tests_name("line_file_resume", tests, NULL, NULL);
}
