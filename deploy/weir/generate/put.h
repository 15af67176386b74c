/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a line piece by piece: each function writes at `at` and gives the
 * end. Room is the caller's affair. */
#ifndef DEPLOY_WEIR_GENERATE_PUT_H
#define DEPLOY_WEIR_GENERATE_PUT_H

#include "common/base/span.h"

static inline char *put_bytes(char *at, const char *bytes, size_t length)
{
	memcpy(at, bytes, length);
	return at + length;
}

static inline char *put_span(char *at, struct weir_span span)
{
	return put_bytes(at, span.at, span.length);
}

/* A literal: its length is known when it is compiled. */
#define PUT(at, literal) put_bytes(at, literal, sizeof(literal) - 1)

/** Two decimal digits of a number below 100. */
static inline char *put_two(char *at, uint32_t number)
{
	at[0] = (char)('0' + number / 10);
	at[1] = (char)('0' + number % 10);
	return at + 2;
}

static inline char *put_three(char *at, uint32_t number)
{
	at[0] = (char)('0' + number / 100);
	return put_two(at + 1, number % 100);
}

static inline char *put_number(char *at, uint32_t number)
{
	char digits[10];
	char *first = digits + sizeof digits;
	while (number >= 100) {
		first -= 2;
		put_two(first, number % 100);
		number /= 100;
	}
	if (number >= 10) {
		first -= 2;
		put_two(first, number);
	} else {
		*--first = (char)('0' + number);
	}
	return put_bytes(at, first, (size_t)(digits + sizeof digits - first));
}

/** Four hexadecimal digits of a number below 65536. */
static inline char *put_hex(char *at, uint32_t number)
{
	for (int shift = 12; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[number >> shift & 15];
	return at;
}

#endif
