/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: where blocks of all sizes lie close together, and stay so.
 *
 * Chunks are cut into pages, and a page into blocks of one size class. Classes
 * lie 8 bytes apart up to 128, then about an eighth. A block is named by a
 * reference of 32 bits, half of what a pointer takes, and may be moved: whoever
 * holds its reference is told which blocks stand in the way of giving a page
 * back. So what is free but cannot be given back is bounded, by an eighth of what
 * is used and a page a class.
 *
 * What was freed stays readable until slab_trim(): whoever holds pointers to
 * blocks that may move says when no one does any more.
 *
 * A block can be marked; marked blocks are found again in time proportional to
 * their number.
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
	SLAB_LEAST_BYTES = 32,
	SLAB_PAGE_BLOCKS = SLAB_PAGE_BYTES / SLAB_LEAST_BYTES,
	SLAB_GRANULE = 8,
	SLAB_CLASSES = 48,
	SLAB_LARGE_CLASS = 255, /* larger than any class: a block of its own from malloc */
	SLAB_LISTS = 4,         /* of a class's pages, by how full they are */
};

/* References: this bit, then the place in the table of large blocks; else chunk (from 1 on) and granule within it. */
#define SLAB_LARGE UINT32_C(0x80000000)
#define SLAB_CHUNK_SHIFT 18
#define SLAB_CHUNKS_MAX ((UINT32_C(1) << (31 - SLAB_CHUNK_SHIFT)) - 1)

enum { SLAB_NONE = 0 }; /* page numbers begin behind those of chunk 0, which does not exist */

/* A page: blocks from `fresh` on were never used; the free ones before it hold the number of the next, and so on. */
struct slab_page {
	uint32_t previous, next; /* in its list */
	uint16_t live, fresh;
	uint16_t free_block; /* first free one, SLAB_PAGE_BLOCKS: none */
	uint8_t size_class;
	uint8_t state; /* its list of the class (0 to SLAB_LISTS - 1), or one of enum slab_page_state */
	bool touched;  /* was ever used */
};

enum slab_page_state { SLAB_PAGE_FREE = SLAB_LISTS, SLAB_PAGE_FULL, SLAB_PAGE_DRAINING };

struct slab_chunk {
	uint64_t *marks; /* a bit for every SLAB_LEAST_BYTES: no two blocks begin in the same; NULL: none was set yet */
	uint32_t free_pages;
	uint32_t touched_pages; /* of one without huge pages: pages that were ever used */
	bool huge;
};

struct slab_large {
	void *block; /* NULL: this place is free */
	size_t bytes;
	uint32_t next_free;
	bool marked;
	bool is_dead; /* freed, and still there */
};

struct slab {
	uint8_t **bases;           /* of chunks by number; [0] and those given back are NULL */
	struct slab_chunk *chunks; /* the same */
	struct slab_page *pages;   /* SLAB_PAGES for each chunk number */
	uint32_t chunk_count;      /* numbers in use or given back, with 0 */
	uint32_t mapped;           /* chunks that there are */
	uint32_t free_pages;       /* list of them, and how many */
	uint32_t free_page_count, used_page_count;
	uint32_t draining_chunk; /* being emptied, 0: none */
	uint32_t lists[SLAB_CLASSES][SLAB_LISTS];
	uint32_t class_pages[SLAB_CLASSES];
	uint64_t class_live[SLAB_CLASSES];
	uint8_t class_of[SLAB_PAGE_BYTES / 2 / SLAB_GRANULE + 1]; /* by granules */
	struct slab_large *large;
	uint32_t large_count, large_free; /* places; first free one, or SLAB_LARGE: none */
	uint32_t large_dead;              /* first one whose block was freed and is still there, or SLAB_LARGE */
	bool has_empty_chunks;            /* maybe some to give back */
	uint64_t live_bytes;              /* of blocks given out */
	uint64_t bytes;                   /* resident, large blocks and tables with it */
	uint64_t blocks;                  /* live */
};

void slab_init(struct slab *slab);
void slab_deinit(struct slab *slab);

/**
 * Takes a block of at least so many bytes, contents undefined.
 *
 * @return its reference, never 0
 */
uint32_t slab_alloc(struct slab *slab, size_t bytes, uint8_t *size_class);
void slab_free(struct slab *slab, uint32_t ref, uint8_t size_class);
/** Gives memory that is free back to the system. Pointers to blocks that were freed end here. */
void slab_trim(struct slab *slab);

/** Bytes of a block. */
size_t slab_block_bytes(const struct slab *slab, uint32_t ref, uint8_t size_class);
/** Bytes that a block for so many would have. */
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
 * Chooses a page whose blocks should move, if too much is free.
 *
 * No block will be given out of it. Its blocks are to be copied into new ones and freed; with the last it is gone.
 *
 * @param refs  room for SLAB_PAGE_BLOCKS
 * @return how many blocks; 0: nothing needs to move
 */
uint32_t slab_evacuate(struct slab *slab, uint32_t *refs);

/* ---- going through all blocks ---- */

/** Page numbers are below this. */
uint32_t slab_page_end(const struct slab *slab);
/** The blocks of a page. @param refs  room for SLAB_PAGE_BLOCKS @return how many */
uint32_t slab_page_blocks(const struct slab *slab, uint32_t page, uint32_t *refs);
/** The next large block at or after a place, *place set to it; 0: none. */
uint32_t slab_next_large(const struct slab *slab, uint32_t *place);

/* ---- marks ---- */

void slab_mark(struct slab *slab, uint32_t ref);
void slab_unmark(struct slab *slab, uint32_t ref);
/** Calls each for every marked block and takes the marks off. The function may not free blocks. */
void slab_take_marked(struct slab *slab, void (*each)(void *context, uint32_t ref), void *context);

#endif
