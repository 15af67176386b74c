/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: their form for people and as JSON, one write each, and a fault logged once. */
#include "common/json/json.h"
#include "common/log/log.h"

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

static void a_fault_is_logged_once_and_once_when_over(void **state)
{
	(void)state;
	struct weir_log log = {.fd = pipe_ends[1]};
	struct weir_fault fault = {0};
	weir_fault_clear(&fault, &log, "store");
	for (int i = 0; i < 5; i++)
		weir_fault_raise(&fault, &log, "store", "cannot write: %s", "no room");
	assert_string_equal(" WARNING store: cannot write: no room\n", read_once() + 24);
	weir_fault_raise(&fault, &log, "store", "cannot write: %s", "broken");
	assert_string_equal(" WARNING store: cannot write: broken\n", read_once() + 24);
	weir_fault_clear(&fault, &log, "store");
	assert_string_equal(" INFO store: recovered after 6 failed tries: cannot write: broken\n", read_once() + 24);
	weir_fault_clear(&fault, &log, "store");
	weir_fault_raise(&fault, &log, "store", "cannot write: %s", "broken");
	assert_string_equal(" WARNING store: cannot write: broken\n", read_once() + 24);
	weir_fault_clear(&fault, &log, "store");
	assert_string_equal(" INFO store: recovered after 1 failed try: cannot write: broken\n", read_once() + 24);
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
		cmocka_unit_test_setup_teardown(a_fault_is_logged_once_and_once_when_over, setup, teardown),
	};
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
