/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed numbers: little-endian integers of some bytes, and arrays of entries of
 * some bits, lowest bit first.
 *
 * An entry is read and written through the eight bytes that end with its last
 * byte, so nothing behind the array is touched, and eight bytes before it must
 * be there: in a bucket its header is.
 */
#ifndef WEIR_COMMON_BITS_H
#define WEIR_COMMON_BITS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WEIR_BITS_ENTRY_MAX = 57 };

/** Bits that a number takes; 0 for 0. */
static inline unsigned weir_bits_of(uint64_t number)
{
	return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/** Bytes of the array of `count` entries. */
static inline size_t weir_bits_bytes(size_t count, unsigned width)
{
	return (count * width + 7) / 8;
}

/** How many entries the bytes hold. */
static inline size_t weir_bits_entries(size_t bytes, unsigned width)
{
	return bytes * 8 / width;
}

/** As weir_bits_get(), with whatever is behind the entry in the higher bits. */
static inline uint64_t weir_bits_peek(const uint8_t *array, size_t start, unsigned width)
{
	size_t end_byte = (start + width + 7) / 8;
	uint64_t word;
	memcpy(&word, array + end_byte - sizeof word, sizeof word);
	return le64toh(word) >> ((start - end_byte * 8) & 63);
}

static inline uint64_t weir_bits_get(const uint8_t *array, size_t start, unsigned width)
{
	return weir_bits_peek(array, start, width) & ((UINT64_C(1) << width) - 1);
}

static inline void weir_bits_put(uint8_t *array, size_t start, unsigned width, uint64_t value)
{
	size_t end_byte = (start + width + 7) / 8;
	unsigned shift = (unsigned)(start - end_byte * 8) & 63;
	uint64_t mask = ((UINT64_C(1) << width) - 1) << shift;
	uint64_t word;
	memcpy(&word, array + end_byte - sizeof word, sizeof word);
	word = htole64((le64toh(word) & ~mask) | ((value << shift) & mask));
	memcpy(array + end_byte - sizeof word, &word, sizeof word);
}

/** Bytes (1, 2, 4 or 8) that hold every number up to `most`. */
static inline uint8_t weir_bytes_for(uint64_t most)
{
	return most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 4 : 8;
}

static inline uint64_t weir_bytes_get(const uint8_t *at, unsigned bytes)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;
	switch (bytes) {
	case 1: return *at;
	case 2: memcpy(&two, at, sizeof two); return le16toh(two);
	case 4: memcpy(&four, at, sizeof four); return le32toh(four);
	default: memcpy(&eight, at, sizeof eight); return le64toh(eight);
	}
}

static inline void weir_bytes_put(uint8_t *at, unsigned bytes, uint64_t value)
{
	uint16_t two = htole16((uint16_t)value);
	uint32_t four = htole32((uint32_t)value);
	uint64_t eight = htole64(value);
	switch (bytes) {
	case 1: *at = (uint8_t)value; break;
	case 2: memcpy(at, &two, sizeof two); break;
	case 4: memcpy(at, &four, sizeof four); break;
	default: memcpy(at, &eight, sizeof eight); break;
	}
}

/* Times take six bytes: Unix ms up to year 9999 and beyond. */
enum { WEIR_TIME_BYTES = 6, WEIR_TIME_BITS = 48 };
#define WEIR_TIME_MASK ((UINT64_C(1) << WEIR_TIME_BITS) - 1)
#define WEIR_TIME_END_MS INT64_C(253402300800000) /* the year 10000, exclusive */

static inline int64_t weir_time_get(const uint8_t *at)
{
	uint32_t low;
	uint16_t high;
	memcpy(&low, at, sizeof low);
	memcpy(&high, at + sizeof low, sizeof high);
	return (int64_t)(le32toh(low) | (uint64_t)le16toh(high) << 32);
}

static inline void weir_time_put(uint8_t *at, int64_t time_ms)
{
	uint32_t low = htole32((uint32_t)time_ms);
	uint16_t high = htole16((uint16_t)((uint64_t)time_ms >> 32));
	memcpy(at, &low, sizeof low);
	memcpy(at + sizeof low, &high, sizeof high);
}

/*
 * Division by a number known beforehand, as a multiplication: exact for
 * dividends below 2^50 and divisors below 2^36.
 *
 * With 2^k <= d < 2^(k+1) and m = floor(2^(64+k) / d) + 1 the error of n * m /
 * 2^(64+k) is below n * d / 2^(64+k) / d < 2^(50+k+1-64-k) / d < 1 / d, too small
 * to reach the next multiple. A power of two takes k - 1, so that m has 64 bits.
 */
struct weir_divider {
	uint64_t factor; /* 0: the divisor is 1 */
	unsigned shift;
	int64_t divisor;
};

static inline struct weir_divider weir_divider_of(int64_t divisor)
{
	struct weir_divider divider = {.divisor = divisor};
	if (divisor <= 1)
		return divider;
	divider.shift = weir_bits_of((uint64_t)divisor - 1) - 1;
	divider.factor = (uint64_t)((((unsigned __int128)1 << 64) << divider.shift) / (uint64_t)divisor) + 1;
	return divider;
}

static inline int64_t weir_divide(struct weir_divider divider, int64_t number)
{
	if (divider.factor == 0)
		return number;
	return (int64_t)((uint64_t)(((unsigned __int128)divider.factor * (uint64_t)number) >> 64) >> divider.shift);
}

#endif
