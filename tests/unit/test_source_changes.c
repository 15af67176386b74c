/* SPDX-License-Identifier: Apache-2.0 */
/* Files followed while they and the configuration come, go and change: every line once. */
#include "common/base/clock.h"
#include "tests/unit/rotation_fixture.h"

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
	reader_expect(&reader, "1\n2\nopen$"); /* after the grace */
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
	reader_expect_problem(&reader, "is not a regular file");
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

/* What is remembered of a file ends before the file does: it was read all the same. */
static void a_rotated_file_that_was_forgotten_is_no_news(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_append("access.log", "2\n"); /* later than it was opened */
	reader_expect(&reader, "1\n2\n");
	log_rename("access.log", "access.log.1");
	log_append("access.log", "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	reader_acknowledge(&reader);
	struct source_memory_stream *record = memory->streams[0];
	for (int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	     record->files[0]->state != SOURCE_FILE_SETTLED && weir_monotonic_ms() < end_ms;)
		reader_run(&reader, 10);
	assert_int_equal(record->files[0]->state, SOURCE_FILE_SETTLED);
	record->files[0]->seen_s -= INT64_C(8) * 86400;
	file_source_of(reader.source)->forget_ms = 0;
	for (int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	     record->file_count != 1 && weir_monotonic_ms() < end_ms;)
		reader_run(&reader, 10);
	assert_int_equal(record->file_count, 1);
	log_rename("access.log.1", "access.log.2");
	log_rename("access.log", "access.log.1");
	log_append("access.log", "4\n");
	reader_expect(&reader, "1\n2\n3\n4\n");
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

/* As nobody writes to it. */
static void until_closed(struct reader *reader)
{
	struct file_source *source = file_source_of(reader->source);
	const struct file_stream *stream = &source->logs[0]->rotation.stream;
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	source->shared.settings.timing.idle = 30;
	while (file_stream_current(stream) != NULL && weir_monotonic_ms() < end_ms)
		reader_run(reader, 5);
	assert_null(file_stream_current(stream));
}

/* The log of 40 lines is replaced by a file with these lines of it, a second time if so, and a new one. */
static void edit(int first, int last, bool again, bool closed, bool reads_all)
{
	static const char form[] = "2026-11-29T16:00:%02d 192.0.2.1 GET /page/%d of an edited log\n";
	struct reader reader;
	char *said = NULL;
	begin();
	struct log_bytes old = log_lines(form, 1, 40), kept = log_lines(form, first, last);
	log_write("access.log", O_TRUNC, old.at, old.length);
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, old.at);
	if (closed)
		until_closed(&reader);
	log_write("edited", O_TRUNC, kept.at, kept.length);
	if (again)
		log_write("edited", O_APPEND, kept.at, kept.length);
	log_append("edited", "new\n");
	log_rename("edited", "access.log");
	assert_true(asprintf(&said, "%s%s%snew\n", old.at, reads_all ? kept.at : "", again ? kept.at : "") > 0);
	reader_expect(&reader, said);
	reader_close(&reader);
	free(said);
	free(kept.at);
	free(old.at);
	end();
}

/* As `sed -i`, `tail` and editors do: a file of its own takes the log's place. */
static void lines_of_an_edited_log_count_once(void **state)
{
	(void)state;
	edit(3, 40, false, false, false);
	edit(35, 40, false, false, false);
	edit(35, 40, false, true, false);
	edit(2, 39, false, false, true); /* the last one is not there */
	edit(40, 40, false, false, true);
	edit(3, 40, true, false, true); /* which of them was read last is not known */
	edit(41, 80, false, false, true);
	edit(41, 80, false, true, true);
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
		reader_until_incarnation(&reader, saved, 2 + (uint32_t)i);
		reader_expect_length(&reader, 4 + 2 * (size_t)i);
	}
	/* It cannot be saved: then nothing of a new file is handed out, and it is said why. */
	size_t length = reader.length;
	char *path = saved->path;
	saved->path = weir_copy("/nowhere/sources.json", 21);
	log_rename("access.log", "access.log.1");
	log_append("access.log", "3\n");
	reader_expect_length(&reader, length);
	assert_non_null(strstr(reader_status(&reader, 0).problem, "/nowhere/sources.json"));
	free(saved->path);
	saved->path = path;
	reader_expect_length(&reader, length + 2);
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
	reader_expect_length(&reader, 12 * 2 + 12 * 5);
	log_replace("0.log", "truncated\n");
	reader_expect_length(&reader, 12 * 2 + 12 * 5 + 10);
	atomic_store(&asker.stop, true);
	pthread_join(thread, NULL);
	assert_true(asker.asked > 0);
	assert_int_equal(reader_stream_count(&reader), 12);
	reader_close(&reader);
	end();
}

static void a_quiet_file_is_closed_and_found_again(void **state)
{
	(void)state;
	const char *config;
	FOR_BOTH(config)
	{
		struct reader reader;
		begin();
		log_append("access.log", "1\n");
		reader_open(&reader, config, false, memory);
		file_source_of(reader.source)->shared.settings.timing.idle = 30;
		struct file_stream *stream;
		for (int i = 2; i < 6; i++) {
			char text[16], expected[32] = "";
			for (int j = 1; j < i; j++)
				sprintf(expected + strlen(expected), "%d\n", j);
			reader_expect(&reader, expected);
			stream = &file_source_of(reader.source)->logs[0]->rotation.stream;
			int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
			while (file_stream_current(stream) != NULL && weir_monotonic_ms() < end_ms)
				reader_run(&reader, 5);
			assert_null(file_stream_current(stream));
			snprintf(text, sizeof text, "%d\n", i);
			if (i % 2) { /* written to under its new name first, or not */
				log_rename("access.log", "access.log.1");
				if (i == 5)
					log_append("access.log.1", text);
			}
			log_append("access.log", i == 5 ? "6\n" : text);
		}
		reader_expect(&reader, "1\n2\n3\n4\n5\n6\n");
		assert_int_equal(reader_stream_count(&reader), 1);
		reader_close(&reader);
		end();
	}
}

static void packed_files_are_read_once_they_are_whole(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 3000), gzip = log_gzip(plain);
	struct log_bytes more = {.at = "more\n", .length = 5}, packed = log_gzip(more);
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.gz\",\"follow\":true}", false, memory);
	log_write("old.log.gz", 0, gzip.at, gzip.length);
	reader_expect_length(&reader, plain.length);
	assert_memory_equal(reader.text, plain.at, plain.length);
	/* another member is appended */
	log_write("old.log.gz", O_APPEND, packed.at, packed.length);
	reader_expect_length(&reader, plain.length + 5);
	/* one that is cut: what can be read of it comes, the problem is stated, and it goes on when the rest is there */
	size_t length = reader.length;
	log_write("cut.log.gz", 0, packed.at, packed.length - 10);
	reader_run(&reader, 100);
	struct source_status statuses[2];
	assert_int_equal(reader.source->ops->status(reader.source, statuses, 2), 2);
	assert_non_null(strstr(statuses[1].problem, "ends in the middle of its gzip data"));
	assert_true(statuses[1].errors >= 1);
	log_write("cut.log.gz", O_TRUNC, packed.at, packed.length);
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	while (weir_monotonic_ms() < end_ms && reader.length < length + 5)
		reader_run(&reader, 5);
	assert_true(reader.length >= length + 5);
	reader_close(&reader);
	free(plain.at);
	free(gzip.at);
	free(packed.at);
	end();
}

static const char *const packed_files = "{\"type\":\"file\",\"path\":\"%s/*.gz\",\"follow\":true}";

/* However far a stalled writer came: no line is cut, none is missing, and the stall is stated as long as it lasts. */
static void a_packed_file_that_stalls_goes_on(void **state)
{
	(void)state;
	struct log_bytes (*const packers[])(struct log_bytes) = {log_gzip, log_zstd, log_bzip2, log_xz};
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 2000);
	for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
		struct log_bytes packed = packers[i](plain);
		/* from where on it is sure to be packed */
		for (size_t cut = 32; cut < packed.length; cut += packed.length / 5) {
			struct reader reader;
			begin();
			log_write("a.gz", 0, packed.at, cut);
			reader_open(&reader, packed_files, false, memory);
			reader_expect_problem(&reader, "ends in the middle of its");
			reader_run(&reader, 30);
			assert_true(reader.length == 0 || reader.text[reader.length - 1] == '\n');
			size_t before = 0;
			if (i % 2 == 0) {
				before = reader.length;
				reader_acknowledge(&reader);
				restart(&reader, packed_files);
			}
			log_write("a.gz", O_APPEND, packed.at + cut, packed.length - cut);
			reader_expect_length(&reader, plain.length - before);
			assert_memory_equal(reader.text, plain.at + before, plain.length - before);
			reader_expect_problem(&reader, "");
			assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
			reader_close(&reader);
			end();
		}
		free(packed.at);
	}
	free(plain.at);
}

/* rsync, scp and mv: the whole file takes the place of what was there of it; so does one that has more. */
static void a_packed_file_that_is_replaced_goes_on(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 2000), packed = log_gzip(plain);
	struct log_bytes more = {.at = "more\n", .length = 5}, member = log_gzip(more);
	struct log_bytes joined = log_joined(packed, NULL, 0, member);
	log_write("a.gz", 0, packed.at, packed.length / 2);
	reader_open(&reader, packed_files, false, memory);
	reader_expect_problem(&reader, "ends in the middle of its gzip data");
	assert_true(reader.length > 0);
	log_write("copy", 0, packed.at, packed.length);
	log_rename("copy", "a.gz");
	reader_expect_length(&reader, plain.length);
	log_write("copy", 0, joined.at, joined.length);
	log_rename("copy", "a.gz");
	reader_expect_length(&reader, plain.length + 5);
	assert_memory_equal(reader.text, plain.at, plain.length);
	assert_string_equal(reader.text + plain.length, "more\n");
	reader_close(&reader);
	free(plain.at), free(packed.at), free(member.at), free(joined.at);
	end();
}

/* A file that was read, and is cut while weir is stopped, is not taken for a plain one of that size. */
static void a_packed_file_that_was_cut_waits(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 20000), packed = log_gzip(plain);
	log_write("a.gz", 0, packed.at, packed.length);
	reader_open(&reader, packed_files, false, memory);
	while (reader.length < plain.length / 2)
		reader_step(&reader);
	assert_true(reader.length < plain.length);
	size_t length = reader.length;
	reader_acknowledge(&reader);
	restart(&reader, packed_files);
	reader_close(&reader);
	assert_int_equal(truncate(log_path("a.gz"), (off_t)packed.length / 8), 0);
	reader_open(&reader, packed_files, false, memory);
	reader_run(&reader, 50);
	assert_int_equal(reader.length, 0);
	log_write("a.gz", O_TRUNC, packed.at, packed.length);
	reader_expect_length(&reader, plain.length - length);
	assert_memory_equal(reader.text, plain.at + length, plain.length - length);
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	reader_close(&reader);
	free(plain.at), free(packed.at);
	end();
}

/* The same of one that was read to its end, and so little is left that nothing tells whose it is: until there is more. */
static void a_packed_file_that_is_written_anew_is_known_again(void **state)
{
	(void)state;
	struct log_bytes (*const packers[])(struct log_bytes) = {log_gzip, log_zstd, log_bzip2, log_xz};
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 40);
	struct log_bytes more = {.at = "more\n", .length = 5};
	for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
		struct reader reader;
		struct log_bytes packed = packers[i](plain), member = packers[i](more);
		struct log_bytes joined = log_joined(packed, NULL, 0, member);
		begin();
		log_write("a.gz", 0, packed.at, packed.length);
		reader_open(&reader, packed_files, false, memory);
		reader_expect_length(&reader, plain.length);
		stop(&reader);
		assert_int_equal(truncate(log_path("a.gz"), (off_t)packed.length / 2), 0);
		reader_open(&reader, packed_files, false, memory);
		reader_expect_problem(&reader, "holds less than was read of it");
		assert_int_equal(reader.length, 0);
		log_write("a.gz", O_TRUNC, joined.at, joined.length);
		reader_expect(&reader, "more\n");
		reader_expect_problem(&reader, "");
		assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
		reader_close(&reader);
		end();
		free(packed.at), free(member.at), free(joined.at);
	}
	free(plain.at);
}

/* The inode of a file of which no byte is known says nothing once another file has it. */
static void an_inode_that_another_file_got_is_no_file(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":[\"%s/a.log\",\"%s/b.log\"],\"follow\":true}";
	struct reader reader;
	begin();
	log_append("a.log", "");
	reader_open(&reader, config, false, memory);
	reader_run(&reader, 50);
	stop(&reader);
	log_rename("a.log", "b.log"); /* as good as: it was removed, and its inode given to another */
	log_append("b.log", "b\n");
	log_append("a.log", "a\n");
	reader_open(&reader, config, false, memory);
	reader_expect_length(&reader, 4);
	assert_non_null(source_memory_find(memory, log_path("b.log")));
	reader_close(&reader);
	end();
}

/* What cannot be read of a damaged file is counted, and the problem says where. */
static void damage_is_counted(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	struct log_bytes plain = log_lines("line number %d, and its sevenfold %d\n", 1, 20000), packed = log_gzip(plain);
	memset(packed.at + packed.length / 2, 'X', 64);
	log_write("a.gz", 0, packed.at, packed.length);
	for (int once = 0; once < 2; once++) {
		reader_open(&reader, packed_files, once, NULL);
		if (once)
			reader_finish(&reader);
		else
			reader_expect_problem(&reader, "the gzip data is damaged");
		struct source_status status = reader_status(&reader, 0);
		unsigned long long at, missing;
		const char *where = strstr(status.problem, ", at byte ");
		assert_non_null(where);
		assert_int_equal(sscanf(where, ", at byte %llu: %llu bytes", &at, &missing), 2);
		assert_int_equal(at + missing, packed.length);
		assert_int_equal(status.lost_bytes, missing);
		reader_close(&reader);
	}
	free(plain.at), free(packed.at);
	end();
}

static void lag_grows_while_nobody_reads(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	assert_int_equal(reader_status(&reader, 0).lag_ms, 0);
	log_append("access.log", "22\n333\n");
	usleep(30000);
	struct source_status status = reader_status(&reader, 0);
	assert_int_equal(status.lag_bytes, 7);
	assert_int_equal(status.size_bytes, 9);
	assert_true(status.lag_ms >= 30);
	reader_expect(&reader, "1\n22\n333\n");
	assert_int_equal(reader_status(&reader, 0).lag_bytes, 0);
	reader_close(&reader);
	end();
}

static void files_long_gone_are_forgotten(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/*.log*\",\"follow\":true}";
	struct reader reader;
	begin();
	const char *names[] = {"app-1.log", "app-2.log", "app-3.log"};
	for (int i = 0; i < 3; i++)
		log_append(names[i], "a line\n");
	reader_open(&reader, config, false, memory);
	reader_expect_length(&reader, 3 * 7);
	stop(&reader);
	for (size_t i = 0; i < 3; i++)
		memory->streams[i]->files[0]->seen_s -= INT64_C(40) * 86400;
	log_remove("app-1.log");
	log_pack("app-2.log", "app-2.log.gz");
	reader_open(&reader, config, false, memory);
	reader_run(&reader, 100);
	assert_int_equal(reader.length, 0); /* neither what is still there nor what was packed is read again */
	assert_null(source_memory_find(memory, log_path("app-1.log")));
	assert_non_null(source_memory_find(memory, log_path("app-2.log")));
	assert_non_null(source_memory_find(memory, log_path("app-3.log")));
	reader_close(&reader);
	end();
}

static void more_files_than_can_be_followed_are_stated(void **state)
{
	(void)state;
	struct reader reader;
	begin();
	for (int i = 0; i < SOURCE_MEMORY_STREAMS_MAX; i++) {
		char path[32];
		snprintf(path, sizeof path, "/nowhere/%d", i);
		assert_non_null(source_memory_add(memory, path));
	}
	log_append("one-more.log", "1\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	reader_expect_problem(&reader, "more files than can be followed");
	assert_int_equal(reader.length, 0);
	reader_close(&reader);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_file_is_read_to_its_end),
		cmocka_unit_test(what_cannot_be_opened_is_tried_again),
		cmocka_unit_test(what_is_no_file_is_stated),
		cmocka_unit_test(start_at_the_end_is_for_files_that_were_there),
		cmocka_unit_test(older_rotated_files_are_no_news),
		cmocka_unit_test(a_rotated_file_that_was_forgotten_is_no_news),
		cmocka_unit_test(a_busy_file_does_not_starve_another),
		cmocka_unit_test(lines_of_an_edited_log_count_once),
		cmocka_unit_test(a_source_configured_otherwise_goes_on),
		cmocka_unit_test(a_log_synchronised_from_elsewhere_goes_on),
		cmocka_unit_test(parts_are_on_disk_before_their_lines),
		cmocka_unit_test(status_may_be_asked_by_another_thread),
		cmocka_unit_test(a_quiet_file_is_closed_and_found_again),
		cmocka_unit_test(packed_files_are_read_once_they_are_whole),
		cmocka_unit_test(a_packed_file_that_stalls_goes_on),
		cmocka_unit_test(a_packed_file_that_is_replaced_goes_on),
		cmocka_unit_test(a_packed_file_that_was_cut_waits),
		cmocka_unit_test(a_packed_file_that_is_written_anew_is_known_again),
		cmocka_unit_test(an_inode_that_another_file_got_is_no_file),
		cmocka_unit_test(damage_is_counted),
		cmocka_unit_test(lag_grows_while_nobody_reads),
		cmocka_unit_test(files_long_gone_are_forgotten),
		cmocka_unit_test(more_files_than_can_be_followed_are_stated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
