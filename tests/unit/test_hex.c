/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits of all bytes, and what is none. */
#include "common/bytes/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_digit_is_what_the_c_library_takes(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		const char text[] = {(char)c, '\0'};
		unsigned value;
		bool taken = strspn(text, "0123456789abcdefABCDEF") == 1 && sscanf(text, "%x", &value) == 1;
		assert_int_equal(taken ? (int)value : -1, weir_hex_digit((char)c));
	}
}

static void a_byte_comes_back(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		const uint8_t bytes[] = {(uint8_t)byte, (uint8_t)~byte};
		char digits[5], expected[5];
		snprintf(expected, sizeof expected, "%02x%02x", bytes[0], bytes[1]);
		*weir_hex_put(digits, bytes, sizeof bytes) = '\0';
		assert_string_equal(expected, digits);
		assert_int_equal(bytes[0], weir_hex_byte(digits));
		snprintf(digits, sizeof digits, "%02X", bytes[1]);
		assert_int_equal(bytes[1], weir_hex_byte(digits));
	}
}

static void what_is_no_byte_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "a", "g0", "0g", "-1", " 1", "0x", "1 "};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(-1, weir_hex_byte(texts[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_digit_is_what_the_c_library_takes),
		cmocka_unit_test(a_byte_comes_back),
		cmocka_unit_test(what_is_no_byte_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
