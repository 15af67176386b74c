/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes of JSON strings, and what is none. */
#include "collector/record/unescape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define assert_unescaped(raw, expected) assert_unescaped_at(raw, expected, sizeof(expected) - 1, __LINE__)

static void assert_unescaped_at(const char *raw, const char *expected, size_t length, int place)
{
	struct unescape_scratch scratch = {0};
	struct weir_span result = unescape(&scratch, weir_span_of(raw), (uint32_t)strlen(raw), true);
	if (result.length != length || memcmp(result.at, expected, length) != 0)
		fail_msg("line %d: %s became \"%.*s\"", place, raw, (int)result.length, result.at);
	unescape_scratch_deinit(&scratch);
}

static void escapes(void **state)
{
	(void)state;
	assert_unescaped("plain", "plain");
	assert_unescaped("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
	assert_unescaped("a\\u0041b", "aAb");
	assert_unescaped("\\u00e9\\u20AC\\ud83d\\ude00", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_unescaped("\\u0000", "\0");
	assert_unescaped("\\x22\\xC3\\xa9\\v\\\\x22", "\"\xc3\xa9\v\\x22"); /* of servers, in what is no JSON then */
	assert_unescaped("\xff\x80\\n", "\xff\x80\n");
}

static void lone_surrogates_are_replaced(void **state)
{
	(void)state;
	assert_unescaped("\\ud83d", "\xef\xbf\xbd");
	assert_unescaped("\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd");
	assert_unescaped("\\ud83d\\u0041", "\xef\xbf\xbd"
	                                   "A");
	assert_unescaped("\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80");
	assert_unescaped("\\ud83d\\n", "\xef\xbf\xbd\n");
}

static void what_is_no_escape_stays(void **state)
{
	(void)state;
	assert_unescaped("\\x2", "\\x2");
	assert_unescaped("\\x2g", "\\x2g");
	assert_unescaped("\\X22", "\\X22");
	assert_unescaped("\\u12", "\\u12");
	assert_unescaped("\\u12g4", "\\u12g4");
	assert_unescaped("\\u", "\\u");
	assert_unescaped("a\\", "a\\");
	assert_unescaped("\\'\\0", "\\'\\0");
}

static void kept_values_stand_side_by_side(void **state)
{
	(void)state;
	struct unescape_scratch scratch = {0};
	struct weir_span first = unescape(&scratch, weir_span_of("a\\n"), 20, true);
	struct weir_span key = unescape(&scratch, weir_span_of("k\\t"), 20, false);
	assert_true(weir_span_equal(key, weir_span_of("k\t")));
	struct weir_span second = unescape(&scratch, weir_span_of("b\\n"), 20, true);
	assert_true(weir_span_equal(first, weir_span_of("a\n")));
	assert_true(weir_span_equal(second, weir_span_of("b\n")));
	unescape_scratch_clear(&scratch);
	struct weir_span longer = unescape(&scratch, weir_span_of("\\n"), 200, true);
	assert_true(weir_span_equal(longer, weir_span_of("\n")));
	unescape_scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(lone_surrogates_are_replaced),
		cmocka_unit_test(what_is_no_escape_stays),
		cmocka_unit_test(kept_values_stand_side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
