/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds newlines: with AVX2 64 bytes at a time, on other machines by memchr(), which the C library has for each.
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

enum { STRIDE = 64 };

__attribute__((target("avx2,bmi,popcnt"))) static uint32_t find_by_avx2(const char *data, uint32_t length,
                                                                        uint32_t offset, struct lines *lines)
{
	const __m256i newline = _mm256_set1_epi8('\n');
	uint32_t count = lines->count;
	for (; length - offset >= STRIDE && count <= LINES_BATCH - STRIDE; offset += STRIDE) {
		const __m256i *at = (const __m256i *)(const void *)(data + offset);
		uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(at), newline));
		uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(at + 1), newline));
		uint64_t bits = low | (uint64_t)high << 32;
		uint32_t found = (uint32_t)_mm_popcnt_u64(bits);
		lines->ends[count] = offset + (uint32_t)_tzcnt_u64(bits);
		for (uint32_t i = 1; i < found; i++) {
			bits &= bits - 1;
			lines->ends[count + i] = offset + (uint32_t)_tzcnt_u64(bits);
		}
		count += found;
	}
	lines->count = count;
	return length - offset < STRIDE ? find_by_memchr(data, length, offset, lines) : offset;
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
