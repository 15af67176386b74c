/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in as few bytes as they need: LEB128, seven bits a byte, lowest
 * first, the top bit set where another byte follows; at most ten bytes.
 * Signed numbers are folded (zigzag: 0, -1, 1, -2, ...) so that small ones of
 * either sign stay short.
 */
#ifndef WEIR_COMMON_VARINT_H
#define WEIR_COMMON_VARINT_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_VARINT_MAX_BYTES = 10 };

/** Writes up to WEIR_VARINT_MAX_BYTES; gives the end. */
static inline uint8_t *weir_varint_put(uint8_t *at, uint64_t number)
{
	while (number >= 0x80) {
		*at++ = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	*at++ = (uint8_t)number;
	return at;
}

/** What weir_varint_get does from the third byte on. */
static inline const uint8_t *weir_varint_get_long(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
	uint64_t value = 0;
	for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
		uint64_t byte = *at++;
		if (shift == 63 && byte > 1) /* the tenth byte holds the 64th bit and no more */
			return NULL;
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*number = value;
			return at;
		}
	}
	return NULL;
}

/** Reads one number; gives the end, or NULL where the bytes end before it or it has more than 64 bits. */
static inline const uint8_t *weir_varint_get(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
	if (end - at >= 2) {
		if (at[0] < 0x80) {
			*number = at[0];
			return at + 1;
		}
		if (at[1] < 0x80) {
			*number = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
			return at + 2;
		}
	}
	return weir_varint_get_long(at, end, number);
}

/** Bytes that weir_varint_put would write. */
static inline size_t weir_varint_size(uint64_t number)
{
	return (size_t)(63 - __builtin_clzll(number | 1)) / 7 + 1;
}

static inline uint64_t weir_zigzag(int64_t number)
{
	return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}

static inline int64_t weir_unzigzag(uint64_t number)
{
	return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}

#endif
