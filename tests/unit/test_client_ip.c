/* SPDX-License-Identifier: Apache-2.0 */
/* The client behind trusted proxies: the rightmost hop that is not trusted. */
#include "tests/unit/format_fixture.h"

static struct fixture fixture;

/* ip and xff NULL: absent */
static void assert_client(const char *ip, const char *xff, const char *expected)
{
	char line[512];
	int length = snprintf(line, sizeof line, "time=1");
	if (ip != NULL)
		length += snprintf(line + length, sizeof line - (size_t)length, " ip=\"%s\"", ip);
	if (xff != NULL)
		snprintf(line + length, sizeof line - (size_t)length, " xff=\"%s\"", xff);
	assert_reason(&fixture, line, FORMAT_OK);
	assert_field(&fixture, "ip", expected);
}

/* Nobody is the client, nor is the proxy that passed the header on: its other users are not to be counted as one. */
static void assert_nobody(const char *ip, const char *xff)
{
	char line[512];
	snprintf(line, sizeof line, "time=1 ip=\"%s\" xff=\"%s\"", ip, xff);
	assert_reason(&fixture, line, FORMAT_NO_CLIENT);
}

static void the_rightmost_untrusted_hop(void **state)
{
	(void)state;
	assert_client("10.0.0.1", "203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1, 203.0.113.9 ,\\t10.9.9.9,2001:db8::5", "203.0.113.9");
	assert_client("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9");
	assert_client(NULL, "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9");
}

static void blanks_as_logs_in_columns_write_them(void **state)
{
	(void)state;
	assert_client("10.0.0.1", "1.1.1.1,+203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1,+203.0.113.9:51000", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1,%20203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1,+203.0.113.9+,%20%20+10.0.0.2%20", "203.0.113.9");
	assert_client("10.0.0.1", "1.1.1.1,%20fe80::1%20", "fe80::1"); /* the link's zone is cut in any case */
	assert_client("10.0.0.1", "for=1.1.1.1,+proto=http;+for=203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "+,%20,203.0.113.9,+", "203.0.113.9");
	assert_client("10.0.0.1", "%20", "10.0.0.1");
	assert_nobody("10.0.0.1", "203.0.113.9,+unknown");
	assert_nobody("10.0.0.1", "203.0.113.9,+1.1.1.1+2.2.2.2");
	assert_nobody("10.0.0.1", "203.0.113.9,%2");
}

/* As nginx writes a header that did not come, whatever form its line has. */
static void a_dash_is_no_header(void **state)
{
	(void)state;
	assert_client("10.0.0.1", "-", "10.0.0.1");
	assert_client("198.51.100.1", "-", "198.51.100.1");
	assert_client("10.0.0.1", "-, 203.0.113.9", "203.0.113.9");
	assert_nobody("10.0.0.1", "203.0.113.9, -");
	assert_nobody("10.0.0.1", "--");
}

static void an_untrusted_peer_is_the_client(void **state)
{
	(void)state;
	assert_client("198.51.100.1", "203.0.113.9", "198.51.100.1");
	assert_client("198.51.100.1", "10.0.0.1", "198.51.100.1");
	assert_client("not-an-address", "203.0.113.9", "not-an-address");
}

static void all_trusted_gives_the_leftmost(void **state)
{
	(void)state;
	assert_client("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3");
	assert_client("10.0.0.1", NULL, "10.0.0.1");
	assert_client(NULL, NULL, NULL);
}

static void what_is_no_address_names_nobody(void **state)
{
	(void)state;
	assert_nobody("10.0.0.1", "203.0.113.9, unknown, 10.0.0.2");
	assert_nobody("10.0.0.1", "unknown");
	assert_nobody("10.0.0.1", "_hidden");
	assert_nobody("", "unknown");
	assert_nobody("10.0.0.1, unknown", "203.0.113.9");
	assert_client("10.0.0.1", "unknown, 203.0.113.9", "203.0.113.9");
	/* Empty elements do not count. */
	assert_client("10.0.0.1", "203.0.113.9,", "203.0.113.9");
	assert_client("10.0.0.1", ", 203.0.113.9 , ,", "203.0.113.9");
	assert_client("10.0.0.1", ",", "10.0.0.1");
}

static void brackets_and_ports_are_taken_off(void **state)
{
	(void)state;
	assert_client("10.0.0.1:80", "203.0.113.9:65535", "203.0.113.9");
	assert_client("10.0.0.1", "[2001:db9::7]:443", "2001:db9::7");
	assert_client("10.0.0.1", "[2001:db9::7]", "2001:db9::7");
	assert_client("10.0.0.1", "\\\"[2001:DB9:0::7]\\\"", "2001:db9::7");
	assert_client("10.0.0.1", "fe80::1%eth0", "fe80::1");
	assert_client("203.0.113.9:80", NULL, "203.0.113.9");
	assert_nobody("10.0.0.1", "203.0.113.9:");
	assert_nobody("10.0.0.1", "203.0.113.9:123456");
	assert_nobody("10.0.0.1", "203.0.113.9:8o");
	assert_nobody("10.0.0.1", "[2001:db9::7");
	assert_nobody("10.0.0.1", "[2001:db9::7]x");
	assert_nobody("10.0.0.1", "[]");
}

static void the_ip_may_be_a_list_itself(void **state)
{
	(void)state;
	assert_client("1.1.1.1, 203.0.113.9, 10.0.0.2", NULL, "203.0.113.9");
	assert_client("10.0.0.3, 10.0.0.2", "1.1.1.1, 203.0.113.9", "203.0.113.9");
	assert_client("1.1.1.1, 203.0.113.9", "198.51.100.1", "203.0.113.9");
	assert_client("for=1.1.1.1, for=203.0.113.9;by=x", NULL, "203.0.113.9");
}

static void forwarded_of_rfc_7239(void **state)
{
	(void)state;
	assert_client("10.0.0.1", "for=203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "for=1.1.1.1, For=203.0.113.9;proto=http;by=10.0.0.5", "203.0.113.9");
	assert_client("10.0.0.1", "proto=https; FOR = \\\"[2001:db8:cafe::17]:4711\\\"", "2001:db8:cafe::17");
	assert_client("10.0.0.1", "for=203.0.113.9,for=10.0.0.2;by=10.0.0.1", "203.0.113.9");
	assert_nobody("10.0.0.1", "for=unknown");
	assert_nobody("10.0.0.1", "for=_SEVKISEK");
	assert_nobody("10.0.0.1", "for=");
	assert_nobody("10.0.0.1", "proto=https;by=10.0.0.5");
	/* What a client chose: the host that it asked, and all that stands left of what a proxy wrote. */
	assert_client("10.0.0.1", "for=203.0.113.9;host=\\\"a, for=1.1.1.1\\\"", "203.0.113.9");
	assert_client("10.0.0.1", "host=\\\";for=1.1.1.1;\\\";for=203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "for=\\\"1.1.1.1, for=203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "for=203.0.113.9;host=\\\"a\\\\\\\", for=1.1.1.1\\\"", "203.0.113.9");
}

static void a_socket_of_the_machine(void **state)
{
	(void)state;
	assert_client("unix:", "203.0.113.9", "unix:");
	fixture_deinit(&fixture);
	fixture_init(
		&fixture,
		"{\"type\": \"logfmt\", \"unit\": \"s\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"unix:\"]}}",
		"ip");
	assert_client("unix:", "1.1.1.1, 203.0.113.9", "203.0.113.9");
	assert_client("10.0.0.1", "203.0.113.9", "10.0.0.1");
}

static void options(void **state)
{
	(void)state;
	assert_refused("{\"type\": \"json\", \"client_ip\": {}}", "client_ip.header");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"header\": \"\", \"trusted\": [\"10.0.0.0/8\"]}}", "header");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\"}}", "client_ip.trusted");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\", \"trusted\": []}}", "trusted");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.1/8\"]}}",
	               "host bits");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [5]}}", "trusted[0]");
	assert_refused("{\"type\": \"json\", \"client_ip\": {\"headr\": \"xff\"}}", "did you mean \"header\"");
}

/* A header that no line has would make the proxy of everybody: what the format has is said, or where to name it. */
static void a_header_that_no_line_has(void **state)
{
	(void)state;
#define BEHIND(options, header) \
	"{" options ", \"client_ip\": {\"header\": \"" header "\", \"trusted\": [\"10.0.0.0/8\"]}}"
	static const struct {
		const char *config, *said;
	} refused[] = {
		{BEHIND("\"type\": \"combined\"", "x-forwarded-for"),
	     "format.client_ip.header: no line of this format has the field \"x-forwarded-for\"; known: \"host\", \"ip\", "},
		{BEHIND("\"type\": \"common\"", "XFF"), "\"agent\", \"xff\""},
		{BEHIND("\"type\": \"squid\"", "xff"), "known: \"duration\", \"ip\", "},
		{BEHIND("\"type\": \"pattern\", \"pattern\": \"(?<time>.*) (?<ip>.*)\"", "xff"), "name it in its \"pattern\""},
		{BEHIND("\"type\": \"delimited\", \"header\": false, \"columns\": [\"time\", \"ip\"]", "xff"), "\"columns\""},
		{"{\"type\": \"syslog\", \"message\": " BEHIND("\"type\": \"combined\"", "app") "}",
	     "format.message.client_ip.header: no line"},
		{"{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": " BEHIND("\"type\": \"combined\"", "x") "}",
	     "format.message.client_ip.header: no line"},
		{"{\"type\": \"combined\", \"cost\": \"byts\"}", "format.cost: no line of this format has the field \"byts\""},
	};
	static const char *const taken[] = {
		BEHIND("\"type\": \"combined\"", "xff"),
		BEHIND("\"type\": \"combined\"", "ip"), /* a list itself */
		BEHIND("\"type\": \"squid\", \"fields\": {\"xff\": \"user\"}", "xff"),
		BEHIND("\"type\": \"pattern\", \"pattern\": \"(?<time>.*) (?<xff>.*)\"", "xff"),
		BEHIND("\"type\": \"delimited\", \"header\": false, \"columns\": [\"time\", \"xff\"]", "xff"),
		BEHIND("\"type\": \"delimited\"", "xff"),
		BEHIND("\"type\": \"json\"", "x-forwarded-for"),
		BEHIND("\"type\": \"w3c\"", "x-forwarded-for"),
		"{\"type\": \"combined\", \"cost\": \"bytes\"}",
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_refused(refused[i].config, refused[i].said);
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		struct fixture made;
		fixture_init(&made, taken[i], "ip");
		fixture_deinit(&made);
	}
#undef BEHIND
}

static int init(void **state)
{
	(void)state;
	fixture_init(&fixture,
	             "{\"type\": \"logfmt\", \"unit\": \"s\", \"client_ip\": {\"header\": \"xff\", "
	             "\"trusted\": [\"10.0.0.0/8\", \"2001:db8::/32\"]}}",
	             "ip");
	return 0;
}

static int deinit(void **state)
{
	(void)state;
	fixture_deinit(&fixture);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rightmost_untrusted_hop),
		cmocka_unit_test(blanks_as_logs_in_columns_write_them),
		cmocka_unit_test(a_dash_is_no_header),
		cmocka_unit_test(an_untrusted_peer_is_the_client),
		cmocka_unit_test(all_trusted_gives_the_leftmost),
		cmocka_unit_test(what_is_no_address_names_nobody),
		cmocka_unit_test(the_ip_may_be_a_list_itself),
		cmocka_unit_test(forwarded_of_rfc_7239),

		cmocka_unit_test(brackets_and_ports_are_taken_off),
		cmocka_unit_test(a_socket_of_the_machine),
		cmocka_unit_test(options),
		cmocka_unit_test(a_header_that_no_line_has),
	};
	return cmocka_run_group_tests(tests, init, deinit);
}
