/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterates over the blocks, and chooses those that must move.
 *
 * Two kinds of free memory cannot be given back: free blocks in pages that are
 * partly used, and free pages in chunks that are partly used. If there are more
 * free blocks in a class than an eighth of its live ones and a page, the blocks of
 * its emptiest page are moved. If there are more free pages than an eighth of the
 * used ones and two chunks, the emptiest chunk is drained, page by page.
 */
#include "limiter/memory/slab_pages.h"

#include <string.h>

uint32_t slab_page_end(const struct slab *slab)
{
	return slab->chunk_count * SLAB_PAGES;
}

uint32_t slab_page_blocks(const struct slab *slab, uint32_t number, uint32_t *refs)
{
	const struct slab_page *page = &slab->pages[number];
	if (slab->bases[number / SLAB_PAGES] == NULL || page->live == 0)
		return 0;
	uint64_t free_blocks[SLAB_PAGE_BLOCKS / 64 + 1] = {0};
	const uint8_t *base = slab_page_base(slab, number);
	for (uint16_t block = page->free_block; block != SLAB_PAGE_BLOCKS;) {
		free_blocks[block / 64] |= UINT64_C(1) << (block % 64);
		memcpy(&block, base + (size_t)block * slab_sizes[page->size_class], sizeof block);
	}
	uint32_t count = 0;
	for (uint32_t block = 0; block < page->fresh; block++)
		if (!(free_blocks[block / 64] >> (block % 64) & 1))
			refs[count++] = slab_ref(number, block, page->size_class);
	return count;
}

uint32_t slab_next_large(const struct slab *slab, uint32_t *place)
{
	for (; *place < slab->large_count; ++*place)
		if (slab->large[*place].block != NULL && !slab->large[*place].is_dead)
			return SLAB_LARGE | *place;
	return 0;
}

/* A class with more free blocks than an eighth of its live ones and a page; SLAB_CLASSES: none. */
static unsigned wasteful_class(const struct slab *slab)
{
	for (unsigned class = 0; class < SLAB_CLASSES; class ++) {
		uint64_t capacity = slab_capacity(class);
		uint64_t unused = slab->class_pages[class] * capacity - slab->class_live[class];
		if (unused > slab->class_live[class] / 8 + capacity)
			return class;
	}
	return SLAB_CLASSES;
}

static uint32_t emptiest_page(const struct slab *slab, unsigned class)
{
	for (int list = 0; list < SLAB_LISTS; list++)
		if (slab->lists[class][list] != SLAB_NONE)
			return slab->lists[class][list];
	return SLAB_NONE;
}

/* Chooses the chunk with the most free pages, and takes those out of use. */
static void begin_draining_chunk(struct slab *slab)
{
	uint32_t emptiest = 0;
	for (uint32_t i = 1; i < slab->chunk_count; i++)
		if (slab->bases[i] != NULL && (emptiest == 0 || slab->chunks[i].free_pages > slab->chunks[emptiest].free_pages))
			emptiest = i;
	for (uint32_t i = 0; i < SLAB_PAGES; i++) {
		uint32_t number = emptiest * SLAB_PAGES + i;
		if (slab->pages[number].state != SLAB_PAGE_FREE)
			continue;
		slab_list_remove(slab, number);
		slab->pages[number].state = SLAB_PAGE_DRAINING;
		slab->free_page_count--;
	}
	slab->draining_chunk = emptiest;
	slab->has_empty_chunks |= slab->chunks[emptiest].free_pages == SLAB_PAGES;
}

/* A page of the draining chunk that still has live blocks. */
static uint32_t used_page_of_draining_chunk(const struct slab *slab)
{
	for (uint32_t i = 0; i < SLAB_PAGES; i++) {
		uint32_t number = slab->draining_chunk * SLAB_PAGES + i;
		if (slab->pages[number].live > 0)
			return number;
	}
	return SLAB_NONE;
}

uint32_t slab_evacuate(struct slab *slab, uint32_t *refs)
{
	uint32_t number = SLAB_NONE;
	unsigned class = wasteful_class(slab);
	if (class != SLAB_CLASSES) {
		number = emptiest_page(slab, class);
	} else {
		if (slab->draining_chunk == 0 && slab->free_page_count > slab->used_page_count / 8 + 2 * SLAB_PAGES)
			begin_draining_chunk(slab);
		if (slab->draining_chunk != 0)
			number = used_page_of_draining_chunk(slab);
	}
	if (number == SLAB_NONE)
		return 0;
	slab_list_remove(slab, number);
	slab->pages[number].state = SLAB_PAGE_DRAINING;
	return slab_page_blocks(slab, number, refs);
}
