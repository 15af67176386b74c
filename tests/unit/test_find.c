/* SPDX-License-Identifier: Apache-2.0 */
/* Searches by blocks against the plainest loops, on random bytes, at every length and place. */
#include "common/record/find.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BYTES_MAX = 200, ROUNDS = 20000 };

static uint64_t random_state = 1;

static uint64_t random64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 33;
}

/* Random bytes, mostly of a few values, in memory of just their size. */
static char *random_bytes(size_t length)
{
	static const char letters[] = {' ', '"', '\\',   '?',    '0',    '9',  '/', ':',
	                               '!', '#', '\xa0', '\x80', '\xff', '\0', 'a'};
	char *bytes = malloc(length > 0 ? length : 1);
	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = random64() % 8 == 0 ? (char)random64() : letters[random64() % sizeof letters];
	return bytes;
}

static void a_block_marks_what_is_equal(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		char *bytes = random_bytes(WEIR_FIND_BYTES);
		weir_find_block block = weir_find_load(bytes);
		uint64_t equal = weir_find_equal(block, bytes[WEIR_FIND_BYTES - 1]), others = weir_find_not_digit(block);
		uint64_t stops = weir_find_space_or_quote(block);
		unsigned first = 0, other = 0, stop = 0;
		while (bytes[first] != bytes[WEIR_FIND_BYTES - 1])
			first++;
		while (other < WEIR_FIND_BYTES && bytes[other] >= '0' && bytes[other] <= '9')
			other++;
		while (stop < WEIR_FIND_BYTES && bytes[stop] != ' ' && bytes[stop] != '"')
			stop++;
		assert_int_equal(weir_find_index(equal), first);
		assert_int_equal(others != 0 ? weir_find_index(others) : WEIR_FIND_BYTES, other);
		assert_int_equal(stops != 0 ? weir_find_index(stops) : WEIR_FIND_BYTES, stop);
		if (stops != 0)
			assert_int_equal(__builtin_ctzll(weir_find_bits(stops)), stop);
		free(bytes);
	}
}

static void capitals_are_told_from_all_else(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		char *bytes = random_bytes(WEIR_FIND_BYTES);
		unsigned first = 0;
		for (size_t i = 0; i < WEIR_FIND_BYTES; i++)
			if (random64() % 8 != 0)
				bytes[i] = (char)('A' - 1 + random64() % 28);
		while (first < WEIR_FIND_BYTES && bytes[first] >= 'A' && bytes[first] <= 'Z')
			first++;
		uint64_t others = weir_find_not_capital(weir_find_load(bytes));
		assert_int_equal(others != 0 ? weir_find_index(others) : WEIR_FIND_BYTES, first);
		free(bytes);
	}
}

/* Of a wide block each bit counts up to the first that is set; a mark too many costs a look, and no more. */
static void a_wide_block_marks_what_a_block_does(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		char *bytes = random_bytes(WEIR_FIND_WIDE_BYTES + 1), *block = bytes + 1;
		uint64_t stops = weir_find_wide_space_or_quote(block), marks = weir_find_wide_path_mark(block);
		unsigned stop = 0, mark = 0;
		while (stop < WEIR_FIND_WIDE_BYTES && block[stop] != ' ' && block[stop] != '"')
			stop++;
		while (mark < WEIR_FIND_WIDE_BYTES && (block[mark] == '\0' || strchr("?%#\\", block[mark]) == NULL) &&
		       (bytes[mark] != '/' || (block[mark] != '/' && block[mark] != '.')))
			mark++;
		assert_int_equal(stops != 0 ? __builtin_ctzll(stops) : WEIR_FIND_WIDE_BYTES, stop);
		unsigned marked = marks != 0 ? (unsigned)__builtin_ctzll(marks) : WEIR_FIND_WIDE_BYTES;
		assert_true(marked <= mark);
		assert_true(marked == mark || block[marked] == '!' || block[marked] == '\'');
		free(bytes);
	}
}

static void a_block_before_the_end_is_followed_by_zeros(void **state)
{
	(void)state;
	for (size_t length = 0; length <= 2 * WEIR_FIND_BYTES; length++) {
		char *bytes = random_bytes(length), padded[3 * WEIR_FIND_BYTES] = {0};
		memcpy(padded, bytes, length);
		weir_find_block block = weir_find_load_until(bytes, bytes + length), expected = weir_find_load(padded);
		assert_memory_equal(&block, &expected, sizeof block);
		free(bytes);
	}
}

static void a_path_mark_is_what_a_path_is_rewritten_at(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		char *bytes = random_bytes(WEIR_FIND_BYTES + 1), *block = bytes + 1;
		uint64_t marks = weir_find_path_mark(weir_find_load(bytes), weir_find_load(block));
		unsigned found = marks != 0 ? weir_find_index(marks) : WEIR_FIND_BYTES, at = 0;
		while (at < WEIR_FIND_BYTES && (block[at] == '\0' || strchr("?%#!'\\", block[at]) == NULL) &&
		       (bytes[at] != '/' || (block[at] != '/' && block[at] != '.')))
			at++;
		assert_int_equal(found, at);
		free(bytes);
	}
}

/* What inet_pton() takes, in memory of just its size. */
static bool is_ipv4(const char *text, size_t length)
{
	char word[32] = {0}, *bytes = malloc(length > 0 ? length : 1);
	struct in_addr address;
	assert_non_null(bytes);
	memcpy(bytes, text, length);
	memcpy(word, text, length);
	bool expected = strlen(word) == length && inet_pton(AF_INET, word, &address) == 1;
	assert_int_equal(weir_find_ipv4(bytes, (unsigned)length, bytes + length), expected);
	free(bytes);
	return expected;
}

static void an_ipv4_address_is_what_inet_pton_takes(void **state)
{
	(void)state;
	char text[64];
	unsigned taken = 0;
	for (unsigned number = 0; number <= 1100; number++) {
		for (unsigned place = 0; place < 4; place++) {
			unsigned numbers[4] = {1, 20, 255, 0};
			numbers[place] = number;
			int length = snprintf(text, sizeof text, "%u.%u.%u.%u", numbers[0], numbers[1], numbers[2], numbers[3]);
			assert_int_equal(is_ipv4(text, (size_t)length), number <= 255);
		}
	}
	for (int round = 0; round < 10 * ROUNDS; round++) {
		static const char letters[] = "0123456789....2255:";
		int length = snprintf(text, sizeof text, "%llu.%llu.%llu.%llu", (unsigned long long)random64() % 300,
		                      (unsigned long long)random64() % 300, (unsigned long long)random64() % 30,
		                      (unsigned long long)random64() % 300);
		if (round % 2 == 0)
			text[random64() % (size_t)length] = letters[random64() % (sizeof letters - 1)];
		taken += is_ipv4(text, random64() % 4 == 0 ? random64() % (size_t)length : (size_t)length);
	}
	assert_true(taken > ROUNDS);
}

static void either_is_found_where_it_is_first(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t length = random64() % BYTES_MAX;
		char *bytes = random_bytes(length), *end = bytes + length, *expected = bytes;
		while (expected < end && *expected != '!' && *expected != '\xff')
			expected++;
		assert_ptr_equal(weir_find_either(bytes, end, '!', '\xff'), expected);
		free(bytes);
	}
}

static void a_closing_quote_has_no_escape(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t length = random64() % 40;
		char *bytes = random_bytes(length);
		size_t at = 0;
		while (at < length && bytes[at] != '"')
			at += bytes[at] == '\\' ? 2 : 1;
		const char *expected = at < length ? bytes + at : NULL;
		bool escaped;
		assert_ptr_equal(weir_find_closing_quote(bytes, bytes + length), expected);
		assert_ptr_equal(weir_find_string_end(bytes, bytes + length, &escaped), expected);
		if (expected != NULL)
			assert_int_equal(escaped, memchr(bytes, '\\', at) != NULL);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_marks_what_is_equal),
		cmocka_unit_test(capitals_are_told_from_all_else),
		cmocka_unit_test(a_wide_block_marks_what_a_block_does),
		cmocka_unit_test(a_block_before_the_end_is_followed_by_zeros),
		cmocka_unit_test(a_path_mark_is_what_a_path_is_rewritten_at),
		cmocka_unit_test(an_ipv4_address_is_what_inet_pton_takes),
		cmocka_unit_test(either_is_found_where_it_is_first),
		cmocka_unit_test(a_closing_quote_has_no_escape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
