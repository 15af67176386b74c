/* SPDX-License-Identifier: Apache-2.0 */
/* A path in a command is one word of a shell, and that word is the path. */
#include "common/base/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void what_a_shell_leaves_alone_stands_as_it_is(void **state)
{
	(void)state;
	assert_string_equal(weir_shell_word("/var/lib/weir-1/weir.db").text, "/var/lib/weir-1/weir.db");
	assert_string_equal(weir_shell_word("").text, "''");
	assert_string_equal(weir_shell_word("~").text, "'~'");
	assert_string_equal(weir_shell_word("it's").text, "'it'\\''s'");
}

static void a_shell_reads_the_path(void **state)
{
	(void)state;
	static const char *const paths[] = {"a b;c",     "$HOME", "\"q\"",
	                                    "it's '' '", "*.log", "`x` $(y) \\ & | < > # ! ~ {a,b}"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char command[WEIR_SHELL_WORD_BYTES + 16], read[128];
		snprintf(command, sizeof command, "printf %%s %s", weir_shell_word(paths[i]).text);
		FILE *shell = popen(command, "r");
		assert_non_null(shell);
		read[fread(read, 1, sizeof read - 1, shell)] = '\0';
		assert_int_equal(pclose(shell), 0);
		assert_string_equal(read, paths[i]);
		struct weir_text text = {0};
		weir_shell_append(&text, paths[i]);
		weir_text_append(&text, "", 1);
		assert_string_equal(text.at, weir_shell_word(paths[i]).text);
		weir_text_deinit(&text);
	}
}

static void a_word_that_is_appended_may_be_of_any_length(void **state)
{
	enum { QUOTES = 3 * PATH_MAX };
	static char word[QUOTES + 1];
	struct weir_text text = {0};
	(void)state;
	memset(word, '\'', QUOTES);
	weir_text_puts(&text, "x ");
	weir_shell_append(&text, word);
	assert_int_equal(text.length, 2 + 1 + 4 * QUOTES + 1);
	assert_memory_equal(text.at, "x ''\\''", 7);
	weir_text_deinit(&text);
}

static void the_longest_path_has_room(void **state)
{
	(void)state;
	char path[PATH_MAX + 9];
	memset(path, '\'', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	const struct weir_shell_word word = weir_shell_word(path);
	assert_int_equal(strlen(word.text), 2 + 4 * PATH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_shell_leaves_alone_stands_as_it_is),
		cmocka_unit_test(a_shell_reads_the_path),
		cmocka_unit_test(a_word_that_is_appended_may_be_of_any_length),
		cmocka_unit_test(the_longest_path_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
