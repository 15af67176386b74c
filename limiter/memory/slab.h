/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: an allocator that packs blocks of all sizes densely, and keeps them so.
 *
 * Chunks are cut into pages, and a page into blocks of one size class. Classes
 * are 8 bytes apart up to 128, then about an eighth. A block is named by a 32-bit
 * reference, half the size of a pointer, and may be moved: slab_evacuate() lists
 * the blocks that keep a page from being given back, and the caller, who holds
 * their references, moves them. So the free memory that cannot be given back is
 * bounded: in each class by an eighth of its live blocks and a page, and in free
 * pages by an eighth of the used ones and two chunks. Free pages of chunks without
 * huge pages are given back by themselves, but for an eighth and some.
 *
 * A freed block stays readable until slab_trim(). The caller calls that when
 * nothing points to freed blocks any more.
 *
 * A block can be marked. Finding the marked blocks costs a scan of the mark bits,
 * and time proportional to their number.
 */
#ifndef LIMITER_SLAB_H
#define LIMITER_SLAB_H

#include "limiter/memory/chunk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SLAB_PAGE_BYTES = 16 << 10,
	SLAB_PAGES = CHUNK_BYTES / SLAB_PAGE_BYTES, /* in a chunk */
	SLAB_LEAST_BYTES = 24,
	SLAB_PAGE_BLOCKS = SLAB_PAGE_BYTES / SLAB_LEAST_BYTES,
	SLAB_GRANULE = 8,
	SLAB_CLASSES = 44,
	SLAB_LISTS = 4, /* lists of a class's pages, by how full they are */
};

/* References: this bit and an index of slab.large, or a chunk number (from 1 on) and a granule within the chunk. */
#define SLAB_LARGE UINT32_C(0x80000000)
#define SLAB_CHUNK_SHIFT 18
#define SLAB_CHUNKS_MAX ((UINT32_C(1) << (31 - SLAB_CHUNK_SHIFT)) - 1)

enum { SLAB_NONE = 0 }; /* no page: chunk 0 does not exist, so page numbers begin at SLAB_PAGES */

/* A page. Blocks from `fresh` on were never used. The free ones before are a list: each holds the next one's number. */
struct slab_page {
	uint32_t previous, next; /* in its list */
	uint16_t live, fresh;
	uint16_t free_block; /* first of the list of free blocks, SLAB_PAGE_BLOCKS: none */
	uint8_t size_class;
	uint8_t state; /* its list in the class (0 to SLAB_LISTS - 1), or one of enum slab_page_state */
	bool touched;  /* it was used, and not given back since */
};

enum slab_page_state { SLAB_PAGE_FREE = SLAB_LISTS, SLAB_PAGE_FULL, SLAB_PAGE_DRAINING };

struct slab_chunk {
	uint64_t *marks; /* a bit per SLAB_MARK_BYTES, in which at most one block begins; NULL: none was set yet */
	uint32_t free_pages;
	uint32_t touched_pages; /* without huge pages: how many pages are touched */
	bool huge;
};

struct slab_large {
	void *block; /* NULL: this entry is free */
	size_t bytes;
	uint32_t next_free;
	bool marked;
	bool is_dead; /* freed, but kept until slab_trim() */
};

struct slab {
	uint8_t **bases;           /* addresses of chunks, by number; NULL: [0], and those given back */
	struct slab_chunk *chunks; /* by number */
	struct slab_page *pages;   /* SLAB_PAGES for each chunk number */
	uint32_t chunk_count;      /* chunk numbers ever used, including 0 */
	uint32_t mapped;           /* chunks that are mapped */
	uint32_t free_pages;       /* first of the list of free pages */
	uint32_t free_page_count, used_page_count;
	uint32_t idle_pages;     /* touched pages without blocks, in chunks without huge pages */
	bool keeps_idle;         /* such pages cannot be given back */
	uint32_t draining_chunk; /* the chunk being emptied, 0: none */
	uint32_t lists[SLAB_CLASSES][SLAB_LISTS];
	uint32_t class_pages[SLAB_CLASSES];
	uint64_t class_live[SLAB_CLASSES];
	uint8_t class_of[SLAB_PAGE_BYTES / 2 / SLAB_GRANULE + 1]; /* by size in granules */
	struct slab_large *large;
	uint32_t large_count, large_free; /* entries; the first free one, or SLAB_LARGE: none */
	uint32_t large_dead;              /* first entry with is_dead, or SLAB_LARGE: none */
	bool has_empty_chunks;            /* there may be chunks to give back */
	uint64_t live_bytes;              /* of live blocks */
	uint64_t bytes;                   /* resident, including large blocks and the slab's own tables */
	uint64_t blocks;                  /* live ones */
};

void slab_init(struct slab *slab);
void slab_deinit(struct slab *slab);

/**
 * Allocates a block of at least `bytes` bytes, contents undefined.
 *
 * @return its reference, never 0
 */
uint32_t slab_alloc(struct slab *slab, size_t bytes);
void slab_free(struct slab *slab, uint32_t ref);
/** Gives free memory back to the system. Invalidates pointers to freed blocks. */
void slab_trim(struct slab *slab);

/** The size of a block. */
size_t slab_block_bytes(const struct slab *slab, uint32_t ref);
/** The size that a block allocated for `bytes` would have. */
size_t slab_fit_bytes(const struct slab *slab, size_t bytes);

static inline void *slab_at(const struct slab *slab, uint32_t ref)
{
	if (__builtin_expect(ref & SLAB_LARGE, 0))
		return slab->large[ref & ~SLAB_LARGE].block;
	return slab->bases[ref >> SLAB_CHUNK_SHIFT] +
	       (size_t)(ref & ((UINT32_C(1) << SLAB_CHUNK_SHIFT) - 1)) * SLAB_GRANULE;
}

/* ---- moving ---- */

/**
 * Chooses a page whose blocks should move, if too much memory is free.
 *
 * No more blocks are allocated from it. The caller copies its blocks into new ones and frees them; the page is freed
 * with the last one.
 *
 * @param refs  room for SLAB_PAGE_BLOCKS
 * @return how many blocks; 0: nothing needs to move
 */
uint32_t slab_evacuate(struct slab *slab, uint32_t *refs);

/* ---- iterating over all blocks ---- */

/** All page numbers are below this. */
uint32_t slab_page_end(const struct slab *slab);
/** Lists a page's live blocks. @param refs  room for SLAB_PAGE_BLOCKS @return how many */
uint32_t slab_page_blocks(const struct slab *slab, uint32_t page, uint32_t *refs);
/** The first large block at index *place or after it; sets *place to its index. @return its reference; 0: none */
uint32_t slab_next_large(const struct slab *slab, uint32_t *place);

/* ---- marks ---- */

void slab_mark(struct slab *slab, uint32_t ref);
void slab_unmark(struct slab *slab, uint32_t ref);
/** Calls each() for every marked block. each() must not free blocks. */
void slab_each_marked(struct slab *slab, void (*each)(void *context, uint32_t ref), void *context);
/** The same, and clears the marks. */
void slab_take_marked(struct slab *slab, void (*each)(void *context, uint32_t ref), void *context);

#endif
