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
	assert_reason(&fixture, "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\"}", FORMAT_SKIP);
	fixture_deinit(&fixture);

	/* A message may end as a line does, and may be one that is empty. */
	fixture_init(&fixture, "{\"type\": \"journal\", \"message\": \"logfmt\"}", "user");
	assert_reason(&fixture, "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\",\"MESSAGE\":\"user=ann\\r\\n\"}",
	              FORMAT_OK);
	assert_field(&fixture, "user", "ann");
	assert_reason(&fixture, "{\"__REALTIME_TIMESTAMP\":\"1704067200123456\",\"MESSAGE\":\"\\r\\n\"}", FORMAT_SKIP);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_the_head_are_fields),        cmocka_unit_test(files_of_old_are_read_with_a_year),
		cmocka_unit_test(messages_have_formats_of_their_own),  cmocka_unit_test(a_cost_is_the_messages),
		cmocka_unit_test(patterns_behind_a_head_need_no_time), cmocka_unit_test(entries_of_the_journal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
