/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is named is read once: whatever its name looks like, wherever it was rotated to, and by one source alone. */
#include "tests/unit/rotation_fixture.h"

/* What was told since it was last cleared. */
static char told[4096];

static void hear(void *context, const char *place, const char *words)
{
	(void)context;
	size_t length = strlen(told);
	snprintf(told + length, sizeof told - length, "%s: %s\n", place, words);
}

static void set_up(void)
{
	begin();
	told[0] = '\0';
	reader_tell = hear;
}

static void tear_down(void)
{
	reader_tell = NULL;
	end();
}

/* Each of the lines stands once in what was read. */
static void expect_each_once(const struct reader *reader, const char *const *lines, size_t count)
{
	size_t length = 0;
	for (size_t i = 0; i < count; i++) {
		const char *found = strstr(reader->text, lines[i]);
		if (found == NULL || strstr(found + 1, lines[i]) != NULL)
			fail_msg("%s is not once in: %s", lines[i], reader->text);
		length += strlen(lines[i]);
	}
	assert_int_equal(reader->length, length);
}

static const char *const pairs[][2] = {{"access.log", "access.log.1"}, {"web.log", "web-2.log"},
                                       {"site", "site.443"},           {"node.1", "node.2"},
                                       {"x.log", "x.log-old"},         {"a.log", "a.log-20240131"}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static void names_that_look_rotated_are_logs(void **state)
{
	(void)state;
	const char *lines[] = {"first of one\n", "first of two\n"};
	for (size_t i = 0; i < PAIRS; i++)
		for (int order = 0; order < 2; order++)
			for (int once = 0; once < 2; once++) {
				char config[256];
				struct reader reader;
				set_up();
				log_append(pairs[i][0], lines[0]);
				log_append(pairs[i][1], lines[1]);
				snprintf(config, sizeof config, "{\"type\":\"file\",\"path\":[\"%%s/%s\",\"%%s/%s\"],\"follow\":true}",
				         pairs[i][order], pairs[i][!order]);
				reader_open(&reader, config, once, memory);
				assert_int_equal(reader_stream_count(&reader), 2);
				if (once)
					reader_finish(&reader);
				else
					reader_expect_length(&reader, strlen(lines[0]) + strlen(lines[1]));
				expect_each_once(&reader, lines, 2);
				reader_close(&reader);
				tear_down();
			}
}

/* Two logs that hold the same are two logs. */
static void equal_files_are_both_read(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	log_append("access.log", "the same\n");
	log_append("access.log.1", "the same\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/access.log\",\"%s/access.log.1\"]}", true, memory);
	reader_finish(&reader);
	assert_string_equal(reader.text, "the same\nthe same\n");
	reader_close(&reader);
	tear_down();
}

/* A packed copy of a log beside it is told, and not read. */
static void a_copy_that_is_left_out_is_told(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	log_append("a.log", "1\n2\n");
	struct log_bytes plain = log_read("a.log"), packed = log_bzip2(plain);
	log_write("other.bz2", O_TRUNC, packed.at, packed.length);
	reader_open(&reader, "{\"type\":\"file\",\"path\":[\"%s/a.log\",\"%s/other.bz2\"]}", true, memory);
	reader_finish(&reader);
	assert_string_equal(reader.text, "1\n2\n");
	assert_non_null(strstr(told, "other.bz2 holds the same lines as"));
	free(plain.at);
	free(packed.at);
	reader_close(&reader);
	tear_down();
}

/* A log that is created later, beside one that is followed. */
static void a_log_that_comes_later_is_one(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	log_append("web.log", "1\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	reader_expect(&reader, "1\n");
	log_append("web-2.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	assert_int_equal(reader_stream_count(&reader), 2);
	log_append("web.log", "3\n");
	log_append("web-2.log", "4\n");
	reader_expect_length(&reader, 8);
	reader_close(&reader);
	tear_down();
}

/* ---- two sources ---- */

/* Opens a second source beside a reader's. @return the error, or "" */
static const char *open_second(const char *config, bool once, struct reader *second)
{
	static struct weir_error error;
	char text[1024];
	struct weir_json_document *document;
	snprintf(text, sizeof text, config, log_directory, log_directory, log_directory);
	assert_int_equal(weir_json_parse("config", text, strlen(text), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	struct source_context context = {.once = once, .line_max_bytes = 1024, .memory = memory, .tell = hear};
	*second = (struct reader){.text = weir_alloc(1, 1), .config = document};
	if (source_new(&root, &context, &second->source, &error) == WEIR_OK) {
		if (!once)
			reader_hasten(second);
		return "";
	}
	weir_json_document_free(document);
	free(second->text);
	return error.text;
}

static void one_file_in_two_sources_is_refused(void **state)
{
	(void)state;
	struct reader reader, second;
	for (int once = 0; once < 2; once++) {
		set_up();
		log_append("access.log", "1\n");
		log_append("error.log", "2\n");
		assert_int_equal(symlink("error.log", log_path("soft")), 0);
		assert_int_equal(link(log_path("error.log"), log_path("hard")), 0);
		reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", once, memory);
		const char *configs[] = {"{\"type\":\"file\",\"path\":\"%s/error.log\",\"follow\":true}",
		                         "{\"type\":\"file\",\"path\":\"%s/soft\",\"follow\":true}",
		                         "{\"type\":\"file\",\"path\":\"%s/har?\",\"follow\":true}",
		                         "{\"type\":\"file\",\"path\":\"%s/e*\",\"follow\":true}"};
		for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
			const char *error = open_second(configs[i], once, &second);
			assert_non_null(strstr(error, "error.log"));
			assert_non_null(strstr(error, "exclude"));
		}
		reader_close(&reader);
		tear_down();
	}
}

static void an_excluded_file_is_the_other_sources(void **state)
{
	(void)state;
	struct reader reader, second;
	set_up();
	log_append("access.log", "1\n");
	log_append("error.log", "2\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"exclude\":\"error*\"}", true, memory);
	assert_string_equal(open_second("{\"type\":\"file\",\"path\":\"%s/error.log\"}", true, &second), "");
	reader_finish(&reader);
	reader_finish(&second);
	assert_string_equal(reader.text, "1\n");
	assert_string_equal(second.text, "2\n");
	reader_close(&second);
	reader_close(&reader);
	tear_down();
}

/* The other source names what lies beside the first one's log, and what that is rotated to. */
static void a_rotation_that_another_source_names_is_read_once(void **state)
{
	(void)state;
	struct reader reader, second;
	set_up();
	log_append("access.log", "1\n");
	log_append("access.log.1", "old\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/access.log\",\"follow\":true}", false, memory);
	assert_string_equal(open_second("{\"type\":\"file\",\"path\":\"%s/access.log.1\",\"follow\":true}", false, &second),
	                    "");
	reader_expect(&second, "old\n");
	reader_expect(&reader, "1\n");
	log_rename("access.log.1", "access.log.2");
	log_rename("access.log", "access.log.1");
	log_append("access.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	reader_expect(&second, "old\n");
	reader_close(&second);
	reader_close(&reader);
	tear_down();
}

/* What is excluded is a file, however either of the two is spelled. */
static void a_file_is_excluded_by_any_spelling(void **state)
{
	(void)state;
	static const char *const configs[] = {
		"{\"type\":\"file\",\"path\":\"%s/x/*.log\",\"exclude\":\"%s/x/../x/a.log\",\"follow\":true}",
		"{\"type\":\"file\",\"path\":\"%s/link/*.log\",\"exclude\":\"%s/x/a.*\",\"follow\":true}",
		"{\"type\":\"file\",\"path\":\"%s/*/*.log\",\"exclude\":\"%s/link/a.log\",\"follow\":true}",
		"{\"type\":\"file\",\"path\":\"%s/./x/*.log\",\"exclude\":\"%s/*/a.log\",\"follow\":true}",
	};
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
		struct reader reader;
		set_up();
		assert_int_equal(mkdir(log_path("x"), 0700), 0);
		assert_int_equal(symlink("x", log_path("link")), 0);
		log_append("x/a.log", "excluded\n");
		log_append("x/b.log", "1\n");
		reader_open(&reader, configs[i], false, memory);
		reader_expect(&reader, "1\n");
		log_append("x/a.log", "excluded\n");
		log_append("x/b.log", "2\n");
		reader_expect(&reader, "1\n2\n");
		reader_close(&reader);
		tear_down();
	}
	struct reader second;
	set_up();
	assert_int_equal(symlink(".", log_path("here")), 0);
	log_append("a.log", "1\n");
	const char *error =
		open_second("{\"type\":\"file\",\"path\":\"%s/a.log\",\"exclude\":\"%s/here/a.log\"}", true, &second);
	assert_non_null(strstr(error, "a.log, which \"path\" names"));
	tear_down();
}

static void what_is_named_and_excluded_is_refused(void **state)
{
	(void)state;
	struct reader second;
	set_up();
	const char *error =
		open_second("{\"type\":\"file\",\"path\":\"%s/a.log\",\"exclude\":[\"*.gz\",\"a.*\"]}", true, &second);
	assert_non_null(strstr(error, "a.log, which \"path\" names"));
	error = open_second("{\"type\":\"file\",\"path\":\"%s/a.log\",\"exclude\":[]}", true, &second);
	assert_true(error[0] != '\0');
	tear_down();
}

/* ---- where rotated files go ---- */

static void expect_rest_is_found(const char *config, const char *log, const char *moved)
{
	struct reader reader;
	log_append(log, "1\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n");
	stop(&reader);
	log_append(log, "2\n3\n");
	log_rename(log, moved);
	log_append(log, "4\n");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "2\n3\n4\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 0);
	assert_string_equal(told, "");
	reader_close(&reader);
}

static void a_log_rotated_into_another_directory_is_read_on(void **state)
{
	(void)state;
	const char *follow = "{\"type\":\"file\",\"path\":\"%s/access.log\",\"follow\":true}";
	const char *olddir = "{\"type\":\"file\",\"path\":\"%s/access.log\",\"olddir\":\"%s/old\",\"follow\":true}";
	const char *linked = "{\"type\":\"file\",\"path\":\"%s/links/c.log\",\"follow\":true}";
	const char *beside = "{\"type\":\"file\",\"path\":\"%s/in/access.log\",\"olddir\":\"../old\",\"follow\":true}";
	set_up();
	assert_int_equal(mkdir(log_path("old"), 0700), 0);
	expect_rest_is_found(follow, "access.log", "old/a-name-that-says-nothing");
	tear_down();
	set_up();
	assert_int_equal(mkdir(log_path("old"), 0700), 0);
	expect_rest_is_found(olddir, "access.log", "old/access.log-20240131");
	tear_down();
	set_up();
	assert_int_equal(mkdir(log_path("old"), 0700), 0);
	assert_int_equal(mkdir(log_path("in"), 0700), 0);
	expect_rest_is_found(beside, "in/access.log", "old/access.log.1");
	tear_down();
	set_up();
	assert_int_equal(mkdir(log_path("links"), 0700), 0);
	assert_int_equal(mkdir(log_path("pods"), 0700), 0);
	assert_int_equal(symlink("../pods/0.log", log_path("links/c.log")), 0);
	expect_rest_is_found(linked, "pods/0.log", "pods/0.log.20240517-100503");
	tear_down();
}

/* The link leads nowhere just now, and nothing was read of its file. */
static void a_link_without_a_target_tells_where_to_look(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/c.log\",\"follow\":true}";
	struct reader reader;
	set_up();
	assert_int_equal(mkdir(log_path("pods"), 0700), 0);
	assert_int_equal(symlink("pods/0.log", log_path("c.log")), 0);
	log_append("pods/0.log", "1\n");
	reader_open(&reader, config, false, memory);
	stop(&reader);
	log_append("pods/0.log", "2\n");
	log_rename("pods/0.log", "pods/0.log.1");
	reader_open(&reader, config, false, memory);
	reader_expect(&reader, "1\n2\n");
	log_append("pods/0.log", "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	assert_string_equal(told, "");
	reader_close(&reader);
	tear_down();
}

/* Two links lead to files whose names look like one another's rotations: neither log takes the other's file. */
static void what_a_link_leads_to_is_named(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	assert_int_equal(mkdir(log_path("in"), 0700), 0);
	assert_int_equal(symlink("in/web.log", log_path("web.log")), 0);
	assert_int_equal(symlink("in/web-2.log", log_path("web-2.log")), 0);
	log_append("in/web.log", "1\n");
	log_append("in/web-2.log", "2\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	reader_expect_length(&reader, 4);
	stop(&reader);
	/* both are rotated, and what lies at the second path is new when the first log looks for what it missed */
	log_rename("in/web.log", "in/web.log.1");
	log_rename("in/web-2.log", "in/web-2.log.1");
	log_append("in/web-2.log", "3\n");
	log_append("in/web.log", "4\n");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	reader_expect_length(&reader, 4);
	for (size_t i = 0; i < memory->stream_count; i++)
		assert_int_equal(memory->streams[i]->file_count, 2);
	reader_close(&reader);
	tear_down();
}

/* Two rotations at once: the one between was never seen at its path. */
static void both_of_two_rotations_are_read(void **state)
{
	(void)state;
	const char *config = "{\"type\":\"file\",\"path\":\"%s/links/c.log\",\"olddir\":\"old\",\"follow\":true}";
	for (int stopped = 0; stopped < 2; stopped++) {
		struct reader reader;
		set_up();
		assert_int_equal(mkdir(log_path("links"), 0700), 0);
		assert_int_equal(mkdir(log_path("pods"), 0700), 0);
		assert_int_equal(mkdir(log_path("pods/old"), 0700), 0);
		assert_int_equal(symlink("../pods/0.log", log_path("links/c.log")), 0);
		log_append("pods/0.log", "1\n");
		reader_open(&reader, config, false, memory);
		reader_expect(&reader, "1\n");
		if (stopped)
			stop(&reader);
		log_append("pods/0.log", "2\n");
		log_rename("pods/0.log", "pods/old/0.log-20240131");
		log_append("pods/0.log", "3\n");
		log_rename("pods/0.log", "pods/old/0.log-20240201");
		log_append("pods/0.log", "4\n");
		if (stopped)
			reader_open(&reader, config, false, memory);
		reader_expect(&reader, stopped ? "2\n3\n4\n" : "1\n2\n3\n4\n");
		assert_string_equal(told, "");
		reader_close(&reader);
		tear_down();
	}
}

static void what_cannot_be_found_is_told(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	log_append("access.log", "1\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n");
	log_append("access.log", "22\n");
	reader_expect(&reader, "1\n22\n");
	stop(&reader);
	/* It was seen to be larger than what was read: as after a crash. */
	memory->streams[0]->files[0]->size += 100;
	log_remove("access.log");
	log_append("access.log", "another\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "another\n");
	assert_int_equal(reader_status(&reader, 0).lost_bytes, 100);
	assert_non_null(strstr(told, "access.log"));
	assert_non_null(strstr(told, "100 bytes from position 5 on are lost"));
	stop(&reader);
	told[0] = '\0';
	log_remove("access.log");
	log_append("access.log", "a third\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "a third\n");
	assert_non_null(strstr(told, "behind position 8 is lost, if anything was"));
	reader_close(&reader);
	tear_down();
}

/* ---- at once ---- */

/* Scans are far apart: what is seen is seen by events. */
static void first_lines_are_seen_without_a_scan(void **state)
{
	(void)state;
	struct reader reader;
	set_up();
	log_append("empty.log", "");
	reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
	reader_run(&reader, 60);
	struct file_source *source = file_source_of(reader.source);
	source->shared.settings.timing.poll = 60000;
	source->scan_took_ms = 60000;
	source->scan_ms = weir_monotonic_ms() + 60000;
	log_append("empty.log", "1\n");
	reader_expect(&reader, "1\n");
	log_append("new.log", "2\n");
	reader_expect(&reader, "1\n2\n");
	log_append("new.log", "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	reader_close(&reader);
	tear_down();
}

/* ---- what is no line ---- */

/* What was read may have zeros in it. */
static bool holds(const struct reader *reader, const char *text)
{
	return memmem(reader->text, reader->length, text, strlen(text)) != NULL;
}

static void an_endless_line_keeps_nobody_waiting(void **state)
{
	(void)state;
	const char *begun[] = {"a\n", "a\nopen"};
	for (int i = 0; i < 2; i++) {
		struct reader reader;
		set_up();
		log_append("a.log", begun[i]);
		log_append("b.log", "b\n");
		reader_open(&reader, "{\"type\":\"file\",\"path\":\"%s/*.log\",\"follow\":true}", false, memory);
		reader_expect_length(&reader, 4);
		assert_int_equal(truncate(log_path("a.log"), INT64_C(1) << 40), 0);
		int64_t began_ms = weir_monotonic_ms();
		log_append("b.log", "c\n");
		while (!holds(&reader, "c\n") && weir_monotonic_ms() - began_ms < READER_WAIT_MS)
			reader_run(&reader, 2);
		assert_true(weir_monotonic_ms() - began_ms < READER_WAIT_MS / 2);
		reader_expect_problem(&reader, "no further than 1 TiB");
		/* and it goes on once the log is one again */
		assert_int_equal(truncate(log_path("a.log"), 0), 0);
		log_append("a.log", "d\n");
		while (!holds(&reader, "d\n") && weir_monotonic_ms() - began_ms < READER_WAIT_MS)
			reader_run(&reader, 2);
		assert_true(holds(&reader, "d\n"));
		reader_close(&reader);
		tear_down();
	}
}

static void zeros_before_a_line_are_passed_over_and_told(void **state)
{
	(void)state;
	static const char zeros[5000];
	struct reader reader;
	set_up();
	log_append("access.log", "1\n");
	log_write("access.log", O_APPEND, zeros, sizeof zeros);
	log_append("access.log", "2\n");
	reader_open(&reader, one, false, memory);
	reader_expect(&reader, "1\n2\n");
	assert_non_null(strstr(told, "5000 bytes of 0 before position 5002 were passed over"));
	assert_int_equal(truncate(log_path("access.log"), 2 * sizeof zeros), 0);
	log_append("access.log", "3\n");
	reader_expect(&reader, "1\n2\n3\n");
	assert_non_null(strstr(told, "bytes of 0 before position 10000 were passed over"));
	reader_close(&reader);
	tear_down();
}

/* Zeros at the end, as of a crash or of a writer that makes room: told, and what is written there later is read. */
static void zeros_at_the_end_are_told_and_may_become_lines(void **state)
{
	(void)state;
	static const char zeros[70000];
	struct reader reader;
	for (int once = 0; once < 2; once++) {
		set_up();
		log_append("access.log", "1\n");
		log_write("access.log", O_APPEND, zeros, sizeof zeros);
		reader_open(&reader, one, once, memory);
		if (once)
			reader_finish(&reader);
		else
			reader_expect(&reader, "1\n");
		assert_string_equal(reader.text, "1\n");
		assert_non_null(strstr(told, "its last 70000 bytes, from position 2 on, are 0 and hold no line"));
		if (!once) {
			int fd = open(log_path("access.log"), O_WRONLY);
			assert_int_equal(pwrite(fd, "2\n", 2, 2), 2);
			reader_expect(&reader, "1\n2\n");
			assert_int_equal(pwrite(fd, "half", 4, 4), 4);
			reader_run(&reader, 50);
			assert_int_equal(pwrite(fd, " 3\n", 3, 8), 3);
			reader_expect(&reader, "1\n2\nhalf 3\n");
			log_append("access.log", "4\n");
			reader_expect(&reader, "1\n2\nhalf 3\n4\n");
			close(fd);
		}
		reader_close(&reader);
		tear_down();
	}
}

static void lines_that_end_in_carriage_returns_are_told(void **state)
{
	(void)state;
	static const char *const texts[] = {"1\r2\r3\r", "1\r2\r3\n", "1\r\n2\r\n", "open\r"};
	for (int i = 0; i < 8; i++) {
		struct reader reader;
		set_up();
		log_append("access.log", texts[i / 2]);
		reader_open(&reader, one, i % 2 == 0, memory);
		if (i % 2 == 0)
			reader_finish(&reader);
		else
			reader_run(&reader, 50);
		assert_int_equal(strstr(told, "end in carriage returns alone") != NULL, i / 2 == 0);
		reader_close(&reader);
		tear_down();
	}
	/* one that is longer than a line may be */
	struct reader reader;
	set_up();
	for (int i = 0; i < 300; i++)
		log_append("access.log", "a line of text\r");
	reader_open(&reader, one, true, memory);
	reader_finish(&reader);
	assert_non_null(strstr(told, "end in carriage returns alone"));
	reader_close(&reader);
	tear_down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_look_rotated_are_logs),
		cmocka_unit_test(equal_files_are_both_read),
		cmocka_unit_test(a_copy_that_is_left_out_is_told),
		cmocka_unit_test(a_log_that_comes_later_is_one),
		cmocka_unit_test(one_file_in_two_sources_is_refused),
		cmocka_unit_test(an_excluded_file_is_the_other_sources),
		cmocka_unit_test(a_rotation_that_another_source_names_is_read_once),
		cmocka_unit_test(what_is_named_and_excluded_is_refused),
		cmocka_unit_test(a_file_is_excluded_by_any_spelling),
		cmocka_unit_test(a_log_rotated_into_another_directory_is_read_on),
		cmocka_unit_test(a_link_without_a_target_tells_where_to_look),
		cmocka_unit_test(what_a_link_leads_to_is_named),
		cmocka_unit_test(both_of_two_rotations_are_read),
		cmocka_unit_test(what_cannot_be_found_is_told),
		cmocka_unit_test(first_lines_are_seen_without_a_scan),
		cmocka_unit_test(an_endless_line_keeps_nobody_waiting),
		cmocka_unit_test(zeros_before_a_line_are_passed_over_and_told),
		cmocka_unit_test(zeros_at_the_end_are_told_and_may_become_lines),
		cmocka_unit_test(lines_that_end_in_carriage_returns_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
