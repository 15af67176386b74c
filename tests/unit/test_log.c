/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: their form for people and as JSON, one write each, and troubles that last: told, repeated, over, and never a flood. */
#include "common/json/json.h"
#include "common/log/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int pipe_ends[2];

static int setup(void **state)
{
	(void)state;
	return pipe(pipe_ends);
}

static int teardown(void **state)
{
	(void)state;
	close(pipe_ends[0]);
	return close(pipe_ends[1]);
}

/* What one read finds: what one write put there. */
static char *read_once(void)
{
	static char line[8192];
	ssize_t length = read(pipe_ends[0], line, sizeof line - 1);
	assert_true(length >= 0);
	line[length] = '\0';
	return line;
}

static void a_line_has_time_level_part_and_words(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1], .level = WEIR_LOG_DEBUG};
	weir_log(&log, WEIR_LOG_WARNING, "limiter", "%d partitions", 16);
	char *line = read_once();
	int year, month, day, hour, minute, second, millisecond, used = 0;
	assert_int_equal(7, sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour, &minute, &second,
	                           &millisecond, &used));
	assert_int_equal(24, used);
	assert_string_equal(" WARNING limiter: 16 partitions\n", line + used);
}

static void control_characters_become_spaces(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1]};
	weir_log(&log, WEIR_LOG_INFO, "collector", "%s",
	         "one\ntwo\x1b[31m\r\x7f\xc2\x9b"
	         "2J\xc2\xa0");
	char *line = read_once();
	assert_string_equal(" INFO collector: one two [31m   2J\xc2\xa0\n", line + 24);
}

static void json_lines_are_json(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1], .json = true};
	weir_log(&log, WEIR_LOG_ERROR, "bus", "\"%s\" \xff", "a\\b\nc");
	char *line = read_once();
	struct weir_json_document *document = NULL;
	assert_int_equal(WEIR_OK, weir_json_parse("line", line, strlen(line), &document, NULL));
	struct weir_json root = weir_json_root(document);
	assert_string_equal("error", json_string_value(json_object_get(root.value, "level")));
	assert_string_equal("bus", json_string_value(json_object_get(root.value, "part")));
	assert_string_equal("\"a\\b c\" \xEF\xBF\xBD", json_string_value(json_object_get(root.value, "message")));
	assert_int_equal(24, json_string_length(json_object_get(root.value, "time")));
	weir_json_document_free(document);
}

static void an_unfinished_line_is_taken_off_first(void **state)
{
	(void)state;
	_Atomic bool unfinished = true;
	struct weir_log log = {.fd = pipe_ends[1], .unfinished = &unfinished};
	weir_log(&log, WEIR_LOG_INFO, "x", "this");
	assert_memory_equal("\r\033[K2", read_once(), 5);
	unfinished = false;
	weir_log(&log, WEIR_LOG_INFO, "x", "this");
	assert_int_equal('2', read_once()[0]);
}

static void lower_levels_are_left_out(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1], .level = WEIR_LOG_WARNING};
	weir_log(&log, WEIR_LOG_INFO, "x", "not this");
	weir_log(&log, WEIR_LOG_WARNING, "x", "this");
	assert_non_null(strstr(read_once(), "x: this\n"));
}

static void long_words_are_cut_to_what_a_pipe_takes_whole(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1]};
	char *words = malloc(10000);
	memset(words, 'w', 9999);
	words[9999] = '\0';
	weir_log(&log, WEIR_LOG_INFO, "x", "%s", words);
	char *line = read_once();
	assert_in_range(strlen(line), 2000, 4096);
	assert_int_equal('\n', line[strlen(line) - 1]);
	free(words);
}

enum { THREADS = 4, LINES = 200 };

static void *say_lines(void *context)
{
	for (int i = 0; i < LINES; i++)
		weir_log(context, WEIR_LOG_INFO, "part",
		         "a line of a hundred bytes or so, from one of several threads, unmixed");
	return NULL;
}

static void lines_of_several_threads_do_not_mix(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1]};
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(0, pthread_create(&threads[i], NULL, say_lines, &log));
	FILE *lines = fdopen(dup(pipe_ends[0]), "r");
	char line[512];
	for (int i = 0; i < THREADS * LINES; i++) {
		assert_non_null(fgets(line, sizeof line, lines));
		assert_string_equal(" INFO part: a line of a hundred bytes or so, from one of several threads, unmixed\n",
		                    line + 24);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fclose(lines);
}

/* ---- troubles that last, by a clock of the test ---- */

static int64_t now_ms;

static int64_t test_clock_ms(void)
{
	return now_ms;
}

static struct weir_log log_by_test_clock(void)
{
	now_ms = 5000;
	assert_int_equal(0, fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK));
	return (struct weir_log){.fd = pipe_ends[1], .clock_ms = test_clock_ms};
}

/* What has been logged, without the times; "" for nothing. */
static const char *said(void)
{
	static char lines[65536], all[65536];
	ssize_t length = read(pipe_ends[0], all, sizeof all - 1);
	lines[0] = '\0';
	if (length <= 0)
		return lines;
	all[length] = '\0';
	for (char *line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n"))
		snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line + 25);
	return lines;
}

static int count_lines(void)
{
	int count = 0;
	for (const char *at = said(); (at = strchr(at, '\n')) != NULL; at++)
		count++;
	return count;
}

static void a_fault_is_told_once_and_once_when_over(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_fault fault = {0};
	weir_fault_clear(&fault, &log, "store");
	for (int i = 0; i < 5; i++, now_ms += 1000)
		weir_fault_raise(&fault, &log, "store", "cannot write: %s", "no room");
	assert_string_equal("WARNING store: cannot write: no room\n", said());
	weir_fault_raise(&fault, &log, "store", "cannot write: %s. Make room", "broken");
	assert_string_equal("WARNING store: cannot write: broken. Make room\n", said());
	now_ms += 93000;
	weir_fault_clear(&fault, &log, "store");
	assert_string_equal("INFO store: recovered after 1 min 38 s (6 attempts): this is over: cannot write: broken\n",
	                    said());
	weir_fault_clear(&fault, &log, "store");
	assert_string_equal("", said());
	weir_fault_raise_at(&fault, &log, WEIR_LOG_ERROR, "store", "cannot write: %s", "broken");
	assert_string_equal("ERROR store: cannot write: broken\n", said());
	weir_fault_over(&fault, &log, "store", "%s has room again", "/var");
	assert_string_equal("INFO store: recovered after 0 s (1 attempt): /var has room again\n", said());
}

static void a_fault_is_repeated_with_its_age(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_fault fault = {0};
	weir_fault_remind(&fault, &log, "bus");
	assert_string_equal("", said());
	weir_fault_raise(&fault, &log, "bus", "no broker answers");
	assert_string_equal("WARNING bus: no broker answers\n", said());
	for (int s = 0; s < 599; s++, now_ms += 1000)
		weir_fault_raise(&fault, &log, "bus", "no broker answers");
	assert_string_equal("", said());
	now_ms += 1000;
	weir_fault_raise(&fault, &log, "bus", "no broker answers");
	assert_string_equal("WARNING bus: for 10 min: no broker answers\n", said());
	now_ms += 600000;
	weir_fault_remind(&fault, &log, "bus"); /* nobody retries it: its owner's loop reminds */
	assert_string_equal("WARNING bus: for 20 min: no broker answers\n", said());
	weir_fault_remind(&fault, &log, "bus");
	assert_string_equal("", said());
}

static void words_that_differ_in_figures_are_the_same_fault(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_fault fault = {0};
	for (int i = 5; i < 2000; i += 7)
		weir_fault_raise(&fault, &log, "memory", "the index takes %d MB", i);
	assert_string_equal("WARNING memory: the index takes 5 MB\n", said());
	weir_fault_raise(&fault, &log, "memory", "the index takes %d MB of 16", 4);
	assert_string_equal("WARNING memory: the index takes 4 MB of 16\n", said());
	now_ms += 600000; /* what is repeated are the newest figures */
	weir_fault_raise(&fault, &log, "memory", "the index takes %d MB of 16", 3000);
	assert_string_equal("WARNING memory: for 10 min: the index takes 3000 MB of 16\n", said());
}

static void a_fault_that_comes_and_goes_does_not_flood(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_fault fault = {0};
	for (int s = 0; s < 3600; s++, now_ms += 1000) {
		weir_fault_raise(&fault, &log, "store", "gone");
		weir_fault_clear(&fault, &log, "store");
	}
	assert_in_range(count_lines(), 12, 2 * (6 + 60));
	weir_fault_raise(&fault, &log, "store", "gone"); /* that it stays now is told, if late */
	(void)said();
	now_ms += 60000;
	weir_fault_raise(&fault, &log, "store", "gone");
	assert_string_equal("WARNING store: for 1 min: gone\n", said());
}

static void words_that_always_change_do_not_flood(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_fault fault = {0};
	for (int s = 0; s < 3600; s++, now_ms += 1000)
		weir_fault_raise(&fault, &log, "store", "gone %c%c", 'a' + s % 26, 'a' + s / 26 % 26);
	assert_in_range(count_lines(), 6, 6 + 60);
}

static void what_happens_again_and_again_is_counted(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_notice notice = {0};
	for (int i = 0; i < 100; i++)
		weir_notice_log(&notice, &log, WEIR_LOG_WARNING, "limiter", "skipped offset %d", i);
	assert_int_equal(6, count_lines());
	now_ms += 60000;
	for (int i = 100; i < 200; i++)
		weir_notice_log(&notice, &log, WEIR_LOG_WARNING, "limiter", "skipped offset %d", i);
	assert_string_equal("WARNING limiter: skipped offset 100 (and 94 more like it since the last such line)\n", said());
}

static void what_lasts_and_nobody_else_tells_is_told(void **state)
{
	(void)state;
	struct weir_log log = log_by_test_clock();
	struct weir_lasting lasting = {0};
	for (int i = 0; i < 50; i++, now_ms += 100)
		assert_false(weir_lasting_failed(&lasting, &log, false));
	assert_true(weir_lasting_failed(&lasting, &log, false));
	assert_false(weir_lasting_failed(&lasting, &log, true)); /* the bus tells it by now */
	now_ms += 4000;
	assert_false(weir_lasting_failed(&lasting, &log, false));
	weir_lasting_worked(&lasting);
	now_ms += 4000;
	assert_false(weir_lasting_failed(&lasting, &log, false));
}

static void ages_are_in_words(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		const char *text;
	} ages[] = {
		{0, "0 s"},       {59999, "59 s"},          {60000, "1 min"},  {98000, "1 min 38 s"}, {601000, "10 min"},
		{3600000, "1 h"}, {22200000, "6 h 10 min"}, {86400000, "1 d"}, {266400000, "3 d 2 h"}};
	char text[WEIR_AGE_BYTES];
	for (size_t i = 0; i < sizeof ages / sizeof *ages; i++)
		assert_string_equal(ages[i].text, weir_age(ages[i].ms, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_time_level_part_and_words, setup, teardown),
		cmocka_unit_test_setup_teardown(control_characters_become_spaces, setup, teardown),
		cmocka_unit_test_setup_teardown(json_lines_are_json, setup, teardown),
		cmocka_unit_test_setup_teardown(an_unfinished_line_is_taken_off_first, setup, teardown),
		cmocka_unit_test_setup_teardown(lower_levels_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(long_words_are_cut_to_what_a_pipe_takes_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_of_several_threads_do_not_mix, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fault_is_told_once_and_once_when_over, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fault_is_repeated_with_its_age, setup, teardown),
		cmocka_unit_test_setup_teardown(words_that_differ_in_figures_are_the_same_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fault_that_comes_and_goes_does_not_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(words_that_always_change_do_not_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(what_happens_again_and_again_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lasts_and_nobody_else_tells_is_told, setup, teardown),
		cmocka_unit_test(ages_are_in_words),
	};
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
