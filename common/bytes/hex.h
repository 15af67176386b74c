/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits, two for each. */
#ifndef WEIR_COMMON_HEX_H
#define WEIR_COMMON_HEX_H

#include <stddef.h>

/** The value of a digit, small or capital; -1: it is none. */
static inline int weir_hex_digit(char digit)
{
	char small = (char)(digit | 0x20);
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/** The byte that two digits stand for; -1: they are none. Behind a first that is none, nothing is read. */
static inline int weir_hex_byte(const char *digits)
{
	int high = weir_hex_digit(digits[0]), low = high >= 0 ? weir_hex_digit(digits[1]) : -1;
	return low >= 0 ? high << 4 | low : -1;
}

/** Writes small digits, without a NUL. @return behind them */
static inline char *weir_hex_put(char *to, const void *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = bytes;
	for (size_t i = 0; i < count; i++) {
		*to++ = digits[at[i] >> 4];
		*to++ = digits[at[i] & 15];
	}
	return to;
}

#endif
