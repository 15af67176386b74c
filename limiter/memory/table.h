/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: from a key's fingerprint to the reference of its bucket.
 *
 * 1,024 small tables, one a segment, each a row of cache lines of eight slots:
 * eight tags, then eight references. A tag is the upper half of the
 * fingerprint's `low`; its upper ten bits are the segment, the rest says at which
 * line to begin, so a table grows by its own bytes, without a look at any
 * bucket. A key lies in its home line or, where that is full, in one of those
 * behind it; at three quarters of all slots, the bound, fifteen of sixteen are at
 * home. One line is read for a key, then the bucket, which has the whole
 * fingerprint. Fuller tables would be smaller, but a line after the first is one
 * that nobody asked the memory for in time.
 *
 * Tables grow by a quarter, one at a time, so that no event waits long. They lie
 * in chunks of their own and are moved together when too many of those are
 * mostly empty.
 */
#ifndef LIMITER_TABLE_H
#define LIMITER_TABLE_H

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
	void **chunks; /* where tables lie; the last takes new ones */
	uint32_t chunk_count;
	uint64_t live_bytes; /* of tables, without those that have chunks of their own */
	uint64_t bytes;      /* resident */
	uint64_t count;
};

void table_init(struct table *table);
void table_deinit(struct table *table);

static inline uint32_t table_segment_of(uint32_t tag)
{
	return tag >> TABLE_SEGMENT_SHIFT;
}

static inline uint32_t table_home(const struct table_segment *segment, uint32_t tag)
{
	uint32_t rest = tag << (32 - TABLE_SEGMENT_SHIFT);
	return (uint32_t)(((uint64_t)rest * segment->line_count) >> 32);
}

static inline void table_prefetch(const struct table *table, uint32_t tag)
{
	const struct table_segment *segment = &table->segments[table_segment_of(tag)];
	__builtin_prefetch(&segment->lines[table_home(segment, tag)]);
}

/* A bit for each slot whose number is the one asked for. */
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
 * A reference with a tag; nearly always the one that is looked for, if there is one.
 *
 * @param skip  how many of that tag to pass over
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

/** Adds a reference. It is not in the table. */
void table_add(struct table *table, uint32_t tag, uint32_t ref);
/** A bucket was moved. */
void table_replace(struct table *table, uint32_t tag, uint32_t old_ref, uint32_t new_ref);
void table_remove(struct table *table, uint32_t tag, uint32_t ref);

#endif
