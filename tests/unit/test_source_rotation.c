/* SPDX-License-Identifier: Apache-2.0 */
/* Files followed while they are rotated and truncated: every line once, in order, without and with restarts. */
#include "tests/unit/rotation_fixture.h"

static void lines_come_as_they_are_written(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	reader_open(&reader, one, false, memory);
	reader_expect_problem(&reader, "cannot open");
	assert_int_equal(reader_stream_count(&reader), 1);
	log_append("access.log", "1\n2");
	reader_expect(&reader, "1\n");
	assert_string_equal(reader_status(&reader, 0).problem, "");
	log_append("access.log", "2\n3\n");
	reader_expect(&reader, "1\n22\n3\n");
	assert_int_equal(reader_status(&reader, 0).lag_bytes, 0);
	reader_close(&reader);
	end();
}

static void a_renamed_file_is_drained_first(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "1\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "1\n");
		int writer = open_writer("access.log");
		say(writer, "2\n");
		log_rename("access.log", "access.log.1");
		say(writer, "3\n");
		reader_expect(&reader, "1\n2\n3\n");
		log_append("access.log", ""); /* logrotate's "create": the writer does not know of it yet */
		say(writer, "4\n");
		reader_expect(&reader, "1\n2\n3\n4\n");
		say(writer, "5\nrest");
		log_append("access.log", "6\n");
		reader_expect(&reader, "1\n2\n3\n4\n5\nrest$6\n");
		assert_int_equal(reader_stream_count(&reader), 1);
		close(writer);
		reader_close(&reader);
		end();
	}
}

static void late_lines_are_not_lost(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		int writer = open_writer("access.log");
		reader_open(&reader, config, false, memory);
		say(writer, "1\n");
		reader_expect(&reader, "1\n");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n");
		reader_expect(&reader, "1\n2\n");
		say(writer, "late 1\nlate");
		reader_expect(&reader, "1\n2\nlate 1\n");
		log_append("access.log", "3\n");
		reader_expect(&reader, "1\n2\nlate 1\n3\n");
		say(writer, " 2\nend");
		reader_expect(&reader, "1\n2\nlate 1\n3\nlate 2\n");
		log_append("access.log", "4\n");
		/* when nothing more is expected, the open line is one after all */
		reader_expect(&reader, "1\n2\nlate 1\n3\nlate 2\n4\nend$");
		log_append("access.log", "5\n");
		reader_expect(&reader, "1\n2\nlate 1\n3\nlate 2\n4\nend$5\n");
		close(writer);
		reader_close(&reader);
		end();
	}
}

/* The whole history again under the same positions, from wherever the run was cut. */
static void a_crash_repeats_the_same_positions(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		int writer = open_writer("access.log");
		reader_open(&reader, config, false, memory);
		say(writer, "1\n");
		reader_expect(&reader, "1\n");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n");
		reader_expect(&reader, "1\n2\n");
		say(writer, "late\n");
		reader_expect(&reader, "1\n2\nlate\n");
		log_append("access.log", "3\n");
		reader_expect(&reader, "1\n2\nlate\n3\n");
		uint64_t position = reader.streams[0].position;
		assert_int_equal(source_position_incarnation(position), 4);
		restart(&reader, config);
		reader_expect(&reader, "1\n2\nlate\n3\n");
		assert_int_equal(reader.streams[0].position, position);
		/* cut after the first line of the second file */
		struct source_stream **streams;
		struct weir_error error;
		restart(&reader, config);
		reader.source->ops->streams(reader.source, &streams);
		assert_int_equal(reader.source->ops->resume(reader.source, streams[0], source_position(2, 2), &error), WEIR_OK);
		reader_expect(&reader, "late\n3\n");
		assert_int_equal(reader.streams[0].position, position);
		/* late lines while it was stopped */
		reader_acknowledge(&reader);
		say(writer, "later\n");
		log_append("access.log", "4\n");
		restart(&reader, config);
		reader_expect_length(&reader, strlen("later\n4\n"));
		assert_non_null(strstr(reader.text, "later\n"));
		assert_non_null(strstr(reader.text, "4\n"));
		close(writer);
		reader_close(&reader);
		end();
	}
}

/* What was handed out before the crash, and may have arrived, comes under the same positions before late lines do. */
static void late_lines_wait_for_what_is_read_again(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		struct source_stream **streams;
		struct weir_error error;
		begin();
		int writer = open_writer("access.log");
		reader_open(&reader, config, false, memory);
		say(writer, "1\n");
		reader_expect(&reader, "1\n");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n3\n");
		reader_expect(&reader, "1\n2\n3\n");
		say(writer, "late\n");
		restart(&reader, config);
		reader.source->ops->streams(reader.source, &streams);
		assert_int_equal(reader.source->ops->resume(reader.source, streams[0], source_position(2, 2), &error), WEIR_OK);
		usleep(300000); /* a look for late lines is due */
		reader_expect(&reader, "3\nlate\n");
		log_append("access.log", "4\n");
		reader_expect(&reader, "3\nlate\n4\n");
		close(writer);
		reader_close(&reader);
		end();
	}
}

static void rotations_while_stopped_are_followed_in_order(void **state)
{
	(void)state;
	const char *config;
	for (int packed = 0; packed < 3; packed++)
		FOR_BOTH(config)
		{
			struct reader reader;
			begin();
			log_append("access.log", "1\n2\n");
			reader_open(&reader, config, false, memory);
			reader_expect(&reader, "1\n2\n");
			stop(&reader);
			log_append("access.log", "3\n");
			log_rename("access.log", "access.log.1");
			log_append("access.log", "4\n");
			log_rename("access.log.1", "access.log.2");
			log_rename("access.log", "access.log.1");
			log_append("access.log", "5\n");
			if (packed > 0)
				log_pack("access.log.2", "access.log.2.gz");
			if (packed > 1)
				log_pack("access.log.1", "access.log.1.gz");
			reader_open(&reader, config, false, memory);
			reader_expect(&reader, "3\n4\n5\n");
			assert_int_equal(reader_stream_count(&reader), 1);
			/* and once more, the next morning */
			stop(&reader);
			log_rename("access.log", "access.log.0");
			log_append("access.log", "6\n");
			reader_open(&reader, config, false, memory);
			reader_expect(&reader, "6\n");
			reader_close(&reader);
			end();
		}
}

static void several_rotations_at_once_are_followed_in_order(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "1\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "1\n");
		/* The bus is down: nobody asks the source meanwhile. */
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n");
		log_rename("access.log.1", "access.log.2");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "3\n");
		log_rename("access.log.2", "access.log.3");
		log_rename("access.log.1", "access.log.2");
		log_rename("access.log", "access.log.1");
		log_append("access.log", "4\n");
		reader_expect(&reader, "1\n2\n3\n4\n");
		assert_int_equal(reader_stream_count(&reader), 1);
		reader_close(&reader);
		end();
	}
}

static void packing_a_rotated_file_is_no_news(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "1\n");
		reader_open(&reader, config, false, memory);
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n");
		reader_expect(&reader, "1\n2\n");
		log_pack("access.log.1", "access.log.1.gz");
		reader_run(&reader, 100);
		log_rename("access.log.1.gz", "access.log.2.gz");
		log_append("access.log", "3\n");
		reader_expect(&reader, "1\n2\n3\n");
		restart(&reader, config);
		reader_expect(&reader, "1\n2\n3\n");
		assert_int_equal(reader_stream_count(&reader), 1);
		reader_close(&reader);
		end();
	}
}

static void a_file_packed_while_stopped_is_finished(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		struct log_bytes lines = log_lines("line number %d, and its sevenfold %d\n", 1, 2000);
		log_write("access.log", O_APPEND, lines.at, lines.length);
		reader_open(&reader, config, false, memory);
		reader_expect_length(&reader, lines.length);
		/* the first half is acknowledged */
		const char *newline = memchr(lines.at + lines.length / 2, '\n', lines.length / 2);
		size_t half = (size_t)(newline + 1 - lines.at);
		reader.streams[0].position = source_position(1, half);
		stop(&reader);
		log_append("access.log", "more\n");
		log_pack("access.log", "access.log.1.gz");
		log_append("access.log", "new\n");
		reader_open(&reader, config, false, memory);
		reader_expect_length(&reader, lines.length - half + strlen("more\nnew\n"));
		assert_memory_equal(reader.text, lines.at + half, lines.length - half);
		assert_string_equal(reader.text + lines.length - half, "more\nnew\n");
		reader_close(&reader);
		free(lines.at);
		end();
	}
}

/* logrotate's copytruncate. */
static void copy(const char *from, const char *to)
{
	struct log_bytes bytes = log_read(from);
	log_write(to, O_TRUNC, bytes.at, bytes.length);
	free(bytes.at);
}

/* As a writer does on a full disk: what stays was read already. Other lines of that size are others. */
static void a_line_that_is_taken_back_costs_no_other(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	int writer = open_writer("access.log");
	say(writer, "1\n2\nopen");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(ftruncate(writer, 4), 0);
	say(writer, "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	say(writer, "open");
	reader_expect(&reader, "1\n2\n3\n");
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "4\n5\n6\n7\n");
	reader_expect(&reader, "1\n2\n3\n4\n5\n6\n7\n");
	close(writer);
	reader_close(&reader);
	end();
}

static void truncation_in_place_is_a_new_incarnation(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	int writer = open_writer("access.log");
	say(writer, "1\n2\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	assert_int_equal(source_position_incarnation(reader.streams[0].position), 2);
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	assert_int_equal(reader_status(&reader, 0).unknown_losses, 1);
	/* grown past where it was: told by its first bytes */
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "4 and very much longer than before\n");
	reader_expect(&reader, "1\n2\n3\n4 and very much longer than before\n");
	/* what was not read is counted: the rest of a line, too */
	say(writer, "5\nopen");
	reader_expect(&reader, "1\n2\n3\n4 and very much longer than before\n5\n");
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "6\n");
	reader_expect(&reader, "1\n2\n3\n4 and very much longer than before\n5\n6\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 4);
	assert_int_equal(reader_status(&reader, 0).unknown_losses, 2);
	close(writer);
	reader_close(&reader);
	end();
}

static void a_copy_made_before_truncation_is_not_read_again_but_on(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		int writer = open_writer("access.log");
		say(writer, "1\n2\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "1\n2\n");
		/* Nobody asks meanwhile. */
		say(writer, "3\n");
		copy("access.log", "access.log.1");
		assert_int_equal(ftruncate(writer, 0), 0);
		say(writer, "4\n");
		reader_expect(&reader, "1\n2\n3\n4\n");
		assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
		assert_int_equal(reader_status(&reader, 0).unknown_losses, 0);
		assert_int_equal(reader_stream_count(&reader), 1);
		/* and read meanwhile */
		log_rename("access.log.1", "access.log.2");
		copy("access.log", "access.log.1");
		reader_run(&reader, 60);
		assert_int_equal(ftruncate(writer, 0), 0);
		reader_run(&reader, 60);
		say(writer, "5\n");
		reader_expect(&reader, "1\n2\n3\n4\n5\n");
		restart(&reader, config);
		reader_expect(&reader, "1\n2\n3\n4\n5\n");
		assert_int_equal(reader_stream_count(&reader), 1);
		close(writer);
		reader_close(&reader);
		end();
	}
}

static void truncations_while_stopped_are_followed_through_copies(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		int writer = open_writer("access.log");
		say(writer, "1\n2\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "1\n2\n");
		stop(&reader);
		say(writer, "3\n");
		copy("access.log", "access.log.1");
		assert_int_equal(ftruncate(writer, 0), 0);
		say(writer, "4 is longer\n");
		log_rename("access.log.1", "access.log.2");
		copy("access.log", "access.log.1");
		assert_int_equal(ftruncate(writer, 0), 0);
		say(writer, "5\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "3\n4 is longer\n5\n");
		close(writer);
		reader_close(&reader);
		end();
	}
}

static void a_file_that_was_cut_goes_on_at_its_new_end(void **state)
{
	(void)state;
	const char *config;
	for (int stopped = 0; stopped < 2; stopped++)
		FOR_BOTH(config)
		{
			struct reader reader;
			begin();
			struct log_bytes lines = log_lines("line number %d, and its sevenfold %d\n", 1, 2000);
			log_write("access.log", O_APPEND, lines.at, lines.length);
			reader_open(&reader, config, false, memory);
			reader_expect_length(&reader, lines.length);
			if (stopped)
				stop(&reader);
			assert_int_equal(truncate(log_path("access.log"), (off_t)lines.length / 2), 0);
			if (stopped)
				reader_open(&reader, config, false, memory);
			reader_until_incarnation(&reader, memory, 2);
			log_append("access.log", "new\n");
			if (stopped) {
				reader_expect(&reader, "new\n");
			} else {
				reader_expect_length(&reader, lines.length + 4);
				assert_string_equal(reader.text + lines.length, "new\n");
			}
			assert_int_equal(source_position_incarnation(reader.streams[0].position), 2);
			reader_close(&reader);
			free(lines.at);
			end();
		}
}

static void a_writer_that_does_not_append_leaves_a_hole(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	int writer = open(log_path("access.log"), O_WRONLY | O_CREAT, 0600);
	struct log_bytes lines = log_lines("line number %d, and its sevenfold %d\n", 1, 1000);
	assert_int_equal(write(writer, lines.at, lines.length), lines.length);
	reader_open(&reader, one, false, memory);
	reader_expect_length(&reader, lines.length);
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "new 1\n");
	reader_expect_length(&reader, lines.length + 6);
	say(writer, "new 2\n");
	reader_expect_length(&reader, lines.length + 12);
	assert_string_equal(reader.text + lines.length, "new 1\nnew 2\n");
	close(writer);
	reader_close(&reader);
	free(lines.at);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_as_they_are_written),
		cmocka_unit_test(a_renamed_file_is_drained_first),
		cmocka_unit_test(late_lines_are_not_lost),
		cmocka_unit_test(a_crash_repeats_the_same_positions),
		cmocka_unit_test(late_lines_wait_for_what_is_read_again),
		cmocka_unit_test(rotations_while_stopped_are_followed_in_order),
		cmocka_unit_test(several_rotations_at_once_are_followed_in_order),
		cmocka_unit_test(packing_a_rotated_file_is_no_news),
		cmocka_unit_test(a_file_packed_while_stopped_is_finished),
		cmocka_unit_test(a_line_that_is_taken_back_costs_no_other),
		cmocka_unit_test(truncation_in_place_is_a_new_incarnation),
		cmocka_unit_test(a_copy_made_before_truncation_is_not_read_again_but_on),
		cmocka_unit_test(truncations_while_stopped_are_followed_through_copies),
		cmocka_unit_test(a_file_that_was_cut_goes_on_at_its_new_end),
		cmocka_unit_test(a_writer_that_does_not_append_leaves_a_hole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
