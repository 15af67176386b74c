/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swap: blocks that have left memory, in a file without a name that ends with the process.
 *
 * Blocks are appended to one open page in memory, which is written when it is full. So writing costs one call for some
 * hundred blocks, and reading one call for each. A block never changes: it is freed, and put again elsewhere. A page
 * without live blocks is used again. One with few is for the caller to empty, who knows which of its blocks are live:
 * swap_page() reads it, and what is live is put again. So is one with a block that may have become useless: each comes
 * with the time from which it may be, and a page is due at the first of them.
 *
 * The file is no store: a crash loses it, and nothing is lost, as all that it holds is elsewhere too. Where it cannot be
 * made, written or read, the caller goes on without it.
 *
 * A block is named by a 32-bit reference, never 0, and carries a tag of the caller's.
 */
#ifndef LIMITER_SWAP_H
#define LIMITER_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SWAP_PAGE_BYTES = 16 << 10,
	SWAP_GRANULE = 8,
	SWAP_GRANULE_BITS = 11, /* of a reference: where in its page the block begins */
	SWAP_HEAD_BYTES = 8,    /* before each block: tag, length and note */
	SWAP_BLOCK_MAX = SWAP_PAGE_BYTES - SWAP_HEAD_BYTES,
	SWAP_PAGES_MAX = (1 << (32 - SWAP_GRANULE_BITS)) - 1, /* 32 GiB */
};

struct swap_page {
	uint16_t live; /* granules of live blocks */
	uint16_t used; /* granules of all blocks; 0: the page is free */
	uint32_t next_free;
	int64_t due; /* from when on it is worth a look, however many of its blocks are live */
};

struct swap {
	const char *directory; /* borrowed; NULL: there is no swap */
	int file;              /* -1: not made yet */
	bool broken;           /* could not be made, or written: takes nothing more */
	struct swap_page *pages;
	uint32_t page_count, page_room; /* pages ever used, with page 0, which is none; room for */
	uint32_t free_page, free_count; /* first of the list of free pages, 0: none; their number */
	uint32_t open_page;             /* the page being filled, 0: none */
	uint32_t hand;                  /* the page that swap_worst() looks at next */
	uint32_t page_ceiling;          /* pages in the file, but for one for moves; 0: no ceiling */
	uint32_t lately;                /* granules of the blocks that were put lately, some thousand */
	uint8_t *open, *read;           /* a page each: the open one, the last one read; NULL before the first use */
};

/* A block as it lies in a page. */
struct swap_block {
	uint32_t tag, ref;
	const void *bytes; /* aligned to SWAP_GRANULE */
	uint16_t length;
	uint16_t note; /* whatever its owner has noted of it */
};

/** @param directory  where the file is made with the first block; borrowed; NULL: never */
void swap_init(struct swap *swap, const char *directory);
void swap_deinit(struct swap *swap);

/**
 * Sets a ceiling of the file, at least a page; 0: none. Who puts asks swap_is_at_ceiling() first; who moves blocks to empty
 * a page asks swap_may_move(). A page more than the ceiling says is for moves alone.
 */
void swap_set_ceiling(struct swap *swap, uint64_t bytes);

/** Forgets all blocks and gives the file back, as it cannot be trusted. Takes nothing more until swap_retry(). */
void swap_clear(struct swap *swap);

/** Whether a block may be put now: there is a swap, it is not broken, and the block is not too long for it. */
bool swap_takes(const struct swap *swap, size_t length);
/** Whether a block of this length needs one more page, and there is none but that for moves. */
bool swap_is_at_ceiling(const struct swap *swap, size_t length);
/** Whether a block of this length finds a page when it is moved. */
bool swap_may_move(const struct swap *swap, size_t length);
/** Lets a broken swap try again, as a disk that was full may have room. */
void swap_retry(struct swap *swap);
/** Whether the open page has to be written, or one to be opened, before a block of this length is put. */
bool swap_is_full(const struct swap *swap, size_t length);

/**
 * Writes the open page, if there is one, and opens another.
 *
 * @return false: it failed, and the swap is broken. The open page stays: its blocks are still read, and go one by one as
 *         they are freed; swap_page() gives them.
 */
bool swap_turn(struct swap *swap);

/**
 * Puts a block. swap_takes() and not swap_is_full().
 *
 * @param block  its `ref` is ignored, and its bytes need no alignment
 * @param due    from when on the block may be useless, by the caller's clock; INT64_MAX: never
 * @return its reference
 */
uint32_t swap_put(struct swap *swap, const struct swap_block *block, int64_t due);

/** Reads a block. @return false: it cannot be read; else it is valid until the next call that reads */
bool swap_get(struct swap *swap, uint32_t ref, struct swap_block *block);

/** Frees a block, which may be read no more. */
void swap_free(struct swap *swap, uint32_t ref, size_t length);

/* ---- pages ---- */

/** A page of the next `most` that is less than half live, or due before `now`. @return its number; 0: there is none */
uint32_t swap_worst(struct swap *swap, uint32_t most, int64_t now);

/** Says when a page that was looked through is due again. */
void swap_set_due(struct swap *swap, uint32_t page, int64_t due);
/** Makes all pages due, as what was said of their blocks holds no more. */
void swap_all_due(struct swap *swap);

/** Reads a page, live blocks and freed ones. @return its bytes, valid until the next call that reads; NULL: it failed */
const uint8_t *swap_page(struct swap *swap, uint32_t page);

/** The next block of a page that was read. @param at  granules, 0 at first; @return false: there is none */
bool swap_page_next(const struct swap *swap, uint32_t page, const uint8_t *bytes, uint32_t *at,
                    struct swap_block *block);

/** All page numbers are from 1 on and below this. */
uint32_t swap_page_end(const struct swap *swap);

/** Memory that the swap uses. */
size_t swap_bytes(const struct swap *swap);

/** The file's size, with its free pages. */
uint64_t swap_file_bytes(const struct swap *swap);

#endif
