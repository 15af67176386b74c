/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may give as a list: lines and JSON, what is left out of it, and what is no list at all. */
#include "common/exempt/exempt_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* @param mistakes  NULL: not looked at */
static void gives(const char *bytes, const char *lines, uint32_t bad, const char *mistakes)
{
	struct weir_exempt_body body = {0};
	struct weir_error error;
	if (weir_exempt_body_read(weir_span_of(bytes), &body, &error) != WEIR_OK)
		fail_msg("%s: %s", bytes, error.text);
	assert_int_equal(body.bad, bad);
	weir_text_append(&body.lines, "", 1);
	weir_text_append(&body.mistakes, "", 1);
	assert_string_equal(body.lines.at, lines);
	if (mistakes != NULL)
		assert_string_equal(body.mistakes.at, mistakes);
	weir_exempt_body_deinit(&body);
}

static void is_none(const char *bytes, const char *words)
{
	struct weir_exempt_body body = {0};
	struct weir_error error = {.text = "taken"};
	assert_int_equal(weir_exempt_body_read(weir_span_of(bytes), &body, &error), WEIR_INVALID);
	assert_string_equal(error.text, words);
	weir_exempt_body_deinit(&body);
}

static void lines_are_addresses(void **state)
{
	(void)state;
	gives("\xef\xbb\xbf# ours\r\n\n; Spamhaus\r\n 192.0.2.1 \r\n10.0.0.0/8 ; SBL1\n2001:DB8::/32#x\n[2001:db8::1]",
	      "192.0.2.1\n10.0.0.0/8\n2001:db8::/32\n2001:db8::1\n", 0, "");
	gives("[2001:db8::1]\n", "2001:db8::1\n", 0, "");
	gives("192.0.2.1-192.0.2.3\n", "192.0.2.1\n192.0.2.2/31\n", 0, "");
}

static void bad_entries_are_left_out_by_their_lines(void **state)
{
	(void)state;
	gives("\n192.0.2.1\nbob\n\n10.0.0.1/8\n192.0.2.2\n192.0.2.3\n", "192.0.2.1\n192.0.2.2\n192.0.2.3\n", 2,
	      "line 3: \"bob\" is no address; line 5: \"10.0.0.1/8\" is no address");
	gives(
		"0.0.0.0/0\n10.0.0.0/7\n::/0\n2000::/15\n1.0.0.0/8\n2000::/16\n1.1.1.1\n1.1.1.2\n",
		"1.0.0.0/8\n2000::/16\n1.1.1.1\n1.1.1.2\n", 4,
		"line 1: 0.0.0.0/0 is wider than a list that is fetched may have (/8, IPv6 /16); line 2: 10.0.0.0/7 is wider than "
		"a list that is fetched may have (/8, IPv6 /16); line 3: ::/0 is wider than a list that is fetched may have (/8, "
		"IPv6 /16)");
	gives("0.0.0.0-255.255.255.255\n1.1.1.1\n", "1.1.1.1\n", 1, NULL);
	gives("\x1b[2Jx\n1.1.1.1", "1.1.1.1\n", 1, "line 1: \" [2Jx\" is no address");
}

static void publishers_write_json(void **state)
{
	(void)state;
	gives("{\"creationTime\": \"2026-11-01T00:00:00\", \"prefixes\": [{\"ipv6Prefix\": \"2001:4860:4801:10::/64\"}, "
	      "{\"ipv4Prefix\": \"66.249.64.0/27\"}]}",
	      "2001:4860:4801:10::/64\n66.249.64.0/27\n", 0, "");
	gives("{\"syncToken\": \"1\", \"prefixes\": [{\"ip_prefix\": \"3.5.140.0/22\", \"region\": \"ap\"}], "
	      "\"ipv6_prefixes\": [{\"ipv6_prefix\": \"2600:1f00::/24\", \"region\": \"192.0.2.1\"}]}",
	      "3.5.140.0/22\n2600:1f00::/24\n", 0, "");
	gives(" [\"192.0.2.0/24\", \"zzz\", [\"192.0.3.1\"], {\"ip\": \"192.0.4.1\"}]", "192.0.2.0/24\n192.0.3.1\n", 1,
	      "entry 2: \"zzz\" is no address");
}

static void what_is_no_list_is_refused(void **state)
{
	(void)state;
	is_none("", "is empty");
	is_none(" \r\n\t\n", "is empty");
	is_none("\n<!DOCTYPE html>\n192.0.2.1\n", "is a page of HTML");
	is_none("# nothing\n; here\n", "has no address in it");
	is_none("{}", "has no address in it");
	is_none("[]", "has no address in it");
	is_none("{\"prefixes\": [{\"ipv4Prefix\": \"66.249.64.0/27\"}, {\"ipv4Pre",
	        "is no whole JSON: it ends or goes wrong at line 1");
	is_none(
		"Service unavailable\nretry later\n192.0.2.1\n",
		"is no list of addresses: 2 of its 3 entries are none (line 1: \"Service unavailable\" is no address; line 2: "
		"\"retry later\" is no address)");
}

/* Each network may be as wide as one may be, but all of them together are not everybody. */
static void a_list_of_everybody_is_none(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int count;
		bool good;
	} cases[] = {
		{"%d.0.0.0/8\n", 256, false},
		{"%d.0.0.0/8\n", 17, false},
		{"%d.0.0.0/8\n", 16, true},
		{"20%02d::/16\n", 5, false},
		{"20%02d::/16\n", 4, true},
		{"1.0.0.0/8 ; %d\n", 40, true},
		{"1.%d.0.0/16\n1.0.0.0/8\n", 200, true},
		{"2001:%d::/32\n2001::/16\n", 300, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_text bytes = {0};
		struct weir_exempt_body body = {0};
		struct weir_error error;
		for (int k = 0; k < cases[i].count; k++) {
			char line[64];
			snprintf(line, sizeof line, cases[i].line, k);
			weir_text_puts(&bytes, line);
		}
		if ((weir_exempt_body_read(weir_text_span(&bytes), &body, &error) == WEIR_OK) != cases[i].good)
			fail_msg("%d of %s", cases[i].count, cases[i].line);
		weir_exempt_body_deinit(&body);
		weir_text_deinit(&bytes);
	}
	is_none(
		"1.0.0.0/8\n2.0.0.0/8\n16.0.0.0/8\n20.0.0.0/8\n30.0.0.0/8\n31.0.0.0/8\n32.0.0.0/8\n33.0.0.0/8\n34.0.0.0/8\n"
		"35.0.0.0/8\n36.0.0.0/8\n37.0.0.0/8\n38.0.0.0/8\n39.0.0.0/8\n40.0.0.0/8\n41.0.0.0/8\n192.0.2.1\n",
		"exempts too many: its networks are wider together than a list that is fetched may be (/4 of IPv4, /14 of IPv6)");
}

static void what_is_large_is_bounded(void **state)
{
	(void)state;
	struct weir_text bytes = {0};
	struct weir_exempt_body body = {0};
	struct weir_error error;
	for (int i = 0; i < WEIR_EXEMPT_BODY_NETWORKS_MAX / 100; i++)
		weir_text_puts(&bytes, "2001:db8::1-2001:db8:ffff:ffff:ffff:ffff:ffff:fffe\n");
	assert_int_equal(weir_exempt_body_read(weir_text_span(&bytes), &body, &error), WEIR_INVALID);
	assert_string_equal(error.text, "has more than 1000000 networks");
	weir_exempt_body_deinit(&body);
	weir_text_deinit(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_addresses),      cmocka_unit_test(bad_entries_are_left_out_by_their_lines),
		cmocka_unit_test(publishers_write_json),    cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(what_is_large_is_bounded), cmocka_unit_test(a_list_of_everybody_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
