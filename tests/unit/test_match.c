/* SPDX-License-Identifier: Apache-2.0 */
/* The sets and patterns that values are matched with, and how case is ignored in their policy. */
#include "common/match/match.h"
#include "common/match/network_set.h"
#include "common/match/wildcard.h"
#include "common/match/word_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* By trying every way, which is exponential and for short texts only. */
static bool wildcard_by_definition(const char *pattern, const char *value)
{
	if (*pattern == '\0')
		return *value == '\0';
	if (*pattern == '*')
		return wildcard_by_definition(pattern + 1, value) ||
		       (*value != '\0' && wildcard_by_definition(pattern, value + 1));
	return *pattern == *value && wildcard_by_definition(pattern + 1, value + 1);
}

static void wildcards_match_any_run(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 200000; round++) {
		char pattern[9], value[11];
		size_t pattern_length = ((size_t)random() & 7) + 1, value_length = (size_t)random() % 11;
		for (size_t i = 0; i < pattern_length; i++)
			pattern[i] = "ab*"[random() % 3];
		size_t star = (size_t)random() & 7;
		pattern[star < pattern_length ? star : 0] = '*';
		pattern[pattern_length] = '\0';
		for (size_t i = 0; i < value_length; i++)
			value[i] = "ab"[random() % 2];
		value[value_length] = '\0';
		struct wildcard wildcard;
		wildcard_init(&wildcard, weir_span_of(pattern));
		if (wildcard_match(&wildcard, weir_span_of(value)) != wildcard_by_definition(pattern, value))
			fail_msg("%s and %s", pattern, value);
		wildcard_deinit(&wildcard);
	}
}

static void no_wildcard_takes_long(void **state)
{
	(void)state;
	enum { LENGTH = 1 << 20 };
	char *value = malloc(LENGTH), pattern[201];
	memset(value, 'a', LENGTH);
	for (size_t i = 0; i < 200; i += 2)
		memcpy(pattern + i, "a*", 2);
	memcpy(pattern + 198, "*b", 3);
	struct wildcard wildcard;
	wildcard_init(&wildcard, weir_span_of(pattern));
	for (int i = 0; i < 100; i++)
		assert_false(wildcard_match(&wildcard, (struct weir_span){.at = value, .length = LENGTH}));
	wildcard_deinit(&wildcard);
	free(value);
}

static void word_sets_hold_their_words_alone(void **state)
{
	(void)state;
	for (uint32_t count = 0; count <= 300; count += count < 12 ? 1 : 36) {
		char texts[300][16];
		struct weir_span words[300];
		for (uint32_t i = 0; i < count; i++) {
			snprintf(texts[i], sizeof texts[i], "w%u", i * 3);
			words[i] = weir_span_of(texts[i]);
		}
		struct weir_word_set set;
		weir_word_set_init(&set, words, count);
		for (uint32_t i = 0; i < 3 * count + 3; i++) {
			char text[16];
			snprintf(text, sizeof text, "w%u", i);
			assert_int_equal(weir_word_set_has(&set, weir_span_of(text)), i % 3 == 0 && i < 3 * count);
		}
		assert_false(weir_word_set_has(&set, weir_span_of("")));
		weir_word_set_deinit(&set);
	}
}

static void network_sets_agree_with_their_networks(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 300; round++) {
		struct weir_network networks[40];
		uint32_t count = (uint32_t)random() % 40;
		for (uint32_t i = 0; i < count; i++) {
			bool v4 = random() % 2;
			memset(&networks[i].base, 0, 16);
			for (size_t k = v4 ? 12 : 0; k < 16; k++)
				networks[i].base.bytes[k] = random() % 2 ? (uint8_t)(random() & 0xc1) : 0;
			if (v4)
				networks[i].base.bytes[10] = networks[i].base.bytes[11] = 0xff;
			uint8_t prefix4 = (uint8_t)(random() % 33), prefix6 = (uint8_t)(random() % 129);
			weir_address_mask(&networks[i].base, prefix4, prefix6);
			networks[i].prefix = v4 ? (uint8_t)(96 + prefix4) : prefix6;
		}
		struct weir_network_set set;
		weir_network_set_init(&set, networks, count);
		for (int k = 0; k < 500; k++) {
			struct weir_address address = {{0}};
			bool v4 = random() % 2;
			for (size_t i = v4 ? 12 : 0; i < 16; i++)
				address.bytes[i] = random() % 2 ? (uint8_t)(random() & 0xc1) : 0;
			if (v4)
				address.bytes[10] = address.bytes[11] = 0xff;
			bool expected = false;
			for (uint32_t i = 0; i < count; i++)
				expected |= weir_network_contains(&networks[i], &address);
			assert_int_equal(weir_network_set_has(&set, &address), expected);
		}
		weir_network_set_deinit(&set);
	}
}

/* @return whether it is a match; told, written: its words, or why not */
static bool read_match(const char *text, struct weir_text *told, char **written, struct weir_error *error)
{
	struct weir_json_document *document;
	struct weir_match match = {0};
	assert_int_equal(weir_json_parse("match", text, strlen(text), &document, error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	bool good = weir_match_parse(&root, &match, error) == WEIR_OK;
	if (good) {
		json_t *again = weir_match_json(&match);
		*written = json_dumps(again, JSON_COMPACT | JSON_SORT_KEYS);
		json_decref(again);
		weir_match_describe(told, &match);
		weir_text_append(told, "", 1);
	}
	weir_match_free(&match);
	weir_json_document_free(document);
	return good;
}

static void a_match_in_any_case_is_told_and_kept(void **state)
{
	static const char text[] = "{\"path\":{\"ignore_case\":true,\"is\":[\"/A\"],\"not\":[\"/b\"]},\"user\":[\"Ann\"]}";
	static const char *const faults[][2] = {
		{"{\"path\":{\"ignore_case\":true}}", "needs \"is\" or \"not\""},
		{"{\"path\":{\"is\":\"/a\",\"ignore_case\":1}}", "path.ignore_case: must be true or false"},
		{"{\"status\":{\"is\":\"4xx\",\"ignore_case\":true}}", "is not for a status, which has no letters"},
	};
	struct weir_text told = {0};
	struct weir_error error;
	char *written;
	(void)state;
	assert_true(read_match(text, &told, &written, &error));
	assert_string_equal(written, text);
	assert_string_equal(told.at, "requests to /A in any case with path other than \"/b\" in any case and user \"Ann\"");
	free(written);
	weir_text_deinit(&told);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		assert_false(read_match(faults[i][0], &told, &written, &error));
		if (strstr(error.text, faults[i][1]) == NULL)
			fail_msg("%s", error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wildcards_match_any_run),
		cmocka_unit_test(no_wildcard_takes_long),
		cmocka_unit_test(word_sets_hold_their_words_alone),
		cmocka_unit_test(network_sets_agree_with_their_networks),
		cmocka_unit_test(a_match_in_any_case_is_told_and_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
