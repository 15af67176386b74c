/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What find.h does better with AVX2. Only find.h includes this, in files that are compiled for such machines; whoever
 * calls what they define has asked the machine first.
 */
#ifndef WEIR_FIND_AVX2_H
#define WEIR_FIND_AVX2_H

#include <immintrin.h>

#define WEIR_FIND_WIDE

enum { WEIR_FIND_WIDE_BYTES = 32 };

/* Each byte, 32 times. */
struct weir_find_row {
	uint64_t words[4];
} __attribute__((aligned(32)));

#define WEIR_FIND_WORD(byte) (UINT64_C(0x0101010101010101) * (byte))
#define WEIR_FIND_ROW(byte)                                                                        \
	{                                                                                              \
		{                                                                                          \
			WEIR_FIND_WORD(byte), WEIR_FIND_WORD(byte), WEIR_FIND_WORD(byte), WEIR_FIND_WORD(byte) \
		}                                                                                          \
	}
#define WEIR_FIND_ROWS_2(byte) WEIR_FIND_ROW(byte), WEIR_FIND_ROW((byte) + 1)
#define WEIR_FIND_ROWS_8(byte) \
	WEIR_FIND_ROWS_2(byte), WEIR_FIND_ROWS_2((byte) + 2), WEIR_FIND_ROWS_2((byte) + 4), WEIR_FIND_ROWS_2((byte) + 6)
#define WEIR_FIND_ROWS_32(byte) \
	WEIR_FIND_ROWS_8(byte), WEIR_FIND_ROWS_8((byte) + 8), WEIR_FIND_ROWS_8((byte) + 16), WEIR_FIND_ROWS_8((byte) + 24)

#define WEIR_FIND_ROWS_128(byte)                                                             \
	WEIR_FIND_ROWS_32(byte), WEIR_FIND_ROWS_32((byte) + 32), WEIR_FIND_ROWS_32((byte) + 64), \
		WEIR_FIND_ROWS_32((byte) + 96)

static const struct weir_find_row weir_find_rows[256] = {WEIR_FIND_ROWS_128(0), WEIR_FIND_ROWS_128(128)};

/*
 * A block of one byte. gcc makes such a constant of a number, in three instructions where one reads it from memory; so it
 * is not to know that this is a constant.
 */
static inline const struct weir_find_row *weir_find_row(char byte)
{
	const struct weir_find_row *rows = weir_find_rows;
	__asm__("" : "+r"(rows));
	return rows + (unsigned char)byte;
}

static inline __m128i weir_find_all(char byte)
{
	return _mm_load_si128((const __m128i *)(const void *)weir_find_row(byte));
}

static inline __m256i weir_find_wide_all(char byte)
{
	return _mm256_load_si256((const __m256i *)(const void *)weir_find_row(byte));
}

static inline __m256i weir_find_wide_load(const char *at)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline uint64_t weir_find_wide_space_or_quote(const char *at)
{
	__m256i block = _mm256_andnot_si256(weir_find_wide_all(2), weir_find_wide_load(at));
	return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, weir_find_wide_all(' ')));
}

/*
 * Bytes with '?', '%', '#' or '\\', each at the place that the lower half of its byte says; at the others is what has
 * another half.
 */
static const struct weir_find_row weir_find_path_marks = {{UINT64_C(0x0000250023000001), UINT64_C(0x3f00005c00000000),
                                                           UINT64_C(0x0000250023000001), UINT64_C(0x3f00005c00000000)}};

/* See weir_find_path_mark(). */
static inline uint64_t weir_find_wide_path_mark(const char *at)
{
	__m256i block = weir_find_wide_load(at), before = weir_find_wide_load(at - 1), slash = weir_find_wide_all('/');
	__m256i table = _mm256_load_si256((const __m256i *)(const void *)&weir_find_path_marks);
	__m256i marks = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, block), block);
	__m256i dots = _mm256_cmpeq_epi8(_mm256_or_si256(block, weir_find_wide_all(1)), slash);
	__m256i behind = _mm256_and_si256(_mm256_cmpeq_epi8(before, slash), dots);
	return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(marks, behind));
}

/*
 * The 81 shapes of an IPv4 address, by how many digits its four numbers have. A shape is found by where its numbers end,
 * which a multiplication spreads over 256 places, no two on the same: a compiler would warn of that.
 */
struct weir_ipv4_shape {
	int8_t digits[16];  /* where the hundreds, tens and ones of each number are, then nothing; -1: there are none */
	int32_t least[4];   /* of each number: less would have leading zeros */
	int8_t weights[16]; /* of the digits */
	uint32_t ends;      /* a bit for each dot, and one behind the address */
} __attribute__((aligned(64)));

#define WEIR_IPV4_PLACE(ends) ((uint32_t)((ends)*UINT32_C(0x21663625)) >> 24)
#define WEIR_IPV4_ENDS(a, b, c, d) \
	(1U << (a) | 1U << ((a) + 1 + (b)) | 1U << ((a) + 1 + (b) + 1 + (c)) | 1U << ((a) + 1 + (b) + 1 + (c) + 1 + (d)))
#define WEIR_IPV4_DIGITS(from, count) \
	(count) > 2 ? (from) : -1, (count) > 1 ? (from) + (count)-2 : -1, (from) + (count)-1, -1
#define WEIR_IPV4_LEAST(count) ((count) > 2 ? 100 : (count) > 1 ? 10 : 0)
#define WEIR_IPV4_SHAPE_AT(place, a, b, c, d)                                                                    \
	[place] = {                                                                                                  \
		.digits = {WEIR_IPV4_DIGITS(0, a), WEIR_IPV4_DIGITS((a) + 1, b), WEIR_IPV4_DIGITS((a) + 1 + (b) + 1, c), \
	               WEIR_IPV4_DIGITS((a) + 1 + (b) + 1 + (c) + 1, d)},                                            \
		.least = {WEIR_IPV4_LEAST(a), WEIR_IPV4_LEAST(b), WEIR_IPV4_LEAST(c), WEIR_IPV4_LEAST(d)},               \
		.weights = {100, 10, 1, 0, 100, 10, 1, 0, 100, 10, 1, 0, 100, 10, 1, 0},                                 \
		.ends = WEIR_IPV4_ENDS(a, b, c, d),                                                                      \
	}
#define WEIR_IPV4_SHAPE(a, b, c, d) WEIR_IPV4_SHAPE_AT(WEIR_IPV4_PLACE(WEIR_IPV4_ENDS(a, b, c, d)), a, b, c, d)
#define WEIR_IPV4_SHAPES_3(a, b, c) \
	WEIR_IPV4_SHAPE(a, b, c, 1), WEIR_IPV4_SHAPE(a, b, c, 2), WEIR_IPV4_SHAPE(a, b, c, 3)
#define WEIR_IPV4_SHAPES_2(a, b) WEIR_IPV4_SHAPES_3(a, b, 1), WEIR_IPV4_SHAPES_3(a, b, 2), WEIR_IPV4_SHAPES_3(a, b, 3)
#define WEIR_IPV4_SHAPES_1(a) WEIR_IPV4_SHAPES_2(a, 1), WEIR_IPV4_SHAPES_2(a, 2), WEIR_IPV4_SHAPES_2(a, 3)

static const struct weir_ipv4_shape weir_ipv4_shapes[256] = {WEIR_IPV4_SHAPES_1(1), WEIR_IPV4_SHAPES_1(2),
                                                             WEIR_IPV4_SHAPES_1(3)};

#endif
