/* SPDX-License-Identifier: Apache-2.0 */
/* pattern, and the ready patterns: nginx_error, haproxy, sshd. */
#include "tests/unit/format_fixture.h"

#include <time.h>

static void named_groups_are_fields(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"pattern\", \"pattern\": \"(?<time>\\\\d+) (?:ip=(?<client>[^ ]*)|none)(?<rest>.*)\", "
	             "\"unit\": \"ms\", \"fields\": {\"ip\": \"client\"}}",
	             "ip rest other");
	assert_reason(&fixture, "before 1714564800123 ip=192.0.2.7 \xff\x80", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800123);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "rest", " \xff\x80");
	assert_field(&fixture, "other", NULL);
	assert_reason(&fixture, "5 none", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_field(&fixture, "rest", NULL);
	assert_reason(&fixture, "5 ip=", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_malformed(&fixture, "5 IP=1", "no match");
	assert_reason(&fixture, "9999999999999999 none", FORMAT_TIME_RANGE);
	fixture_deinit(&fixture);
}

static void what_does_not_match_may_be_skipped(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"sshd\", \"unmatched\": \"skip\"}", "ip");
	assert_reason(&fixture, "2024-05-01T12:00:00Z host CRON[1]: session opened", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-01T12:00:00Z host sshd[1]: Server listening on :: port 22.", FORMAT_OK);
	fixture_deinit(&fixture);
}

static void nginx_error(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"nginx_error\", \"time_zone\": \"+02:00\"}",
	             "ip method path server level message pid");
	assert_reason(&fixture,
	              "2024/05/01 14:00:00 [error] 1234#5678: *90 open() \"/srv/x\" failed (2: No such file or directory), "
	              "client: 203.0.113.9, server: example.com, request: \"GET /x?y HTTP/1.1\", host: \"example.com\"",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800000);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_field(&fixture, "method", "GET");
	assert_field(&fixture, "path", "/x");
	assert_field(&fixture, "server", "example.com");
	assert_field(&fixture, "level", "error");
	assert_field(&fixture, "pid", "1234");
	assert_field(&fixture, "message", "open() \"/srv/x\" failed (2: No such file or directory)");
	assert_reason(&fixture, "2024/05/01 14:00:00 [notice] 1#1: signal 1 (SIGHUP) received, reconfiguring", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_field(&fixture, "message", "signal 1 (SIGHUP) received, reconfiguring");
	assert_malformed(&fixture, "2024/05/01 14:00:00 [error] no pid", "no match");
	fixture_deinit(&fixture);
}

static void haproxy(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"haproxy\"", "ip method path status bytes frontend backend server");
	static const char tail[] =
		"192.0.2.7:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - "
		"---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html?a HTTP/1.1\"";
	static const char *const heads[] = {
		"", "Feb  6 12:14:14 localhost haproxy[14389]: ", "2009-02-06T12:14:14.655Z localhost haproxy[14389]: "};
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		char line[512];
		snprintf(line, sizeof line, "%s%s", heads[i], tail);
		assert_reason(&fixture, line, FORMAT_OK);
		assert_int_equal(fixture.record.time_ms, 1233922454655);
		assert_field(&fixture, "ip", "192.0.2.7");
		assert_field(&fixture, "method", "GET");
		assert_field(&fixture, "path", "/index.html");
		assert_field(&fixture, "status", "200");
		assert_field(&fixture, "bytes", "2750");
		assert_field(&fixture, "frontend", "http-in");
		assert_field(&fixture, "backend", "static");
		assert_field(&fixture, "server", "srv1");
	}
	assert_reason(
		&fixture,
		"2001:db8::1:33317 [06/Feb/2009:12:14:14.655] http-in http-in/<NOSRV> -1/-1/-1/-1/0 400 +187 - - PR-- "
		"1/1/0/0/0 0/0 \"<BADREQ>\"",
		FORMAT_OK);
	assert_field(&fixture, "ip", "2001:db8::1");
	assert_field(&fixture, "server", "<NOSRV>");
	assert_field(&fixture, "bytes", "187");
	assert_field(&fixture, "method", NULL);
	assert_malformed(&fixture, "Feb  6 12:14:14 localhost haproxy[14389]: Proxy http-in started.", "no match");
	fixture_deinit(&fixture);
}

static void sshd(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"sshd\"", "ip user event method host message");
	assert_reason(
		&fixture,
		"2024-05-01T14:00:00.123456+02:00 gate sshd[4242]: Failed password for invalid user x y from 192.0.2.7 "
		"port 50022 ssh2",
		FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800123);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "user", "x y");
	assert_field(&fixture, "event", "Failed");
	assert_field(&fixture, "method", "password");
	assert_field(&fixture, "host", "gate");
	assert_reason(
		&fixture,
		"2024-05-01T12:00:00Z gate sshd-session[1]: Accepted publickey for root from 2001:db8::7 port 22 ssh2: RSA "
		"SHA256:x",
		FORMAT_OK);
	assert_field(&fixture, "event", "Accepted");
	assert_field(&fixture, "ip", "2001:db8::7");
	assert_reason(&fixture, "2024-05-01T12:00:00Z gate sshd[1]: Invalid user admin from 192.0.2.9 port 40000",
	              FORMAT_OK);
	assert_field(&fixture, "event", "Invalid");
	assert_field(&fixture, "user", "admin");
	assert_field(&fixture, "ip", "192.0.2.9");
	assert_reason(&fixture, "2024-05-01T12:00:00Z gate sshd[1]: Connection closed by 192.0.2.9 port 40000", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_reason(&fixture, "May  1 12:00:00 gate sshd[1]: Invalid user a from 192.0.2.9 port 4", FORMAT_BAD_TIME);
	fixture_deinit(&fixture);

	fixture_init(&fixture, "{\"type\": \"sshd\", \"year\": \"2023-11\", \"time_zone\": \"UTC\"}", "ip");
	assert_reason(&fixture, "May  1 12:00:00 gate sshd[1]: Invalid user a from 192.0.2.9 port 4", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800000);
	assert_field(&fixture, "ip", "192.0.2.9");
	fixture_deinit(&fixture);
}

static void no_expression_can_stop_the_log(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"pattern\", \"unit\": \"s\", \"pattern\": \"^(?<time>\\\\d+) (a+)+$\"}", "ip");
	char line[60000] = "1 ";
	memset(line + 2, 'a', sizeof line - 4);
	line[sizeof line - 2] = 'b';
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_reason(&fixture, line, FORMAT_SEARCH_LIMIT);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 20);
	assert_reason(&fixture, "1 aaa", FORMAT_OK);
	fixture_deinit(&fixture);
}

static void of_groups_of_one_name_the_last_counts(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"pattern\", \"unit\": \"s\", \"pattern\": "
	             "\"(?J)^(?<time>\\\\d+) (?:a=(?<ip>\\\\S+))?(?: b=(?<ip>\\\\S+))?(?: c=(?<ip>\\\\S*))?$\"}",
	             "ip");
	assert_reason(&fixture, "1 a=x", FORMAT_OK);
	assert_field(&fixture, "ip", "x");
	assert_reason(&fixture, "1 a=x b=y", FORMAT_OK);
	assert_field(&fixture, "ip", "y");
	assert_reason(&fixture, "1 a=x b=y c=z", FORMAT_OK);
	assert_field(&fixture, "ip", "z");
	assert_reason(&fixture, "1 a=x b=y c=", FORMAT_OK); /* an empty one is absent */
	assert_field(&fixture, "ip", "y");
	fixture_deinit(&fixture);
}

/* A line above the limit counts where the expression finds in it what it would find in all of it. */
static void a_line_without_its_end(void **state)
{
	(void)state;
	static const char line[] = "1715940303 192.0.2.7 \"GET /aaaaaaaaaaaaaaaaaaaa client=198.51.100.9 ";
	static const struct {
		const char *pattern;
		bool counts;
	} samples[] = {
		{"^(?<time>\\\\d+) (?<ip>\\\\S+) \\\"(?<method>\\\\S+)", true},
		{"(?<time>\\\\d+) (?<ip>\\\\S+) \\\"(?<method>\\\\S+) (?<path>[^ ]*+)", true},
		{"^(?<time>\\\\d+) (?<ip>\\\\S+) \\\"(?<method>\\\\S+)[^\\\"]*\\\"?", false},
		{"^(?<time>\\\\d+) (?<ip>\\\\S+) \\\"(?<method>\\\\S+).*$", false},
		{"^(?<time>\\\\d+) .*client=(?<ip>\\\\S+) (?<method>)", false}, /* it may come again */
		{"^(?<time>\\\\d+) (?<ip>\\\\S+) \\\"(?<method>\\\\S+)(?!.*bot)", false},
		{"^nothing (?<time>\\\\d+) (?<ip>.) (?<method>.)", false},
	};
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct fixture fixture;
		char config[256];
		snprintf(config, sizeof config, "{\"type\": \"pattern\", \"unmatched\": \"skip\", \"pattern\": \"%s\"}",
		         samples[i].pattern);
		fixture_init(&fixture, config, "ip method");
		assert_int_equal(fixture_parse_cut(&fixture, line, sizeof line - 1),
		                 samples[i].counts ? FORMAT_OK : FORMAT_LINE_TOO_LONG);
		assert_int_equal(fixture.format->unmatched, 0);
		if (samples[i].counts) {
			assert_field(&fixture, "ip", "192.0.2.7");
			assert_field(&fixture, "method", "GET");
		}
		fixture_deinit(&fixture);
	}
}

static void options(void **state)
{
	(void)state;
	assert_refused("\"pattern\"", "is missing");
	assert_refused("{\"type\": \"pattern\", \"pattern\": \"(\"}", "is not a valid PCRE2 expression");
	assert_refused("{\"type\": \"pattern\", \"pattern\": \"(?<ip>.)\"}", "no group (?<time>...)");
	assert_refused("{\"type\": \"pattern\", \"pattern\": \"(*UTF)(?<time>.)\"}", "is not a valid PCRE2 expression");
	assert_refused("{\"type\": \"pattern\", \"pattern\": \"(?<time>.)\", \"unmatched\": \"ignore\"}", "skip");
	assert_refused("{\"type\": \"haproxy\", \"pattern\": \".\"}", "unknown key \"pattern\"");
	assert_refused("{\"type\": \"sshd\", \"year\": 24}", "year");
	assert_refused("{\"type\": \"sshd\", \"year\": \"2024-13\"}", "year");
	assert_refused("{\"type\": \"sshd\", \"year\": \"2024\"}", "year");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_groups_are_fields),
		cmocka_unit_test(what_does_not_match_may_be_skipped),
		cmocka_unit_test(nginx_error),
		cmocka_unit_test(haproxy),
		cmocka_unit_test(sshd),
		cmocka_unit_test(no_expression_can_stop_the_log),
		cmocka_unit_test(of_groups_of_one_name_the_last_counts),
		cmocka_unit_test(a_line_without_its_end),
		cmocka_unit_test(options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
