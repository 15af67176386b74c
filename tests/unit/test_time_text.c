/* SPDX-License-Identifier: Apache-2.0 */
/* Times of log lines: each form, its edges, and what is refused. */
#include "collector/format/format.h"
#include "collector/record/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static struct time_reader reader;

static void use_zone(const char *name)
{
	struct time_zone *zone;
	struct weir_error error;
	time_reader_deinit(&reader);
	if (time_zone_new(name, &zone, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	time_reader_init(&reader, zone);
	reader.takes_form = reader.takes_year = true;
}

#define assert_time(text, expected) assert_time_at(text, expected, __LINE__)

static void assert_time_at(const char *text, int64_t expected, int line)
{
	int64_t ms = -1;
	enum format_reason reason = time_read(&reader, weir_span_of(text), &ms);
	if (reason != FORMAT_OK || ms != expected)
		fail_msg("line %d: \"%s\": %s, %lld instead of %lld", line, text, format_reason_text(reason), (long long)ms,
		         (long long)expected);
}

#define assert_no_time(text, expected) assert_no_time_at(text, expected, __LINE__)

static void assert_no_time_at(const char *text, enum format_reason expected, int line)
{
	int64_t ms;
	enum format_reason reason = time_read(&reader, weir_span_of(text), &ms);
	if (reason != expected)
		fail_msg("line %d: \"%s\": %s instead of %s", line, text, format_reason_text(reason),
		         format_reason_text(expected));
}

static void common_log_dates(void **state)
{
	(void)state;
	use_zone("UTC");
	assert_time("17/May/2015:10:05:03 +0000", 1431857103000);
	assert_time("17/May/2015:10:05:04 +0000", 1431857104000);
	assert_time("17/May/2015:12:05:03 +0200", 1431857103000);
	assert_time("17/May/2015:06:35:03 -0330", 1431857103000);
	assert_time("17/May/2015:10:05:03", 1431857103000);
	assert_time("17/May/2015:10:05:03.999999", 1431857103999);
	assert_time("17/May/2015:10:05:03,5 +0000", 1431857103500);
	assert_time("29/Feb/2000:00:00:00 +0000", 951782400000);
	assert_time("01/Jan/1970:00:00:00 +0000", 0);
	assert_time("31/Dec/9999:23:59:59 +0000", 253402300799000);
	assert_time("31/Dec/2016:23:59:60 +0000", 1483228800000);
	assert_no_time("31/Dec/1969:23:59:59 +0000", FORMAT_TIME_RANGE);
	assert_no_time("31/Dec/9999:23:59:60 +0000", FORMAT_TIME_RANGE);
	assert_no_time("31/Dec/9999:23:59:59 -0001", FORMAT_TIME_RANGE);
	assert_no_time("29/Feb/2100:00:00:00 +0000", FORMAT_BAD_TIME);
	static const char *const bad[] = {
		"00/May/2015:10:05:03 +0000",
		"32/May/2015:10:05:03 +0000",
		"17/may/2015:10:05:03 +0000",
		"17/Mai/2015:10:05:03 +0000",
		"17/May/2015:24:05:03 +0000",
		"17/May/2015:10:60:03 +0000",
		"17/May/2015:10:05:61 +0000",
		"17/May/2015:10:05:03 +2400",
		"17/May/2015:10:05:03 +0060",
		"17/May/2015:10:05:03 0000",
		"17/May/2015:10:05:03 +00:00",
		"17/May/2015:10:05:03 +000",
		"17/May/2015:10:05:03+0000",
		"17/May/2015:10:05:03  +0000",
		"17/May/2015:10:05:03 +0000 ",
		" 17/May/2015:10:05:03 +0000",
		"7/May/2015:10:05:03 +0000",
		"17/May/15:10:05:03 +0000",
		"17/May/2015:10:05:03. +0000",
		"17/May/2015 10:05:03 +0000",
		"17/May/2015:1:05:03 +0000",
		"17/May/2015",
		"17/",
		"17/May/2015:10:05:0:",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_no_time(bad[i], FORMAT_BAD_TIME);
}

static void iso_dates(void **state)
{
	(void)state;
	use_zone("+01:00");
	assert_time("2018-03-24T17:15:20.866586Z", 1521911720866);
	assert_time("2018-03-24T17:15:20Z", 1521911720000);
	assert_time("2018-03-24t17:15:20,866z", 1521911720866);
	assert_time("2018-03-24 17:15:20.1+00", 1521911720100);
	assert_time("2018-03-24 17:15:20 +00:00", 1521911720000);
	assert_time("2018-03-24T19:45:20+02:30", 1521911720000);
	assert_time("2018-03-24T19:45:20+0230", 1521911720000);
	assert_time("2018-03-24T18:15:20", 1521911720000); /* in the reader's zone */
	assert_time("2018/03/24 18:15:20", 1521911720000);
	assert_time("2018-03-24T17:15:20.99999999999999999999Z", 1521911720999);
	assert_no_time("0000-02-29T00:00:00Z", FORMAT_TIME_RANGE);
	assert_no_time("0001-01-01T00:00:00Z", FORMAT_TIME_RANGE);
	assert_no_time("1970-01-01T00:59:59+01:00", FORMAT_TIME_RANGE);
	static const char *const bad[] = {
		"2018-03-24",
		"2018-03-24T17:15",
		"2018-03/24T17:15:20Z",
		"2018-13-24T17:15:20Z",
		"2018-00-24T17:15:20Z",
		"2018-02-29T17:15:20Z",
		"2018-03-24T17:15:20.Z",
		"2018-03-24T17:15:20ZZ",
		"2018-03-24T17:15:20 Z",
		"2018-03-24T17:15:20+1",
		"2018-03-24T17:15:20+01:",
		"2018-03-24T17:15:20+01:0",
		"2018-03-24T17:15:20+01:000",
		"2018-03-24T17:15:20+24",
		"2018-03-24T17:15:20 ",
		"2018-03-24  17:15:20",
		"2018-3-24T17:15:20Z",
		"18-03-24T17:15:20Z",
		"20180324T171520Z",
		"+2018-03-24T17:15:20Z",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_no_time(bad[i], FORMAT_BAD_TIME);
}

static void unix_numbers_in_each_unit(void **state)
{
	(void)state;
	use_zone("+05:00"); /* means nothing to them */
	reader.unit_given = true;
	assert_time("0", 0);
	assert_time("807256800", 807256800000);
	assert_time("807256800.9999", 807256800999);
	assert_time("807256800.0009", 807256800000);
	assert_time("000000000000000000000000000000001", 1000);
	assert_time("253402300799.999", 253402300799999);
	assert_no_time("253402300800", FORMAT_TIME_RANGE);
	assert_no_time("99999999999999999999999999999999999", FORMAT_TIME_RANGE);
	assert_no_time("-1", FORMAT_TIME_RANGE);
	assert_no_time("-0", FORMAT_TIME_RANGE);
	assert_no_time("-", FORMAT_BAD_TIME);
	assert_time("1e9", 1000000000000);
	assert_time("1.7E9", 1700000000000);
	assert_time("1.732173600123456e+09", 1732173600123);
	assert_time("1732173600123e-3", 1732173600123);
	assert_time("0.0017e12", 1700000000000);
	assert_time("0e999999999999", 0);
	assert_no_time("1e99", FORMAT_TIME_RANGE);
	assert_time("1e-99", 0);
	static const char *const no_numbers[] = {"1e", "1e+", "e9", "1e9.5", "1e9e1", ".1e9", "1.e9", "1e 9", "1x9"};
	for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
		assert_no_time(no_numbers[i], FORMAT_BAD_TIME);
	assert_no_time("1.", FORMAT_BAD_TIME);
	assert_no_time("1,5", FORMAT_BAD_TIME);
	assert_no_time(".5", FORMAT_BAD_TIME);
	assert_no_time("1.5.5", FORMAT_BAD_TIME);
	assert_no_time(" 1", FORMAT_BAD_TIME);
	assert_no_time("0x1", FORMAT_BAD_TIME);
	reader.unit = TIME_UNIT_MS;
	assert_time("807256800123.999", 807256800123);
	assert_time("253402300799999", 253402300799999);
	assert_no_time("253402300800000", FORMAT_TIME_RANGE);
	reader.unit = TIME_UNIT_US;
	assert_time("807256800123999", 807256800123);
	assert_time("999", 0);
	assert_no_time("253402300800000000", FORMAT_TIME_RANGE);
	reader.unit = TIME_UNIT_NS;
	assert_time("1714564800123456789", 1714564800123);
	assert_time("253402300799999999999", 253402300799999); /* more than 64 bits */
	assert_time("999999", 0);
	assert_no_time("253402300800000000000", FORMAT_TIME_RANGE);
}

static void a_number_is_a_time_of_this_century(void **state)
{
	(void)state;
	use_zone("UTC");
	assert_time("946684800", 946684800000);
	assert_time("4102444799.999", 4102444799999);
	static const char *const others[] = {"0", "1", "946684799.999", "4102444800", "-5"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_no_time(others[i], FORMAT_TIME_RANGE);
		assert_int_equal(reader.help, TIME_HELP_UNIT);
	}
	assert_non_null(strstr(time_help_words(&reader), "\"unit\""));
	assert_no_time("1715940303133", FORMAT_TIME_RANGE);
	assert_int_equal(reader.help, TIME_HELP_MS);
	assert_no_time("1715940303133721", FORMAT_TIME_RANGE);
	assert_int_equal(reader.help, TIME_HELP_US);
	reader.unit = TIME_UNIT_ANY;
	assert_time("1715940303", 1715940303000);
	assert_time("1715940303.25", 1715940303250);
	assert_time("1715940303133", 1715940303133);
	assert_time("1715940303133999", 1715940303133);
	assert_time("1715940303133999999", 1715940303133);
}

static void times_of_other_shapes(void **state)
{
	(void)state;
	use_zone("+02:00");
	assert_time("Fri May 17 10:05:03.133721 2024", 1715933103133);
	assert_time("Fri May  7 10:05:03 2024", 1715069103000);
	assert_time("May 17 2024 10:05:03", 1715933103000);
	assert_time("May 17 2024 10:05:03.5", 1715933103500);
	assert_no_time("Fri May 32 10:05:03 2024", FORMAT_BAD_TIME);
	assert_no_time("Fri May 17 10:05:03", FORMAT_BAD_TIME);
	assert_no_time("Fri May 17 10:05:03 2024 ", FORMAT_BAD_TIME);
	assert_int_equal(reader.help, TIME_HELP_FORM);
}

static void the_year_is_when_it_was_written(void **state)
{
	(void)state;
	use_zone("UTC");
	assert_no_time("May  1 12:00:00", FORMAT_BAD_TIME);
	assert_int_equal(reader.help, TIME_HELP_YEAR);
	time_reader_set_reference(&reader, 1735693200000);          /* 2025-01-01 01:00 */
	assert_time("Dec 31 23:59:59", 1735689599000);              /* of 2024 */
	assert_time("Jan  1 00:59:59", 1735693199000);              /* of 2025 */
	assert_time("Jan  1 20:00:00", 1735761600000);              /* a zone's difference ahead */
	assert_time("Jan  3 00:00:00", 1704240000000);              /* of 2024: a day ahead is not yet written */
	assert_time("Feb 29 12:00:00", 1709208000000);              /* of 2024 */
	time_reader_set_reference(&reader, 1735689600000 - 600000); /* 2024-12-31 23:50 */
	assert_time("Jan  1 00:05:00", 1735689900000);              /* of 2025: the clocks differ */
	assert_time("Dec 31 23:49:00", 1735688940000);
	time_reader_set_reference(&reader, 1709251200000); /* 2024-03-01 */
	assert_time("Mar  1 00:00:00", 1709251200000);
	assert_time("Mar  5 00:00:00", 1677974400000); /* of 2023 */
	reader.first_year = 2020;
	reader.first_month = 1;
	assert_time("Mar  1 00:00:00", 1583020800000); /* what is said goes before */
}

static void take_form_in(const char *form, const char *zone)
{
	struct weir_error error;
	use_zone(zone);
	if (time_form_new(form, &reader.form, &error) != WEIR_OK)
		fail_msg("%s: %s", form, error.text);
}

static void take_form(const char *form)
{
	take_form_in(form, "+02:00");
}

static void a_form_can_be_described(void **state)
{
	(void)state;
	static const struct {
		const char *form, *text;
		int64_t ms;
	} forms[] = {
		{"%d.%m.%Y %H:%M:%S", "17.05.2024 10:05:03", 1715933103000},
		{"%d.%m.%Y %H:%M:%S.%f", "17.5.2024 10:05:03.133721", 1715933103133},
		{"[%a, %d %b %Y %T %z]", "[Fri, 17 May 2024 10:05:03 +0000]", 1715940303000},
		{"%a, %d %b %Y %T %Z", "Fri, 17 May 2024 10:05:03 GMT", 1715940303000},
		{"%A %B %e %T %Z %Y", "Friday May 17 10:05:03 CEST 2024", 1715933103000},
		{"%m/%d/%y %I:%M:%S %p", "05/17/24 12:05:03 AM", 1715897103000},
		{"%D %l:%M:%S%p", "05/17/24  1:05:03pm", 1715943903000},
		{"%F %R", "2024-05-17 10:05", 1715933100000},
		{"%Y%m%d%H%M%S", "20240517100503", 1715933103000},
		{"%Y.%j-%T", "2024.138-10:05:03", 1715933103000},
		{"%s.%f", "1715940303.133", 1715940303133},
		{"100%% %s", "100% 5", 5000},
		{"%Y-%m-%dT%H:%M:%S%z", "2024-05-17T10:05:03+02:00", 1715933103000},
		{"%Y-%m-%dT%H:%M:%S%z", "2024-05-17T08:05:03Z", 1715933103000},
	};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		char longer[64];
		take_form(forms[i].form);
		assert_time(forms[i].text, forms[i].ms);
		snprintf(longer, sizeof longer, "%s!", forms[i].text);
		assert_no_time(longer, FORMAT_BAD_TIME);
	}
	take_form("%d/%m %H:%M:%S");
	assert_no_time("17/05 10:05:03", FORMAT_BAD_TIME);
	assert_int_equal(reader.help, TIME_HELP_YEAR);
	time_reader_set_reference(&reader, 1715940303000);
	assert_time("17/05 10:05:03", 1715933103000);
	assert_no_time("17/13 10:05:03", FORMAT_BAD_TIME);
	take_form("%Y %j %T");
	assert_no_time("2023 366 10:05:03", FORMAT_BAD_TIME);

	static const char *const refused[] = {"", "%Y-%m-%d", "%H:%M:%S", "%q %s", "%", "%s %", "%E"};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct time_form *form;
		struct weir_error error;
		if (time_form_new(refused[i], &form, &error) == WEIR_OK)
			fail_msg("\"%s\" is taken", refused[i]);
	}
}

static void syslog_dates_need_a_year(void **state)
{
	(void)state;
	use_zone("UTC");
	assert_no_time("May  1 12:00:00", FORMAT_BAD_TIME);
	reader.first_year = 2024;
	reader.first_month = 1;
	assert_time("May  1 12:00:00", 1714564800000);
	assert_time("May 01 12:00:00", 1714564800000);
	assert_time("Feb 29 00:00:00", 1709164800000);
	reader.first_month = 11;
	assert_time("Nov 30 00:00:00", 1732924800000);
	assert_time("Jan 31 00:00:00", 1738281600000); /* of 2025 */
	assert_no_time("Feb 29 00:00:00", FORMAT_BAD_TIME);
	reader.first_month = 1;
	assert_time("May 1 12:00:00", 1714564800000); /* as some write it */
	assert_no_time("May  11 12:00:00", FORMAT_BAD_TIME);
	assert_no_time("May  1 12:00:00 ", FORMAT_BAD_TIME);
	assert_no_time("may  1 12:00:00", FORMAT_BAD_TIME);
	assert_no_time("May  0 12:00:00", FORMAT_BAD_TIME);
}

static void nothing_is_no_time(void **state)
{
	(void)state;
	use_zone("UTC");
	int64_t ms;
	assert_int_equal(time_read(&reader, (struct weir_span){0}, &ms), FORMAT_NO_TIME);
	assert_no_time("", FORMAT_NO_TIME);
	assert_no_time("x", FORMAT_BAD_TIME);
	assert_no_time("yesterday", FORMAT_BAD_TIME);
}

/* The shortcut for the day of the last time says what the whole reading says, whatever came before. */
static void the_remembered_day_is_never_wrong(void **state)
{
	(void)state;
	use_zone("UTC");
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	uint64_t random = 3;
	for (int round = 0; round < 300000; round++) {
		struct tm tm = {0};
		unsigned pick[8];
		for (int i = 0; i < 8; i++) {
			random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			pick[i] = (unsigned)(random >> 40);
		}
		int minutes = (int)(pick[0] % 3) * 330 - 330;
		tm.tm_year = 70 + (int)(pick[1] % 3) * 59; /* 1970, 2029, 2088 */
		tm.tm_mon = (int)(pick[2] % 2) * 11;
		tm.tm_mday = 1 + (int)(pick[3] % 2) * 30;
		tm.tm_hour = (int)(pick[4] % 24);
		tm.tm_min = (int)(pick[5] % 60);
		tm.tm_sec = (int)(pick[6] % 61);
		char text[64];
		snprintf(text, sizeof text, "%02d/%s/%04d:%02d:%02d:%02d %c%02d%02d", tm.tm_mday, months[tm.tm_mon],
		         tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec, minutes < 0 ? '-' : '+', abs(minutes) / 60,
		         abs(minutes) % 60);
		int64_t expected = ((int64_t)timegm(&tm) - minutes * 60) * 1000, ms = -1;
		if (time_read_common(&reader, text, &ms))
			assert_int_equal(ms, expected);
		if (expected < 0)
			assert_no_time(text, FORMAT_TIME_RANGE);
		else
			assert_time(text, expected);
		if (pick[7] % 64 == 0) {
			text[pick[7] / 64 % 26] ^= (char)(1 + pick[7] / 4096 % 255); /* a byte changed is another time or none */
			int64_t quick = -1;
			bool known = time_read_common(&reader, text, &quick);
			enum format_reason reason = time_read(&reader, weir_span_of(text), &ms);
			assert_true(!known || (reason == FORMAT_OK && quick == ms));
		}
	}
}

static int deinit(void **state)
{
	(void)state;
	time_reader_deinit(&reader);
	return 0;
}

/* The end of a day is the begin of the next; the clock shows it with no second behind it. */
static void a_day_may_end_at_24(void **state)
{
	(void)state;
	use_zone("UTC");
	assert_time("2024-02-28T24:00:00Z", 1709164800000);
	assert_time("2024-12-31 24:00:00", 1735689600000);
	assert_time("2024-12-31T24:00:00.000+01:00", 1735686000000);
	assert_time("31/Dec/2024:24:00:00 +0000", 1735689600000);
	assert_time("31/Dec/2024:23:59:59 +0000", 1735689599000);
	assert_no_time("2024-12-31T24:00:01Z", FORMAT_BAD_TIME);
	assert_no_time("2024-12-31T24:01:00Z", FORMAT_BAD_TIME);
	assert_no_time("2024-12-31T24:00:00.001Z", FORMAT_BAD_TIME);
	assert_no_time("2024-12-31T25:00:00Z", FORMAT_BAD_TIME);
	assert_time("2016-12-31T23:59:60.5Z", 1483228800500);
	use_zone("Europe/Berlin");
	assert_time("2024-03-30T24:00:00", 1711839600000);
	take_form("%F %T");
	assert_time("2024-12-31 24:00:00", 1735682400000); /* two hours before that of UTC */
	assert_no_time("2024-12-31 24:00:01", FORMAT_BAD_TIME);
}

/* A zone's name is never taken for another zone: that would shift events by hours. */
static void a_zones_name_means_that_zone(void **state)
{
	(void)state;
	static const struct {
		const char *zone, *text;
		int64_t ms; /* -1: nobody knows the name there */
	} cases[] = {
		{"UTC", "2024-05-17 10:05:03 UTC", 1715940303000},
		{"UTC", "2024-05-17 10:05:03 GMT", 1715940303000},
		{"UTC", "2024-05-17 10:05:03 UT", 1715940303000},
		{"UTC", "2024-05-17 06:05:03 EDT", 1715940303000},
		{"UTC", "2024-05-17 02:05:03 PST", 1715940303000},
		{"UTC", "2024-05-17 12:05:03 CEST", -1},
		{"UTC", "2024-05-17 10:05:03 utc", -1},
		{"Europe/Berlin", "2024-05-17 12:05:03 CEST", 1715940303000},
		{"Europe/Berlin", "2024-05-17 11:05:03 CET", 1715940303000},
		{"Europe/Berlin", "2024-05-17 05:05:03 EST", 1715940303000},
		{"Europe/Berlin", "2024-05-17 13:05:03 MSK", -1},
		/* an hour that exists twice has its name */
		{"Europe/Berlin", "2024-10-27 02:30:00 CEST", 1729989000000},
		{"Europe/Berlin", "2024-10-27 02:30:00 CET", 1729992600000},
		/* the zone's own meaning comes before that of mail, and that of the time before today's */
		{"Asia/Shanghai", "2024-05-17 18:05:03 CST", 1715940303000},
		{"Europe/Moscow", "2024-05-17 13:05:03 MSK", 1715940303000},
		{"Europe/Moscow", "2012-05-17 14:05:03 MSK", 1337249103000},
		{"America/New_York", "2024-05-17 06:05:03 EDT", 1715940303000},
		/* an offset is said for all of them */
		{"+08:00", "2024-05-17 18:05:03 SGT", 1715940303000},
		{"+08:00", "2024-05-17 18:05:03 CST", 1715940303000},
		{"+08:00", "2024-05-17 10:05:03 GMT", 1715940303000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		take_form_in("%F %T %Z", cases[i].zone);
		if (cases[i].ms >= 0) {
			assert_time(cases[i].text, cases[i].ms);
			continue;
		}
		assert_no_time(cases[i].text, FORMAT_BAD_TIME);
		assert_int_equal(reader.help, TIME_HELP_ZONE);
		assert_non_null(strstr(time_help_words(&reader), "\"time_zone\""));
	}
}

/* What is there already is not asked for. */
static void help_names_what_helps(void **state)
{
	(void)state;
	static const struct {
		const char *form, *text, *words;
		bool unit_given, takes_form, takes_year;
	} cases[] = {
		{NULL, "yesterday", "describe it by \"time_format\"", .takes_form = true},
		{.text = "yesterday", .words = "a form that this format does not have"},
		{"%F %T", "yesterday", "form that \"time_format\" describes", .takes_form = true},
		{NULL, "2024-02-30 10:00:00", "does not exist", .takes_form = true},
		{"%F %T", "2024-02-30 10:00:00", "does not exist", .takes_form = true},
		{NULL, "0001-01-01 00:00:00", "before 1970", .takes_form = true},
		{NULL, "5", "say \"unit\"", .takes_form = true},
		{NULL, "1715940303133", "say \"unit\": \"ms\"", .takes_form = true},
		{.text = "1715940303133", .words = "outside 2000 to 2100"},
		{NULL, "-5", "is the \"unit\" right?", .takes_form = true, .unit_given = true},
		{NULL, "1715940303133", "is the \"unit\" right?", .takes_form = true, .unit_given = true},
		{NULL, "May  1 12:00:00", "say \"year\"", .takes_form = true, .takes_year = true},
		{.text = "May  1 12:00:00", .words = "a form that this format does not have"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t ms;
		use_zone("UTC");
		if (cases[i].form != NULL)
			take_form_in(cases[i].form, "UTC");
		reader.unit_given = cases[i].unit_given;
		reader.takes_form = cases[i].takes_form;
		reader.takes_year = cases[i].takes_year;
		assert_int_not_equal(time_read(&reader, weir_span_of(cases[i].text), &ms), FORMAT_OK);
		if (strstr(time_help_words(&reader), cases[i].words) == NULL)
			fail_msg("%s: %s", cases[i].text, time_help_words(&reader));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_may_end_at_24),
		cmocka_unit_test(a_zones_name_means_that_zone),
		cmocka_unit_test(help_names_what_helps),
		cmocka_unit_test(common_log_dates),
		cmocka_unit_test(iso_dates),
		cmocka_unit_test(unix_numbers_in_each_unit),
		cmocka_unit_test(syslog_dates_need_a_year),
		cmocka_unit_test(a_number_is_a_time_of_this_century),
		cmocka_unit_test(times_of_other_shapes),
		cmocka_unit_test(the_year_is_when_it_was_written),
		cmocka_unit_test(a_form_can_be_described),
		cmocka_unit_test(nothing_is_no_time),
		cmocka_unit_test(the_remembered_day_is_never_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, deinit);
}
