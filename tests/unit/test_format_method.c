/* SPDX-License-Identifier: Apache-2.0 */
/* A method of HTTP has one form in each format; what sshd and Dovecot call a method is none of HTTP. */
#include "format_fixture.h"

/* A format, and a line before and behind its method. */
static const struct {
	const char *config, *before, *behind;
} formats[] = {
	{"\"combined\"", "192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"", " /login HTTP/1.1\" 200 5 \"-\" \"curl/8.5.0\""},
	{"\"combined\"", "shop.example:443 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"",
     "  //login HTTP/1.1\" 200 5 \"-\" \"-\""},
	{"\"common\"", "2001:db8::7 - bob [17/May/2015:10:05:03 +0000] \"", " /login?a HTTP/1.1\" 200 5"},
	{"\"json\"", "{\"time\":\"2024-05-17T10:05:03Z\",\"method\":\"", "\",\"path\":\"/login\"}"},
	{"{\"type\":\"delimited\",\"header\":false,\"columns\":[\"time\",\"method\",\"path\"]}", "2024-05-17T10:05:03Z\t",
     "\t/login"},
	{"\"logfmt\"", "time=2024-05-17T10:05:03Z method=", " path=/login"},
	{"{\"type\":\"pattern\",\"pattern\":\"^(?<time>\\\\S+) (?<method>\\\\S+) (?<path>\\\\S+)\"}",
     "2024-05-17T10:05:03Z ", " /login"},
	{"\"nginx_error\"", "2024/05/17 10:05:03 [error] 31#31: *45 x, client: 192.0.2.7, server: _, request: \"",
     " /login HTTP/1.1\", host: \"h\""},
	{"\"haproxy\"", "192.0.2.7:1 [17/May/2024:10:05:03.133] fe be/s1 0/0/0/5/5 200 512 - - ---- 0/0/0/0/0 0/0 \"",
     " /login HTTP/1.1\""},
	{"\"ingress_nginx\"", "192.0.2.7 - - [17/May/2024:10:05:03 +0000] \"",
     " /login HTTP/1.1\" 200 12 \"-\" \"-\" 88 0.002 [a] [] - - - - 6d"},
	{"\"alb\"", "http 2024-05-17T10:05:03.3Z app/l/5 192.0.2.7:4 - 0 0 0 502 - 34 366 \"",
     " http://a:80/login HTTP/1.1\" \"-\" - - arn:x \"R\" \"-\" \"-\" 0"},
	{"\"squid\"", "1715940303.133 310 192.0.2.7 TCP_MISS/200 4542 ", " http://a/login - HIER_DIRECT/198.51.100.1 -"},
	{"\"caddy\"", "{\"ts\":1715940303.1,\"request\":{\"remote_ip\":\"192.0.2.7\",\"method\":\"",
     "\",\"uri\":\"/login\"}}"},
	{"\"traefik\"", "{\"ClientHost\":\"192.0.2.7\",\"StartUTC\":\"2024-05-17T10:05:03Z\",\"RequestMethod\":\"",
     "\",\"RequestPath\":\"/login\"}"},
	{"\"envoy\"", "{\"start_time\":\"2024-05-17T10:05:03.133Z\",\"method\":\"", "\",\"path\":\"/login\"}"},
	{"\"cloudflare\"", "{\"EdgeStartTimestamp\":\"2024-05-17T10:05:03Z\",\"ClientRequestMethod\":\"",
     "\",\"ClientRequestURI\":\"/login\"}"},
	{"{\"type\":\"wrapped\",\"in\":\"cri\",\"message\":\"combined\"}",
     "2024-05-17T10:05:03Z stdout F 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"",
     " /login HTTP/1.1\" 200 5 \"-\" \"-\""},
	{"{\"type\":\"wrapped\",\"in\":\"json\",\"message\":\"logfmt\"}",
     "{\"log\":\"time=2024-05-17T10:05:03Z path=/login\",\"method\":\"", "\"}"},
	{"{\"type\":\"syslog\",\"message\":\"json\"}",
     "<1>1 2024-05-17T10:05:03Z h a - - - {\"path\":\"/login\",\"method\":\"", "\"}"},
};

static void assert_method(const char *config, const char *fields, const char *line, const char *method,
                          const char *path)
{
	struct fixture fixture;
	fixture_init(&fixture, config, fields);
	if (fixture_parse(&fixture, line) != FORMAT_OK)
		fail_msg("%s is not read: %s", line, config);
	assert_field(&fixture, "method", method);
	if (path != NULL)
		assert_field(&fixture, "path", path);
	fixture_deinit(&fixture);
}

static void a_method_has_one_form_in_each_format(void **state)
{
	(void)state;
	static const char *const methods[][2] = {
		{"POST", "POST"}, {"post", "POST"}, {"Post", "POST"}, {"posT", "POST"}, {"posts", "posts"}};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
			char line[512];
			snprintf(line, sizeof line, "%s%s%s", formats[i].before, methods[k][0], formats[i].behind);
			assert_method(formats[i].config, "ip method path", line, methods[k][1], "/login");
			assert_method(formats[i].config, "method", line, methods[k][1], NULL);
		}
}

static void files_with_columns_have_it_too(void **state)
{
	(void)state;
	static const char *const files[][3] = {
		{"\"w3c\"", "#Fields: date time c-ip cs-method cs-uri-stem", "2024-05-17 10:05:03 192.0.2.7 post /login"},
		{"\"zeek\"", "#fields\tts\tid.orig_h\tmethod\turi", "1715940303.1\t192.0.2.7\tpost\t/login"},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct fixture fixture;
		fixture_init(&fixture, files[i][0], "ip method path");
		assert_int_equal(fixture_parse(&fixture, files[i][1]), FORMAT_SKIP);
		assert_int_equal(fixture_parse(&fixture, files[i][2]), FORMAT_OK);
		assert_field(&fixture, "method", "POST");
		assert_field(&fixture, "path", "/login");
		fixture_deinit(&fixture);
	}
}

static void other_methods_stay(void **state)
{
	(void)state;
	assert_method("{\"type\":\"sshd\",\"year\":2024}", "ip method",
	              "May 17 10:05:03 h sshd[1]: Failed password for bob from 192.0.2.7 port 1 ssh2", "password", NULL);
	assert_method("{\"type\":\"syslog\",\"message\":\"sshd\",\"year\":2024}", "ip method",
	              "May 17 10:05:03 h sshd[1]: Accepted publickey for bob from 192.0.2.7 port 1 ssh2", "publickey",
	              NULL);
	assert_method("{\"type\":\"dovecot\",\"year\":2024}", "ip method",
	              "May 17 10:05:03 h dovecot: pop3-login: Login: user=<b>, method=Plain, rip=192.0.2.7, lip=::1",
	              "Plain", NULL);
	assert_method("\"json\"", "method", "{\"time\":\"2024-05-17T10:05:03Z\",\"method\":\"eth_getBalance\"}",
	              "eth_getBalance", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_method_has_one_form_in_each_format),
		cmocka_unit_test(files_with_columns_have_it_too),
		cmocka_unit_test(other_methods_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
