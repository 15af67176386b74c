/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: from a key's fingerprint to the reference of its bucket.
 *
 * 1,024 small hash tables, one per segment. Each is an array of cache lines with
 * eight slots: eight tags, then eight references. A tag is the upper half of the
 * fingerprint's `low`. Its upper ten bits are the segment, the others give the
 * home line; so a table can be resized from its own contents, without reading any
 * bucket. A key is in its home line or, if that is full, in one of the lines after
 * it (linear probing). Tables are at most three quarters full; at that load,
 * fifteen of sixteen keys are in their home line. A lookup reads one line, then
 * the bucket, which has the whole fingerprint. Fuller tables would be smaller, but
 * only the home line is prefetched: reading another one stalls.
 *
 * Tables grow by a quarter, one at a time, so that no event waits long. They are
 * allocated in chunks that hold nothing else, and are compacted when too much of
 * those is unused. Where speed matters less than memory, tables are loose: each is
 * allocated by itself, may be seven eighths full, and grows by an eighth.
 */
#ifndef LIMITER_TABLE_H
#define LIMITER_TABLE_H

#include "common/base/prefetch.h"
#include "limiter/memory/chunk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { TABLE_SEGMENTS = 1024, TABLE_SEGMENT_SHIFT = 22, TABLE_LINE_SLOTS = 8 };

struct table_line {
	uint32_t tags[TABLE_LINE_SLOTS];
	uint32_t refs[TABLE_LINE_SLOTS]; /* 0: free */
};

struct table_segment {
	struct table_line *lines;
	uint32_t line_count;
	uint32_t count;
};

struct table {
	struct table_segment segments[TABLE_SEGMENTS];
	bool is_loose;
	void **chunks; /* what tables are allocated from; new ones from the last */
	uint32_t chunk_count;
	uint64_t live_bytes; /* of tables, except those that have chunks of their own */
	uint64_t bytes;      /* resident */
	uint64_t count;
};

void table_init(struct table *table);
/** One that takes little more than it needs, even of few keys, and is slower. */
void table_init_loose(struct table *table);
void table_deinit(struct table *table);

/** Bytes of chunks that no table uses. */
uint64_t table_unused_bytes(const struct table *table);
/** Makes it loose for good: gives its chunks back. */
void table_loosen(struct table *table);

static inline uint32_t table_segment_of(uint32_t tag)
{
	return tag >> TABLE_SEGMENT_SHIFT;
}

static inline uint32_t table_home(const struct table_segment *segment, uint32_t tag)
{
	uint32_t rest = tag << (32 - TABLE_SEGMENT_SHIFT);
	return (uint32_t)(((uint64_t)rest * segment->line_count) >> 32);
}

/* Of a loose table the line after it, too: every third key or so is there. */
static inline void table_prefetch(const struct table *table, uint32_t tag)
{
	const struct table_segment *segment = &table->segments[table_segment_of(tag)];
	const struct table_line *home = &segment->lines[table_home(segment, tag)];
	weir_prefetch_far(home);
	if (table->is_loose)
		weir_prefetch_far((const char *)home + sizeof *home);
}

/* Compares all slots of a line with a number. @return a bit for each that is equal */
static inline unsigned table_compare(const uint32_t *numbers, uint32_t number)
{
#if defined(__SSE2__)
	const __m128i wanted = _mm_set1_epi32((int)number);
	__m128i low = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(const void *)numbers), wanted);
	__m128i high = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)(const void *)(numbers + 4)), wanted);
	__m128i words = _mm_packs_epi32(low, high);
	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(words, words)) & 0xff;
#else
	unsigned mask = 0;
	for (unsigned i = 0; i < TABLE_LINE_SLOTS; i++)
		mask |= (unsigned)(numbers[i] == number) << i;
	return mask;
#endif
}

/**
 * Finds a reference by tag. Tags are nearly unique, so the first one is nearly always the key's, if the key has any.
 *
 * @param skip  how many references with that tag to skip
 * @return 0: there are no more
 */
static inline uint32_t table_find(const struct table *table, uint32_t tag, uint32_t skip)
{
	const struct table_segment *segment = &table->segments[table_segment_of(tag)];
	uint32_t at = table_home(segment, tag);
	for (uint32_t passed = 0; passed < segment->line_count; passed++) {
		const struct table_line *line = &segment->lines[at];
		for (unsigned matches = table_compare(line->tags, tag); matches != 0; matches &= matches - 1) {
			uint32_t ref = line->refs[__builtin_ctz(matches)];
			if (ref != 0 && skip-- == 0)
				return ref;
		}
		if (table_compare(line->refs, 0) != 0)
			return 0;
		at = at + 1 == segment->line_count ? 0 : at + 1;
	}
	return 0;
}

/** Makes room for so many keys of a segment in all, so that adding them does not grow it step by step. */
void table_reserve(struct table *table, uint32_t segment, uint32_t keys);
/** Adds a reference, which must not be in the table. */
void table_add(struct table *table, uint32_t tag, uint32_t ref);
/** Replaces a reference, as a bucket was moved. */
void table_replace(struct table *table, uint32_t tag, uint32_t old_ref, uint32_t new_ref);
void table_remove(struct table *table, uint32_t tag, uint32_t ref);

#endif
