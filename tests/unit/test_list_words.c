/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a list has, and networks that cover an address. */
#include "deploy/gateways/target/list_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void fill(struct list_words *words, const char *const *texts)
{
	for (; *texts != NULL; texts++)
		list_words_add(words, weir_span_of(*texts), 1);
	list_words_sort(words);
}

static void test_what_it_has(void **state)
{
	(void)state;
	struct list_words words = {0};
	list_words_sort(&words);
	assert_false(list_words_have(&words, weir_span_of("a")));
	fill(&words, (const char *const[]){"b", "a", "ab", "", "a", NULL});
	assert_int_equal(words.count, 4);
	assert_true(list_words_have(&words, weir_span_of("ab")) && list_words_have(&words, weir_span_of("")));
	assert_false(list_words_have(&words, weir_span_of("aa")) || list_words_have(&words, weir_span_of("abc")));
	list_words_deinit(&words);
}

static void test_the_latest_of_equals_stays(void **state)
{
	(void)state;
	struct list_words words = {0};
	list_words_add(&words, weir_span_of("a"), 5);
	list_words_add(&words, weir_span_of("a"), 9);
	list_words_add(&words, weir_span_of("a"), 0);
	list_words_sort(&words);
	assert_int_equal(words.count, 1);
	assert_int_equal(words.at[0].since_ms, 9);
	list_words_deinit(&words);
}

static void test_many_grow(void **state)
{
	(void)state;
	struct list_words words = {0};
	char text[32];
	for (int i = 0; i < 5000; i++) {
		int length = snprintf(text, sizeof text, "10.0.%d.%d", i / 250, i % 250);
		list_words_add(&words, (struct weir_span){.at = text, .length = (uint32_t)length}, i);
	}
	list_words_sort(&words);
	assert_int_equal(words.count, 5000);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "10.0.%d.%d", i / 250, i % 250);
		assert_true(list_words_have(&words, weir_span_of(text)));
	}
	list_words_deinit(&words);
}

static void test_networks_cover(void **state)
{
	(void)state;
	struct list_words words = {0};
	fill(&words, (const char *const[]){"198.51.100.0/24", "2001:db8::/48", "weir:site:203.0.113.0/24", NULL});
	assert_true(list_words_cover(&words, weir_span_of("198.51.100.77")));
	assert_true(list_words_cover(&words, weir_span_of("198.51.100.128/25")));
	assert_true(list_words_cover(&words, weir_span_of("198.51.100.0/24")));
	assert_true(list_words_cover(&words, weir_span_of("2001:db8:0:1::/64")));
	assert_true(list_words_cover(&words, weir_span_of("2001:db8::5")));
	assert_false(list_words_cover(&words, weir_span_of("198.51.101.1")));
	assert_false(list_words_cover(&words, weir_span_of("198.51.0.0/16")));
	assert_false(list_words_cover(&words, weir_span_of("2001:db8:1::5")));
	assert_false(list_words_cover(&words, weir_span_of("203.0.113.5")));
	assert_false(list_words_cover(&words, weir_span_of("ann")));
	list_words_deinit(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_has),
		cmocka_unit_test(test_the_latest_of_equals_stays),
		cmocka_unit_test(test_many_grow),
		cmocka_unit_test(test_networks_cover),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
