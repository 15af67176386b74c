/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages by class and fullness. Blocks are allocated from the fullest page with a
 * free one, so that other pages become empty. A class has a list for each quarter
 * of fullness; which page of a quarter is taken does not matter much.
 *
 * The first chunks have no huge pages, later ones do: a shard of a few users
 * should cost what they need, not megabytes.
 */
#include "limiter/memory/slab_pages.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
	SMALL_CHUNKS = 4, /* a chunk is mapped without huge pages while there are fewer than these */
	IDLE_PAGES = 16,  /* and an eighth of the used ones: so many idle pages are kept */
};

/* Sizes above 128 bytes divide a page evenly, rounded down to granules. */
const uint16_t slab_sizes[SLAB_CLASSES] = {24,   32,   40,   48,   56,   64,   72,   80,   88,   96,   104,
                                           112,  120,  128,  144,  160,  176,  200,  224,  248,  280,  312,
                                           344,  384,  440,  496,  560,  624,  712,  816,  904,  1024, 1168,
                                           1360, 1488, 1632, 1816, 2048, 2336, 2728, 3272, 4096, 5456, 8192};

void slab_init(struct slab *slab)
{
	*slab = (struct slab){.chunk_count = 1, .large_free = SLAB_LARGE, .large_dead = SLAB_LARGE, .bytes = sizeof *slab};
	slab->bases = weir_alloc(1, sizeof(uint8_t *));
	slab->chunks = weir_alloc(1, sizeof *slab->chunks);
	slab->pages = weir_alloc(SLAB_PAGES, sizeof *slab->pages);
	uint8_t size_class = 0;
	for (size_t granules = 0; granules < sizeof slab->class_of; granules++) {
		while (slab_sizes[size_class] < granules * SLAB_GRANULE)
			size_class++;
		slab->class_of[granules] = size_class;
	}
}

void slab_deinit(struct slab *slab)
{
	for (uint32_t i = 1; i < slab->chunk_count; i++) {
		if (slab->bases[i] != NULL)
			chunk_unmap(slab->bases[i], CHUNK_BYTES);
		free(slab->chunks[i].marks);
	}
	for (uint32_t i = 0; i < slab->large_count; i++)
		free(slab->large[i].block);
	free(slab->bases);
	free(slab->chunks);
	free(slab->pages);
	free(slab->large);
}

/* ---- lists ---- */

static uint32_t *list_of(struct slab *slab, const struct slab_page *page)
{
	return page->state == SLAB_PAGE_FREE ? &slab->free_pages : &slab->lists[page->size_class][page->state];
}

void slab_list_remove(struct slab *slab, uint32_t number)
{
	struct slab_page *page = &slab->pages[number];
	if (page->state > SLAB_PAGE_FREE)
		return;
	if (page->previous != SLAB_NONE)
		slab->pages[page->previous].next = page->next;
	else
		*list_of(slab, page) = page->next;
	if (page->next != SLAB_NONE)
		slab->pages[page->next].previous = page->previous;
}

static void add_to_list(struct slab *slab, uint32_t number, uint8_t state)
{
	struct slab_page *page = &slab->pages[number];
	page->state = state;
	if (state > SLAB_PAGE_FREE)
		return;
	uint32_t *list = list_of(slab, page);
	page->previous = SLAB_NONE;
	page->next = *list;
	if (*list != SLAB_NONE)
		slab->pages[*list].previous = number;
	*list = number;
}

/* Moves a page to the list for its fullness. */
static void file_page(struct slab *slab, uint32_t number)
{
	struct slab_page *page = &slab->pages[number];
	unsigned capacity = slab_capacity(page->size_class);
	unsigned list = page->live == capacity ? (unsigned)SLAB_PAGE_FULL : page->live * SLAB_LISTS / capacity;
	uint8_t state = (uint8_t)list;
	if (state == page->state)
		return;
	slab_list_remove(slab, number);
	add_to_list(slab, number, state);
}

/* ---- chunks ---- */

static uint32_t unused_chunk_number(struct slab *slab)
{
	for (uint32_t i = 1; i < slab->chunk_count; i++)
		if (slab->bases[i] == NULL)
			return i;
	uint32_t number = slab->chunk_count;
	if (number > SLAB_CHUNKS_MAX)
		abort(); /* 16 GiB of buckets in one shard: unreachable, as the shard's own bound is lower */
	slab->bases = weir_realloc(slab->bases, number + 1, sizeof(uint8_t *));
	slab->chunks = weir_realloc(slab->chunks, number + 1, sizeof *slab->chunks);
	slab->pages = weir_realloc(slab->pages, (size_t)(number + 1) * SLAB_PAGES, sizeof *slab->pages);
	slab->chunk_count = number + 1;
	slab->bytes += sizeof(uint8_t *) + sizeof *slab->chunks + SLAB_PAGES * sizeof *slab->pages;
	return number;
}

static void add_chunk(struct slab *slab)
{
	uint32_t number = unused_chunk_number(slab);
	struct slab_chunk *chunk = &slab->chunks[number];
	*chunk = (struct slab_chunk){.free_pages = SLAB_PAGES, .huge = slab->mapped >= SMALL_CHUNKS};
	slab->bases[number] = chunk_map(CHUNK_BYTES, chunk->huge);
	slab->mapped++;
	if (chunk->huge)
		slab->bytes += CHUNK_BYTES;
	/* The last page first, so that pages are used from the front. */
	for (uint32_t i = SLAB_PAGES; i-- > 0;) {
		slab->pages[number * SLAB_PAGES + i] = (struct slab_page){0};
		add_to_list(slab, number * SLAB_PAGES + i, SLAB_PAGE_FREE);
	}
	slab->free_page_count += SLAB_PAGES;
}

static void give_chunk_back(struct slab *slab, uint32_t number)
{
	struct slab_chunk *chunk = &slab->chunks[number];
	for (uint32_t i = 0; i < SLAB_PAGES; i++)
		slab_list_remove(slab, number * SLAB_PAGES + i);
	if (slab->draining_chunk == number)
		slab->draining_chunk = 0;
	else
		slab->free_page_count -= SLAB_PAGES;
	slab->bytes -= chunk->huge ? CHUNK_BYTES : (uint64_t)chunk->touched_pages * SLAB_PAGE_BYTES;
	slab->idle_pages -= chunk->touched_pages;
	if (chunk->marks != NULL)
		slab->bytes -= SLAB_MARK_WORDS * sizeof(uint64_t);
	free(chunk->marks);
	chunk_unmap(slab->bases[number], CHUNK_BYTES);
	*chunk = (struct slab_chunk){0};
	slab->bases[number] = NULL;
	slab->mapped--;
}

/* ---- pages ---- */

static uint32_t take_page(struct slab *slab, uint8_t size_class)
{
	if (slab->free_pages == SLAB_NONE)
		add_chunk(slab);
	uint32_t number = slab->free_pages;
	struct slab_chunk *chunk = &slab->chunks[number / SLAB_PAGES];
	slab_list_remove(slab, number);
	chunk->free_pages--;
	slab->free_page_count--;
	slab->used_page_count++;
	slab->class_pages[size_class]++;
	struct slab_page *page = &slab->pages[number];
	if (!chunk->huge && page->touched) {
		slab->idle_pages--;
	} else if (!chunk->huge) {
		chunk->touched_pages++;
		slab->bytes += SLAB_PAGE_BYTES;
	}
	*page = (struct slab_page){
		.free_block = SLAB_PAGE_BLOCKS, .size_class = size_class, .state = SLAB_PAGE_FULL, .touched = true};
	file_page(slab, number);
	return number;
}

static void free_page(struct slab *slab, uint32_t number)
{
	struct slab_page *page = &slab->pages[number];
	uint32_t chunk = number / SLAB_PAGES;
	slab_list_remove(slab, number);
	slab->class_pages[page->size_class]--;
	slab->used_page_count--;
	slab->chunks[chunk].free_pages++;
	slab->idle_pages += !slab->chunks[chunk].huge;
	page->state = SLAB_PAGE_DRAINING; /* in no list, if its chunk is being emptied */
	if (chunk != slab->draining_chunk) {
		add_to_list(slab, number, SLAB_PAGE_FREE);
		slab->free_page_count++;
	}
	slab->has_empty_chunks |= slab->chunks[chunk].free_pages == SLAB_PAGES;
}

/* Gives idle pages of a chunk back, until few enough are left. */
static void give_pages_back(struct slab *slab, uint32_t number, uint32_t most)
{
	struct slab_chunk *chunk = &slab->chunks[number];
	for (uint32_t i = number * SLAB_PAGES; i < (number + 1) * SLAB_PAGES && slab->idle_pages > most; i++) {
		struct slab_page *page = &slab->pages[i];
		if (page->live > 0 || !page->touched)
			continue;
		slab->keeps_idle = !chunk_part_give_back(slab_page_base(slab, i), SLAB_PAGE_BYTES);
		if (slab->keeps_idle)
			return;
		page->touched = false;
		chunk->touched_pages--;
		slab->idle_pages--;
		slab->bytes -= SLAB_PAGE_BYTES;
	}
}

static void trim_pages(struct slab *slab)
{
	uint32_t most = IDLE_PAGES + slab->used_page_count / 8;
	if (slab->idle_pages <= most)
		return;
	for (uint32_t i = 1; i < slab->chunk_count && !slab->keeps_idle; i++)
		if (slab->bases[i] != NULL && !slab->chunks[i].huge)
			give_pages_back(slab, i, most / 2); /* so that it is not done at every turn */
}

/* ---- blocks ---- */

static uint32_t alloc_large(struct slab *slab, size_t bytes)
{
	if (slab->large_free == SLAB_LARGE) {
		slab->large = weir_realloc(slab->large, slab->large_count + 1u, sizeof *slab->large);
		slab->large[slab->large_count] = (struct slab_large){.next_free = SLAB_LARGE};
		slab->large_free = slab->large_count++;
		slab->bytes += sizeof *slab->large;
	}
	uint32_t place = slab->large_free;
	struct slab_large *large = &slab->large[place];
	slab->large_free = large->next_free;
	bytes = slab_fit_bytes(slab, bytes);
	*large = (struct slab_large){.block = weir_realloc(NULL, bytes, 1), .bytes = bytes};
	slab->live_bytes += bytes;
	slab->bytes += bytes;
	return SLAB_LARGE | place;
}

size_t slab_fit_bytes(const struct slab *slab, size_t bytes)
{
	if (bytes <= SLAB_PAGE_BYTES / 2)
		return slab_sizes[slab->class_of[(bytes + SLAB_GRANULE - 1) / SLAB_GRANULE]];
	return (bytes + bytes / 8 + 4095) / 4096 * 4096;
}

uint32_t slab_alloc(struct slab *slab, size_t bytes)
{
	slab->blocks++;
	if (bytes > SLAB_PAGE_BYTES / 2)
		return alloc_large(slab, bytes);
	uint8_t class = slab->class_of[(bytes + SLAB_GRANULE - 1) / SLAB_GRANULE];
	uint32_t number = SLAB_NONE;
	for (int list = SLAB_LISTS - 1; list >= 0 && number == SLAB_NONE; list--)
		number = slab->lists[class][list];
	if (number == SLAB_NONE)
		number = take_page(slab, class);
	struct slab_page *page = &slab->pages[number];
	uint32_t block = page->free_block;
	uint8_t *base = slab_page_base(slab, number);
	if (block != SLAB_PAGE_BLOCKS)
		memcpy(&page->free_block, base + (size_t)block * slab_sizes[class], sizeof page->free_block);
	else
		block = page->fresh++;
	page->live++;
	slab->class_live[class]++;
	slab->live_bytes += slab_sizes[class];
	file_page(slab, number);
	return slab_ref(number, block, class);
}

void slab_free(struct slab *slab, uint32_t ref)
{
	slab_unmark(slab, ref);
	slab->blocks--;
	if (ref & SLAB_LARGE) {
		struct slab_large *large = &slab->large[ref & ~SLAB_LARGE];
		slab->live_bytes -= large->bytes;
		large->is_dead = true;
		large->next_free = slab->large_dead;
		slab->large_dead = ref & ~SLAB_LARGE;
		return;
	}
	uint32_t number = slab_page_of(ref);
	struct slab_page *page = &slab->pages[number];
	uint16_t size = slab_sizes[page->size_class], block = (uint16_t)(slab_offset_in_page(ref) / size);
	memcpy(slab_page_base(slab, number) + (size_t)block * size, &page->free_block, sizeof page->free_block);
	page->free_block = block;
	page->live--;
	slab->class_live[page->size_class]--;
	slab->live_bytes -= size;
	if (page->live == 0)
		free_page(slab, number);
	else if (page->state != SLAB_PAGE_DRAINING)
		file_page(slab, number);
}

void slab_trim(struct slab *slab)
{
	while (slab->large_dead != SLAB_LARGE) {
		uint32_t place = slab->large_dead;
		struct slab_large *large = &slab->large[place];
		slab->large_dead = large->next_free;
		slab->bytes -= large->bytes;
		free(large->block);
		*large = (struct slab_large){.next_free = slab->large_free};
		slab->large_free = place;
	}
	/* One empty chunk is kept, so that chunks are not mapped and unmapped over and over. */
	for (uint32_t i = 1; i < slab->chunk_count && slab->has_empty_chunks; i++)
		if (slab->chunks[i].free_pages == SLAB_PAGES &&
		    (i == slab->draining_chunk || slab->free_page_count >= 2 * SLAB_PAGES))
			give_chunk_back(slab, i);
	slab->has_empty_chunks = false;
	trim_pages(slab);
}

size_t slab_block_bytes(const struct slab *slab, uint32_t ref)
{
	return ref & SLAB_LARGE ? slab->large[ref & ~SLAB_LARGE].bytes
	                        : slab_sizes[slab->pages[slab_page_of(ref)].size_class];
}
