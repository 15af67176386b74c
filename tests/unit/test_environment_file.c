/* SPDX-License-Identifier: Apache-2.0 */
/* A variable of a systemd EnvironmentFile, and its words in a command line, are what systemd makes of them. */
#include "deploy/weir/doctor/environment_file.c" /* of a program, which no library has */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void the_last_assignment_counts(void **state)
{
	static const struct {
		const char *text, *value; /* NULL: it is not set */
	} cases[] = {
		{"OPTIONS=--zone site\n", "--zone site"},
		{"OPTIONS=--zone site", "--zone site"},
		{"", NULL},
		{"#OPTIONS=--zone site\n", NULL},
		{" ; OPTIONS=--zone site\n", NULL},
		{"MY_OPTIONS=--zone site\n", NULL},
		{"OPTIONS\n", NULL},
		{"OPTIONS=\n", ""},
		{"OPTIONS=one\nOTHER=x\nOPTIONS=two\n", "two"},
		{"OPTIONS=one\n#OPTIONS=two\n", "one"},
		{"OPTIONS=one\nOTHER=--zone pair\n", "one"},
		{"\n  OPTIONS  =  one two \t\n\n", "one two"},
		{"OPTIONS=\"one two \" \n", "one two "},
		{"OPTIONS='one \"two\"'\n", "one \"two\""},
		{"OPTIONS=one 'two'\n", "one 'two'"},
		{"OPTIONS=one \\\n  two\nOTHER=x\n", "one   two"},
		{"OTHER='a\nOPTIONS=b\n'\nOPTIONS=c\n", "c"},
		{"OPTIONS=\"a\\\"b\\c\"\n", "a\"b\\c"},
		{"OPTIONS=a\\\\b\n", "a\\b"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *value = environment_file_value(weir_span_of(cases[i].text), "OPTIONS");
		if (cases[i].value == NULL && value != NULL)
			fail_msg("%s: %s", cases[i].text, value);
		if (cases[i].value != NULL)
			assert_string_equal(value, cases[i].value);
		free(value);
	}
}

static void a_value_is_split_into_words(void **state)
{
	static const char *const words[] = {"--zone", "a b", "--map=x y", "", "it's", "z"};
	char value[] = " --zone 'a b'  --map=\"x y\" '' it\\'s\tz ", *rest = value;
	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_string_equal(environment_file_word(&rest), words[i]);
	assert_null(environment_file_word(&rest));
	assert_null(environment_file_word(&rest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_assignment_counts),
		cmocka_unit_test(a_value_is_split_into_words),
	};
	return cmocka_run_group_tests_name("environment_file", tests, NULL, NULL);
}
