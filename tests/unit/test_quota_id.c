/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of buckets of quotas: one map has one canonical form, however it is written. */
#include "limiter/check/grpc/quota_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 200, SHUFFLES = 100 };

static void put_pair(struct weir_text *id, const char *key, const char *value)
{
	size_t pair = protobuf_open(id, 1);
	protobuf_put_bytes(id, 1, weir_span_of(key));
	protobuf_put_bytes(id, 2, weir_span_of(value));
	protobuf_close(id, pair);
}

static struct weir_span span_of(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/* Whether two ids are one; each text is "key value key value ...". */
static bool are_one(const char *first, const char *second)
{
	struct weir_text forms[2] = {{0}};
	const char *texts[2] = {first, second};
	for (int i = 0; i < 2; i++) {
		struct weir_text id = {0};
		char words[100], *rest = words, *key, *value;
		snprintf(words, sizeof words, "%s", texts[i]);
		while ((key = strtok_r(rest, " ", &rest)) != NULL && (value = strtok_r(rest, " ", &rest)) != NULL)
			put_pair(&id, strcmp(key, "-") == 0 ? "" : key, strcmp(value, "-") == 0 ? "" : value);
		assert_true(quota_id_put(&forms[i], span_of(&id)));
		assert_true(forms[i].length <= id.length);
		weir_text_deinit(&id);
	}
	bool same = weir_span_equal(span_of(&forms[0]), span_of(&forms[1]));
	weir_text_deinit(&forms[0]);
	weir_text_deinit(&forms[1]);
	return same;
}

static void pairs_have_no_order(void **state)
{
	(void)state;
	assert_true(are_one("user ann tenant t", "tenant t user ann"));
	assert_true(are_one("a 1 b 2 ab 3", "ab 3 b 2 a 1"));
	assert_false(are_one("user ann tenant t", "user t tenant ann"));
	assert_false(are_one("user ann", "user ann tenant t"));
	assert_false(are_one("a bc", "ab c"));
	assert_false(are_one("a -", "- a"));
}

static void of_a_key_that_comes_twice_the_last_value_counts(void **state)
{
	(void)state;
	assert_true(are_one("user x1 user x2", "user x2"));
	assert_true(are_one("user x1 tenant t user x2", "tenant t user x2"));
	assert_false(are_one("user x2 user x1", "user x2"));
}

static void many_pairs_are_one_map(void **state)
{
	(void)state;
	int order[MANY];
	unsigned random = 7;
	struct weir_text first = {0};
	for (int i = 0; i < MANY; i++)
		order[i] = i;
	for (int n = 0; n < SHUFFLES; n++) {
		struct weir_text id = {0}, form = {0};
		for (int i = MANY - 1; i > 0; i--) {
			int j = rand_r(&random) % (i + 1), moved = order[i];
			order[i] = order[j];
			order[j] = moved;
		}
		for (int i = 0; i < MANY; i++) {
			char key[8];
			snprintf(key, sizeof key, "k%d", order[i]);
			put_pair(&id, key, key + 1);
		}
		struct weir_text *form_here = n == 0 ? &first : &form;
		assert_true(quota_id_put(form_here, span_of(&id)));
		assert_true(weir_span_equal(span_of(&first), span_of(form_here)));
		weir_text_deinit(&id);
		weir_text_deinit(&form);
	}
	weir_text_deinit(&first);
}

/* Fields that nobody knows, lengths in more bytes than they need, and what is empty, are not of the map. */
static void how_it_is_written_is_not_of_the_map(void **state)
{
	(void)state;
	static const char *const same[] = {"\x0a\x03\x0a\x01k", "\x0a\x83\x80\x00\x0a\x01k", "\x0a\x05\x0a\x01k\x12\x00",
	                                   "\x10\x07\x0a\x05\x18\x01\x0a\x01k"};
	static const uint32_t lengths[] = {5, 7, 7, 9};
	for (int i = 0; i < 4; i++) {
		struct weir_text form = {0};
		assert_true(quota_id_put(&form, (struct weir_span){.at = same[i], .length = lengths[i]}));
		assert_true(weir_span_equal(span_of(&form), (struct weir_span){.at = same[0], .length = lengths[0]}));
		weir_text_deinit(&form);
	}
}

static void what_is_no_map_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"\x0a\x03\x0a\x02k", "\x0a\x09k", "\x0b"};
	static const uint32_t lengths[] = {5, 3, 1};
	struct weir_text form = {0};
	for (int i = 0; i < 3; i++)
		assert_false(quota_id_put(&form, (struct weir_span){.at = bad[i], .length = lengths[i]}));
	assert_int_equal(form.length, 0);
	weir_text_deinit(&form);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_have_no_order),       cmocka_unit_test(of_a_key_that_comes_twice_the_last_value_counts),
		cmocka_unit_test(many_pairs_are_one_map),    cmocka_unit_test(how_it_is_written_is_not_of_the_map),
		cmocka_unit_test(what_is_no_map_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
