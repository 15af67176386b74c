/* SPDX-License-Identifier: Apache-2.0 */
/* logfmt: pairs, quotes, lone keys. */
#include "tests/unit/format_fixture.h"

static void pairs(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"logfmt\", \"unit\": \"s\", \"fields\": {\"ip\": \"fwd\"}}",
	             "ip path msg debug empty eq missing");
	assert_reason(
		&fixture,
		" \ttime=2024-05-01T12:00:00Z at=info  fwd=203.0.113.9 path=/a\tmsg=\"say \\\"hi\\\" \\u00e9\" debug empty= "
		"eq=a=b\"c ",
		FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800000);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "msg", "say \"hi\" \xc3\xa9");
	assert_field(&fixture, "debug", "true");
	assert_field(&fixture, "empty", NULL);
	assert_field(&fixture, "eq", "a=b\"c");
	assert_field(&fixture, "missing", NULL);
	assert_reason(&fixture, "time=1 path=a path=b msg=x msg= debug=\"\" debug", FORMAT_OK);
	assert_field(&fixture, "path", "b");
	assert_field(&fixture, "msg", NULL);
	assert_field(&fixture, "debug", "true");
	assert_reason(&fixture, "time=1 path=-", FORMAT_OK);
	assert_field(&fixture, "path", "-");
	fixture_deinit(&fixture);
}

static void what_is_not_logfmt(void **state)
{
	(void)state;
	static const char *const lines[] = {
		" ",        "words only",   "=a",          "time=1 =a",    "time=1 \"a\"", "time=1 a\"b", "time=1 a\"=b",
		"time=\"1", "time=\"1\\\"", "time=\"1\"x", "time=\"1\"a=b"};
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"logfmt\", \"unit\": \"s\"}", "a");
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_malformed(&fixture, lines[i], "not logfmt");
	assert_reason(&fixture, "a=b", FORMAT_NO_TIME);
	assert_reason(&fixture, "a=b time", FORMAT_BAD_TIME);
	assert_reason(&fixture, "a=", FORMAT_NO_TIME);
	fixture_deinit(&fixture);
}

static void a_line_without_its_end(void **state)
{
	(void)state;
	static const char line[] = "time=1 ip=192.0.2.7 status=401 path=\"/a ip=198.51.100.9 \\\" time=2\" user=x";
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"logfmt\", \"unit\": \"s\"}", "status path user");
	for (size_t length = 1; length < sizeof line; length++) {
		enum format_reason reason = fixture_parse_cut(&fixture, line, length);
		assert_int_equal(reason, length > strlen("time=1 ip=192.0.2.7") ? FORMAT_OK : fixture.format->malformed);
		if (reason != FORMAT_OK)
			continue;
		assert_true(fixture.record.cut);
		assert_span(fixture.record.fields[WEIR_FIELD_IP], "192.0.2.7", "ip");
		assert_field(&fixture, "status", length > strlen("time=1 ip=192.0.2.7 status=401") ? "401" : NULL);
		assert_field(&fixture, "user", NULL);
	}
	assert_malformed(&fixture, "time=1 ip=192.0.2.7 path=\"/a", "not logfmt");
	fixture_deinit(&fixture);
	/* Whether the header came is not known. */
	fixture_init(
		&fixture,
		"{\"type\": \"logfmt\", \"unit\": \"s\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
		"ip");
	static const char proxied[] = "time=1 ip=10.0.0.1 xff=203.0.113.9 path=/a";
	assert_int_equal(fixture_parse_cut(&fixture, proxied, strlen(proxied)), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_int_equal(fixture_parse_cut(&fixture, proxied, strlen("time=1 ip=10.0.0.1 xff=203.0.113.9")),
	                 FORMAT_NO_CLIENT);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs),
		cmocka_unit_test(what_is_not_logfmt),
		cmocka_unit_test(a_line_without_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
