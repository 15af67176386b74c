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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs),
		cmocka_unit_test(what_is_not_logfmt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
