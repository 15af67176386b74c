/* SPDX-License-Identifier: Apache-2.0 */
/* A list's file: replaced whole, only where it changed, and noticed when it is gone. */
#include "deploy/gateways/target/list_file.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static void open_in(struct list_file *file, const char *directory, const char *name)
{
	*file = (struct list_file){.fd = -1};
	snprintf(file->path, sizeof file->path, "%.200s/%s", directory, name);
}

/* Writes numbered lines; says whether the file changed. */
static bool write_lines(struct list_file *file, int count)
{
	bool changed;
	struct weir_error error;
	if (list_file_begin(file, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	for (int i = 0; i < count; i++) {
		weir_text_printf(&file->buffer, "line %d\n", i);
		list_file_flow(file);
	}
	if (list_file_end(file, &changed, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return changed;
}

static void assert_lines(const struct list_file *file, int count)
{
	FILE *in = fopen(file->path, "r");
	char line[64], expected[64];
	assert_non_null(in);
	for (int i = 0; i < count; i++) {
		snprintf(expected, sizeof expected, "line %d\n", i);
		assert_non_null(fgets(line, sizeof line, in));
		assert_string_equal(expected, line);
	}
	assert_null(fgets(line, sizeof line, in));
	fclose(in);
}

static void test_it_is_replaced_where_it_changed(void **state)
{
	struct list_file file;
	char temporary[WEIR_PATH_BYTES + 8];
	struct stat about;
	open_in(&file, *state, "list");
	assert_true(list_file_is_in_place(&file));
	assert_true(write_lines(&file, 3));
	assert_lines(&file, 3);
	assert_int_equal(0, stat(file.path, &about));
	assert_int_equal(0644, about.st_mode & 0777);
	assert_false(write_lines(&file, 3));
	assert_true(write_lines(&file, 100000)); /* more than is gathered */
	assert_lines(&file, 100000);
	assert_false(write_lines(&file, 100000));
	assert_true(write_lines(&file, 0));
	assert_lines(&file, 0);
	snprintf(temporary, sizeof temporary, "%s.new", file.path);
	assert_int_equal(-1, access(temporary, F_OK));
	list_file_deinit(&file);
}

static unsigned mode_of(const struct list_file *file)
{
	struct stat about;
	assert_int_equal(0, stat(file->path, &about));
	return about.st_mode & 0777;
}

/* A service's umask is for its state; who made a list stricter keeps that, and nobody else ever writes it. */
static void test_all_may_read_it_whatever_the_umask(void **state)
{
	struct list_file file;
	mode_t before = umask(077);
	open_in(&file, *state, "list");
	write_lines(&file, 1);
	assert_int_equal(0644, mode_of(&file));
	assert_int_equal(0, chmod(file.path, 0640));
	assert_true(write_lines(&file, 2));
	assert_int_equal(0640, mode_of(&file));
	assert_int_equal(0, chmod(file.path, 0666));
	assert_true(write_lines(&file, 3));
	assert_int_equal(0644, mode_of(&file));
	umask(before);
	list_file_deinit(&file);
}

static void test_one_that_is_gone_is_written_again(void **state)
{
	struct list_file file;
	open_in(&file, *state, "list");
	write_lines(&file, 3);
	assert_true(list_file_is_in_place(&file));
	unlink(file.path);
	assert_false(list_file_is_in_place(&file));
	assert_true(write_lines(&file, 3));
	assert_true(list_file_is_in_place(&file));
	FILE *other = fopen(file.path, "a");
	fputs("more\n", other);
	fclose(other);
	assert_false(list_file_is_in_place(&file));
	assert_true(write_lines(&file, 3));
	assert_lines(&file, 3);
	list_file_deinit(&file);
}

static void test_a_failure_leaves_what_was_there(void **state)
{
	struct list_file file;
	struct weir_error error = {.text = ""};
	open_in(&file, *state, "no-directory/list");
	assert_int_equal(WEIR_IO, list_file_begin(&file, &error));
	assert_non_null(strstr(error.text, "no-directory"));
	list_file_deinit(&file);

	/* A directory that comes in its place cannot be replaced by a file. */
	bool changed;
	open_in(&file, *state, "taken");
	assert_int_equal(WEIR_OK, list_file_begin(&file, &error));
	assert_int_equal(0, mkdir(file.path, 0700));
	assert_int_equal(WEIR_IO, list_file_end(&file, &changed, &error));
	char temporary[WEIR_PATH_BYTES + 8];
	snprintf(temporary, sizeof temporary, "%s.new", file.path);
	assert_int_equal(-1, access(temporary, F_OK));
	list_file_deinit(&file);
}

static void assert_refused(struct list_file *file, const char *words)
{
	struct weir_error error;
	assert_int_equal(WEIR_IO, list_file_begin(file, &error));
	if (strstr(error.text, words) == NULL)
		fail_msg("%s", error.text);
}

static void test_what_is_no_file_is_not_replaced(void **state)
{
	const char *directory = *state;
	struct list_file file;
	struct stat about;
	char other[512];
	open_in(&file, directory, "pipe");
	assert_int_equal(0, mkfifo(file.path, 0600));
	assert_refused(&file, "pipe is a pipe: only a regular file can be replaced");
	assert_int_equal(0, lstat(file.path, &about));
	assert_true(S_ISFIFO(about.st_mode));
	open_in(&file, directory, "device");
	assert_int_equal(0, symlink("/dev/full", file.path));
	assert_refused(&file, "device is a device: ");
	assert_int_equal(0, lstat(file.path, &about));
	assert_true(S_ISLNK(about.st_mode));
	open_in(&file, directory, "");
	assert_refused(&file, " is a directory: ");
	static const char *const open_ones[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"};
	for (size_t i = 0; i < sizeof open_ones / sizeof *open_ones; i++) {
		snprintf(file.path, sizeof file.path, "%s", open_ones[i]);
		assert_refused(&file, i == 1 ? "is standard error: " : "is standard output: ");
	}
	/* Of a link to a file, that is replaced; of one to nothing, it is made where the link leads. */
	for (int there = 1; there >= 0; there--) {
		open_in(&file, directory, there ? "target" : "none");
		if (there)
			assert_true(write_lines(&file, 1));
		list_file_deinit(&file);
		open_in(&file, directory, there ? "link" : "dangling");
		assert_int_equal(0, symlink(there ? "target" : "none", file.path));
		assert_true(write_lines(&file, 3));
		assert_lines(&file, 3);
		assert_int_equal(0, lstat(file.path, &about));
		assert_true(S_ISLNK(about.st_mode));
		snprintf(other, sizeof other, "%s/%s", directory, there ? "target" : "none");
		assert_int_equal(0, lstat(other, &about));
		assert_true(S_ISREG(about.st_mode) && list_file_is_in_place(&file));
		list_file_deinit(&file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_it_is_replaced_where_it_changed, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_all_may_read_it_whatever_the_umask, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_gone_is_written_again, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_file_is_not_replaced, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_a_failure_leaves_what_was_there, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
