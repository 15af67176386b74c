/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as the signature wants them: escaped once, in capitals, the query sorted. */
#include "collector/source/remote/s3/s3_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(struct weir_text *text, const char *expected)
{
	weir_text_append(text, "", 1);
	assert_string_equal(text->at, expected);
	weir_text_clear(text);
}

static void keys_keep_their_slashes_and_nothing_else(void **state)
{
	(void)state;
	struct weir_text text = {0};
	s3_escape_key(&text, weir_span_of("AWSLogs/1/a b+c*d~e-f_g.h%20"));
	assert_text(&text, "AWSLogs/1/a%20b%2Bc%2Ad~e-f_g.h%2520");
	s3_escape_key(&text, weir_span_of("\xc3\xa9?#&='()!"));
	assert_text(&text, "%C3%A9%3F%23%26%3D%27%28%29%21");
	s3_escape(&text, weir_span_of("a/b\x01"));
	assert_text(&text, "a%2Fb%01");
	s3_escape_key(&text, (struct weir_span){.at = "\0", .length = 1});
	assert_text(&text, "%00");
	weir_text_deinit(&text);
}

static void a_bucket_stands_in_the_path_or_before_the_host(void **state)
{
	(void)state;
	struct weir_text text = {0};
	s3_put_bucket(&text, "http://127.0.0.1:9000/", "logs", true);
	assert_text(&text, "http://127.0.0.1:9000/logs");
	s3_put_bucket(&text, "https://s3.eu-central-1.amazonaws.com", "logs", false);
	assert_text(&text, "https://logs.s3.eu-central-1.amazonaws.com");
	s3_put_bucket(&text, "https://gateway.example/s3//", "logs", true);
	assert_text(&text, "https://gateway.example/s3/logs");
	weir_text_deinit(&text);
}

/* The members' names come in the order of their bytes. */
static void assert_sorted(const char *query)
{
	char before[64] = "";
	for (const char *at = query + 1; *at != '\0'; at += strcspn(at, "&"), at += *at == '&') {
		char name[64];
		size_t length = strcspn(at, "=");
		assert_true(length < sizeof name);
		memcpy(name, at, length);
		name[length] = '\0';
		assert_true(strcmp(before, name) < 0);
		memcpy(before, name, sizeof before);
	}
}

static void a_listings_query_is_sorted(void **state)
{
	(void)state;
	struct weir_text text = {0};
	static const char *const nexts[] = {NULL, "1/x+y="}, *const afters[] = {"", "a/b c"},
							 *const prefixes[] = {"", "a/"};
	for (int i = 0; i < 8; i++) {
		s3_put_listing(&text, prefixes[i & 1], afters[i >> 1 & 1], nexts[i >> 2]);
		weir_text_append(&text, "", 1);
		assert_sorted(text.at);
		weir_text_clear(&text);
	}
	s3_put_listing(&text, "a/", "a/b c", NULL);
	assert_text(&text, "?encoding-type=url&list-type=2&prefix=a%2F&start-after=a%2Fb%20c");
	s3_put_listing(&text, "", "a/b c", "1/x+y=");
	assert_text(&text, "?continuation-token=1%2Fx%2By%3D&encoding-type=url&list-type=2");
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_keep_their_slashes_and_nothing_else),
		cmocka_unit_test(a_bucket_stands_in_the_path_or_before_the_host),
		cmocka_unit_test(a_listings_query_is_sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
