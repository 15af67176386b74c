/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of combined lines, part by part. */
#include "collector/format/combined_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct combined_line line;

static void split(const char *text)
{
	if (!combined_line_split(weir_span_of(text), &line))
		fail_msg("not taken: %s", text);
}

#define assert_part(part, expected) assert_part_at(part, expected, __LINE__)

static void assert_part_at(enum combined_part part, const char *expected, int place)
{
	struct weir_span span = line.parts[part];
	if (span.at == NULL || expected == NULL) {
		if (span.at != expected)
			fail_msg("line %d: the part is %s", place, span.at == NULL ? "absent" : "there");
		return;
	}
	if (!weir_span_equal(span, weir_span_of(expected)))
		fail_msg("line %d: \"%.*s\" instead of \"%s\"", place, (int)span.length, span.at, expected);
}

static void all_parts_of_a_line(void **state)
{
	(void)state;
	split(
		"192.0.2.7 id bob [17/May/2015:10:05:03 +0000] \"GET /a/b?c=d?e HTTP/1.1\" 200 1234 \"http://x/\" \"Agent (x)\" "
		"\"198.51.100.1, 10.0.0.1\" 0.003 rest");
	assert_part(COMBINED_IP, "192.0.2.7");
	assert_part(COMBINED_IDENT, "id");
	assert_part(COMBINED_USER, "bob");
	assert_part(COMBINED_TIME, "17/May/2015:10:05:03 +0000");
	assert_part(COMBINED_METHOD, "GET");
	assert_part(COMBINED_TARGET, "/a/b?c=d?e");
	assert_part(COMBINED_STATUS, "200");
	assert_part(COMBINED_BYTES, "1234");
	assert_part(COMBINED_REFERER, "http://x/");
	assert_part(COMBINED_AGENT, "Agent (x)");
	assert_part(COMBINED_XFF, "198.51.100.1, 10.0.0.1");
}

static void a_user_may_hold_anything(void **state)
{
	(void)state;
	split("h - John Q. [x] Public [t] \"GET / HTTP/1.1\" 200 0");
	assert_part(COMBINED_USER, "John Q. [x] Public");
	assert_part(COMBINED_TIME, "t");
	split("h -  [t] \"GET / HTTP/1.1\" 200 0");
	assert_part(COMBINED_USER, "");
	split("h - a [b [t] \"GET / HTTP/1.1\" 200 0");
	assert_part(COMBINED_USER, "a [b");
	split("h - a] [] \"GET / HTTP/1.1\" 200 0");
	assert_part(COMBINED_USER, "a]");
	assert_part(COMBINED_TIME, "");
}

static void requests_that_are_none(void **state)
{
	(void)state;
	static const char *const requests[] = {"",       "-",       "GET",   "GET ",       "GET  ",
	                                       " GET /", "G*T / H", "GET\t", "\\x16\\x03", "GET / A B"};
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "h - - [t] \"%s\" 400 -", requests[i]);
		split(text);
		if (line.parts[COMBINED_METHOD].at != NULL || line.parts[COMBINED_TARGET].at != NULL)
			fail_msg("\"%s\" is taken for a request", requests[i]);
		assert_part(COMBINED_STATUS, "400");
		assert_part(COMBINED_BYTES, "-");
	}
	split("h - - [t] \"GET /\" 400 -");
	assert_part(COMBINED_METHOD, "GET");
	assert_part(COMBINED_TARGET, "/");
	split("h - - [t] \"M-SEARCH_2 *?x y\" 400 -");
	assert_part(COMBINED_METHOD, "M-SEARCH_2");
	assert_part(COMBINED_TARGET, "*?x");
	split("h - - [t] \"GET /a b c HTTP/1.1\" 400 -");
	assert_part(COMBINED_TARGET, "/a b c");
	split("h - - [t] \"GET  /a   b  HTTP/1.1 \" 400 -");
	assert_part(COMBINED_TARGET, "/a   b");
	static const char *const blanks[] = {"GET  /x", "GET /x ", "GET /x  H", "GET   /x H  ", "GET /x HTTP/1.1   "};
	for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++) {
		char text[200];
		snprintf(text, sizeof text, "h - - [t] \"%s\" 400 -", blanks[i]);
		split(text);
		assert_part(COMBINED_METHOD, "GET");
		assert_part(COMBINED_TARGET, "/x");
	}
	split("h - - [t] \"GET ?x HTTP/1.1\" 400 -");
	assert_part(COMBINED_TARGET, "?x");
}

static void escapes_stay_and_hide_quotes(void **state)
{
	(void)state;
	split("h - - [t] \"GET /\\\"a\\\\ HTTP/1.1\" 200 5 \"\\\\\" \"a \\\" b\"");
	assert_part(COMBINED_TARGET, "/\\\"a\\\\");
	assert_part(COMBINED_REFERER, "\\\\");
	assert_part(COMBINED_AGENT, "a \\\" b");
}

static void the_tail_is_optional_and_never_wrong(void **state)
{
	(void)state;
	split("h - - [t] \"GET / HTTP/1.1\" 200 5");
	assert_part(COMBINED_REFERER, NULL);
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 \"r\" \"not ended");
	assert_part(COMBINED_REFERER, "r");
	assert_part(COMBINED_AGENT, NULL);
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 \"not ended");
	assert_part(COMBINED_REFERER, NULL);
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 0.1 \"r\" \"a\"");
	assert_part(COMBINED_REFERER, NULL);
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 \"r\"  \"a\"");
	assert_part(COMBINED_REFERER, "r");
	assert_part(COMBINED_AGENT, NULL);
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 \"\" \"\"");
	assert_part(COMBINED_REFERER, "");
	assert_part(COMBINED_AGENT, "");
	split("h - - [t] \"GET / HTTP/1.1\" 200 5 ");
}

/* nginx's $host of a request without a Host, where the server has no name either: nothing, and its blank. */
static void a_virtual_host_may_be_empty(void **state)
{
	(void)state;
	split(" 192.0.2.7 - - [t] \"GET /a HTTP/1.0\" 200 5 \"-\" \"x\"");
	assert_part(COMBINED_HOST, NULL);
	assert_part(COMBINED_IP, "192.0.2.7");
	assert_part(COMBINED_TARGET, "/a");
	assert_part(COMBINED_AGENT, "x");
	split(" 2001:db8::1 - 198.51.100.1 - bob [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 5");
	assert_part(COMBINED_IP, "2001:db8::1");
	assert_part(COMBINED_USER, "198.51.100.1 - bob");
}

static void lines_that_are_not_combined(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"",
		" ",
		"h",
		"h -",
		"h - -",
		"h - - [t",
		"h - - t]",
		"h - - [t]x",
		"h - [t] \"GET / HTTP/1.1\" 200 5",
		"h  - - [t] \"GET / HTTP/1.1\" 200 5",
		"a b c d [t] \"GET / HTTP/1.1\" 200 5",
		"a/b - - [t] \"GET / HTTP/1.1\" 200 5",
		" h - - [t] \"GET / HTTP/1.1\" 200 5",
		"h - -[t] \"GET / HTTP/1.1\" 200 5",
		"  192.0.2.7 - - [t] \"GET / HTTP/1.1\" 200 5",
		" 192.0.2.7 x - [t] \"GET / HTTP/1.1\" 200 5",
		" 192.0.2.7 - [t] \"GET / HTTP/1.1\" 200 5",
		" 192.0.2.7, 192.0.2.8 - - [t] \"GET / HTTP/1.1\" 200 5",
		" 192.0.2.7",
		" 192.0.2.7 - ",
		" \"curl/7.54.0\"",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		if (combined_line_split(weir_span_of(lines[i]), &line))
			fail_msg("taken: %s", lines[i]);
	}
}

/* What a server, a disk or a limit cut off, or a server of another kind wrote: the head counts. */
static void what_follows_the_head_is_no_reason_to_refuse(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"h - - [t]",
		"h - - [t] ",
		"h - - [t] \"",
		"h - - [t] x",
		"h - - [t] \"GET / HTTP/1.1",
		"h - - [t] \"GET / HTTP/1.1\\\" 200 5",
		"h - - [t] \"GET / HTTP/1.1\"",
		"h - - [t] \"GET / HTTP/1.1\" 200 ",
		"h - - [t] \"GET / HTTP/1.1\" 20 5",
		"h - - [t] \"GET / HTTP/1.1\" 2000 5",
		"h - - [t] \"GET / HTTP/1.1\" - 5",
		"h - - [t] \"GET / HTTP/1.1\" 200 5x",
		"h - - [t] \"GET / HTTP/1.1\" 200 --",
		"h - - [t] \"GET / HTTP/1.1\" 200 x",
		"h - - [t] \"GET / HTTP/1.1\"  200 5",
		"h - - [t] \"GET / HTTP/1.1\" 200  5",
		"h - - [t]  \"GET / HTTP/1.1\" 200 5",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		split(lines[i]);
		assert_part(COMBINED_IP, "h");
		assert_part(COMBINED_TIME, "t");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_parts_of_a_line),
		cmocka_unit_test(a_user_may_hold_anything),
		cmocka_unit_test(requests_that_are_none),
		cmocka_unit_test(escapes_stay_and_hide_quotes),
		cmocka_unit_test(the_tail_is_optional_and_never_wrong),
		cmocka_unit_test(a_virtual_host_may_be_empty),
		cmocka_unit_test(lines_that_are_not_combined),
		cmocka_unit_test(what_follows_the_head_is_no_reason_to_refuse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
