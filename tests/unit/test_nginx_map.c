/* The lines of an nginx map: what nginx reads back from them is the key, whatever its bytes. */
#include "deploy/gateways/nginx_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_line(const char *key, int64_t until_ms, const char *expected)
{
	struct weir_text text = {0};
	nginx_map_line(&text, weir_span_of(key), until_ms);
	weir_text_append(&text, "", 1);
	assert_string_equal(expected, text.at);
	weir_text_deinit(&text);
}

static void test_lines(void **state)
{
	(void)state;
	assert_line("203.0.113.9", 1732173655007, "\"203.0.113.9\" \"Thu, 21 Nov 2024 07:20:56 GMT\";\n");
	assert_line("2001:db8::1", 1732173655000, "\"2001:db8::1\" \"Thu, 21 Nov 2024 07:20:55 GMT\";\n");
	assert_line("", 0, "\"\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
	assert_line("a \"b\" \\|c", 0, "\"a \\\"b\\\" \\\\|c\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
}

static void test_words_that_nginx_knows_are_masked(void **state)
{
	(void)state;
	assert_line("default", 0, "\"\\\\default\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
	assert_line("Include", 0, "\"\\\\Include\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
	assert_line("~^a", 0, "\"\\\\~^a\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
	assert_line("\\a", 0, "\"\\\\\\\\a\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
	assert_line("defaults", 0, "\"defaults\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n");
}

static void test_a_block_without_end_ends_with_the_year_9999(void **state)
{
	(void)state;
	assert_line("a", INT64_MAX, "\"a\" \"Fri, 31 Dec 9999 23:59:59 GMT\";\n");
}

static void test_what_a_map_cannot_hold(void **state)
{
	(void)state;
	char key[NGINX_MAP_KEY_MAX_BYTES + 1];
	memset(key, 'a', sizeof key);
	assert_true(nginx_map_fits((struct weir_span){.at = key, .length = sizeof key - 1}));
	assert_false(nginx_map_fits((struct weir_span){.at = key, .length = sizeof key}));
	key[3] = '\0';
	assert_false(nginx_map_fits((struct weir_span){.at = key, .length = 10}));
	assert_true(nginx_map_fits((struct weir_span){.at = key, .length = 3}));
	assert_true(nginx_map_fits(weir_span_of("")));
}

static void test_case_makes_no_other_key(void **state)
{
	(void)state;
	assert_int_equal(0, nginx_map_compare(weir_span_of("Bob"), weir_span_of("bOB")));
	assert_true(nginx_map_compare(weir_span_of("bob"), weir_span_of("Bobby")) < 0);
	assert_true(nginx_map_compare(weir_span_of("c"), weir_span_of("Bobby")) > 0);
	assert_true(nginx_map_compare(weir_span_of("\xc4"), weir_span_of("\xe4")) < 0); /* only of ASCII */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_words_that_nginx_knows_are_masked),
		cmocka_unit_test(test_a_block_without_end_ends_with_the_year_9999),
		cmocka_unit_test(test_what_a_map_cannot_hold),
		cmocka_unit_test(test_case_makes_no_other_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
