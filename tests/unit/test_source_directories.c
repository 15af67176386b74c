/* SPDX-License-Identifier: Apache-2.0 */
/* Files followed whose directories come, go and come back: every line once. */
#include "collector/source/file/file_listing.h"
#include "common/base/status.h"
#include "tests/unit/rotation_fixture.h"

#include <errno.h>
#include <sys/resource.h>

/* Whether its first problem is that there is nothing to read. */
static bool is_absent(struct reader *reader)
{
	struct source_status status;
	reader->source->ops->status(reader->source, &status, 1);
	return status.absent;
}

/* How much of a deleted file is unread decides whether anything is lost by it. */
static void a_deleted_file_says_what_is_unread(void **state)
{
	(void)state;
	char wanted[256];
	struct reader reader;
	begin();
	log_append("a.log", "1\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/a.log\",\"follow\":true}", false, memory);
	reader_expect(&reader, "1\n");
	log_remove("a.log");
	restart(&reader, "{\"type\":\"file\",\"path\":\"%s/a.log\",\"follow\":true}");
	snprintf(wanted, sizeof wanted, "%s/a.log was deleted; 2 bytes of it had not been read", log_directory);
	reader_expect_problem(&reader, wanted);
	assert_false(is_absent(&reader));
	log_append("a.log", "2\n3\n");
	reader_expect(&reader, "2\n3\n");
	reader_acknowledge(&reader);
	log_remove("a.log");
	restart(&reader, "{\"type\":\"file\",\"path\":\"%s/a.log\",\"follow\":true}");
	snprintf(wanted, sizeof wanted, "%s/a.log was deleted; 0 bytes of it had not been read", log_directory);
	reader_expect_problem(&reader, wanted);
	assert_true(is_absent(&reader));
	reader_close(&reader);
	end();
}

static void directories_come_and_go(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*/access.log\",\"follow\":true}", false, memory);
	reader_expect_problem(&reader, "matches no file yet");
	assert_true(is_absent(&reader));
	assert_int_equal(reader_stream_count(&reader), 0);
	assert_int_equal(mkdir(log_path("a"), 0700), 0);
	log_append("a/access.log", "1\n");
	reader_expect(&reader, "1\n");
	assert_int_equal(rename(log_path("a"), log_path("hidden.a")), 0);
	reader_run(&reader, 50);
	assert_int_equal(mkdir(log_path("b"), 0700), 0);
	log_append("b/access.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	log_append("hidden.a/access.log", "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	reader_acknowledge(&reader);
	restart(&reader, "{\"type\":\"file\",\"path\":\"%s/?/access.log\",\"follow\":true}");
	reader_run(&reader, 50);
	log_append("hidden.a/access.log", "4\n");
	assert_int_equal(rename(log_path("hidden.a"), log_path("a")), 0);
	reader_expect(&reader, "4\n");
	log_remove("b/access.log");
	assert_int_equal(rmdir(log_path("b")), 0);
	reader_run(&reader, 250);
	assert_int_equal(mkdir(log_path("b"), 0700), 0);
	log_append("b/access.log", "5\n");
	reader_expect(&reader, "4\n5\n");
	reader_close(&reader);
	end();
}

/* Whoever may not look into a directory is told so, and not that there is no file. */
static void what_is_in_the_way_of_a_pattern_is_named(void **state)
{
	(void)state;
	char pattern[256], text[256] = "", wanted[256];
	begin();
	assert_int_equal(mkdir(log_path("logs"), 0755), 0);
	snprintf(pattern, sizeof pattern, "%s/logs/access*.log", log_directory);
	assert_false(file_listing_obstacle(pattern, text, sizeof text));
	assert_int_equal(symlink("round", log_path("round")), 0);
	snprintf(pattern, sizeof pattern, "%s/round/deeper/access*.log", log_directory);
	assert_true(file_listing_obstacle(pattern, text, sizeof text));
	snprintf(wanted, sizeof wanted, "cannot read the directory %s/round: Too many levels of symbolic links",
	         log_directory);
	assert_non_null(strstr(text, wanted));
	snprintf(pattern, sizeof pattern, "%s/none/yet/access*.log", log_directory);
	assert_false(file_listing_obstacle(pattern, text, sizeof text)); /* it may come */

	struct reader reader;
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/round/*.log\",\"follow\":true}", false, memory);
	reader_expect_problem(&reader, "Too many levels");
	assert_false(is_absent(&reader));
	reader_close(&reader);
	end();
}

/* As a container's log, whose directory goes with it. */
static void a_file_removed_with_its_directory_is_read_to_its_end(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/*/access.log\",\"follow\":true}";
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("pod"), 0700), 0);
	int writer = open_writer("pod/access.log");
	say(writer, "1\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n");
	log_remove("pod/access.log");
	assert_int_equal(rmdir(log_path("pod")), 0);
	say(writer, "2\nopen");
	reader_expect(&reader, "1\n2\nopen$"); /* after the grace */
	assert_string_equal(reader_status(&reader, 0).problem, "");
	close(writer);
	stop(&reader);
	memory->streams[0]->files[0]->seen_s -= INT64_C(40) * 86400;
	reader_open(&reader, config, false, memory);
	assert_int_equal(memory->stream_count, 0);
	reader_close(&reader);
	end();
}

/* A rotated file that is to be read again, on a volume that comes a while after the collector. */
static void a_directory_that_is_mounted_late_loses_nothing(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/volume/access.log\",\"follow\":true}";
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("volume"), 0700), 0);
	log_append("volume/access.log", "1\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n");
	log_rename("volume/access.log", "volume/access.log.1");
	log_append("volume/access.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	char away[80];
	snprintf(away, sizeof away, "%s-away", log_directory);
	assert_int_equal(rename(log_path("volume"), away), 0);
	restart(&reader, config);
	reader_run(&reader, 900); /* longer than a name may be missing from a listing */
	assert_int_equal(reader.length, 0);
	assert_int_equal(rename(away, log_path("volume")), 0);
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	reader_close(&reader);
	end();
}

/* Rotations within a moment, into a directory that nobody named: what lay there before is none of them. */
static void rotations_into_a_directory_that_nobody_named_are_followed(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("archive"), 0700), 0);
	log_append("archive/access.log.3", "of another time\n");
	struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	assert_int_equal(utimensat(AT_FDCWD, log_path("archive/access.log.3"), long_ago, 0), 0);
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_append("access.log", "2\n");
	log_rename("access.log", "archive/access.log.1");
	log_append("access.log", "3\n");
	log_rename("archive/access.log.1", "archive/access.log.2");
	log_rename("access.log", "archive/access.log.1");
	log_append("access.log", "4\n");
	reader_expect(&reader, "1\n2\n3\n4\n");
	/* and from there on */
	log_rename("archive/access.log.2", "archive/access.log.3");
	log_rename("archive/access.log.1", "archive/access.log.2");
	log_rename("access.log", "archive/access.log.1");
	log_append("access.log", "5\n");
	log_pack("archive/access.log.1", "archive/access.log.1.gz");
	log_rename("access.log", "archive/access.log.0");
	log_append("access.log", "6\n");
	reader_expect(&reader, "1\n2\n3\n4\n5\n6\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	reader_close(&reader);
	end();
}

/* The same where they keep their name there, and each takes the place of the one before. */
static void files_that_are_moved_away_under_their_name_are_followed(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("spool"), 0700), 0);
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_append("access.log", "2\n");
	log_rename("access.log", "spool/access.log");
	log_append("access.log", "3\n");
	log_rename("access.log", "spool/access.log");
	log_append("access.log", "4\n");
	reader_expect(&reader, "1\n2\n3\n4\n");
	reader_close(&reader);
	end();
}

static char told[1024];

static void hear(void *context, const char *place, const char *words)
{
	(void)context, (void)place;
	snprintf(told, sizeof told, "%s", words);
}

/* One that was seen, and went where nobody looks before it was read: how much it was is told and counted. */
static void a_file_that_went_away_unread_is_told(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	told[0] = '\0';
	reader_tell = hear;
	assert_int_equal(mkdir(log_path("x"), 0700), 0);
	assert_int_equal(mkdir(log_path("y"), 0700), 0);
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	struct file_timing *timing = &file_source_of(reader.source)->shared.settings.timing;
	timing->quiet = timing->patience = 60000; /* what comes next is not begun yet */
	log_rename("access.log", "x/1");
	log_append("access.log", "three\n");
	const struct file_rotation *rotation = &file_source_of(reader.source)->logs[0]->rotation;
	for (int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	     rotation->awaited.inode == 0 && weir_monotonic_ms() < end_ms;)
		reader_run(&reader, 2);
	log_rename("access.log", "y/2");
	log_append("access.log", "4\n");
	timing->quiet = timing->patience = 5;
	reader_expect(&reader, "1\n4\n");
	assert_non_null(strstr(told, "6 bytes from position 0 on are lost"));
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 6);
	reader_close(&reader);
	reader_tell = NULL;
	end();
}

/* "current" leads to another release by now, and the rest is in the one before. */
static void a_link_in_the_path_that_changed_while_stopped_is_remembered(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/current/log/a.log\",\"follow\":true}";
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("1"), 0700), 0);
	assert_int_equal(mkdir(log_path("1/log"), 0700), 0);
	assert_int_equal(mkdir(log_path("2"), 0700), 0);
	assert_int_equal(mkdir(log_path("2/log"), 0700), 0);
	assert_int_equal(symlink("1", log_path("current")), 0);
	log_append("current/log/a.log", "1\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n");
	stop(&reader);
	log_append("current/log/a.log", "2\n");
	log_remove("current");
	assert_int_equal(symlink("2", log_path("current")), 0);
	log_append("current/log/a.log", "3\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "2\n3\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	/* and what is written late, to the one before, while running */
	log_append("1/log/a.log", "late\n");
	reader_expect(&reader, "2\n3\nlate\n");
	reader_close(&reader);
	end();
}

/* The directory itself was moved into another. */
static void a_directory_that_is_gone_is_looked_for_around(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/*/a.log\",\"follow\":true}";
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("d1"), 0700), 0);
	assert_int_equal(mkdir(log_path("d2"), 0700), 0);
	log_append("d1/a.log", "1\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n");
	stop(&reader);
	log_append("d1/a.log", "2\n");
	assert_int_equal(rename(log_path("d1"), log_path("d2/d1")), 0);
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "2\n");
	log_append("d2/d1/a.log", "3\n");
	reader_expect(&reader, "2\n3\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	reader_close(&reader);
	end();
}

/* glob() finds nothing then, and says no more. */
static void no_descriptor_left_is_no_missing_file(void **state)
{
	(void)state;
	char pattern[256], text[256], wanted[256];
	struct rlimit before, none;
	begin();
	snprintf(pattern, sizeof pattern, "%s/*.log", log_directory);
	snprintf(wanted, sizeof wanted, "cannot read the directory %s: %s", log_directory, weir_errno_words(EMFILE));
	int next = dup(STDIN_FILENO);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
	bool found = file_listing_obstacle(pattern, text, sizeof text);
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
	assert_true(found);
	assert_string_equal(wanted, text);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deleted_file_says_what_is_unread),
		cmocka_unit_test(directories_come_and_go),
		cmocka_unit_test(no_descriptor_left_is_no_missing_file),
		cmocka_unit_test(what_is_in_the_way_of_a_pattern_is_named),
		cmocka_unit_test(a_file_removed_with_its_directory_is_read_to_its_end),
		cmocka_unit_test(a_directory_that_is_mounted_late_loses_nothing),
		cmocka_unit_test(rotations_into_a_directory_that_nobody_named_are_followed),
		cmocka_unit_test(files_that_are_moved_away_under_their_name_are_followed),
		cmocka_unit_test(a_file_that_went_away_unread_is_told),
		cmocka_unit_test(a_link_in_the_path_that_changed_while_stopped_is_remembered),
		cmocka_unit_test(a_directory_that_is_gone_is_looked_for_around),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
