/* Files followed while they are rotated, truncated, removed: every line once, in order, without and with restarts. */
#include "tests/unit/source_fixture.h"

#include <sys/time.h>

static const char *const one = "{\"type\":\"file\",\"path\":\"%s/access.log\",\"follow\":true}";
static const char *const all = "{\"type\":\"file\",\"path\":\"%s/access.log*\",\"follow\":true}";
static const char *const both[] = {one, all};
#define FOR_BOTH(config) for (size_t i_ = 0; i_ < 2 && (config = both[i_], true); i_++)

static struct source_memory *memory;

/* Each case begins with an empty directory and an empty memory. */
static void begin(void)
{
	assert_int_equal(log_directory_make(NULL), 0);
	memory = source_memory_new(NULL);
}

static void end(void)
{
	source_memory_free(memory);
	assert_int_equal(log_directory_remove(NULL), 0);
}

/* kill -9 and a start: what was acknowledged is known, and which parts were begun. */
static void restart(struct reader *reader, const char *config)
{
	struct source_memory *again = memory_again(memory);
	reader_close(reader);
	source_memory_free(memory);
	memory = again;
	reader_open(reader, config, false, memory);
}

/* A stop in which everything was acknowledged. */
static void stop(struct reader *reader)
{
	reader_acknowledge(reader);
	struct source_memory *again = memory_again(memory);
	reader_close(reader);
	source_memory_free(memory);
	memory = again;
}

/* A writer that has a file open, as services do. */
static int open_writer(const char *name)
{
	int fd = open(log_path(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void lines_come_as_they_are_written(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	reader_open(&reader, one, false, memory);
	reader_run(&reader, 20);
	assert_int_equal(reader_stream_count(&reader), 1);
	assert_non_null(strstr(reader_status(&reader, 0).problem, "cannot open"));
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
		reader_run(&reader, 100);
		assert_int_equal(reader.length, strlen("later\n4\n"));
		assert_non_null(strstr(reader.text, "later\n"));
		assert_non_null(strstr(reader.text, "4\n"));
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
		reader_run(&reader, 50);
		assert_int_equal(reader.length, lines.length);
		/* the first half is acknowledged */
		const char *newline = memchr(lines.at + lines.length / 2, '\n', lines.length / 2);
		size_t half = (size_t)(newline + 1 - lines.at);
		reader.streams[0].position = source_position(1, half);
		stop(&reader);
		log_append("access.log", "more\n");
		log_pack("access.log", "access.log.1.gz");
		log_append("access.log", "new\n");
		reader_open(&reader, config, false, memory);
		reader_run(&reader, 100);
		assert_int_equal(reader.length, lines.length - half + strlen("more\nnew\n"));
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
			reader_run(&reader, 50);
			assert_int_equal(reader.length, lines.length);
			if (stopped)
				stop(&reader);
			assert_int_equal(truncate(log_path("access.log"), (off_t)lines.length / 2), 0);
			if (stopped)
				reader_open(&reader, config, false, memory);
			reader_run(&reader, 50);
			log_append("access.log", "new\n");
			if (stopped) {
				reader_expect(&reader, "new\n");
			} else {
				reader_run(&reader, 50);
				assert_int_equal(reader.length, lines.length + 4);
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
	reader_run(&reader, 50);
	assert_int_equal(reader.length, lines.length);
	assert_int_equal(ftruncate(writer, 0), 0);
	say(writer, "new 1\n");
	reader_run(&reader, 50);
	say(writer, "new 2\n");
	reader_run(&reader, 50);
	assert_string_equal(reader.text + lines.length, "new 1\nnew 2\n");
	close(writer);
	reader_close(&reader);
	free(lines.at);
	end();
}

static void a_removed_file_is_read_to_its_end(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	int writer = open_writer("access.log");
	say(writer, "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_remove("access.log");
	say(writer, "2\nopen");
	reader_expect(&reader, "1\n2\n");
	reader_run(&reader, 250); /* the grace */
	assert_string_equal(reader.text, "1\n2\nopen$");
	close(writer);
	log_append("access.log", "3\n");
	reader_expect(&reader, "1\n2\nopen$3\n");
	/* removed and made again at once */
	log_remove("access.log");
	log_append("access.log", "4\n");
	reader_expect(&reader, "1\n2\nopen$3\n4\n");
	reader_close(&reader);
	end();
}

static void directories_come_and_go(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*/access.log\",\"follow\":true}", false, memory);
	reader_run(&reader, 20);
	assert_int_equal(reader_stream_count(&reader), 0);
	assert_string_equal(reader_status(&reader, 0).problem, "names no file yet");
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

static void what_cannot_be_opened_is_tried_again(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		assert_int_equal(symlink("access.log", log_path("access.log")), 0); /* to itself */
		reader_open(&reader, config, false, memory);
		reader_run(&reader, 100);
		struct source_status status = reader_status(&reader, 0);
		assert_non_null(strstr(status.problem, "Too many levels of symbolic links"));
		assert_true(status.errors >= 1);
		assert_true(status.errors < 20); /* with pauses */
		log_remove("access.log");
		log_append("access.log", "1\n");
		reader_expect(&reader, "1\n");
		assert_string_equal(reader_status(&reader, 0).problem, "");
		/* and under a file that is followed */
		log_rename("access.log", "access.log.1");
		assert_int_equal(symlink("access.log", log_path("access.log")), 0);
		log_append("access.log.1", "2\n");
		reader_expect(&reader, "1\n2\n");
		log_remove("access.log");
		log_append("access.log", "3\n");
		reader_expect(&reader, "1\n2\n3\n");
		reader_close(&reader);
		end();
	}
}

static void what_is_no_file_is_stated(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	assert_int_equal(mkdir(log_path("access.log"), 0700), 0);
	reader_open(&reader, one, false, memory);
	reader_run(&reader, 50);
	assert_non_null(strstr(reader_status(&reader, 0).problem, "is not a regular file"));
	assert_int_equal(rmdir(log_path("access.log")), 0);
	log_append("access.log", "1\n");
	reader_expect(&reader, "1\n");
	reader_close(&reader);
	end();
}

static void start_at_the_end_is_for_files_that_were_there(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true,\"start\":\"end\"}";
	struct reader reader;
	begin();
	log_append("a.log", "old\nbegun");
	reader_open(&reader, config, false, memory);
	reader_run(&reader, 30);
	log_append("a.log", " and ended\n");
	reader_expect(&reader, "begun and ended\n");
	log_append("b.log", "new\n");
	reader_expect(&reader, "begun and ended\nnew\n");
	stop(&reader);
	log_append("a.log", "a\n");
	log_append("c.log", "c\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "a\nc\n");
	reader_close(&reader);
	end();
}

static void older_rotated_files_are_no_news(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log.1", "old 1\n");
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_append("access.log.1", "very late\n");
	log_rename("access.log.1", "access.log.2");
	log_rename("access.log", "access.log.1");
	log_append("access.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	reader_close(&reader);
	end();
}

static void a_busy_file_does_not_starve_another(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	struct log_bytes lines = log_lines("line number %d, and its sevenfold %d\n", 1, 200000);
	log_write("a.log", O_TRUNC, lines.at, lines.length);
	log_append("b.log", "b\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reader_step(&reader), WEIR_OK);
	assert_int_equal(reader.stream_count, 2);
	assert_true(reader.length < lines.length);
	reader_close(&reader);
	free(lines.at);
	end();
}

static void a_source_configured_otherwise_goes_on(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	uint8_t id[SOURCE_ID_BYTES];
	memcpy(id, reader.streams[0].stream->id, sizeof id);
	stop(&reader);
	log_append("access.log", "2\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/./access.log\",\"follow\":true}", false, memory);
	reader_expect(&reader, "2\n");
	assert_memory_equal(id, reader.streams[0].stream->id, sizeof id);
	log_rename("access.log", "access.log.1");
	log_append("access.log", "3\n");
	reader_expect(&reader, "2\n3\n");
	assert_memory_equal(id, reader.streams[0].stream->id, sizeof id);
	reader_close(&reader);
	end();
}

static void a_log_synchronised_from_elsewhere_goes_on(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log", "1\n2\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n2\n");
	log_append(".access.log.Xy", "1\n2\n3\n"); /* as rsync does it */
	log_rename(".access.log.Xy", "access.log");
	reader_expect(&reader, "1\n2\n3\n");
	log_append(".access.log.Xy", "1\n2\n3\n4\n");
	log_rename(".access.log.Xy", "access.log");
	reader_expect(&reader, "1\n2\n3\n4\n");
	reader_close(&reader);
	end();
}

static void parts_are_on_disk_before_their_lines(void **state)
{
	(void)state;
	struct reader reader;
	struct weir_error error;
	begin();
	struct source_memory *saved;
	assert_int_equal(source_memory_open(log_directory, &saved, &error), WEIR_OK);
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, saved);
	reader_expect(&reader, "1\n");
	for (int i = 0; i < 2; i++) {
		struct source_memory *seen;
		assert_int_equal(source_memory_open(log_directory, &seen, &error), WEIR_OK);
		assert_memory_equal(seen->collector_id, saved->collector_id, SOURCE_ID_BYTES);
		assert_int_equal(seen->streams[0]->part_count, 1 + i);
		source_memory_free(seen);
		log_rename("access.log", "access.log.1");
		log_append("access.log", "2\n");
		reader_run(&reader, 100);
	}
	/* It cannot be saved: then nothing of a new file is handed out, and it is said why. */
	size_t length = reader.length;
	char *path = saved->path;
	saved->path = weir_copy("/nowhere/sources.json", 21);
	log_rename("access.log", "access.log.1");
	log_append("access.log", "3\n");
	reader_run(&reader, 150);
	assert_int_equal(reader.length, length);
	assert_non_null(strstr(reader_status(&reader, 0).problem, "/nowhere/sources.json"));
	free(saved->path);
	saved->path = path;
	reader_run(&reader, 100);
	assert_int_equal(reader.length, length + 2);
	reader_close(&reader);
	source_memory_free(saved);
	end();
}

struct asker {
	struct source *source;
	_Atomic bool stop;
	uint64_t asked;
};

static void *ask(void *context)
{
	struct asker *asker = context;
	struct source_status statuses[4];
	while (!atomic_load(&asker->stop)) {
		size_t count = asker->source->ops->status(asker->source, statuses, 4);
		for (size_t i = 0; i < count && i < 4; i++)
			assert_non_null(statuses[i].name);
		asker->asked++;
	}
	return NULL;
}

static void status_may_be_asked_by_another_thread(void **state)
{
	(void)state;
	struct reader reader;
	pthread_t thread;
	begin();
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	struct asker asker = {.source = reader.source};
	assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
	for (int i = 0; i < 12; i++) {
		char name[16];
		snprintf(name, sizeof name, "%d.log", i);
		log_append(name, "1\n");
		log_append("0.log", "more\n");
		reader_run(&reader, 10);
	}
	log_replace("0.log", "truncated\n");
	reader_run(&reader, 50);
	atomic_store(&asker.stop, true);
	pthread_join(thread, NULL);
	assert_true(asker.asked > 0);
	assert_int_equal(reader_stream_count(&reader), 12);
	assert_int_equal(reader.length, 12 * 2 + 12 * 5 + 10);
	reader_close(&reader);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_as_they_are_written),
		cmocka_unit_test(a_renamed_file_is_drained_first),
		cmocka_unit_test(late_lines_are_not_lost),
		cmocka_unit_test(a_crash_repeats_the_same_positions),
		cmocka_unit_test(rotations_while_stopped_are_followed_in_order),
		cmocka_unit_test(several_rotations_at_once_are_followed_in_order),
		cmocka_unit_test(packing_a_rotated_file_is_no_news),
		cmocka_unit_test(a_file_packed_while_stopped_is_finished),
		cmocka_unit_test(truncation_in_place_is_a_new_incarnation),
		cmocka_unit_test(a_copy_made_before_truncation_is_not_read_again_but_on),
		cmocka_unit_test(truncations_while_stopped_are_followed_through_copies),
		cmocka_unit_test(a_file_that_was_cut_goes_on_at_its_new_end),
		cmocka_unit_test(a_writer_that_does_not_append_leaves_a_hole),
		cmocka_unit_test(a_removed_file_is_read_to_its_end),
		cmocka_unit_test(directories_come_and_go),
		cmocka_unit_test(what_cannot_be_opened_is_tried_again),
		cmocka_unit_test(what_is_no_file_is_stated),
		cmocka_unit_test(start_at_the_end_is_for_files_that_were_there),
		cmocka_unit_test(older_rotated_files_are_no_news),
		cmocka_unit_test(a_busy_file_does_not_starve_another),
		cmocka_unit_test(a_source_configured_otherwise_goes_on),
		cmocka_unit_test(a_log_synchronised_from_elsewhere_goes_on),
		cmocka_unit_test(parts_are_on_disk_before_their_lines),
		cmocka_unit_test(status_may_be_asked_by_another_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
