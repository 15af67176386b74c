/* SPDX-License-Identifier: Apache-2.0 */
/* The zone that stands behind a local time is one that exists. */
#include "deploy/weir/terminal/local_zone.c" /* of a program, which no library has */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_time(const char *zone, const char *expected)
{
	time_t moment = 1763719200;
	struct tm parts;
	char clock[16], found[64];
	setenv("TZ", zone, 1);
	tzset();
	assert_non_null(localtime_r(&moment, &parts));
	strftime(clock, sizeof clock, "%H:%M", &parts);
	snprintf(found, sizeof found, "%s %s", clock, local_zone(&parts));
	assert_string_equal(found, expected);
}

static void a_zone_that_exists_has_its_name(void **state)
{
	(void)state;
	assert_time("Europe/Berlin", "11:00 CET");
	assert_time(":Europe/Berlin", "11:00 CET");
	assert_time("/usr/share/zoneinfo/Europe/Berlin", "11:00 CET");
	assert_time("Europe/London", "10:00 GMT");
	assert_time("UTC", "10:00 UTC");
	assert_time("", "10:00 UTC");
	assert_time("CET-1CEST,M3.5.0,M10.5.0/3", "11:00 CET");
	assert_time("GMT0", "10:00 GMT");
	assert_time("<+0530>-5:30", "15:30 +0530");
}

static void a_zone_that_does_not_exist_is_utc(void **state)
{
	(void)state;
	static const char *const zones[] = {
		"Nonsense", ":Nonsense", "Europe/Berln", "Europe/Berln5", "CEST", "/etc/passwd", "/no/such", "../Nonsense",
		"<abc>",    "+02:00",    "Europe",       "Nonsense-x5",   "X"};
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++)
		assert_time(zones[i], "10:00 UTC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zone_that_exists_has_its_name),
		cmocka_unit_test(a_zone_that_does_not_exist_is_utc),
	};
	return cmocka_run_group_tests_name("local_zone", tests, NULL, NULL);
}
