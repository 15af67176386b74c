/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: a bit for each place where a block can begin, in chunks that have had a marked block. */
#include "limiter/memory/slab_pages.h"

#include "common/base/alloc.h"

#include <string.h>

/* A block's bit is that of the SLAB_MARK_BYTES in which it begins. It is unique: no block is shorter than that. */
static uint32_t mark_of(uint32_t ref)
{
	return (ref & ((UINT32_C(1) << SLAB_CHUNK_SHIFT) - 1)) / (SLAB_MARK_BYTES / SLAB_GRANULE);
}

void slab_mark(struct slab *slab, uint32_t ref)
{
	if (ref & SLAB_LARGE) {
		slab->large[ref & ~SLAB_LARGE].marked = true;
		return;
	}
	struct slab_chunk *chunk = &slab->chunks[ref >> SLAB_CHUNK_SHIFT];
	if (chunk->marks == NULL) {
		chunk->marks = weir_alloc(SLAB_MARK_WORDS, sizeof(uint64_t));
		slab->bytes += SLAB_MARK_WORDS * sizeof(uint64_t);
	}
	uint32_t mark = mark_of(ref);
	chunk->marks[mark / 64] |= UINT64_C(1) << (mark % 64);
}

void slab_unmark(struct slab *slab, uint32_t ref)
{
	if (ref & SLAB_LARGE) {
		slab->large[ref & ~SLAB_LARGE].marked = false;
		return;
	}
	struct slab_chunk *chunk = &slab->chunks[ref >> SLAB_CHUNK_SHIFT];
	uint32_t mark = mark_of(ref);
	if (chunk->marks != NULL)
		chunk->marks[mark / 64] &= ~(UINT64_C(1) << (mark % 64));
}

/* The block that begins in a marked place; its page has the block size. */
static uint32_t ref_of(const struct slab *slab, uint32_t chunk, uint32_t mark)
{
	uint32_t offset = mark * SLAB_MARK_BYTES;
	uint32_t page = chunk * SLAB_PAGES + offset / SLAB_PAGE_BYTES;
	uint8_t class = slab->pages[page].size_class;
	uint32_t block = (offset % SLAB_PAGE_BYTES + slab_sizes[class] - 1) / slab_sizes[class];
	return slab_ref(page, block, class);
}

static void visit_marked(struct slab *slab, bool keep, void (*each)(void *context, uint32_t ref), void *context)
{
	for (uint32_t i = 1; i < slab->chunk_count; i++) {
		uint64_t *marks = slab->chunks[i].marks;
		for (uint32_t word = 0; marks != NULL && word < SLAB_MARK_WORDS; word++) {
			uint64_t set = marks[word];
			if (!keep)
				marks[word] = 0;
			for (; set != 0; set &= set - 1)
				each(context, ref_of(slab, i, word * 64 + (uint32_t)__builtin_ctzll(set)));
		}
	}
	for (uint32_t place = 0; slab_next_large(slab, &place) != 0; place++) {
		if (!slab->large[place].marked)
			continue;
		slab->large[place].marked = keep;
		each(context, SLAB_LARGE | place);
	}
}

void slab_each_marked(struct slab *slab, void (*each)(void *context, uint32_t ref), void *context)
{
	visit_marked(slab, true, each, context);
}

void slab_take_marked(struct slab *slab, void (*each)(void *context, uint32_t ref), void *context)
{
	visit_marked(slab, false, each, context);
}
