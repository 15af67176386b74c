/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds newlines: with AVX2 128 bytes at a time, on other machines by memchr(), which the C library has for each.
 *
 * The sweep writes one end for every 64 bytes, whether there is one or not, and the count says whether it holds: a
 * branch is taken only where two lines end within 64 bytes. So it costs the same for every line, and nothing waits
 * for it.
 */
#include "collector/input/lines.h"

#include <string.h>

static uint32_t find_by_memchr(const char *data, uint32_t length, uint32_t offset, struct lines *lines)
{
	while (lines->count < LINES_BATCH) {
		const char *newline = memchr(data + offset, '\n', length - offset);
		if (newline == NULL)
			return length;
		uint32_t end = (uint32_t)(newline - data);
		lines->ends[lines->count++] = end;
		offset = end + 1;
	}
	return offset;
}

#if defined(__x86_64__)

#include <immintrin.h>

enum { STRIDE = 64, STEP = 2 * STRIDE };

/* A bit for each newline among STRIDE bytes. */
__attribute__((target("avx2"))) static inline uint64_t newline_bits(const char *at)
{
	const __m256i newline = _mm256_set1_epi8('\n'), *block = (const __m256i *)(const void *)at;
	uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(block), newline));
	uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(block + 1), newline));
	return low | (uint64_t)high << 32;
}

/* Writes where the bits say that lines end, from `ends` on, at least one end; gives the place behind those that count. */
__attribute__((target("avx2,bmi,popcnt"))) static inline uint32_t *put_ends(uint64_t bits, uint32_t offset,
                                                                            uint32_t *ends)
{
	uint32_t found = (uint32_t)_mm_popcnt_u64(bits);
	*ends = offset + (uint32_t)_tzcnt_u64(bits);
	for (uint32_t i = 1; __builtin_expect(i < found, 0); i++) {
		bits &= bits - 1;
		ends[i] = offset + (uint32_t)_tzcnt_u64(bits);
	}
	return ends + found;
}

__attribute__((target("avx2,bmi,popcnt"))) static uint32_t find_by_avx2(const char *data, uint32_t length,
                                                                        uint32_t offset, struct lines *lines)
{
	uint32_t *ends = lines->ends, *const last = lines->ends + LINES_BATCH - STEP;
	for (; length - offset >= STEP && ends <= last; offset += STEP) {
		ends = put_ends(newline_bits(data + offset), offset, ends);
		ends = put_ends(newline_bits(data + offset + STRIDE), offset + STRIDE, ends);
	}
	lines->count = (uint32_t)(ends - lines->ends);
	return length - offset < STEP ? find_by_memchr(data, length, offset, lines) : offset;
}

uint32_t lines_find(const char *data, uint32_t length, uint32_t offset, struct lines *lines)
{
	lines->count = 0;
	if (__builtin_cpu_supports("avx2"))
		return find_by_avx2(data, length, offset, lines);
	return find_by_memchr(data, length, offset, lines);
}

#else

uint32_t lines_find(const char *data, uint32_t length, uint32_t offset, struct lines *lines)
{
	lines->count = 0;
	return find_by_memchr(data, length, offset, lines);
}

#endif
