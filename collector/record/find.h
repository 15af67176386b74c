/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding bytes in a line, a block at a time: 16 bytes with SSE2, which every x86-64 has, else 8 in a word.
 *
 * A mask has a mark for each byte of a block, the first byte's lowest. What counts is its lowest mark: above that the
 * word's form may mark bytes that do not match. So masks may be joined by |, and find_index() of the result is exact.
 *
 * No byte at or behind `end` is read. FIND_PORTABLE takes the word's form everywhere, for tests.
 */
#ifndef COLLECTOR_FIND_H
#define COLLECTOR_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(FIND_PORTABLE)

#include <emmintrin.h>

enum { FIND_BYTES = 16 };

typedef __m128i find_block;

static inline find_block find_load(const char *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline uint64_t find_equal(find_block block, char sought)
{
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(sought)));
}

/* Bytes that are ' ' or '"', which differ in one bit. */
static inline uint64_t find_space_or_quote(find_block block)
{
	return find_equal(_mm_and_si128(block, _mm_set1_epi8(~2)), ' ');
}

/*
 * Bytes at which a target may not be its path: '?', '%' and '#', and '!' and '\'', which differ from the last two in two
 * bits at most; and a '/' or '.' behind a '/'.
 *
 * @param before  the block that begins one byte earlier
 */
static inline uint64_t find_path_mark(find_block before, find_block block)
{
	__m128i slash = _mm_set1_epi8('/');
	__m128i escapes = _mm_cmpeq_epi8(_mm_and_si128(block, _mm_set1_epi8(~6)), _mm_set1_epi8('!'));
	__m128i questions = _mm_cmpeq_epi8(block, _mm_set1_epi8('?'));
	__m128i dots = _mm_cmpeq_epi8(_mm_or_si128(block, _mm_set1_epi8(1)), slash);
	__m128i behind = _mm_and_si128(_mm_cmpeq_epi8(before, slash), dots);
	return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(escapes, questions), behind));
}

/* Bytes other than '0'..'9'. */
static inline uint64_t find_not_digit(find_block block)
{
	__m128i digits = _mm_sub_epi8(block, _mm_set1_epi8('0'));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, _mm_set1_epi8(10)), digits));
}

static inline unsigned find_index(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask);
}

/* A bit for each byte of the block. */
static inline uint64_t find_bits(uint64_t mask)
{
	return mask;
}

/* A bit for each byte above a digit. */
static inline uint32_t find_above(find_block block, char digit)
{
	return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(block, _mm_set1_epi8(digit)));
}

/*
 * Whether the word of `length` bytes at `at`, where a block can be read and behind which stands no digit or dot, is an
 * IPv4 address as one writes it: four numbers of 0..255 without leading zeros. No branch depends on its bytes.
 */
static inline bool find_ipv4(const char *at, unsigned length)
{
	if (length > 15)
		return false;
	find_block block = find_load(at);
	uint32_t word = (1U << length) - 1;
	uint32_t digits = (uint32_t)~find_not_digit(block) & word, dots = (uint32_t)find_equal(block, '.') & word;
	uint32_t firsts = dots << 1 | 1, two = digits & digits >> 1, three = two & digits >> 2;
	uint32_t leading_zeros = firsts & two & (uint32_t)find_equal(block, '0');
	uint32_t twos = (uint32_t)find_equal(block, '2'), fives = (uint32_t)find_equal(block, '5');
	uint32_t above_55 = (find_above(block, '5') >> 1) | ((fives >> 1) & (find_above(block, '5') >> 2));
	uint32_t above_255 = firsts & three & (find_above(block, '2') | (twos & above_55));
	uint32_t too_long = three & digits >> 3;
	return (digits | dots) == word && __builtin_popcount(dots) == 3 && (firsts & ~digits) == 0 &&
	       (leading_zeros | above_255 | too_long) == 0;
}

#else

enum { FIND_BYTES = 8 };

#define FIND_LOW UINT64_C(0x0101010101010101)
#define FIND_HIGH UINT64_C(0x8080808080808080)

typedef uint64_t find_block;

static inline find_block find_load(const char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* A byte that is zero borrows from above itself when one is taken off: its high bit shows it. */
static inline uint64_t find_equal(find_block block, char sought)
{
	uint64_t difference = block ^ (FIND_LOW * (unsigned char)sought);
	return (difference - FIND_LOW) & ~difference & FIND_HIGH;
}

static inline uint64_t find_space_or_quote(find_block block)
{
	return find_equal(block & ~(FIND_LOW * 2), ' ');
}

/* See above. A '/' that is marked too much costs a look at the target, no more. */
static inline uint64_t find_path_mark(find_block before, find_block block)
{
	uint64_t behind = find_equal(before, '/') & find_equal(block | FIND_LOW, '/');
	return find_equal(block & ~(FIND_LOW * 6), '!') | find_equal(block, '?') | behind;
}

/* Digits less '0' are below 10, and stay below 128 when 118 is added; a carry only reaches bytes above a mark. */
static inline uint64_t find_not_digit(find_block block)
{
	uint64_t digits = block ^ (FIND_LOW * '0');
	return ((digits + FIND_LOW * 118) | digits) & FIND_HIGH;
}

static inline unsigned find_index(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask) >> 3;
}

/* The high bits, 8 apart, meet in the top byte, each at its own place. */
static inline uint64_t find_bits(uint64_t mask)
{
	return ((mask >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

/* See above: byte by byte. */
static inline bool find_ipv4(const char *at, unsigned length)
{
	unsigned number = 0, digits = 0, dots = 0;
	for (unsigned i = 0; i < length; i++) {
		unsigned digit = (unsigned)(at[i] - '0');
		if (at[i] == '.' && digits > 0) {
			dots++;
			number = digits = 0;
		} else if (digit <= 9 && (digits == 0 || number > 0) && number * 10 + digit <= 255) {
			number = number * 10 + digit;
			digits++;
		} else {
			return false;
		}
	}
	return dots == 3 && digits > 0;
}

#endif

/* The block at `at`; what lies behind the end is NUL there. at <= end. */
static inline find_block find_load_until(const char *at, const char *end)
{
	if (end - at >= FIND_BYTES)
		return find_load(at);
	char rest[FIND_BYTES] = {0};
	memcpy(rest, at, (size_t)(end - at));
	return find_load(rest);
}

/** The first of one or two values (other than NUL), or the end. */
static inline const char *find_either(const char *at, const char *end, char a, char b)
{
	while (at < end) {
		find_block block = find_load_until(at, end);
		uint64_t mask = find_equal(block, a) | find_equal(block, b);
		if (mask != 0)
			return at + find_index(mask);
		at += end - at < FIND_BYTES ? end - at : FIND_BYTES;
	}
	return end;
}

/**
 * The quote that ends a string whose inside begins here; NULL: there is none. A backslash takes the next byte with it,
 * so a quote behind any other byte is an end, and only the others need a look at every backslash.
 */
static inline const char *find_closing_quote(const char *at, const char *end)
{
	const char *quote = memchr(at, '"', (size_t)(end - at));
	if (quote == NULL || quote == at || quote[-1] != '\\')
		return quote;
	for (;;) {
		at = find_either(at, end, '"', '\\');
		if (at == end)
			return NULL;
		if (*at == '"')
			return at;
		if (end - at < 2)
			return NULL;
		at += 2;
	}
}

#endif
