/* SPDX-License-Identifier: Apache-2.0 */
/* When the times of a log count as other ones than the clock's, and what is said to help. */
#include "collector/follow/clock_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

/* A line a second, by `step_ms` less behind each time. @return by how much it is found to be behind at last */
static int64_t watched(int64_t behind_ms, int64_t step_ms, int seconds)
{
	struct clock_watch watch = {0};
	for (int i = 0; i < seconds; i++)
		(void)clock_watch_add(&watch, behind_ms - i * step_ms, 1 + i * SECOND);
	return watch.behind_ms;
}

static void a_log_that_is_steadily_off_is_found(void **state)
{
	(void)state;
	assert_int_equal(0, watched(5 * HOUR, 0, 50));
	assert_int_equal(5 * HOUR, watched(5 * HOUR, 0, 70));
	assert_int_equal(-2 * HOUR, watched(-2 * HOUR, 0, 70));
	assert_int_equal(0, watched(29 * MINUTE, 0, 700));
	assert_int_equal(0, watched(-29 * MINUTE, 0, 700));
}

static void a_backlog_is_none(void **state)
{
	(void)state;
	assert_int_equal(0, watched(5 * HOUR, SECOND, 3600)); /* read at twice the clock's speed */
	assert_int_equal(0, watched(300 * HOUR, 5 * MINUTE, 3600));
}

static void long_requests_are_none(void **state)
{
	(void)state;
	struct clock_watch watch = {0};
	for (int i = 0; i < 600; i++) /* one line in ten is of the clock, the others have when they began */
		(void)clock_watch_add(&watch, i % 10 == 0 ? 20 : (i % 7 + 1) * HOUR, 1 + i * SECOND);
	assert_int_equal(0, watch.behind_ms);
}

static void a_quiet_log_is_found_too_and_is_right_at_once(void **state)
{
	(void)state;
	struct clock_watch watch = {0};
	for (int i = 0; i < 6; i++)
		(void)clock_watch_add(&watch, 3 * HOUR + i, 1 + i * HOUR);
	assert_int_equal(3 * HOUR + 1, watch.behind_ms + 1);
	assert_false(clock_watch_add(&watch, 0, 7 * HOUR));
	assert_true(clock_watch_add(&watch, 0, 8 * HOUR));
	assert_int_equal(0, watch.behind_ms);
}

/* A format that has read a line. @param options  further ones, such as "\"time_zone\":…" */
static struct format *format_of(const char *options, const char *line)
{
	struct weir_field_table fields;
	struct format *format;
	struct weir_error error;
	struct weir_record record;
	char text[256];
	snprintf(text, sizeof text, "{\"type\":\"sshd\"%s}", options);
	json_t *config = json_loads(text, 0, NULL);
	struct weir_json at = {.value = config, .path = "format"};
	weir_field_table_init(&fields);
	assert_int_equal(WEIR_OK, format_new(&at, &fields, &format, &error));
	format_set_reference(format, INT64_C(1717236000000)); /* 2024-06-01T10:00:00Z */
	if (line != NULL)
		assert_int_equal(FORMAT_OK, format_parse(format, line, (uint32_t)strlen(line), &record));
	json_decref(config);
	weir_field_table_deinit(&fields);
	return format;
}

static const char local[] = "Jun  1 05:00:00 h sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2";
static const char zoned[] = "2024-06-01T05:00:00Z h sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2";

static void advises(const char *options, const char *line, int64_t behind_ms, const char *words)
{
	struct format *format = format_of(options, line);
	struct weir_text text = {0};
	clock_watch_advice(&text, format, behind_ms);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at, words));
	weir_text_deinit(&text);
	format_free(format);
}

static void the_zone_is_named_where_it_may_be_one(void **state)
{
	(void)state;
	advises("", local, 5 * HOUR + 3 * SECOND, "\"time_zone\": \"-05:00\"");
	advises("", local, -(5 * HOUR + 45 * MINUTE), "\"time_zone\": \"+05:45\"");
	advises(",\"time_zone\":\"Europe/Berlin\"", local, 2 * HOUR, "\"time_zone\": \"+00:00\"");
	advises(",\"time_zone\":\"+02:00\"", local, -HOUR, "\"time_zone\": \"+03:00\"");
	advises("", local, 5 * HOUR + 7 * MINUTE, "Correct the clock");
	advises("", local, INT64_C(900) * HOUR, "Correct the clock");
	advises("", zoned, 5 * HOUR, "Correct the clock");
}

static void a_difference_is_said_in_hours(void **state)
{
	(void)state;
	static const struct {
		int64_t behind_ms;
		const char *words;
	} cases[] = {{5 * HOUR + 100, "5 h behind"},
	             {-(5 * HOUR + 30 * MINUTE), "5 h 30 min ahead of"},
	             {45 * MINUTE, "45 min behind"},
	             {72 * HOUR, "3 days behind"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_text text = {0};
		clock_watch_words(&text, cases[i].behind_ms);
		weir_text_append(&text, "", 1);
		assert_string_equal(cases[i].words, text.at);
		weir_text_deinit(&text);
	}
}

/* @param count  of equal lines @return by how much a file at rest is behind its last change; 0: nothing is known */
static int64_t at_rest(const char *options, const char *line, size_t count, int64_t changed_s)
{
	char path[] = "/tmp/weir-clock-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (size_t i = 0; i < count; i++)
		assert_true(dprintf(fd, "%s\n", line) > 0);
	struct timespec times[2] = {{.tv_sec = changed_s}, {.tv_sec = changed_s}};
	assert_int_equal(0, futimens(fd, times));
	close(fd);
	struct format *format = format_of(options, NULL);
	int64_t behind_ms = 0;
	if (!clock_watch_file(format, path, &behind_ms))
		behind_ms = 0;
	format_free(format);
	unlink(path);
	return behind_ms;
}

static void a_file_at_rest_tells_by_its_last_change(void **state)
{
	(void)state;
	const int64_t five = 1717218000, hour = 3600; /* 2024-06-01T05:00:00Z */
	assert_int_equal(5 * HOUR + 2 * SECOND, at_rest("", local, 3, five + 5 * hour + 2));
	assert_int_equal(5 * HOUR, at_rest("", local, 5000, five + 5 * hour)); /* more than is looked at */
	assert_int_equal(-2 * HOUR, at_rest("", local, 3, five - 2 * hour));
	assert_int_equal(0, at_rest("", local, 3, five + 5 * hour + 40));
	assert_int_equal(0, at_rest("", local, 3, five + 1));
	assert_int_equal(0, at_rest(",\"time_zone\":\"-05:00\"", local, 3, five + 5 * hour));
	assert_int_equal(0, at_rest("", zoned, 3, five + 5 * hour));
	assert_int_equal(0, at_rest("", "nothing that it knows", 3, five + 5 * hour));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_that_is_steadily_off_is_found),
		cmocka_unit_test(a_backlog_is_none),
		cmocka_unit_test(long_requests_are_none),
		cmocka_unit_test(a_quiet_log_is_found_too_and_is_right_at_once),
		cmocka_unit_test(the_zone_is_named_where_it_may_be_one),
		cmocka_unit_test(a_difference_is_said_in_hours),
		cmocka_unit_test(a_file_at_rest_tells_by_its_last_change),
	};
	return cmocka_run_group_tests_name("clock watch", tests, NULL, NULL);
}
