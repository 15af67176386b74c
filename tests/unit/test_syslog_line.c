/* SPDX-License-Identifier: Apache-2.0 */
/* Heads completed: the year by the clock, the zone by the configuration, and everything whole left as it is. */
#include "collector/source/syslog/syslog_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NEW_YEAR_2024_MS INT64_C(1704067200000)
#define DAY INT64_C(86400000)

static struct syslog_line make(const char *zone_name)
{
	struct syslog_line line;
	struct time_zone *zone;
	struct weir_error error;
	assert_int_equal(time_zone_new(zone_name, &zone, &error), WEIR_OK);
	syslog_line_init(&line, zone);
	return line;
}

static void expect_bytes(struct syslog_line *line, int64_t now_ms, struct weir_span message, bool good,
                         const char *expected)
{
	struct weir_text text = {0};
	assert_int_equal(syslog_line_put(line, message, now_ms, &text), good);
	weir_text_append(&text, "", 1);
	assert_string_equal(text.at, expected);
	weir_text_deinit(&text);
}

static void expect(struct syslog_line *line, int64_t now_ms, const char *message, const char *expected)
{
	expect_bytes(line, now_ms, weir_span_of(message), true, expected);
}

static void whole_heads_stay_as_they_are(void **state)
{
	(void)state;
	struct syslog_line line = make("UTC");
	expect(&line, 0, "<34>1 2003-10-11T22:14:15.003Z host su - ID47 - x",
	       "<34>1 2003-10-11T22:14:15.003Z host su - ID47 - x\n");
	expect(&line, 0, "<34>1 2003-10-11T22:14:15.003Z h a - - - two\nlines\n\n",
	       "<34>1 2003-10-11T22:14:15.003Z h a - - - two lines\n");
	syslog_line_deinit(&line);
}

static void the_year_is_the_nearest(void **state)
{
	(void)state;
	struct syslog_line line = make("UTC");
	static const char december[] = "<34>Dec 31 23:59:59 host su[1]: x", january[] = "<34>Jan  1 00:00:01 host su[1]: x";
	expect(&line, NEW_YEAR_2024_MS, december, "<34>1 2023-12-31T23:59:59.000Z host su 1 - - x\n");
	expect(&line, NEW_YEAR_2024_MS, january, "<34>1 2024-01-01T00:00:01.000Z host su 1 - - x\n");
	expect(&line, NEW_YEAR_2024_MS - 1, january, "<34>1 2024-01-01T00:00:01.000Z host su 1 - - x\n");
	expect(&line, NEW_YEAR_2024_MS - 1, december, "<34>1 2023-12-31T23:59:59.000Z host su 1 - - x\n");
	expect(&line, NEW_YEAR_2024_MS + 366 * DAY, december, "<34>1 2024-12-31T23:59:59.000Z host su 1 - - x\n");
	expect(&line, NEW_YEAR_2024_MS + 100 * DAY, "<34>Feb 29 12:00:00 host su: x",
	       "<34>1 2024-02-29T12:00:00.000Z host su - - - x\n");
	expect(&line, NEW_YEAR_2024_MS + 400 * DAY, "<34>Feb 29 12:00:00 host su: x",
	       "<34>1 2024-02-29T12:00:00.000Z host su - - - x\n");
	/* 2022 has no such day, nor have its neighbours */
	expect_bytes(&line, NEW_YEAR_2024_MS - 600 * DAY, weir_span_of("<34>Feb 29 12:00:00 host su: x"), false,
	             "<34>Feb 29 12:00:00 host su: x\n");
	syslog_line_deinit(&line);
}

static void a_time_without_a_zone_is_of_the_configured_one(void **state)
{
	(void)state;
	struct syslog_line line = make("+02:00");
	expect(&line, NEW_YEAR_2024_MS, "<34>Jan  1 01:30:00 host su: x",
	       "<34>1 2023-12-31T23:30:00.000Z host su - - - x\n");
	expect(&line, NEW_YEAR_2024_MS, "<34>2024-01-01T01:30:00.5 host su: x",
	       "<34>1 2023-12-31T23:30:00.500Z host su - - - x\n");
	expect(&line, NEW_YEAR_2024_MS, "<34>2024-01-01T01:30:00.5Z host su: x",
	       "<34>1 2024-01-01T01:30:00.500Z host su - - - x\n");
	syslog_line_deinit(&line);
}

static void what_is_missing_is_put_in(void **state)
{
	(void)state;
	struct syslog_line line = make("UTC");
	int64_t now_ms = NEW_YEAR_2024_MS + 123;
	expect(&line, now_ms, "<34>su: x", "<34>1 2024-01-01T00:00:00.123Z - su - - - x\n");
	expect(&line, now_ms, "<34>1 - h a p m [x y=\"z\"] text",
	       "<34>1 2024-01-01T00:00:00.123Z h a p m [x y=\"z\"] text\n");
	expect(&line, now_ms, "Jan  1 00:00:00 h a: x", "<13>1 2024-01-01T00:00:00.000Z h a - - - x\n");
	expect(&line, now_ms, "<34>Jan  1 00:00:00 h a: two\nlines\n",
	       "<34>1 2024-01-01T00:00:00.000Z h a - - - two lines\n");
	syslog_line_deinit(&line);
}

/* A year is kept, a zone is its own, and a clock that is not set says nothing. */
static void times_of_cisco(void **state)
{
	(void)state;
	struct syslog_line line = make("+02:00");
	int64_t now_ms = NEW_YEAR_2024_MS + 123;
	expect(&line, now_ms, "<166>Oct 11 2022 22:14:15 fw1 : %ASA-6-302013: Built x",
	       "<166>1 2022-10-11T20:14:15.000Z fw1 %ASA-6-302013 - - - Built x\n");
	expect(&line, now_ms, "<166>Oct 11 2022 22:14:15: %ASA-6-302013: Built x",
	       "<166>1 2022-10-11T20:14:15.000Z - %ASA-6-302013 - - - Built x\n");
	expect(&line, now_ms, "<189>12: Dec 31 22:14:15.5 UTC: %SYS-5-X: x",
	       "<189>1 2023-12-31T22:14:15.500Z - %SYS-5-X - - - x\n");
	expect(&line, now_ms, "<189>12: r: .Dec 31 22:14:15.5: %SYS-5-X: x",
	       "<189>1 2023-12-31T20:14:15.500Z r %SYS-5-X - - - x\n");
	expect(&line, now_ms, "<189>12: r: *Mar  1 22:14:15.5: %SYS-5-X: x",
	       "<189>1 2024-01-01T00:00:00.123Z r %SYS-5-X - - - x\n");
	syslog_line_deinit(&line);
}

static void what_has_no_head_stays_as_it_is(void **state)
{
	(void)state;
	struct syslog_line line = make("UTC");
	expect_bytes(&line, 0, weir_span_of("no head\nat all\r\n"), false, "no head at all\n");
	expect_bytes(&line, 0, weir_span_of("<34>1 2003-10-11T22:14:15.003Z host"), false,
	             "<34>1 2003-10-11T22:14:15.003Z host\n");
	expect_bytes(&line, 0, weir_span_of("<34>1 2003-10-11T25:14:15.003Z host a - - - x"), false,
	             "<34>1 2003-10-11T25:14:15.003Z host a - - - x\n");
	expect_bytes(&line, 0, weir_span_of("\n\r\n"), false, "");
	expect_bytes(&line, 0, (struct weir_span){.at = "a\0b\0\0", .length = 5}, false, "a");
	syslog_line_deinit(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_heads_stay_as_they_are),
		cmocka_unit_test(the_year_is_the_nearest),
		cmocka_unit_test(a_time_without_a_zone_is_of_the_configured_one),
		cmocka_unit_test(what_is_missing_is_put_in),
		cmocka_unit_test(times_of_cisco),
		cmocka_unit_test(what_has_no_head_stays_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
