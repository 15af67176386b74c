/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the ? of a request: times, numbers, words, places; and what is refused. */
#include "archiver/api/api_parameters.h"

#include "archiver/api/api_rate.h"
#include "archiver/api/api_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define ALL (API_BIT(API_PARAMETER_COUNT) - 1)

static bool read_one(struct api_parameters *parameters, unsigned allowed, const char *name, const char *value,
                     struct api_fault *fault)
{
	return api_parameter_read(parameters, allowed, 1000, weir_span_of(name),
	                          value != NULL ? weir_span_of(value) : (struct weir_span){.at = NULL}, fault);
}

static void assert_time(const char *text, int64_t wanted_ms)
{
	int64_t time_ms = -1;
	if (!api_time_read(weir_span_of(text), &time_ms) || time_ms != wanted_ms)
		fail_msg("%s: %lld, not %lld", text, (long long)time_ms, (long long)wanted_ms);
}

static void times_are_read(void **state)
{
	(void)state;
	assert_time("0", 0);
	assert_time("-1", -1);
	assert_time("1732173600123", 1732173600123);
	assert_time("1970-01-01", 0);
	assert_time("2024-02-29", 1709164800000);
	assert_time("2000-02-29T23:59:59.9999Z", 951868799999);
	assert_time("1969-12-31T23:59:59,5", -500);
	assert_time("2024-11-21T10:00+01:00", 1732179600000);
	assert_time("2024-11-21 10:00:00 0100", 1732179600000); /* a + that decoding made a space of */
	assert_time("2024-11-21t10:00:00.25-05", 1732201200250);
	assert_time("0001-01-01", API_TIME_LEAST_MS);
	assert_time("9999-12-31T23:59:59.999", API_TIME_MOST_MS);
}

static void what_is_no_time_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"",
	                                    "-",
	                                    "now",
	                                    "1.5",
	                                    "1e3",
	                                    "12345678901234567",
	                                    "-62135596800001",
	                                    "253402300800000",

	                                    "2024-11",
	                                    "2024-00-01",
	                                    "2024-13-01",
	                                    "2024-04-31",
	                                    "2023-02-29",
	                                    "1900-02-29",
	                                    "0000-01-01",
	                                    "2024-11-21T",
	                                    "2024-11-21T10",
	                                    "2024-11-21T10:00:",
	                                    "2024-11-21T24:00",
	                                    "2024-11-21T10:60",
	                                    "2024-11-21T10:00:60",
	                                    "2024-11-21T10:00:00.",
	                                    "2024-11-21T10:00:00+",
	                                    "2024-11-21T10:00:00+1",
	                                    "2024-11-21T10:00:00+01:0",
	                                    "2024-11-21T10:00:00+24:00",
	                                    "2024-11-21T10:00:00ZZ",
	                                    "2024-11-21T10:00:00Z ",
	                                    " 2024-11-21",
	                                    "20241-1-21",
	                                    "9999-12-31T23:59:59-01:00"};
	int64_t time_ms;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (api_time_read(weir_span_of(texts[i]), &time_ms))
			fail_msg("%s: %lld", texts[i], (long long)time_ms);
}

/* Against the C library, every day of some centuries. */
static void every_day_is_counted(void **state)
{
	(void)state;
	for (int64_t day = -200000; day < 200000; day += 1) {
		time_t at = (time_t)(day * 86400);
		struct tm parts;
		char text[32];
		gmtime_r(&at, &parts);
		strftime(text, sizeof text, "%Y-%m-%d", &parts);
		assert_time(text, day * 86400000);
	}
}

static void parameters_are_read(void **state)
{
	(void)state;
	struct api_parameters parameters;
	struct api_fault fault;
	api_parameters_init(&parameters);
	assert_int_equal(API_BY_TOTAL, parameters.by);
	assert_true(read_one(&parameters, ALL, "zone", "site", &fault));
	assert_true(read_one(&parameters, ALL, "key", "", &fault));
	assert_true(read_one(&parameters, ALL, "from", "2024-11-21", &fault));
	assert_true(read_one(&parameters, ALL, "grain", "day", &fault));
	assert_true(read_one(&parameters, ALL, "by", "blocked", &fault));
	assert_true(read_one(&parameters, ALL, "action", "lift", &fault));
	assert_int_equal(API_ENFORCE, parameters.mode);
	assert_true(read_one(&parameters, ALL, "mode", "all", &fault));
	assert_true(read_one(&parameters, ALL, "limit", "1000", &fault));
	assert_true(read_one(&parameters, ALL, "format", "csv", &fault));
	assert_true(weir_span_equal(weir_span_of("site"), parameters.zone));
	assert_int_equal(0, parameters.key.length);
	assert_true(parameters.from_ms == 1732147200000);
	assert_int_equal(API_DAILY, parameters.grain);
	assert_int_equal(API_BY_BLOCKED, parameters.by);
	assert_string_equal("lift", parameters.action);
	assert_int_equal(API_BOTH_MODES, parameters.mode);
	assert_int_equal(1000, parameters.limit);
	assert_int_equal(API_CSV, parameters.format);
	assert_int_equal(API_BIT(API_ZONE) | API_BIT(API_KEY) | API_BIT(API_FROM) | API_BIT(API_GRAIN) | API_BIT(API_BY) |
	                     API_BIT(API_ACTION) | API_BIT(API_MODE) | API_BIT(API_LIMIT) | API_BIT(API_FORMAT),
	                 parameters.given);
}

static void refusals_name_the_parameter(void **state)
{
	(void)state;
	char long_name[300], long_key[1100];
	memset(long_name, 'n', sizeof long_name - 1);
	memset(long_key, 'k', sizeof long_key - 1);
	long_name[sizeof long_name - 1] = long_key[sizeof long_key - 1] = '\0';
	static const struct {
		const char *name, *value;
	} cases[] = {{"zone", ""},      {"zone", NULL},     {"from", "x"},     {"limit", "0"},    {"limit", "1001"},
	             {"limit", "+1"},   {"limit", "1\t"},   {"grain", "week"}, {"by", "late"},    {"action", "ban"},
	             {"format", "xml"}, {"after", "1.2.3"}, {"after", "x"},    {"day", "monday"}, {"mode", "both"}};
	struct api_parameters parameters;
	struct api_fault fault;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		api_parameters_init(&parameters);
		assert_false(read_one(&parameters, ALL, cases[i].name, cases[i].value, &fault));
		assert_string_equal(cases[i].name, fault.parameter);
		assert_int_equal(400, fault.status);
		assert_non_null(strstr(fault.message, "expected"));
	}
	api_parameters_init(&parameters);
	assert_false(read_one(&parameters, ALL, "zone", long_name, &fault));
	assert_false(read_one(&parameters, ALL, "key", long_key, &fault));
	assert_false(read_one(&parameters, ALL, long_name, "x", &fault));
	assert_int_equal(sizeof fault.name - 1, strlen(fault.parameter));
	assert_false(read_one(&parameters, API_BIT(API_ZONE) | API_BIT(API_LIMIT), "key", "x", &fault));
	assert_string_equal("unknown parameter: expected one of zone, limit", fault.message);
	assert_false(read_one(&parameters, 0, "key", "x", &fault));
	api_parameters_init(&parameters);
	assert_true(read_one(&parameters, ALL, "bucket", "00ff", &fault)); /* in place of a key */
	assert_true(weir_span_equal(weir_span_of("00ff"), parameters.key));
	assert_true((parameters.given & API_BIT(API_KEY)) != 0);
	assert_false(read_one(&parameters, ALL, "key", "x", &fault));
	assert_string_equal("expected either \"key\" or \"bucket\"", fault.message);
	assert_true(read_one(&parameters, ALL, "limit", "5", &fault));
	assert_false(read_one(&parameters, ALL, "limit", "5", &fault));
	assert_string_equal("given twice: expected once", fault.message);
}

static void a_place_is_read_as_it_was_written(void **state)
{
	(void)state;
	static const struct api_place places[] = {
		{0, 0, 0, 0}, {1732173600123, 3, 1841, 17}, {-5, UINT32_MAX, INT64_MAX, UINT32_MAX}, {INT64_MIN, 1, 2, 3}};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct api_parameters parameters;
		struct api_fault fault;
		char text[API_PLACE_BYTES];
		api_parameters_init(&parameters);
		bool good = read_one(&parameters, ALL, "after", api_place_write(&places[i], text), &fault);
		assert_true(good || places[i].at_ms == INT64_MIN); /* no row's time is of 20 digits */
		if (good)
			assert_memory_equal(&places[i], &parameters.after, sizeof places[i]);
	}
}

/* ---- rates ---- */

static void a_client_has_its_burst_and_then_its_rate(void **state)
{
	(void)state;
	struct api_rate *rate = api_rate_new(10);
	unsigned wait_s = 0;
	int good = 0;
	int64_t now_us = 5000000;
	for (int i = 0; i < 100; i++)
		good += api_rate_take(rate, 7, now_us, &wait_s);
	assert_int_equal(10 * API_RATE_BURST_S, good);
	assert_int_equal(1, wait_s);
	assert_true(api_rate_take(rate, 8, now_us, &wait_s));
	for (int i = 0; i < 1000; i++) /* ten seconds, in steps of 10 ms */
		good += api_rate_take(rate, 7, now_us += 10000, &wait_s);
	assert_int_equal(10 * API_RATE_BURST_S + 100, good);
	api_rate_free(rate);
	rate = api_rate_new(0);
	for (int i = 0; i < 1000; i++)
		assert_true(api_rate_take(rate, 7, now_us, &wait_s));
	api_rate_free(rate);
}

static void a_crowd_does_not_make_a_busy_client_forgotten(void **state)
{
	(void)state;
	struct api_rate *rate = api_rate_new(1);
	unsigned wait_s = 0;
	int64_t now_us = 1000000;
	while (api_rate_take(rate, 1, now_us, &wait_s))
		;
	for (uint64_t other = 2; other < 200000; other++)
		assert_true(api_rate_take(rate, other, now_us, &wait_s));
	/* All others owe less than the one who has used its burst. */
	assert_false(api_rate_take(rate, 1, now_us, &wait_s));
	api_rate_free(rate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(every_day_is_counted),
		cmocka_unit_test(parameters_are_read),
		cmocka_unit_test(refusals_name_the_parameter),
		cmocka_unit_test(a_place_is_read_as_it_was_written),
		cmocka_unit_test(a_client_has_its_burst_and_then_its_rate),
		cmocka_unit_test(a_crowd_does_not_make_a_busy_client_forgotten),
	};
	return cmocka_run_group_tests_name("api_parameters", tests, NULL, NULL);
}
