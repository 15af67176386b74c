/* SPDX-License-Identifier: Apache-2.0 */
/* Zones: fixed offsets, tzdata's history and rules, doubled and missing hours, and files that are no zone. */
#include "collector/record/time_zone.h"

#include "collector/record/time_civil.h"
#include "collector/record/time_zone_rule.h"
#include "tests/unit/scratch.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static struct time_zone *zone_of(const char *name)
{
	struct time_zone *zone;
	struct weir_error error;
	if (time_zone_new(name, &zone, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return zone;
}

static int64_t local_of(int year, int month, int day, int hour, int minute)
{
	return civil_days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60;
}

static int32_t offset_at(const struct time_zone *zone, int64_t local_s)
{
	struct time_zone_span span = time_zone_find(zone, local_s);
	assert_true(span.from_s <= local_s && local_s < span.to_s);
	return span.offset_s;
}

static void fixed_offsets(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int32_t offset_s;
	} zones[] = {{"UTC", 0},       {"Z", 0},        {"+02:00", 7200}, {"-03:30", -12600},
	             {"+0545", 20700}, {"-11", -39600}, {"+23:59", 86340}};
	for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
		struct time_zone *zone = zone_of(zones[i].name);
		assert_int_equal(offset_at(zone, 0), zones[i].offset_s);
		assert_int_equal(offset_at(zone, local_of(9999, 12, 31, 23, 59)), zones[i].offset_s);
		time_zone_free(zone);
	}
}

static void names_that_are_no_zone(void **state)
{
	(void)state;
	static const char *const names[] = {"",
	                                    "+24:00",
	                                    "+1",
	                                    "+02:",
	                                    "+02:0",
	                                    "+02:60",
	                                    "+02:000",
	                                    "2:00",
	                                    "Europe/Nowhere",
	                                    "../../etc/passwd",
	                                    "/etc/localtime",
	                                    ".",
	                                    "Europe/../Europe/Berlin",
	                                    "Europe//Berlin",
	                                    "Europe/",
	                                    "Europe",
	                                    "tzdata.zi",
	                                    "zone.tab",
	                                    "UTC\n"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct time_zone *zone;
		struct weir_error error = {0};
		if (time_zone_new(names[i], &zone, &error) == WEIR_OK)
			fail_msg("\"%s\" is taken for a zone", names[i]);
		assert_true(error.text[0] != '\0');
	}
}

static void doubled_hours_are_the_earlier_and_missing_ones_go_on(void **state)
{
	(void)state;
	struct time_zone *zone = zone_of("Europe/Berlin");
	assert_int_equal(offset_at(zone, local_of(2024, 1, 15, 12, 0)), 3600);
	assert_int_equal(offset_at(zone, local_of(2024, 7, 15, 12, 0)), 7200);
	/* 2024-03-31: 01:59 is followed by 03:00; what does not exist is read with the offset before */
	assert_int_equal(offset_at(zone, local_of(2024, 3, 31, 1, 59)), 3600);
	assert_int_equal(offset_at(zone, local_of(2024, 3, 31, 2, 30)), 3600);
	assert_int_equal(offset_at(zone, local_of(2024, 3, 31, 3, 0)), 7200);
	/* 2024-10-27: 02:59 is followed by 02:00; the hour is the first of the two */
	assert_int_equal(offset_at(zone, local_of(2024, 10, 27, 2, 0)), 7200);
	assert_int_equal(offset_at(zone, local_of(2024, 10, 27, 2, 59)), 7200);
	assert_int_equal(offset_at(zone, local_of(2024, 10, 27, 3, 0)), 3600);
	/* by the rule, far from any recorded change */
	assert_int_equal(offset_at(zone, local_of(2799, 7, 15, 12, 0)), 7200);
	assert_int_equal(offset_at(zone, local_of(9999, 7, 15, 12, 0)), 7200);
	assert_int_equal(offset_at(zone, local_of(9999, 12, 15, 12, 0)), 3600);
	time_zone_free(zone);
}

static void local_times_that_exist_twice_are_told(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int year, month, day, hour, minutes; /* the first doubled local time, and how many */
	} hours[] = {{"Europe/Berlin", 2023, 10, 29, 2, 60},
	             {"America/New_York", 2026, 11, 1, 1, 60},
	             {"America/New_York", 2450, 11, 6, 1, 60},
	             {"Australia/Lord_Howe", 2023, 4, 2, 1, 30}};
	for (size_t i = 0; i < sizeof hours / sizeof hours[0]; i++) {
		struct time_zone *zone = zone_of(hours[i].name);
		int32_t part = hours[i].minutes == 60 ? 0 : 30; /* that one begins at 01:30 */
		int64_t first_s = local_of(hours[i].year, hours[i].month, hours[i].day, hours[i].hour, part);
		int64_t end_s = first_s + hours[i].minutes * INT64_C(60);
		for (int64_t local_s = first_s - DAY_SECONDS; local_s < end_s + DAY_SECONDS; local_s += 60) {
			struct time_zone_span span = time_zone_find(zone, local_s);
			assert_true(span.from_s <= local_s && local_s < span.to_s);
			assert_int_equal(span.twice, local_s >= first_s && local_s < end_s);
		}
		time_zone_free(zone);
	}
}

/* Every moment's own local time gives it back, but for the later one of a doubled hour: against localtime(). */
static void assert_zone_agrees(const char *name)
{
	struct time_zone *zone = zone_of(name);
	setenv("TZ", name, 1);
	tzset();
	uint64_t random = 11;
	for (int round = 0; round < 4000; round++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		time_t moment = (time_t)(random % (UINT64_C(300) * 366 * DAY_SECONDS));
		struct tm tm;
		localtime_r(&moment, &tm);
		int64_t local_s = (int64_t)moment + tm.tm_gmtoff;
		time_t read = (time_t)(local_s - offset_at(zone, local_s));
		struct tm again;
		localtime_r(&read, &again);
		if (read > moment || again.tm_sec != tm.tm_sec || again.tm_min != tm.tm_min || again.tm_hour != tm.tm_hour)
			fail_msg("%s: %lld is read as %lld", name, (long long)moment, (long long)read);
	}
	unsetenv("TZ");
	tzset();
	time_zone_free(zone);
}

static void zones_agree_with_the_c_library(void **state)
{
	(void)state;
	static const char *const names[] = {"Europe/Berlin",       "America/New_York", "America/Sao_Paulo", "Asia/Kolkata",
	                                    "Australia/Lord_Howe", "Pacific/Chatham",  "Africa/Casablanca", "Europe/Dublin",
	                                    "America/St_Johns",    "Antarctica/Troll", "Asia/Tehran",       "Etc/GMT+12"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_zone_agrees(names[i]);
}

static void rules_are_read_in_every_form(void **state)
{
	(void)state;
	struct time_zone_rule rule;
	assert_true(time_zone_rule_parse("CET-1CEST,M3.5.0,M10.5.0/3", &rule));
	assert_int_equal(rule.standard_s, 3600);
	assert_int_equal(rule.daylight_s, 7200);
	assert_int_equal(time_zone_change_at(&rule.start, 2024, 3600), local_of(2024, 3, 31, 1, 0));
	assert_int_equal(time_zone_change_at(&rule.end, 2024, 7200), local_of(2024, 10, 27, 1, 0));
	assert_true(time_zone_rule_parse("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", &rule));
	assert_int_equal(rule.standard_s, 37800);
	assert_int_equal(time_zone_change_at(&rule.start, 2024, 37800), local_of(2024, 10, 6, 2, 0) - 37800);
	assert_true(time_zone_rule_parse("XXX3EDT4,J60/0,365/-1:30:15", &rule));
	assert_int_equal(time_zone_change_at(&rule.start, 2024, 0), local_of(2024, 3, 1, 0, 0));
	assert_int_equal(time_zone_change_at(&rule.start, 2023, 0), local_of(2023, 3, 1, 0, 0));
	assert_int_equal(time_zone_change_at(&rule.end, 2024, 0), local_of(2024, 12, 30, 22, 29) + 45);
	assert_true(time_zone_rule_parse("<-03>3", &rule));
	assert_false(rule.has_daylight);
	static const char *const bad[] = {"",
	                                  "CE-1",
	                                  "CET",
	                                  "CET-1CEST",
	                                  "CET-1CEST,M3.5.0",
	                                  "CET-1CEST,M13.5.0,M10.5.0",
	                                  "CET-1CEST,M3.6.0,M10.5.0",
	                                  "CET-25",
	                                  "CET-1CEST,J0,J5",
	                                  "CET-1CEST,1,2,3",
	                                  "<CET-1",
	                                  "CET-1CEST,M3.5.0/168,M10.5.0",
	                                  "CET-99999999999"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (time_zone_rule_parse(bad[i], &rule))
			fail_msg("\"%s\" is taken for a rule", bad[i]);
	}
}

static void damaged_files_are_refused(void **state)
{
	const char *folder = *state;
	char path[4096];
	uint8_t whole[8192];
	FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
	if (file == NULL)
		skip();
	size_t length = fread(whole, 1, sizeof whole, file);
	fclose(file);
	setenv("TZDIR", folder, 1);
	snprintf(path, sizeof path, "%s/Cut", folder);
	for (size_t cut = 0; cut < length; cut += cut < 200 || cut > length - 60 ? 1 : 31) {
		file = fopen(path, "wb");
		assert_non_null(file);
		assert_int_equal(fwrite(whole, 1, cut, file), cut);
		fclose(file);
		struct time_zone *zone;
		struct weir_error error;
		if (time_zone_new("Cut", &zone, &error) == WEIR_OK)
			fail_msg("a file cut at %zu of %zu bytes is taken", cut, length);
	}
	unsetenv("TZDIR");
}

static int make_folder(void **state)
{
	*state = scratch_new();
	return *state == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
	scratch_remove(*state);
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_offsets),
		cmocka_unit_test(names_that_are_no_zone),
		cmocka_unit_test(doubled_hours_are_the_earlier_and_missing_ones_go_on),
		cmocka_unit_test(local_times_that_exist_twice_are_told),
		cmocka_unit_test(zones_agree_with_the_c_library),
		cmocka_unit_test(rules_are_read_in_every_form),
		cmocka_unit_test_setup_teardown(damaged_files_are_refused, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
