/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings are valid for any bytes, and bytes outside UTF-8 become U+FFFD one by one. */
#include "common/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <cmocka.h>

static void expect_json(const char *bytes, uint32_t length, const char *expected)
{
	struct weir_text text = {0};
	weir_text_json(&text, (struct weir_span){.at = bytes, .length = length});
	assert_int_equal(text.length, strlen(expected));
	assert_memory_equal(text.at, expected, text.length);
	weir_text_deinit(&text);
}

static void plain_text_stands_as_it_is(void **state)
{
	(void)state;
	expect_json("203.0.113.9", 11, "\"203.0.113.9\"");
	expect_json("", 0, "\"\"");
	expect_json("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", 14, "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
	expect_json("\xC2\xA0", 2, "\"\xC2\xA0\""); /* the first behind the control characters of two bytes */
}

static void quotes_and_controls_are_escaped(void **state)
{
	(void)state;
	expect_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	expect_json("\b\t\n\v\f\r", 6, "\"\\b\\t\\n\\u000b\\f\\r\"");
	expect_json("\0\x1F", 2, "\"\\u0000\\u001f\"");
	expect_json("a\x7F~", 3, "\"a\\u007f~\"");
	expect_json("\xC2\x80-\xC2\x9B"
	            "31m\xC2\x9F",
	            10, "\"\\u0080-\\u009b31m\\u009f\"");
	expect_json("a\xE2\x80\xAE"
	            "b\xEF\xBB\xBF\xD8\x9C",
	            10, "\"a\\u202eb\\ufeff\\u061c\"");
}

static void bytes_outside_utf8_become_replacements(void **state)
{
	(void)state;
	expect_json("\xFF", 1, "\"\xEF\xBF\xBD\"");
	expect_json("a\xC3", 2, "\"a\xEF\xBF\xBD\"");
	expect_json("\x9B\xC2", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
	expect_json("\xC0\x80", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                                 /* overlong */
	expect_json("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");                 /* a surrogate */
	expect_json("\xF4\x90\x80\x80", 4, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""); /* above U+10FFFF */
}

static void random_bytes_give_json_that_a_parser_takes(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		char bytes[24];
		uint32_t length = (uint32_t)(rand() % (int)sizeof bytes);
		for (uint32_t i = 0; i < length; i++)
			bytes[i] = (char)(rand() % 3 == 0 ? rand() : 0x80 + rand() % 0x80);
		struct weir_text text = {0};
		weir_text_puts(&text, "[");
		weir_text_json(&text, (struct weir_span){.at = bytes, .length = length});
		weir_text_puts(&text, "]");
		json_t *json = json_loadb(text.at, text.length, JSON_ALLOW_NUL, NULL);
		assert_non_null(json);
		json_decref(json);
		weir_text_deinit(&text);
	}
}

static void numbers_are_written_to_their_ends(void **state)
{
	(void)state;
	struct weir_text text = {0};
	weir_text_int(&text, INT64_MIN);
	weir_text_puts(&text, " ");
	weir_text_uint(&text, UINT64_MAX);
	weir_text_printf(&text, " %d%%", 42);
	static const char expected[] = "-9223372036854775808 18446744073709551615 42%";
	assert_int_equal(text.length, sizeof expected - 1);
	assert_memory_equal(text.at, expected, text.length);
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_stands_as_it_is),
		cmocka_unit_test(quotes_and_controls_are_escaped),
		cmocka_unit_test(bytes_outside_utf8_become_replacements),
		cmocka_unit_test(random_bytes_give_json_that_a_parser_takes),
		cmocka_unit_test(numbers_are_written_to_their_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
