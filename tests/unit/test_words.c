/* SPDX-License-Identifier: Apache-2.0 */
/* No control character gets from outside to a terminal: not in words, and not in an error, whoever made it. */
#include "common/base/status.h"
#include "common/base/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_clean(const char *given, const char *expected)
{
	char words[64];
	strcpy(words, given);
	weir_words_clean(words);
	assert_string_equal(expected, words);
}

static void control_characters_become_spaces(void **state)
{
	(void)state;
	expect_clean("", "");
	expect_clean("one\ntwo\x1b[31m\x7f", "one two [31m ");
	expect_clean("\xc2\x80"
	             "a\xc2\x9b"
	             "2J\xc2\x9f",
	             " a 2J ");
	expect_clean("\xc2\xc2\x9b"
	             "1m",
	             "\xc2 1m"); /* behind a byte that is no part of UTF-8 */
}

static void what_turns_or_hides_writing_becomes_spaces(void **state)
{
	(void)state;
	expect_clean("a\u202eb\u2066c\u2069\ufeffd\u2028e\u200ef\u061cg", "a b c  d e f g");
	expect_clean("\u2027\u202f\u2065\u206a\u200d\u061b", "\u2027\u202f\u2065\u206a\u200d\u061b");
	expect_clean("a\xe2\x80", "a\xe2\x80");
}

static void all_else_stands_as_it_is(void **state)
{
	(void)state;
	expect_clean("caf\xc3\xa9 \xe2\x82\xac ~ \xc2\xa0\xc2\xbf\xc3\x9b",
	             "caf\xc3\xa9 \xe2\x82\xac ~ \xc2\xa0\xc2\xbf\xc3\x9b");
	expect_clean("\x9b\xff\xc2", "\x9b\xff\xc2");
}

static void a_control_character_is_seen_where_it_is_whole(void **state)
{
	(void)state;
	assert_int_equal(0, weir_control_bytes("", 0));
	assert_int_equal(1, weir_control_bytes("\0", 1));
	assert_int_equal(0, weir_control_bytes("\xc2\x9b", 1));
	assert_int_equal(2, weir_control_bytes("\xc2\x9b", 2));
}

static void letters_that_are_not_seen_are_known(void **state)
{
	(void)state;
	static const unsigned unseen[] = {0,      0x1B,   0x7F,   0x9B,   0xAD,    0x200B,
	                                  0x202E, 0x3164, 0xFE0F, 0xFFFB, 0x13430, 0xE0FFF};
	static const unsigned seen[] = {' ',    '~',    0xA0,    0xEB,    0x33F,   0x2010,
	                                0x674E, 0xFFFC, 0x1F600, 0xDFFFF, 0xE1000, 0x10FFFF};
	for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
		assert_true(weir_is_unseen(unseen[i]));
	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
		assert_false(weir_is_unseen(seen[i]));
}

static void errors_have_clean_words(void **state)
{
	(void)state;
	struct weir_error error;
	assert_int_equal(WEIR_IO, weir_fail(&error, WEIR_IO, "refused %s",
	                                    "\x1b]0;key\x07\xc2\x9b"
	                                    "2J"));
	assert_string_equal("refused  ]0;key  2J", error.text);
	weir_error_prefix(&error, "%s", "target\n");
	assert_string_equal("target : refused  ]0;key  2J", error.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_spaces),
		cmocka_unit_test(what_turns_or_hides_writing_becomes_spaces),
		cmocka_unit_test(all_else_stands_as_it_is),
		cmocka_unit_test(a_control_character_is_seen_where_it_is_whole),
		cmocka_unit_test(letters_that_are_not_seen_are_known),
		cmocka_unit_test(errors_have_clean_words),
	};
	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
