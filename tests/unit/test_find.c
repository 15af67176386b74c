/* SPDX-License-Identifier: Apache-2.0 */
/* Searches by blocks against the plainest loops, on random bytes, at every length and place. */
#include "collector/record/find.h"

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
		char *bytes = random_bytes(FIND_BYTES);
		find_block block = find_load(bytes);
		uint64_t equal = find_equal(block, bytes[FIND_BYTES - 1]), others = find_not_digit(block);
		uint64_t stops = find_space_or_quote(block);
		unsigned first = 0, other = 0, stop = 0;
		while (bytes[first] != bytes[FIND_BYTES - 1])
			first++;
		while (other < FIND_BYTES && bytes[other] >= '0' && bytes[other] <= '9')
			other++;
		while (stop < FIND_BYTES && bytes[stop] != ' ' && bytes[stop] != '"')
			stop++;
		assert_int_equal(find_index(equal), first);
		assert_int_equal(others != 0 ? find_index(others) : FIND_BYTES, other);
		assert_int_equal(stops != 0 ? find_index(stops) : FIND_BYTES, stop);
		if (stops != 0)
			assert_int_equal(__builtin_ctzll(find_bits(stops)), stop);
		free(bytes);
	}
}

static void either_is_found_where_it_is_first(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t length = random64() % BYTES_MAX;
		char *bytes = random_bytes(length), *end = bytes + length, *expected = bytes;
		while (expected < end && *expected != '!' && *expected != '\xff')
			expected++;
		assert_ptr_equal(find_either(bytes, end, '!', '\xff'), expected);
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
		assert_ptr_equal(find_closing_quote(bytes, bytes + length), expected);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_marks_what_is_equal),
		cmocka_unit_test(either_is_found_where_it_is_first),
		cmocka_unit_test(a_closing_quote_has_no_escape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
