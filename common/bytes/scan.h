/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching short byte strings for one or two values, eight bytes at a time.
 *
 * Keys are some ten bytes long: there a call of memchr costs more than the
 * search. A word's byte is zero where it equals the one sought, and
 * (w - 0x01..) & ~w & 0x80.. is non-zero exactly when some byte of w is zero.
 */
#ifndef WEIR_COMMON_SCAN_H
#define WEIR_COMMON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEIR_SCAN_LOW UINT64_C(0x0101010101010101)
#define WEIR_SCAN_HIGH UINT64_C(0x8080808080808080)

static inline uint64_t weir_scan_word(uint64_t word, unsigned char sought)
{
	uint64_t difference = word ^ (WEIR_SCAN_LOW * sought);
	return (difference - WEIR_SCAN_LOW) & ~difference & WEIR_SCAN_HIGH;
}

static inline uint64_t weir_scan_load(const char *bytes)
{
	uint64_t word;
	memcpy(&word, bytes, sizeof word);
	return word;
}

/** Whether a or b (which may be equal) is among the bytes. */
static inline bool weir_scan_has(const char *bytes, size_t length, char a, char b)
{
	unsigned char first = (unsigned char)a, second = (unsigned char)b;
	uint64_t found = 0;
	if (length < 8) {
		for (size_t i = 0; i < length; i++)
			found |= (uint64_t)(bytes[i] == a) | (uint64_t)(bytes[i] == b);
		return found != 0;
	}
	/* The first and the last eight bytes, some of them twice: up to 16 bytes without a branch on the length. */
	uint64_t word = weir_scan_load(bytes), last = weir_scan_load(bytes + length - 8);
	found = weir_scan_word(word, first) | weir_scan_word(word, second) | weir_scan_word(last, first) |
	        weir_scan_word(last, second);
	for (size_t i = 8; i + 8 < length; i += 8) {
		word = weir_scan_load(bytes + i);
		found |= weir_scan_word(word, first) | weir_scan_word(word, second);
	}
	return found != 0;
}

#endif
