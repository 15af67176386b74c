/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an nginx map: what nginx reads back from them is the key, whatever its bytes. */
#include "deploy/gateways/target/nginx/nginx_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

static void assert_read(const char *line, int64_t expected_ms, size_t length)
{
	const char *at = line;
	int64_t until_ms = 0;
	bool good = nginx_map_read(&at, line + strlen(line), &until_ms);
	assert_int_equal(length > 0, good);
	assert_int_equal(length, at - line);
	if (good)
		assert_int_equal(expected_ms, until_ms);
}

static void test_what_is_written_is_read_back(void **state)
{
	(void)state;
	static const char *const keys[] = {"203.0.113.9", "", "default", "a \"b\" \\|c", "\\", "two\nlines", "\" \"x\";\n"};
	static const int64_t untils_ms[] = {0, 1732173655000, INT64_C(253402300799000)};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		for (size_t j = 0; j < sizeof untils_ms / sizeof *untils_ms; j++) {
			struct weir_text text = {0};
			nginx_map_line(&text, weir_span_of(keys[i]), untils_ms[j]);
			size_t length = text.length;
			weir_text_append(&text, "\"next", sizeof "\"next");
			assert_read(text.at, untils_ms[j], length);
			weir_text_deinit(&text);
		}
}

static void test_what_was_not_written_here_is_not_read(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"",
		"\"",
		"\"a",
		"\"a\\",
		"# a comment\n",
		"a \"Thu, 21 Nov 2024 07:20:56 GMT\";\n",
		"\"a\" \"Thu, 21 Nov 2024 07:20:56 GMT\";",
		"\"a\" \"Fri, 21 Nov 2024 07:20:56 GMT\";\n", /* it was a Thursday */
		"\"a\" \"Thu, 21 Nov 2024 07:20:56 UTC\";\n",
		"\"a\" \"Thu, 32 Nov 2024 07:20:56 GMT\";\n",
		"\"a\"  \"Thu, 21 Nov 2024 07:20:56 GMT\";\n",
		"\"a\" \"0\"; #############################\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_read(lines[i], 0, 0);
}

static void assert_geo(const char *key, const char *expected)
{
	char text[NGINX_GEO_KEY_BYTES];
	bool good = nginx_geo_key(weir_span_of(key), false, text);
	assert_int_equal(expected != NULL, good);
	if (good)
		assert_string_equal(expected, text);
}

static void test_keys_of_a_geo(void **state)
{
	(void)state;
	assert_geo("203.0.113.9", "203.0.113.9");
	assert_geo("203.0.113.0/24", "203.0.113.0/24");
	assert_geo("::ffff:203.0.113.9", "203.0.113.9");
	assert_geo("2001:DB8::/64", "2001:db8::/64");
	assert_geo("::/64", "::/64");
	assert_geo("0.0.0.0/0", NULL);
	assert_geo("2001:db8::/31", NULL);
	/* An operator may mean more than a stranger may write. */
	char text[NGINX_GEO_KEY_BYTES];
	assert_geo("10.0.0.0/8", NULL);
	assert_true(nginx_geo_key(weir_span_of("10.0.0.0/8"), true, text));
	assert_string_equal("10.0.0.0/8", text);
	assert_true(nginx_geo_key(weir_span_of("2000::/3"), true, text));
	assert_string_equal("2000::/3", text);
	assert_false(nginx_geo_key(weir_span_of("10.0.0.1/8"), true, text));
	assert_false(nginx_geo_key(weir_span_of("default"), true, text));
	assert_geo("default", NULL);
	assert_geo("203.0.113.9|/", NULL);
	assert_geo("", NULL);
}

static void test_case_makes_no_other_key(void **state)
{
	(void)state;
	assert_int_equal(0, nginx_map_compare(weir_span_of("Bob"), weir_span_of("bOB")));
	assert_true(nginx_map_compare(weir_span_of("bob"), weir_span_of("Bobby")) < 0);
	assert_true(nginx_map_compare(weir_span_of("c"), weir_span_of("Bobby")) > 0);
	assert_true(nginx_map_compare(weir_span_of("\xc4"), weir_span_of("\xe4")) < 0); /* only of ASCII */
}

/* "a~" and "b_" are one to nginx's hash, whatever stands around them. */
static struct weir_span aimed_key(unsigned number, char text[64])
{
	int length = snprintf(text, 64, "user-");
	for (int bit = 0; bit < 14; bit++)
		length += snprintf(text + length, 64 - (size_t)length, "%s", (number >> bit & 1) != 0 ? "b_" : "a~");
	return weir_span_of(text);
}

static void test_no_bucket_is_overfilled(void **state)
{
	(void)state;
	struct nginx_map_buckets buckets;
	char text[64];
	uint64_t aimed = 0, others = 0;
	nginx_map_buckets_init(&buckets, UINT64_C(16384) * 48);
	for (unsigned i = 0; i < 10000; i++)
		aimed += nginx_map_buckets_take(&buckets, aimed_key(i, text)) ? nginx_map_bytes(weir_span_of(text)) : 0;
	assert_in_range(aimed, 4096, 8192);
	/* Who aims at one bucket keeps few others out. */
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(text, sizeof text, "203.0.113.%u|/%u", i % 256, i);
		others += nginx_map_buckets_take(&buckets, weir_span_of(text));
	}
	assert_in_range(others, 9900, 10000);
	nginx_map_buckets_deinit(&buckets);
	/* A long list without anybody who aims is held whole. */
	uint64_t held = 0;
	nginx_map_buckets_init(&buckets, UINT64_C(1000000) * 24);
	for (unsigned i = 0; i < 1000000; i++) {
		snprintf(text, sizeof text, "%u.%u.%u.%u", i * 2654435761U >> 24, i >> 16, i >> 8 & 255, i & 255);
		held += nginx_map_buckets_take(&buckets, weir_span_of(text));
	}
	assert_int_equal(1000000, held);
	nginx_map_buckets_deinit(&buckets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_words_that_nginx_knows_are_masked),
		cmocka_unit_test(test_a_block_without_end_ends_with_the_year_9999),
		cmocka_unit_test(test_what_a_map_cannot_hold),
		cmocka_unit_test(test_what_is_written_is_read_back),
		cmocka_unit_test(test_what_was_not_written_here_is_not_read),
		cmocka_unit_test(test_keys_of_a_geo),
		cmocka_unit_test(test_case_makes_no_other_key),
		cmocka_unit_test(test_no_bucket_is_overfilled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
