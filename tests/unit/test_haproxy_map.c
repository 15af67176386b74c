/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as words of HAProxy's commands: split back as HAProxy splits, they are the key again. */
#include "deploy/gateways/target/haproxy/haproxy_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static void assert_word(const char *key, const char *expected)
{
	struct weir_text text = {0};
	haproxy_map_word(&text, weir_span_of(key));
	weir_text_append(&text, "", 1);
	assert_string_equal(expected, text.at);
	weir_text_deinit(&text);
}

static void test_words(void **state)
{
	(void)state;
	assert_word("203.0.113.9", "203.0.113.9");
	assert_word("a b;c\\d\te", "a\\ b\\;c\\\\d\\\te");
	assert_word("\xff\"<", "\xff\"\\<");
}

/* HAProxy's way: a blank or semicolon ends a word unless a backslash stands before it, which goes. */
static void test_random_keys_come_back(void **state)
{
	(void)state;
	const char *given = getenv("WEIR_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	print_message("WEIR_SEED=%u\n", seed);
	srand(seed);
	for (int round = 0; round < 20000; round++) {
		char key[16], back[32];
		uint32_t length = (uint32_t)rand() % sizeof key, at = 0;
		for (uint32_t i = 0; i < length; i++)
			key[i] = rand() % 2 ? " ;\\\t<#ab"[rand() % 8] : (char)rand();
		struct weir_span span = {.at = key, .length = length};
		if (!haproxy_map_fits(span))
			continue;
		struct weir_text text = {0};
		haproxy_map_word(&text, span);
		weir_text_puts(&text, " end");
		size_t i = 0;
		for (; text.at[i] != ' ' && text.at[i] != ';' && text.at[i] != '\t'; i++) {
			i += text.at[i] == '\\';
			back[at++] = text.at[i];
		}
		assert_int_equal(length, at);
		assert_memory_equal(key, back, length);
		assert_int_equal(text.length, i + 4);
		if (haproxy_map_is_plain(span))
			assert_int_equal(length, i);
		weir_text_deinit(&text);
	}
}

static void test_what_a_map_cannot_hold(void **state)
{
	(void)state;
	assert_false(haproxy_map_fits(weir_span_of("")));
	assert_false(haproxy_map_fits(weir_span_of("#12")));
	assert_false(haproxy_map_fits(weir_span_of("a\nb")));
	assert_false(haproxy_map_fits((struct weir_span){.at = "a\0b", .length = 3}));
	assert_true(haproxy_map_fits(weir_span_of("a b")));
	assert_false(haproxy_map_is_plain(weir_span_of("a b")));
	assert_false(haproxy_map_is_plain(weir_span_of("a;b")));
	assert_false(haproxy_map_is_plain(weir_span_of("\xff")));
	assert_true(haproxy_map_is_plain(weir_span_of("2001:db8::1|/x?y=#")));
}

static void test_seconds_are_rounded_up(void **state)
{
	(void)state;
	struct weir_text text = {0};
	haproxy_map_until(&text, 1732173655001);
	weir_text_puts(&text, " ");
	haproxy_map_until(&text, 1732173655000);
	weir_text_puts(&text, " ");
	haproxy_map_until(&text, INT64_MAX);
	weir_text_append(&text, "", 1);
	assert_string_equal("1732173656 1732173655 253402300799", text.at);
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_random_keys_come_back),
		cmocka_unit_test(test_what_a_map_cannot_hold),
		cmocka_unit_test(test_seconds_are_rounded_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
