/* SPDX-License-Identifier: Apache-2.0 */
/* The host that a client asked for has one form in each format, also an address in brackets, with a port and without. */
#include "format_fixture.h"

/* A format, and a line before and behind its host. */
static const struct {
	const char *config, *before, *behind;
} formats[] = {
	{"\"combined\"", "", " 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8.5.0\""},
	{"\"common\"", "", " 192.0.2.7 - bob [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5"},
	{"\"json\"", "{\"time\":\"2024-05-17T10:05:03Z\",\"host\":\"", "\"}"},
	{"{\"type\":\"delimited\",\"header\":false,\"columns\":[\"time\",\"host\"]}", "2024-05-17T10:05:03Z\t", ""},
	{"\"logfmt\"", "time=2024-05-17T10:05:03Z host=", ""},
	{"{\"type\":\"pattern\",\"pattern\":\"^(?<time>\\\\S+) (?<host>\\\\S+)\"}", "2024-05-17T10:05:03Z ", ""},
	{"\"nginx_error\"",
     "2024/05/17 10:05:03 [error] 31#31: *45 x, client: 192.0.2.7, server: _, request: \"GET / HTTP/1.1\", host: \"",
     "\""},
	{"\"alb\"", "http 2024-05-17T10:05:03.3Z app/l/5 192.0.2.7:4 - 0 0 0 502 - 34 366 \"GET http://",
     "/login HTTP/1.1\" \"-\" - - arn:x \"R\" \"-\" \"-\" 0"},
	{"\"squid\"", "1715940303.133 310 192.0.2.7 TCP_MISS/200 4542 GET http://", "/login - HIER_DIRECT/198.51.100.1 -"},
	{"\"squid\"", "1715940303.133 310 192.0.2.7 TCP_MISS/200 4542 GET http://", "?a - HIER_DIRECT/198.51.100.1 -"},
	{"\"squid\"", "1715940303.133 310 192.0.2.7 TCP_MISS/200 4542 GET http://a@b:c@",
     "/@ - HIER_DIRECT/198.51.100.1 -"},
	{"\"squid\"", "1715940303.133 240000 192.0.2.7 TCP_TUNNEL/200 9 CONNECT ", " - HIER_DIRECT/198.51.100.1 -"},
	{"\"caddy\"", "{\"ts\":1715940303.1,\"request\":{\"remote_ip\":\"192.0.2.7\",\"uri\":\"/\",\"host\":\"", "\"}}"},
	{"\"traefik\"", "{\"ClientHost\":\"192.0.2.7\",\"StartUTC\":\"2024-05-17T10:05:03Z\",\"RequestHost\":\"", "\"}"},
	{"\"traefik\"", "{\"RequestHost\":\"2001:DB8::A\",\"StartUTC\":\"2024-05-17T10:05:03Z\",\"RequestAddr\":\"", "\"}"},
	{"\"envoy\"", "{\"start_time\":\"2024-05-17T10:05:03.133Z\",\"authority\":\"", "\"}"},
	{"\"cloudflare\"", "{\"EdgeStartTimestamp\":\"2024-05-17T10:05:03Z\",\"ClientRequestHost\":\"", "\"}"},
	{"{\"type\":\"wrapped\",\"in\":\"cri\",\"message\":\"combined\"}", "2024-05-17T10:05:03Z stdout F ",
     " 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\""},
	{"{\"type\":\"wrapped\",\"in\":\"json\",\"message\":\"combined\"}",
     "{\"log\":\"192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET /a HTTP/1.1\\\" 200 12 \\\"-\\\" \\\"curl/8.5.0 aaaaaaaaaaaaaaaaaaaaaaaa\\\"\",\"host\":\"",
     "\"}"},
	{"{\"type\":\"wrapped\",\"in\":\"json\",\"message\":\"logfmt\"}",
     "{\"log\":\"time=2024-05-17T10:05:03Z path=/login\",\"host\":\"", "\"}"},
	{"{\"type\":\"syslog\",\"message\":\"caddy\"}",
     "<1>1 2024-05-17T10:05:03Z h a - - - {\"ts\":1715940303.1,\"request\":{\"host\":\"", "\"}}"},
};

static const char *const hosts[][2] = {
	{"[2001:DB8::A]", "[2001:db8::a]"},
	{"[2001:DB8::a]:80", "[2001:db8::a]"},
	{"[2001:db8::A]:443", "[2001:db8::a]"},
	{"[2001:db8::a]", "[2001:db8::a]"},
	{"[2001:DB8::A]:", "[2001:db8::a]"},
	{"[::FFFF:192.0.2.7]:8443", "[::ffff:192.0.2.7]"},
	{"H.Example:80", "h.example"},
	{"H.Example.:80", "h.example"},
	{"h.example.", "h.example"},
	{"192.0.2.1:80", "192.0.2.1"},
};

static void assert_host(struct fixture *fixture, const char *line, const char *host)
{
	if (fixture_parse(fixture, line) != FORMAT_OK)
		fail_msg("%s is not read", line);
	if (!weir_span_equal(fixture_field(fixture, "host"), weir_span_of(host)))
		print_error("%s\n", line);
	assert_field(fixture, "host", host);
}

static void a_host_has_one_form_in_each_format(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct fixture fixture;
		fixture_init(&fixture, formats[i].config, "ip host");
		for (size_t k = 0; k < sizeof hosts / sizeof *hosts; k++) {
			char line[512];
			snprintf(line, sizeof line, "%s%s%s", formats[i].before, hosts[k][0], formats[i].behind);
			assert_host(&fixture, line, hosts[k][1]);
		}
		fixture_deinit(&fixture);
	}
}

static void files_with_columns_have_it_too(void **state)
{
	(void)state;
	static const char *const files[][3] = {
		{"\"w3c\"", "#Fields: date time c-ip cs-host", "2024-05-17 10:05:03 192.0.2.7 "},
		{"\"zeek\"", "#fields\tts\tid.orig_h\thost", "1715940303.1\t192.0.2.7\t"},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct fixture fixture;
		fixture_init(&fixture, files[i][0], "ip host");
		assert_int_equal(fixture_parse(&fixture, files[i][1]), FORMAT_SKIP);
		for (size_t k = 0; k < sizeof hosts / sizeof *hosts; k++) {
			char line[512];
			snprintf(line, sizeof line, "%s%s", files[i][2], hosts[k][0]);
			assert_host(&fixture, line, hosts[k][1]);
		}
		fixture_deinit(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_has_one_form_in_each_format),
		cmocka_unit_test(files_with_columns_have_it_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
