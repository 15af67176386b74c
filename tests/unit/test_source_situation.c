/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to see where a stream's lines end: each thing that may be done to its file, and the situation it makes. */
#include "tests/unit/rotation_fixture.h"

static struct reader reader;

/* A log of these lines, read to its end; then only what a case does happens to it. */
static struct file_rotation *read_log(const char *text)
{
	begin();
	log_append("access.log", text);
	reader_open(&reader, one, false, memory);
	reader_expect_length(&reader, (size_t)(strrchr(text, '\n') + 1 - text));
	struct file_source *source = file_source_of(reader.source);
	struct file_timing *timing = &source->shared.settings.timing;
	timing->rest = 0; /* what was done to the directory just now does not matter */
	timing->quiet = timing->patience = timing->grace = 60000;
	return &source->logs[0]->rotation;
}

static void leave_log(void)
{
	reader_close(&reader);
	end();
}

/* What is seen so long from now on, and what then is known. The stream is as it was: looking changes nothing. */
static enum file_situation look(const struct file_rotation *rotation, enum file_reading reading, int64_t later_ms,
                                struct file_outlook *outlook)
{
	const struct file_stream *stream = &rotation->stream;
	struct file_observation seen;
	uint32_t incarnation = stream->incarnation, parts = stream->record->next_incarnation;
	uint64_t offset = stream->offset;
	size_t open = stream->open_count;
	int64_t retry_ms = stream->retry_ms;
	file_situation_observe(stream, outlook, reading, weir_monotonic_ms() + later_ms, &seen);
	assert_int_equal(stream->incarnation, incarnation);
	assert_int_equal(stream->record->next_incarnation, parts);
	assert_int_equal(stream->offset, offset);
	assert_int_equal(stream->open_count, open);
	assert_int_equal(stream->retry_ms, retry_ms);
	*outlook = seen.outlook;
	file_observation_deinit(&seen);
	return seen.situation;
}

static enum file_situation inspect_end(const struct file_rotation *rotation)
{
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	return look(rotation, FILE_READING_NO_LINE, 0, &outlook);
}

static enum file_situation inspect_truncated(const struct file_rotation *rotation, uint64_t *from)
{
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	struct file_observation seen;
	enum file_situation situation = look(rotation, FILE_READING_TRUNCATED, 0, &outlook);
	file_situation_observe(&rotation->stream, &outlook, FILE_READING_TRUNCATED, weir_monotonic_ms(), &seen);
	*from = seen.from;
	file_observation_deinit(&seen);
	return situation;
}

static void a_file_that_may_grow_is_quiet(void **state)
{
	(void)state;
	const struct file_rotation *log = read_log("1\n");
	assert_int_equal(inspect_end(log), SITUATION_QUIET);
	leave_log();
	log = read_log("1\nopen");
	assert_int_equal(inspect_end(log), SITUATION_QUIET_OPEN_LINE);
	log_rename("access.log", "access.log.1");
	assert_int_equal(inspect_end(log), SITUATION_QUIET_OPEN_LINE);
	leave_log();
}

static void a_removed_file_is_over_after_a_while(void **state)
{
	(void)state;
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	const struct file_rotation *log = read_log("1\n");
	log_remove("access.log");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_QUIET);
	assert_int_equal(outlook.phase, FILE_AWAY);
	assert_int_equal(look(log, FILE_READING_NO_LINE, 60000, &outlook), SITUATION_REMOVED);
	leave_log();
}

static void a_successor_is_seen_waits_and_is_due(void **state)
{
	(void)state;
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	const struct file_rotation *log = read_log("1\n");
	log_rename("access.log", "access.log.1");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_QUIET);
	assert_int_equal(outlook.phase, FILE_AWAY);
	log_append("access.log", "");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_QUIET);
	log_append("access.log", "2\n");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_SUCCESSOR_SEEN);
	assert_int_equal(outlook.phase, FILE_SUCCEEDED);
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_SUCCESSOR_WAITING);
	assert_int_equal(look(log, FILE_READING_NO_LINE, 60000, &outlook), SITUATION_SUCCESSOR_DUE);
	/* renamed back, it is as it was */
	log_rename("access.log.1", "access.log");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_QUIET);
	assert_int_equal(outlook.phase, FILE_AT_PATH);
	leave_log();
}

static void one_that_was_rotated_away_unseen_comes_first(void **state)
{
	(void)state;
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	const struct file_rotation *log = read_log("1\n");
	log_append("access.log.1", "older\n");
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_QUIET);
	outlook.missed = true;
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_OVERLOOKED);
	leave_log();
}

static void a_path_that_cannot_be_opened_is_unreadable(void **state)
{
	(void)state;
	const struct file_rotation *log = read_log("1\n");
	log_rename("access.log", "access.log.1");
	assert_int_equal(symlink("access.log", log_path("access.log")), 0); /* to itself */
	assert_int_equal(inspect_end(log), SITUATION_UNREADABLE);
	leave_log();
}

static void a_packed_file_has_an_end(void **state)
{
	(void)state;
	struct log_bytes text = {.at = "1\nopen", .length = 6}, packed = log_gzip(text);
	begin();
	log_write("access.log", 0, packed.at, packed.length);
	reader_open(&reader, one, false, memory);
	while (reader.length < 2) /* and not to its end, which would settle it */
		reader_step(&reader);
	const struct file_rotation *log = &file_source_of(reader.source)->logs[0]->rotation;
	assert_int_equal(inspect_end(log), SITUATION_PACKED_OPEN_LINE);
	file_source_of(reader.source)->shared.settings.timing.rest = 0;
	log_rename("access.log", "access.log.1");
	log_append("access.log", "2\n");
	assert_int_equal(inspect_end(log), SITUATION_PACKED_SUCCEEDED);
	free(packed.at);
	leave_log();
}

static void a_truncated_file_goes_on_where_it_is_the_same(void **state)
{
	(void)state;
	uint64_t from;
	const struct file_rotation *log = read_log("1\n2\n");
	log_replace("access.log", "3\n");
	assert_int_equal(inspect_truncated(log, &from), SITUATION_TRUNCATED);
	assert_int_equal(from, 0);
	log_append("access.log.1", "1\n2\n");
	assert_int_equal(inspect_truncated(log, &from), SITUATION_TRUNCATED_COPIED);
	leave_log();
	/* a line that could not be ended was taken back */
	log = read_log("1\n2\nopen");
	assert_int_equal(truncate(log_path("access.log"), 4), 0);
	assert_int_equal(inspect_truncated(log, &from), SITUATION_TRUNCATED);
	assert_int_equal(from, 4);
	leave_log();
}

static void what_is_gone_may_have_been_replaced(void **state)
{
	(void)state;
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	struct file_rotation *log = read_log("1\n");
	file_stream_close(&log->stream, file_stream_current(&log->stream));
	log_remove("access.log");
	assert_int_equal(look(log, FILE_READING_GONE, 0, &outlook), SITUATION_GONE);
	log_append("access.log", "2\n");
	assert_int_equal(look(log, FILE_READING_GONE, 0, &outlook), SITUATION_REPLACED);
	leave_log();
}

static void parts_that_are_not_acknowledged_leave_no_room(void **state)
{
	(void)state;
	struct file_outlook outlook = {.phase = FILE_AT_PATH};
	const struct file_rotation *log = read_log("1\n");
	struct file_stream *stream = &file_source_of(reader.source)->logs[0]->rotation.stream;
	while (file_stream_has_room(stream)) {
		file_stream_end_part(stream, stream->offset, SOURCE_FILE_READING);
		file_stream_add_part(stream, memory->streams[0]->files[0], stream->offset);
		file_stream_advance(stream);
	}
	assert_int_equal(look(log, FILE_READING_NO_LINE, 0, &outlook), SITUATION_NO_ROOM);
	leave_log();
}

static enum file_situation inspect_left(const struct file_rotation *rotation, int64_t later_ms)
{
	struct file_observation seen;
	file_situation_observe_left(&rotation->stream, rotation->stream.record->files[0], weir_monotonic_ms() + later_ms,
	                            &seen);
	file_observation_deinit(&seen);
	return seen.situation;
}

/* A log that was rotated; its first file is left. */
static struct file_rotation *rotate_log(void)
{
	struct file_rotation *log = read_log("1\n");
	file_source_of(reader.source)->shared.settings.timing.quiet = 5;
	log_rename("access.log", "access.log.1");
	log_append("access.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(memory->streams[0]->files[0]->state, SOURCE_FILE_LEFT);
	return log;
}

static void a_file_that_was_left_may_get_lines(void **state)
{
	(void)state;
	const struct file_rotation *log = rotate_log();
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_QUIET);
	assert_int_equal(inspect_left(log, 120000), SITUATION_LEFT_OVER);
	log_append("access.log.1", "open");
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_QUIET);
	assert_int_equal(inspect_left(log, 120000), SITUATION_LEFT_OVER_OPEN_LINE);
	log_append("access.log.1", " and late\n");
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_LINES);
	log_replace("access.log.1", "other\n");
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_TRUNCATED);
	leave_log();
}

static void a_file_that_was_left_and_closed_is_looked_for(void **state)
{
	(void)state;
	struct file_rotation *log = rotate_log();
	struct source_memory_file *file = memory->streams[0]->files[0];
	file_stream_close(&log->stream, file_stream_opened(&log->stream, file));
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_CLOSED);
	log_remove("access.log.1");
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_ABSENT);
	file->absences = 60;
	assert_int_equal(inspect_left(log, 0), SITUATION_LEFT_GONE);
	leave_log();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_may_grow_is_quiet),
		cmocka_unit_test(a_removed_file_is_over_after_a_while),
		cmocka_unit_test(a_successor_is_seen_waits_and_is_due),
		cmocka_unit_test(one_that_was_rotated_away_unseen_comes_first),
		cmocka_unit_test(a_path_that_cannot_be_opened_is_unreadable),
		cmocka_unit_test(a_packed_file_has_an_end),
		cmocka_unit_test(a_truncated_file_goes_on_where_it_is_the_same),
		cmocka_unit_test(what_is_gone_may_have_been_replaced),
		cmocka_unit_test(parts_that_are_not_acknowledged_leave_no_room),
		cmocka_unit_test(a_file_that_was_left_may_get_lines),
		cmocka_unit_test(a_file_that_was_left_and_closed_is_looked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
