/* SPDX-License-Identifier: Apache-2.0 */
/* syslog and journal: heads as fields, and the formats of the messages behind them. */
#include "tests/unit/format_fixture.h"

static void parts_of_the_head_are_fields(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"syslog\"", "host app procid msgid severity facility message x@1.user user");
	assert_reason(&fixture, "<34>1 2024-01-01T00:00:00.5+01:00 h su 12 ID [x@1 user=\"a\\\"b\" k=\"v\"] hello there",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704063600500);
	assert_field(&fixture, "host", "h");
	assert_field(&fixture, "app", "su");
	assert_field(&fixture, "procid", "12");
	assert_field(&fixture, "msgid", "ID");
	assert_field(&fixture, "severity", "crit");
	assert_field(&fixture, "facility", "auth");
	assert_field(&fixture, "message", "hello there");
	assert_field(&fixture, "x@1.user", "a\"b");
	assert_field(&fixture, "user", NULL);
	assert_reason(&fixture, "2024-01-01T00:00:00Z h su: x", FORMAT_OK);
	assert_field(&fixture, "severity", NULL);
	assert_field(&fixture, "x@1.user", NULL);
	assert_malformed(&fixture, "no head", "not syslog");
	assert_reason(&fixture, "<34>no time", FORMAT_NO_TIME);
	assert_reason(&fixture, "<34>Jan  1 00:00:00 h su: x", FORMAT_BAD_TIME); /* which year? */
	fixture_deinit(&fixture);
}

static void a_year_within_the_time_needs_no_other(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"syslog\", \"time_zone\": \"Europe/Berlin\"}", "host app message");
	assert_reason(&fixture, "<166>Oct 11 2024 22:14:15 fw1 : %ASA-6-113005: AAA user authentication Rejected",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1728677655000);
	assert_field(&fixture, "host", "fw1");
	assert_field(&fixture, "app", "%ASA-6-113005");
	assert_field(&fixture, "message", "AAA user authentication Rejected");
	assert_reason(&fixture, "<166>Oct 11 2024 22:14:15 UTC: %ASA-6-113005: x", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1728684855000);
	assert_reason(&fixture, "<166>Oct 11 2024 22:14:15 XYZ: %ASA-6-113005: x", FORMAT_BAD_TIME);
	fixture_deinit(&fixture);
}

static void files_of_old_are_read_with_a_year(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"syslog\", \"year\": 2024, \"time_zone\": \"+01:00\", \"fields\": {\"user\": \"app\"}, "
	             "\"cost\": \"procid\"}",
	             "user");
	assert_reason(&fixture, "Jan  1 00:00:00 h su[7]: x", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704063600000);
	assert_int_equal(fixture.record.cost, 7);
	assert_field(&fixture, "user", "su");
	fixture_deinit(&fixture);
}

static void messages_have_formats_of_their_own(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": \"combined\"}", "ip path app host");
	assert_reason(&fixture,
	              "<190>1 2024-01-01T00:00:00Z www nginx - - - 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET /a "
	              "HTTP/1.1\" 200 5",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "app", "nginx");
	assert_field(&fixture, "host", "www");
	/* a message without a time has its head's */
	assert_reason(&fixture, "<190>1 2024-01-01T00:00:00Z - - - - - 192.0.2.8 - - [-] \"GET /a HTTP/1.1\" 200 5",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704067200000);
	assert_field(&fixture, "ip", "192.0.2.8");
	assert_field(&fixture, "app", NULL);
	assert_malformed(&fixture, "<190>1 2024-01-01T00:00:00Z www nginx - - - started", "not combined");
	assert_reason(&fixture, "<190>1 2024-01-01T00:00:00Z www nginx - - -", FORMAT_SKIP);
	assert_malformed(&fixture, "started", "not syslog");
	fixture_deinit(&fixture);
}

static void a_cost_is_the_messages(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": {\"type\": \"json\", \"cost\": \"n\"}}",
	             "user severity");
	assert_reason(&fixture, "<190>1 2024-01-01T00:00:00Z - - - - - {\"user\":\"ann\",\"n\":3}", FORMAT_OK);
	assert_int_equal(fixture.record.cost, 3);
	assert_field(&fixture, "user", "ann");
	assert_field(&fixture, "severity", "info");
	assert_reason(&fixture, "<190>1 2024-01-01T00:00:00Z - - - - - {\"user\":\"ann\",\"n\":-3}", FORMAT_BAD_COST);
	fixture_deinit(&fixture);
	assert_refused("{\"type\": \"syslog\", \"message\": \"json\", \"cost\": \"n\"}",
	               "format.cost: belongs to the format of the message");
}

static void a_repeated_message_is_read_and_stands_for_as_many(void **state)
{
	(void)state;
	struct fixture fixture;
#define HEAD "2024-01-01T00:00:00Z h named[1]: "
#define PATTERN "{\"type\": \"pattern\", \"pattern\": \"^client \\\\S+ (?<ip>[^#]+)#\\\\d+: (?<user>\\\\S+)$\"}"
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": " PATTERN "}", "ip user app");
	assert_reason(&fixture, HEAD "message repeated 4 times: [ client @0x7f 192.0.2.7#53: denied]", FORMAT_OK);
	assert_int_equal(fixture.record.times, 4);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "user", "denied");
	assert_field(&fixture, "app", "named");
	assert_reason(&fixture, HEAD "client @0x7f 192.0.2.7#53: denied", FORMAT_OK);
	assert_int_equal(fixture.record.times, 1);
	assert_malformed(&fixture, HEAD "message repeated 4 times: [ client @0x7f 192.0.2.7#53: denied", "no match");
	assert_malformed(&fixture, HEAD "x message repeated 4 times: [ client @0x7f 192.0.2.7#53: denied]", "no match");
	assert_reason(&fixture, HEAD "message repeated 4 times: [ ]", FORMAT_SKIP);
	char line[1024];
	snprintf(line, sizeof line, HEAD "message repeated 4 times: [ client %0*d 198.51.100.77#53: denied]",
	         800 - (int)strlen(" client  198.51.100.77#53: denied"), 0);
	assert_reason(&fixture, line, FORMAT_LINE_TOO_LONG);
	fixture_deinit(&fixture);
#undef PATTERN

	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": {\"type\": \"json\", \"cost\": \"n\"}}", "user");
	assert_reason(&fixture, HEAD "message repeated 4 times: [ {\"user\":\"ann\",\"n\":3}]", FORMAT_OK);
	assert_int_equal(fixture.record.times, 4);
	assert_int_equal(fixture.record.cost, 3);
	assert_field(&fixture, "user", "ann");
	assert_reason(&fixture, HEAD "message repeated 4 times: [ {\"user\":\"ann\",\"n\":1099511627776}]", FORMAT_OK);
	assert_int_equal(fixture.record.times, 4);
	assert_int_equal(fixture.record.cost, WEIR_COST_MAX);
	assert_reason(&fixture, HEAD "{\"user\":\"ann\",\"n\":3}", FORMAT_OK);
	assert_int_equal(fixture.record.times, 1);
	assert_malformed(&fixture, HEAD "message repeated 0 times: [ {\"user\":\"ann\",\"n\":3}]", "not json");
	fixture_deinit(&fixture);

	/* A line that counts as far as it goes does so here, too. */
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": \"combined\"}", "ip path");
	snprintf(line, sizeof line,
	         HEAD "message repeated 4 times: [ 192.0.2.7 - - [01/Jan/2024:00:00:00 +0000] \"GET /%0*d]",
	         800 - (int)strlen(" 192.0.2.7 - - [01/Jan/2024:00:00:00 +0000] \"GET /"), 0);
	assert_reason(&fixture, line, FORMAT_OK);
	assert_int_equal(fixture.record.times, 4);
	assert_true(fixture.record.cut);
	assert_field(&fixture, "ip", "192.0.2.7");
	fixture_deinit(&fixture);

	fixture_init(&fixture, "\"syslog\"", "app message");
	assert_reason(&fixture, HEAD "message repeated 4 times: [ hello]", FORMAT_OK);
	assert_int_equal(fixture.record.times, 4);
	assert_field(&fixture, "message", "hello");
	fixture_deinit(&fixture);

	for (int i = 0; i < 2; i++) { /* sshd's is the same behind a head as alone */
		fixture_init(&fixture, i == 0 ? "{\"type\": \"syslog\", \"message\": \"sshd\"}" : "\"sshd\"", "ip");
		assert_reason(
			&fixture,
			"2024-01-01T00:00:00Z h sshd[1]: message repeated 3 times: [ Failed password for x from 192.0.2.7 "
			"port 5 ssh2]",
			FORMAT_OK);
		assert_int_equal(fixture.record.times, 3);
		assert_field(&fixture, "ip", "192.0.2.7");
		fixture_deinit(&fixture);
	}
#undef HEAD
}

static void patterns_behind_a_head_need_no_time(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": \"sshd\"}", "ip user event procid");
	assert_reason(
		&fixture,
		"<38>1 2024-01-01T00:00:00Z h sshd 123 - - Failed password for invalid user x from 192.0.2.7 port 22 ssh2",
		FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704067200000);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "user", "x");
	assert_field(&fixture, "event", "Failed");
	assert_field(&fixture, "procid", "123");
	fixture_deinit(&fixture);
	fixture_init(&fixture,
	             "{\"type\": \"syslog\", \"message\": {\"type\": \"pattern\", \"pattern\": \"from (?<ip>\\\\S+)\"}}",
	             "ip");
	assert_reason(&fixture, "<38>1 2024-01-01T00:00:00Z h a - - - from 192.0.2.7", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	fixture_deinit(&fixture);
	assert_refused("{\"type\": \"pattern\", \"pattern\": \"from (?<ip>\\\\S+)\"}",
	               "has no group (?<time>...) for the time");
	assert_refused("\"sshd_message\"", "sshd");
}

static void entries_of_the_journal(void **state)
{
	(void)state;
	struct fixture fixture;
	static const char entry[] =
		"{\"__REALTIME_TIMESTAMP\":\"1704067200123456\",\"MESSAGE\":\"{\\\"user\\\":\\\"ann\\\"}\","
		"\"_SYSTEMD_UNIT\":\"api.service\",\"PRIORITY\":\"6\"}";
	fixture_init(&fixture, "\"journal\"", "MESSAGE _SYSTEMD_UNIT PRIORITY user");
	assert_reason(&fixture, entry, FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704067200123);
	assert_field(&fixture, "MESSAGE", "{\"user\":\"ann\"}");
	assert_field(&fixture, "_SYSTEMD_UNIT", "api.service");
	assert_field(&fixture, "PRIORITY", "6");
	assert_field(&fixture, "user", NULL);
	assert_malformed(&fixture, "MESSAGE=x", "not journal");
	fixture_deinit(&fixture);

	fixture_init(&fixture, "{\"type\": \"journal\", \"message\": \"json\"}", "user _SYSTEMD_UNIT");
	assert_reason(&fixture, entry, FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1704067200123);
	assert_field(&fixture, "user", "ann");
	assert_field(&fixture, "_SYSTEMD_UNIT", "api.service");
	fixture_deinit(&fixture);

	/* A message may end as a line does, and may be one that is empty. */
	fixture_init(&fixture, "{\"type\": \"journal\", \"message\": \"logfmt\"}", "user");
	assert_reason(&fixture, "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\",\"MESSAGE\":\"user=ann\\r\\n\"}",
	              FORMAT_OK);
	assert_field(&fixture, "user", "ann");
	assert_reason(&fixture, "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\",\"MESSAGE\":\"\\r\\n\"}", FORMAT_SKIP);
	fixture_deinit(&fixture);
}

#define ENTRY(members) "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\"" members "}"

/* As `journalctl -o json` writes them: bytes in numbers, null for what is long, an array for what comes more than once. */
static void values_that_are_no_strings(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"journal\", \"message\": \"logfmt\"}", "user _COMM");
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":[117,115,101,114,61, 255 ,1]"), FORMAT_OK);
	assert_field(&fixture, "user", "\xff\x01");
	assert_reason(&fixture, ENTRY(",\"_COMM\":[97,195],\"MESSAGE\":[\"a=b\",\"user=\\u0041\"]"), FORMAT_OK);
	assert_field(&fixture, "user", "A");
	assert_field(&fixture, "_COMM", "a\xc3");
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":[\"a=b\",[117,115,101,114,61,66]]"), FORMAT_OK);
	assert_field(&fixture, "user", "B");
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":[[117,115,101,114,61,66],\"user=C\" ]"), FORMAT_OK);
	assert_field(&fixture, "user", "C");
	/* No bytes at all. */
	static const char *const others[] = {"[256]",    "[-1]",      "[1.5]", "[1,\"a\"]",         "[null]",
	                                     "[[1],{}]", "{\"a\":1}", "NaN",   "[[\"],\"],\",[x\"]"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char line[128];
		snprintf(line, sizeof line, ENTRY(",\"MESSAGE\":%s"), others[i]);
		assert_reason(&fixture, line, FORMAT_NO_MESSAGE);
	}
	assert_reason(&fixture, ENTRY(""), FORMAT_NO_MESSAGE);
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":\"user=x\",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":null,\"MESSAGE\":\"user=x\""), FORMAT_OK);
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":\"\""), FORMAT_SKIP);
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":[]"), FORMAT_SKIP);
	char words[FORMAT_HELP_BYTES];
	format_help(fixture.format, FORMAT_LEFT_OUT, weir_span_of("{}"), words);
	assert_non_null(strstr(words, "--all"));
	fixture_deinit(&fixture);

	/* Where the message has another name, it is that one. */
	fixture_init(&fixture, "{\"type\": \"journal\", \"message\": \"logfmt\", \"fields\": {\"MESSAGE\": \"message\"}}",
	             "user");
	assert_reason(&fixture, ENTRY(",\"MESSAGE\":\"user=x\",\"message\":null"), FORMAT_LEFT_OUT);
	assert_reason(&fixture, ENTRY(",\"message\":\"user=x\""), FORMAT_OK);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_the_head_are_fields),
		cmocka_unit_test(a_year_within_the_time_needs_no_other),
		cmocka_unit_test(files_of_old_are_read_with_a_year),
		cmocka_unit_test(messages_have_formats_of_their_own),
		cmocka_unit_test(a_cost_is_the_messages),
		cmocka_unit_test(patterns_behind_a_head_need_no_time),
		cmocka_unit_test(entries_of_the_journal),
		cmocka_unit_test(values_that_are_no_strings),
		cmocka_unit_test(a_repeated_message_is_read_and_stands_for_as_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
