/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding bytes in a line, a block at a time: 16 bytes with SSE2, which every x86-64 has, else 8 in a word. What looks at
 * many bytes takes wide blocks, of 32 bytes in files that are compiled for AVX2 (find_avx2.h), else they are the same.
 *
 * A mask has a mark for each byte of a block, the first byte's lowest. What counts is its lowest mark: above that the
 * word's form may mark bytes that do not match. So masks may be joined by |, and weir_find_index() of the result is exact.
 *
 * No byte at or behind `end` is read. WEIR_FIND_PORTABLE takes the word's form everywhere, for tests.
 */
#ifndef WEIR_FIND_H
#define WEIR_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t weir_find_little_endian(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

static inline uint64_t weir_find_load_8(const char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return weir_find_little_endian(word);
}

static inline uint64_t weir_find_load_4(const char *at)
{
	uint64_t word = 0;
	memcpy(&word, at, 4);
	return weir_find_little_endian(word);
}

/* The first of up to 7 bytes lowest, zeros above: two loads that overlap, for a copy of so few bytes costs more. */
static inline uint64_t weir_find_load_few(const char *at, size_t count)
{
	if (count >= 4)
		return weir_find_load_4(at) | weir_find_load_4(at + count - 4) << (8 * count - 32);
	if (count == 0)
		return 0;
	uint64_t middle = (unsigned char)at[count / 2], last = (unsigned char)at[count - 1];
	return (unsigned char)at[0] | middle << (count / 2 * 8) | last << (8 * count - 8);
}

#if defined(__SSE2__) && !defined(WEIR_FIND_PORTABLE)

#include <emmintrin.h>

enum { WEIR_FIND_BYTES = 16 };

typedef __m128i weir_find_block;

#if defined(__AVX2__)
#include "common/record/find_avx2.h"
#else
/* A block of one byte. */
static inline weir_find_block weir_find_all(char byte)
{
	return _mm_set1_epi8(byte);
}
#endif

static inline weir_find_block weir_find_load(const char *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

static inline uint64_t weir_find_equal(weir_find_block block, char sought)
{
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(block, weir_find_all(sought)));
}

/* The block at `at`; what lies behind the end is NUL there. at <= end. */
static inline weir_find_block weir_find_load_until(const char *at, const char *end)
{
	size_t count = (size_t)(end - at);
	if (count >= WEIR_FIND_BYTES)
		return weir_find_load(at);
	if (count <= 8)
		return _mm_cvtsi64_si128((int64_t)(count == 8 ? weir_find_load_8(at) : weir_find_load_few(at, count)));
	uint64_t above = weir_find_load_8(end - 8) >> (128 - 8 * count);
	return _mm_set_epi64x((int64_t)above, (int64_t)weir_find_load_8(at));
}

/* Bytes that are ' ' or '"', which differ in one bit. */
static inline uint64_t weir_find_space_or_quote(weir_find_block block)
{
	return weir_find_equal(_mm_andnot_si128(weir_find_all(2), block), ' ');
}

/*
 * Bytes at which a target may not be its path: '?', '%' and '#', and '!' and '\'', which differ from the last two in two
 * bits at most; '\\', by which servers escape it in their logs; and a '/' or '.' behind a '/'.
 *
 * @param before  the block that begins one byte earlier
 */
static inline uint64_t weir_find_path_mark(weir_find_block before, weir_find_block block)
{
	__m128i slash = weir_find_all('/');
	__m128i escapes = _mm_cmpeq_epi8(_mm_andnot_si128(weir_find_all(6), block), weir_find_all('!'));
	__m128i questions =
		_mm_or_si128(_mm_cmpeq_epi8(block, weir_find_all('?')), _mm_cmpeq_epi8(block, weir_find_all('\\')));
	__m128i dots = _mm_cmpeq_epi8(_mm_or_si128(block, weir_find_all(1)), slash);
	__m128i behind = _mm_and_si128(_mm_cmpeq_epi8(before, slash), dots);
	return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(escapes, questions), behind));
}

/* Bytes other than '0'..'9'. */
static inline uint64_t weir_find_not_digit(weir_find_block block)
{
	__m128i digits = _mm_sub_epi8(block, weir_find_all('0'));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, weir_find_all(10)), digits));
}

/* Bytes other than 'A'..'Z'. */
static inline uint64_t weir_find_not_capital(weir_find_block block)
{
	__m128i letters = _mm_sub_epi8(block, weir_find_all('A'));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(letters, weir_find_all(26)), letters));
}

static inline unsigned weir_find_index(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask);
}

/* A bit for each byte of the block. */
static inline uint64_t weir_find_bits(uint64_t mask)
{
	return mask;
}

#if !defined(__AVX2__)

static inline weir_find_block weir_find_above(weir_find_block block, char digit)
{
	return _mm_cmpgt_epi8(block, _mm_set1_epi8(digit));
}

/* A bit for each byte with which three digits above 255 begin. */
static inline uint32_t weir_find_above_255(weir_find_block block)
{
	weir_find_block second = _mm_srli_si128(block, 1), third = _mm_srli_si128(block, 2);
	weir_find_block twos = _mm_cmpeq_epi8(block, _mm_set1_epi8('2')),
					fives = _mm_cmpeq_epi8(second, _mm_set1_epi8('5'));
	weir_find_block above_55 =
		_mm_or_si128(weir_find_above(second, '5'), _mm_and_si128(fives, weir_find_above(third, '5')));
	return (uint32_t)_mm_movemask_epi8(_mm_or_si128(weir_find_above(block, '2'), _mm_and_si128(twos, above_55)));
}

/*
 * Whether the word of `length` bytes at `at` is an IPv4 address as one writes it: four numbers of 0..255 without leading
 * zeros. No branch depends on its bytes.
 *
 * @param end  of what can be read, behind the word or further
 */
static inline bool weir_find_ipv4(const char *at, unsigned length, const char *end)
{
	if (length > 15)
		return false;
	weir_find_block block = weir_find_load_until(at, end);
	uint32_t word = (1U << length) - 1;
	uint32_t digits = (uint32_t)~weir_find_not_digit(block) & word, dots = (uint32_t)weir_find_equal(block, '.') & word;
	uint32_t firsts = dots << 1 | 1, two = digits & digits >> 1, three = two & digits >> 2;
	uint32_t leading_zeros = two & (uint32_t)weir_find_equal(block, '0'),
			 above_255 = three & weir_find_above_255(block);
	uint32_t too_long = three & digits >> 3, third = dots & (dots - 1);
	third &= third - 1;
	uint32_t wrong = (firsts & (leading_zeros | above_255 | ~digits)) | too_long | ((digits | dots) ^ word);
	return (wrong | (third & (third - 1)) | (uint32_t)(third == 0)) == 0;
}

#else

/* See above: gathers the digits of the four numbers, and adds up the first half of each four bytes. */
static inline bool weir_find_ipv4(const char *at, unsigned length, const char *end)
{
	if (length > 15)
		return false;
	weir_find_block block = weir_find_load_until(at, end);
	uint32_t ends = _bzhi_u32((uint32_t)weir_find_equal(block, '.'), length) | 1U << length;
	const struct weir_ipv4_shape *shape = &weir_ipv4_shapes[WEIR_IPV4_PLACE(ends)];
	__m128i places = _mm_load_si128((const __m128i *)(const void *)shape->digits);
	__m128i least = _mm_load_si128((const __m128i *)(const void *)shape->least);
	__m128i digits = _mm_shuffle_epi8(_mm_sub_epi8(block, weir_find_all('0')), places);
	__m128i weights = _mm_load_si128((const __m128i *)(const void *)shape->weights);
	__m128i tens_and_ones = _mm_maddubs_epi16(digits, weights);
	__m128i numbers = _mm_add_epi16(tens_and_ones, _mm_srli_epi32(tens_and_ones, 16));
	__m128i others = _mm_subs_epu8(digits, weir_find_all(9));
	__m128i outside = _mm_or_si128(_mm_srli_epi16(numbers, 8), _mm_cmpgt_epi16(least, numbers));
	__m128i wrong = _mm_or_si128(others, outside);
	return shape->ends == ends && _mm_testz_si128(wrong, wrong);
}

#endif

#else

enum { WEIR_FIND_BYTES = 8 };

#define WEIR_FIND_LOW UINT64_C(0x0101010101010101)
#define WEIR_FIND_HIGH UINT64_C(0x8080808080808080)

typedef uint64_t weir_find_block;

static inline weir_find_block weir_find_load(const char *at)
{
	return weir_find_load_8(at);
}

/* See above. */
static inline weir_find_block weir_find_load_until(const char *at, const char *end)
{
	return end - at >= WEIR_FIND_BYTES ? weir_find_load(at) : weir_find_load_few(at, (size_t)(end - at));
}

/* A byte that is zero borrows from above itself when one is taken off: its high bit shows it. */
static inline uint64_t weir_find_equal(weir_find_block block, char sought)
{
	uint64_t difference = block ^ (WEIR_FIND_LOW * (unsigned char)sought);
	return (difference - WEIR_FIND_LOW) & ~difference & WEIR_FIND_HIGH;
}

static inline uint64_t weir_find_space_or_quote(weir_find_block block)
{
	return weir_find_equal(block & ~(WEIR_FIND_LOW * 2), ' ');
}

/* See above. A '/' that is marked too much costs a look at the target, no more. */
static inline uint64_t weir_find_path_mark(weir_find_block before, weir_find_block block)
{
	uint64_t behind = weir_find_equal(before, '/') & weir_find_equal(block | WEIR_FIND_LOW, '/');
	return weir_find_equal(block & ~(WEIR_FIND_LOW * 6), '!') | weir_find_equal(block, '?') |
	       weir_find_equal(block, '\\') | behind;
}

/* Digits less '0' are below 10, and stay below 128 when 118 is added; a carry only reaches bytes above a mark. */
static inline uint64_t weir_find_not_digit(weir_find_block block)
{
	uint64_t digits = block ^ (WEIR_FIND_LOW * '0');
	return ((digits + WEIR_FIND_LOW * 118) | digits) & WEIR_FIND_HIGH;
}

/* The lower seven bits of a byte stay below 256 when 63 or 37 is added: no carry reaches the next. */
static inline uint64_t weir_find_not_capital(weir_find_block block)
{
	uint64_t low = block & ~WEIR_FIND_HIGH, from_a = low + WEIR_FIND_LOW * (128 - 'A');
	uint64_t above_z = low + WEIR_FIND_LOW * (127 - 'Z');
	return (~from_a | above_z | block) & WEIR_FIND_HIGH;
}

static inline unsigned weir_find_index(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask) >> 3;
}

/* The high bits, 8 apart, meet in the top byte, each at its own place. */
static inline uint64_t weir_find_bits(uint64_t mask)
{
	return ((mask >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

/* See above: byte by byte. */
static inline bool weir_find_ipv4(const char *at, unsigned length, const char *end)
{
	unsigned number = 0, digits = 0, dots = 0;
	(void)end;
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

#if !defined(WEIR_FIND_WIDE)

enum { WEIR_FIND_WIDE_BYTES = WEIR_FIND_BYTES };

/** A bit for each of WEIR_FIND_WIDE_BYTES bytes that is ' ' or '"'. */
static inline uint64_t weir_find_wide_space_or_quote(const char *at)
{
	return weir_find_bits(weir_find_space_or_quote(weir_find_load(at)));
}

/** A bit for each of them at which a target may not be its path: weir_find_path_mark(). at[-1] is readable. */
static inline uint64_t weir_find_wide_path_mark(const char *at)
{
	return weir_find_bits(weir_find_path_mark(weir_find_load(at - 1), weir_find_load(at)));
}

#endif

/** The first of one or two values (other than NUL), or the end. */
static inline const char *weir_find_either(const char *at, const char *end, char a, char b)
{
	while (at < end) {
		weir_find_block block = weir_find_load_until(at, end);
		uint64_t mask = weir_find_equal(block, a) | weir_find_equal(block, b);
		if (mask != 0)
			return at + weir_find_index(mask);
		at += end - at < WEIR_FIND_BYTES ? end - at : WEIR_FIND_BYTES;
	}
	return end;
}

/**
 * The quote that ends a string whose inside begins here; NULL: there is none. A backslash takes the next byte with it.
 *
 * @param escaped  set: whether there is a backslash before that quote
 */
static inline const char *weir_find_string_end(const char *at, const char *end, bool *escaped)
{
	*escaped = false;
	for (;;) {
		at = weir_find_either(at, end, '"', '\\');
		if (at == end)
			return NULL;
		if (*at == '"')
			return at;
		*escaped = true;
		if (end - at < 2)
			return NULL;
		at += 2;
	}
}

/**
 * The same for who does not ask for backslashes: a quote behind any other byte is an end, and only the others need a look at
 * every backslash.
 */
static inline const char *weir_find_closing_quote(const char *at, const char *end)
{
	bool escaped;
	const char *quote = memchr(at, '"', (size_t)(end - at));
	if (quote == NULL || quote == at || quote[-1] != '\\')
		return quote;
	return weir_find_string_end(at, end, &escaped);
}

#endif
