/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of lines, swept up in batches, against a plain loop. */
#include "collector/input/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_state = 7;

static uint64_t random64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 33;
}

/* Random bytes with a newline in about `apart` of them. */
static char *random_lines(uint32_t length, uint64_t apart)
{
	char *data = malloc(length > 0 ? length : 1);
	assert_non_null(data);
	for (uint32_t i = 0; i < length; i++)
		data[i] = random64() % apart == 0 ? '\n' : (char)random64();
	return data;
}

static void assert_all_found(const char *data, uint32_t length)
{
	struct lines *lines = malloc(sizeof *lines);
	assert_non_null(lines);
	uint32_t offset = 0, seen = 0;
	while (offset < length) {
		uint32_t next = lines_find(data, length, offset, lines);
		assert_true(next > offset && next <= length && lines->count <= LINES_BATCH);
		for (uint32_t i = 0; i < lines->count; i++, seen++) {
			while (seen < lines->ends[i])
				assert_int_not_equal(data[seen++], '\n');
			assert_int_equal(lines->ends[i], seen);
			assert_int_equal(data[seen], '\n');
		}
		offset = next;
	}
	for (; seen < length; seen++)
		assert_int_not_equal(data[seen], '\n');
	free(lines);
}

static void finds_every_newline(void **state)
{
	(void)state;
	for (int round = 0; round < 3000; round++) {
		uint32_t length = (uint32_t)(random64() % 5000);
		char *data = random_lines(length, 1 + random64() % 150);
		assert_all_found(data, length);
		free(data);
	}
}

static void batches_are_bounded_and_go_on(void **state)
{
	(void)state;
	char *data = random_lines(100000, 1); /* nothing but newlines */
	assert_all_found(data, 100000);
	free(data);
	data = random_lines(1000000, 40);
	assert_all_found(data, 1000000);
	free(data);
}

static void a_line_loses_one_return(void **state)
{
	(void)state;
	static const char data[] = "ab\r\n\n\r\n\r\r\n";
	assert_int_equal(lines_trim(data, 0, 3), 2);
	assert_int_equal(lines_trim(data, 4, 4), 0);
	assert_int_equal(lines_trim(data, 5, 6), 0);
	assert_int_equal(lines_trim(data, 7, 9), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_newline),
		cmocka_unit_test(batches_are_bounded_and_go_on),
		cmocka_unit_test(a_line_loses_one_return),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
