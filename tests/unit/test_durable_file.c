/* SPDX-License-Identifier: Apache-2.0 */
/* Durable files are whole, before and after; a directory has one owner. */
#include "common/files/durable_file.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char path[512];

static const char *in(void **state, const char *name)
{
	snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
	return path;
}

static void what_was_written_is_read(void **state)
{
	char *bytes;
	size_t length;
	assert_int_equal(WEIR_OK, weir_durable_read(in(state, "a"), 100, &bytes, &length, NULL));
	assert_null(bytes);
	assert_int_equal(WEIR_OK, weir_durable_write(path, "one\0two", 7, NULL));
	assert_int_equal(WEIR_OK, weir_durable_write(path, "x\0y", 3, NULL));
	assert_int_equal(WEIR_OK, weir_durable_read(path, 3, &bytes, &length, NULL));
	assert_int_equal(3, length);
	assert_memory_equal("x\0y\0", bytes, 4);
	free(bytes);
	assert_int_equal(WEIR_OK, weir_durable_write(path, "", 0, NULL));
	assert_int_equal(WEIR_OK, weir_durable_read(path, 0, &bytes, &length, NULL));
	assert_int_equal(0, length);
	free(bytes);
}

static void too_large_and_no_file_are_refused(void **state)
{
	char *bytes;
	size_t length;
	struct weir_error error;
	assert_int_equal(WEIR_OK, weir_durable_write(in(state, "a"), "12345", 5, NULL));
	assert_int_equal(WEIR_INVALID, weir_durable_read(path, 4, &bytes, &length, &error));
	assert_non_null(strstr(error.text, "has 5 bytes; the limit is 4"));
	assert_int_equal(WEIR_INVALID, weir_durable_read(*state, 100, &bytes, &length, &error));
	assert_null(bytes);
}

static void a_failed_write_leaves_the_old_bytes(void **state)
{
	char *bytes, *large = calloc(1, 1 << 20);
	size_t length;
	struct weir_error error;
	assert_int_equal(WEIR_OK, weir_durable_write(in(state, "a"), "old", 3, NULL));
	struct rlimit before, small;
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	enum weir_status status = weir_durable_write(path, large, 1 << 20, &error);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(WEIR_IO, status);
	assert_non_null(strstr(error.text, strerror(EFBIG)));
	assert_int_equal(WEIR_OK, weir_durable_read(path, 100, &bytes, &length, NULL));
	assert_string_equal("old", bytes);
	free(bytes);
	assert_int_equal(-1, access(in(state, "a.new"), F_OK));
	assert_int_equal(WEIR_OK, weir_durable_write(in(state, "a"), large, 1 << 20, &error));
	free(large);
}

static void a_directory_is_made_with_those_above(void **state)
{
	struct stat about;
	struct weir_error error;
	assert_int_equal(WEIR_OK, weir_directory_make(in(state, "a/b//c/"), NULL));
	assert_int_equal(WEIR_OK, weir_directory_make(path, NULL));
	assert_int_equal(0, stat(path, &about));
	assert_true(S_ISDIR(about.st_mode));
	assert_int_equal(WEIR_OK, weir_durable_write(in(state, "file"), "", 0, NULL));
	assert_int_equal(WEIR_IO, weir_directory_make(in(state, "file/x"), &error));
	assert_non_null(strstr(error.text, "not a directory"));
	assert_int_equal(WEIR_IO, weir_directory_make("", &error));
}

static void a_path_knows_its_directory(void **state)
{
	(void)state;
	char directory[WEIR_PATH_BYTES];
	const char *const cases[][2] = {{"a", "."}, {"/a", "/"}, {"b/a", "b"}, {"/c/b/a", "/c/b"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(WEIR_OK, weir_directory_of(cases[i][0], directory, NULL));
		assert_string_equal(cases[i][1], directory);
	}
}

static void *look_for_a_while(void *context)
{
	usleep(50 * 1000);
	close(*(int *)context);
	return NULL;
}

/* Who looks holds the lock, too, but not for long. */
static void who_looks_is_not_in_the_way(void **state)
{
	struct weir_directory_lock lock;
	struct weir_error error;
	char file[520];
	pthread_t thread;
	assert_int_equal(WEIR_OK, weir_directory_lock(*state, &lock, &error));
	weir_directory_unlock(&lock);
	snprintf(file, sizeof file, "%s/lock", (const char *)*state);
	int fd = open(file, O_RDONLY);
	assert_int_equal(0, flock(fd, LOCK_SH));
	assert_int_equal(0, pthread_create(&thread, NULL, look_for_a_while, &fd));
	assert_int_equal(WEIR_OK, weir_directory_lock(*state, &lock, &error));
	pthread_join(thread, NULL);
	weir_directory_unlock(&lock);
}

static void a_second_owner_is_refused_with_the_first_ones_id(void **state)
{
	struct weir_directory_lock lock, second;
	struct weir_error error;
	int to_child[2], to_parent[2];
	char byte;
	assert_int_equal(0, pipe(to_child));
	assert_int_equal(0, pipe(to_parent));
	pid_t child = fork();
	if (child == 0) {
		enum weir_status status = weir_directory_lock(*state, &lock, NULL);
		byte = (char)status;
		_exit(write(to_parent[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) >= 0 ? 0 : 1);
	}
	assert_int_equal(1, read(to_parent[0], &byte, 1));
	assert_int_equal(WEIR_OK, byte);
	assert_int_equal(WEIR_LOCKED, weir_directory_lock(*state, &second, &error));
	char words[64];
	snprintf(words, sizeof words, "is in use by process %d", (int)child);
	assert_non_null(strstr(error.text, words));

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(WEIR_OK, weir_directory_lock(*state, &second, &error));
	assert_int_equal(WEIR_LOCKED, weir_directory_lock(*state, &lock, &error));
	weir_directory_unlock(&second);
	assert_int_equal(WEIR_OK, weir_directory_lock(*state, &lock, &error));
	weir_directory_unlock(&lock);
	weir_directory_unlock(&lock);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_written_is_read, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(too_large_and_no_file_are_refused, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_failed_write_leaves_the_old_bytes, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_directory_is_made_with_those_above, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_path_knows_its_directory, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(who_looks_is_not_in_the_way, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_second_owner_is_refused_with_the_first_ones_id, scratch_setup,
	                                    scratch_teardown),
	};
	return cmocka_run_group_tests_name("durable_file", tests, NULL, NULL);
}
