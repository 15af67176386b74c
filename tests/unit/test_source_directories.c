/* SPDX-License-Identifier: Apache-2.0 */
/* Files followed whose directories come, go and come back: every line once. */
#include "tests/unit/rotation_fixture.h"

static void directories_come_and_go(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*/access.log\",\"follow\":true}", false, memory);
	reader_expect_problem(&reader, "matches no file yet");
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
	assert_int_equal(rename(log_path("volume"), log_path("elsewhere")), 0);
	restart(&reader, config);
	reader_run(&reader, 900); /* longer than a name may be missing from a listing */
	assert_int_equal(reader.length, 0);
	assert_int_equal(rename(log_path("elsewhere"), log_path("volume")), 0);
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	reader_close(&reader);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directories_come_and_go),
		cmocka_unit_test(a_file_removed_with_its_directory_is_read_to_its_end),
		cmocka_unit_test(a_directory_that_is_mounted_late_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
