/* SPDX-License-Identifier: Apache-2.0 */
/* Output files of lines: nothing lost and nothing twice, through full disks, rotation, removal and closed pipes. */
#include "line_file_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Stands before the C library's: a disk that fails cannot be had otherwise. */
static bool sync_fails;

int fdatasync(int fd)
{
	if (sync_fails) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static void lines_are_appended(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	append(file, "two\nthree\n");
	assert_int_equal(14, weir_line_file_mark(file).length);
	assert_file(path, "");
	flush(file);
	assert_file(path, "one\ntwo\nthree\n");
	assert_int_equal(14, weir_line_file_mark(file).length);
	append(file, "four\n");
	close_file(file);
	close_file(NULL);
	assert_file(path, "one\ntwo\nthree\nfour\n");
}

static void an_unfinished_last_line_is_ended_first(void **state)
{
	const char *path = in(state, "a");
	put(path, "one\ntw");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "three\n");
	close_file(file);
	assert_file(path, "one\ntw\nthree\n");
}

static void a_path_that_cannot_be_opened_is_said(void **state)
{
	struct weir_line_file_options options = {.path = in(state, "no/such")};
	struct weir_line_file *file;
	struct weir_error error;
	assert_int_equal(WEIR_IO, weir_line_file_open(&options, &file, &error));
	assert_non_null(strstr(error.text, "no/such: No such file or directory"));
}

static void a_full_disk_loses_and_doubles_nothing(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	struct weir_error error;
	size_t room = 1 << 20, used = 0;
	char *expected = malloc(room), line[64];
	unsigned seed = 1;
	signal(SIGXFSZ, SIG_IGN);
	set_file_limit(0);
	for (int i = 0; i < 5000; i++) {
		int length = snprintf(line, sizeof line, "%d%.*s\n", i, i % 40, "........................................");
		append(file, line);
		memcpy(expected + used, line, (size_t)length);
		used += (size_t)length;
		if (rand_r(&seed) % 20 != 0)
			continue;
		/* Room comes a few bytes at a time and ends anywhere in a line. */
		set_file_limit((rlim_t)rand_r(&seed) % (used + 1));
		enum weir_status status = weir_line_file_flush(file, &error);
		assert_true(status == WEIR_OK || (status == WEIR_IO && strstr(error.text, strerror(EFBIG)) != NULL));
		assert_int_equal(used, weir_line_file_mark(file).length);
	}
	set_file_limit(RLIM_INFINITY);
	flush(file);
	close_file(file);
	expected[used] = '\0';
	assert_file(path, expected);
	free(expected);
}

static void the_buffer_is_bounded_while_writing_fails(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	static char line[1 << 16];
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = '\n';
	struct weir_span span = {.at = line, .length = sizeof line};
	signal(SIGXFSZ, SIG_IGN);
	set_file_limit(0);
	size_t taken = 0;
	while (weir_line_file_append(file, span) == WEIR_OK)
		taken++;
	assert_int_equal(WEIR_LINE_FILE_BUFFER_MAX_BYTES / sizeof line, taken);
	assert_int_equal(WEIR_FULL, weir_line_file_append(file, span));
	set_file_limit(RLIM_INFINITY);
	assert_int_equal(WEIR_OK, weir_line_file_append(file, span));
	assert_int_equal((taken + 1) * sizeof line, weir_line_file_mark(file).length);
	close_file(file);
	struct stat about;
	assert_int_equal(0, stat(path, &about));
	assert_int_equal((taken + 1) * sizeof line, about.st_size);
}

static void files_rotate_by_size_and_the_oldest_go(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 10, 2);
	append(file, "1234\n5678\n");
	flush(file);
	assert_file(in(state, "a.1"), NULL);
	append(file, "b\n");
	flush(file);
	assert_file(path, "b\n");
	assert_file(in(state, "a.1"), "1234\n5678\n");
	append(file, "a line that is longer than a file\nc\nd\ne\n1234567\n");
	close_file(file);
	assert_file(path, "1234567\n");
	assert_file(in(state, "a.1"), "c\nd\ne\n");
	assert_file(in(state, "a.2"), "a line that is longer than a file\n");
	assert_file(in(state, "a.3"), NULL);
}

static void where_files_end_depends_on_the_lines_alone(void **state)
{
	unsigned seed = 7;
	struct weir_line_file *one = open_file(in(state, "one"), 200, 50), *other = open_file(in(state, "other"), 200, 50);
	write_lines(one, 0, 300, &seed);
	write_lines(other, 0, 300, &seed);
	close_file(one);
	close_file(other);
	assert_same_files(state, "one", "other", 50);
}

/* The log has so many lines, and the last holds the words. */
static void assert_log_line(const char *path, int lines, const char *words)
{
	char *bytes;
	size_t length;
	assert_int_equal(WEIR_OK, weir_durable_read(path, 1 << 16, &bytes, &length, NULL));
	const char *last = bytes;
	for (char *end = bytes; lines > 0 && (end = strchr(end, '\n')) != NULL; end++, lines--)
		last = lines > 1 ? end + 1 : last;
	assert_int_equal(0, lines);
	assert_non_null(strstr(last, words));
	assert_ptr_equal(bytes + length - 1, strchr(last, '\n'));
	free(bytes);
}

static void rotation_waits_for_the_marked_file(void **state)
{
	const char *path = in(state, "a");
	log_to(in(state, "log"));
	struct weir_line_file *file = open_file(path, 4, 1);
	append(file, "one\n");
	struct weir_line_file_mark mark = weir_line_file_mark(file);
	weir_line_file_protect(file, &mark);
	append(file, "two\n");
	append(file, "six\n");
	append(file, "ten\n");
	flush(file);
	assert_file(path, "two\nsix\nten\n");
	assert_file(in(state, "a.1"), "one\n");
	assert_file(in(state, "log"), ""); /* it waits, which is no fault */
	mark = weir_line_file_mark(file);
	weir_line_file_protect(file, &mark);
	append(file, "end\n");
	flush(file);
	assert_file(in(state, "a.1"), "two\nsix\nten\n");
	close_file(file);
}

static void a_rotation_that_fails_loses_no_line(void **state)
{
	const char *path = in(state, "a");
	mkdir(in(state, "a.1"), 0700); /* a file cannot take a directory's name */
	const char *log = in(state, "log");
	log_to(log);
	struct weir_line_file *file = open_file(path, 4, 1);
	append(file, "one\ntwo\n");
	flush(file);
	append(file, "six\n");
	flush(file);
	assert_file(path, "one\ntwo\nsix\n");
	assert_log_line(log, 1, "WARNING files: cannot rename");
	assert_log_line(log, 1, "writing continues in ");
	rmdir(in(state, "a.1"));
	append(file, "ten\n");
	flush(file);
	assert_file(path, "ten\n");
	assert_log_line(log, 2, "INFO files: recovered after 0 s (2 attempts): this is over: cannot rename");
	close_file(file);
}

/* Its names are moved, and no file can be opened: it is taken up there, and no second time. */
static void a_rotation_that_fails_in_its_middle_goes_on_from_there(void **state)
{
	const char *path = in(state, "a");
	struct weir_error error;
	struct rlimit limit, before;
	struct weir_line_file *file = open_file(path, 4, 2);
	append(file, "one\ntwo\nsix\n");
	flush(file);
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
	limit = before;
	limit.rlim_cur = (rlim_t)next;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
	append(file, "ten\n");
	for (int i = 0; i < 3; i++)
		assert_int_equal(WEIR_IO, weir_line_file_flush(file, &error));
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
	flush(file);
	assert_file(path, "ten\n");
	assert_file(in(state, "a.1"), "six\n");
	assert_file(in(state, "a.2"), "two\n");
	close_file(file);
}

static void reopening_goes_on_at_the_path(void **state)
{
	const char *path = in(state, "a"), *moved = in(state, "a-yesterday");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	flush(file);
	rename(path, moved);
	append(file, "two\n");
	assert_int_equal(WEIR_OK, weir_line_file_reopen(file, NULL));
	assert_int_equal(0, weir_line_file_mark(file).length);
	append(file, "three\n");
	close_file(file);
	assert_file(moved, "one\ntwo\n");
	assert_file(path, "three\n");
}

static void a_reopening_that_fails_changes_nothing(void **state)
{
	const char *folder = in(state, "d"), *elsewhere = in(state, "e");
	mkdir(folder, 0700);
	char path[512];
	snprintf(path, sizeof path, "%s/a", folder);
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	assert_int_equal(0, rename(folder, elsewhere));
	assert_int_equal(WEIR_IO, weir_line_file_reopen(file, NULL));
	append(file, "two\n");
	assert_int_equal(0, rename(elsewhere, folder));
	assert_int_equal(WEIR_OK, weir_line_file_reopen(file, NULL));
	close_file(file);
	assert_file(path, "one\ntwo\n");
}

static void a_removed_file_is_made_again(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	flush(file);
	struct weir_line_file_mark removed = weir_line_file_mark(file);
	unlink(path);
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
	assert_false(same_file(removed, weir_line_file_mark(file)));
	append(file, "two\n");
	close_file(file);
	assert_file(path, "two\n");
}

static void lines_after_a_removal_are_in_the_new_file(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
	struct weir_line_file_mark before = weir_line_file_mark(file);
	unlink(path);
	append(file, "two\n");
	flush(file);
	assert_file(path, "two\n");
	struct weir_line_file_mark mark = weir_line_file_mark(file);
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
	assert_true(same_file(mark, weir_line_file_mark(file)));
	assert_int_equal(4, mark.length);
	assert_false(same_file(mark, before));
	append(file, "three\n");
	close_file(file);

	struct weir_line_file_options options = {.path = path};
	assert_int_equal(WEIR_OK, weir_line_file_resume(&options, &mark, &file, NULL));
	close_file(file);
	assert_file(path, "two\n");
}

static void a_file_cut_by_someone_is_noticed(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	append(file, "one\n");
	flush(file);
	assert_int_equal(0, truncate(path, 0));
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
	assert_int_equal(0, weir_line_file_mark(file).length);
	close_file(file);
}

/* What a mark of before says no more is told until another one is set. */
static void whose_mark_no_longer_fits_is_told(void **state)
{
	const char *path = in(state, "a");
	struct weir_line_file *file = open_file(path, 0, 0);
	for (int removed = 0; removed < 2; removed++) {
		bool unmarked = true;
		append(file, "one\n");
		flush(file);
		struct weir_line_file_mark mark = weir_line_file_mark(file);
		weir_line_file_protect(file, &mark);
		assert_int_equal(WEIR_OK, weir_line_file_look(file, &unmarked, NULL));
		assert_false(unmarked);
		assert_int_equal(0, removed ? unlink(path) : truncate(path, 0));
		append(file, "two, as long as one and more\n");
		flush(file);
		assert_int_equal(WEIR_OK, weir_line_file_look(file, &unmarked, NULL));
		assert_true(unmarked);
		mark = weir_line_file_mark(file);
		assert_int_equal(29, mark.length);
		weir_line_file_protect(file, &mark);
		assert_int_equal(WEIR_OK, weir_line_file_look(file, &unmarked, NULL));
		assert_false(unmarked);
	}
	close_file(file);
}

static void a_failed_sync_is_never_forgotten(void **state)
{
	struct weir_error error;
	struct weir_line_file *file = open_file(in(state, "a"), 0, 0);
	append(file, "one\n");
	sync_fails = true;
	assert_int_equal(WEIR_INVALID, weir_line_file_sync(file, &error));
	sync_fails = false;
	assert_int_equal(WEIR_INVALID, weir_line_file_sync(file, &error));
	assert_non_null(strstr(error.text, "cannot sync"));
	assert_int_equal(WEIR_INVALID, weir_line_file_close(file, NULL));
}

static void a_pipe_is_written_whole(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(0, pipe(ends));
	struct weir_line_file *file = weir_line_file_adopt(ends[1], "standard output");
	append(file, "one\n");
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, NULL));
	assert_int_equal(4, weir_line_file_mark(file).length);
	assert_int_equal(0, weir_line_file_mark(file).inode);
	assert_int_equal(WEIR_OK, weir_line_file_reopen(file, NULL));
	char text[16] = "";
	assert_int_equal(4, read(ends[0], text, sizeof text));
	assert_string_equal("one\n", text);

	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	struct weir_error error;
	append(file, "two\n");
	assert_int_equal(WEIR_END, weir_line_file_flush(file, &error));
	assert_non_null(strstr(error.text, "cannot write standard output: Broken pipe"));
	assert_int_equal(WEIR_END, weir_line_file_close(file, NULL));
	close(ends[1]);
}

static void *read_slowly(void *context)
{
	char bytes[5000];
	size_t total = 0;
	for (ssize_t count; (count = read(*(int *)context, bytes, sizeof bytes)) > 0; total += (size_t)count)
		;
	return (void *)total;
}

static void a_pipe_that_is_not_read_yet_is_waited_for(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(0, pipe2(ends, O_NONBLOCK));
	assert_int_equal(0, fcntl(ends[0], F_SETFL, 0));
	struct weir_line_file *file = weir_line_file_adopt(ends[1], "standard output");
	static char lines[1 << 20];
	memset(lines, 'x', sizeof lines);
	lines[sizeof lines - 1] = '\n';
	pthread_t reader;
	assert_int_equal(0, pthread_create(&reader, NULL, read_slowly, &ends[0]));
	assert_int_equal(WEIR_OK, weir_line_file_append(file, (struct weir_span){.at = lines, .length = sizeof lines}));
	assert_int_equal(WEIR_OK, weir_line_file_close(file, NULL));
	close(ends[1]);
	void *total;
	pthread_join(reader, &total);
	assert_int_equal(sizeof lines, total);
	close(ends[0]);
}

static void a_pipe_that_nobody_reads_blocks_no_flush(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(0, pipe(ends));
	struct weir_line_file *file = weir_line_file_adopt(ends[1], "standard output");
	static char lines[1 << 18];
	for (size_t i = 0; i < sizeof lines; i++)
		lines[i] = i % 100 == 99 || i == sizeof lines - 1 ? '\n' : 'x';
	struct weir_span all = {.at = lines, .length = sizeof lines}, one = {.at = lines, .length = 100};
	struct weir_error error;
	assert_int_equal(WEIR_OK, weir_line_file_append(file, all));
	assert_int_equal(WEIR_IO, weir_line_file_flush(file, &error));
	assert_int_equal(WEIR_OK, weir_line_file_append(file, all));
	assert_int_equal(WEIR_FULL, weir_line_file_append(file, one));
	pthread_t reader;
	assert_int_equal(0, pthread_create(&reader, NULL, read_slowly, &ends[0]));
	assert_int_equal(WEIR_OK, weir_line_file_flush(file, &error));
	close_file(file);
	close(ends[1]);
	void *total;
	pthread_join(reader, &total);
	assert_int_equal(2 * sizeof lines, (size_t)total);
	close(ends[0]);
}

/* It is opened with the words that a pipe without a reader is, but nobody will ever read it. */
static void a_socket_is_no_pipe(void **state)
{
	const char *path = in(state, "socket");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct weir_line_file_options options = {.path = path};
	struct weir_line_file *file;
	struct weir_error error;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(0, bind(fd, (const struct sockaddr *)&address, sizeof address));
	assert_int_equal(WEIR_IO, weir_line_file_open(&options, &file, &error));
	close(fd);
}

static void a_named_pipe_waits_for_its_readers(void **state)
{
	const char *path = in(state, "pipe");
	char line[8192], read_back[8192];
	struct weir_error error;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(0, mkfifo(path, 0600));
	struct weir_line_file *file = open_file(path, 0, 0);
	assert_int_equal(WEIR_OK, weir_line_file_sync(file, &error)); /* there is nothing to write */
	append(file, "one\n");
	assert_int_equal(WEIR_IO, weir_line_file_flush(file, &error));
	assert_non_null(strstr(error.text, "nobody reads this pipe"));
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	flush(file);
	assert_int_equal(4, read(reader, read_back, sizeof read_back));
	assert_memory_equal("one\n", read_back, 4);
	/* one leaves while a long line is under way, and the next gets all of it */
	append(file, "two\n");
	flush(file);
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	assert_int_equal(4096, fcntl(reader, F_SETPIPE_SZ, 4096));
	assert_int_equal(WEIR_OK, weir_line_file_append(file, (struct weir_span){.at = line, .length = sizeof line}));
	assert_int_equal(WEIR_IO, weir_line_file_flush(file, &error));
	assert_int_equal(4, read(reader, read_back, 4));
	close(reader);
	assert_int_equal(WEIR_IO, weir_line_file_sync(file, &error));
	assert_non_null(strstr(error.text, "nobody reads this pipe"));
	reader = open(path, O_RDONLY | O_NONBLOCK);
	while (read(reader, read_back, sizeof read_back) > 0)
		continue; /* a part of it, perhaps, which the one before left behind */
	assert_int_not_equal(-1, fcntl(reader, F_SETPIPE_SZ, 65536));
	flush(file);
	assert_int_equal(sizeof line, read(reader, read_back, sizeof read_back));
	assert_memory_equal(line, read_back, sizeof line);
	close(reader);
	/* whoever reads it makes it anew, as many do at their start */
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(0, unlink(path));
		assert_int_equal(0, mkfifo(path, 0600));
		assert_int_equal(WEIR_OK, turn == 0 ? WEIR_OK : weir_line_file_sync(file, &error));
		append(file, "new\n");
		assert_int_equal(WEIR_IO, weir_line_file_flush(file, &error));
		assert_non_null(strstr(error.text, "nobody reads this pipe"));
		reader = open(path, O_RDONLY | O_NONBLOCK);
		flush(file);
		assert_int_equal(4, read(reader, read_back, sizeof read_back));
		close(reader);
		assert_int_equal(WEIR_OK, weir_line_file_reopen(file, &error));
	}
	close_file(file);
}

static void redirected_output_counts_from_where_it_stands(void **state)
{
	const char *path = in(state, "a");
	put(path, "before\n");
	int fd = open(path, O_WRONLY | O_APPEND);
	struct weir_line_file *file = weir_line_file_adopt(fd, "standard output");
	append(file, "one\n");
	assert_int_equal(11, weir_line_file_mark(file).length);
	close_file(file);
	assert_int_equal(0, close(fd));
	assert_file(path, "before\none\n");
}

#define test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(lines_are_appended),
		test(an_unfinished_last_line_is_ended_first),
		test(a_path_that_cannot_be_opened_is_said),
		test(a_full_disk_loses_and_doubles_nothing),
		test(the_buffer_is_bounded_while_writing_fails),
		test(files_rotate_by_size_and_the_oldest_go),
		test(where_files_end_depends_on_the_lines_alone),
		test(rotation_waits_for_the_marked_file),
		test(a_rotation_that_fails_loses_no_line),
		test(a_rotation_that_fails_in_its_middle_goes_on_from_there),
		test(reopening_goes_on_at_the_path),
		test(a_reopening_that_fails_changes_nothing),
		test(a_removed_file_is_made_again),
		test(lines_after_a_removal_are_in_the_new_file),
		test(a_file_cut_by_someone_is_noticed),
		test(whose_mark_no_longer_fits_is_told),
		test(a_failed_sync_is_never_forgotten),
		test(a_pipe_is_written_whole),
		test(a_pipe_that_is_not_read_yet_is_waited_for),
		test(a_pipe_that_nobody_reads_blocks_no_flush),
		test(a_socket_is_no_pipe),
		test(a_named_pipe_waits_for_its_readers),
		test(redirected_output_counts_from_where_it_stands),
	};
	return cmocka_run_group_tests_name("line_file", tests, NULL, NULL);
}
