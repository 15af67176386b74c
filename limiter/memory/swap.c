/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in a file, of which one at a time is written and one read. */
#include "limiter/memory/swap.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	GRANULES = SWAP_PAGE_BYTES / SWAP_GRANULE,
	LATELY = 1024,       /* blocks, of which the usual length is */
	FIRST_GRANULES = 16, /* of a block, before there are any */
	PATH_BYTES = 4096,
};

_Static_assert(1 << SWAP_GRANULE_BITS == GRANULES, "a reference says where in its page a block begins");

struct head {
	uint32_t tag;
	uint16_t length, note;
};

_Static_assert(sizeof(struct head) == SWAP_HEAD_BYTES, "a head is one granule");

static uint32_t granules_of(size_t length)
{
	return (uint32_t)((SWAP_HEAD_BYTES + length + SWAP_GRANULE - 1) / SWAP_GRANULE);
}

void swap_init(struct swap *swap, const char *directory)
{
	*swap = (struct swap){.directory = directory, .file = -1, .page_count = 1, .lately = FIRST_GRANULES * LATELY};
}

void swap_deinit(struct swap *swap)
{
	if (swap->file >= 0)
		close(swap->file);
	free(swap->pages);
	free(swap->open);
	free(swap->read);
}

void swap_set_ceiling(struct swap *swap, uint64_t bytes)
{
	uint64_t pages = bytes / SWAP_PAGE_BYTES;
	if (pages == 0 && bytes > 0)
		pages = 1;
	swap->page_ceiling = pages < SWAP_PAGES_MAX ? (uint32_t)pages : SWAP_PAGES_MAX;
}

void swap_clear(struct swap *swap)
{
	uint32_t page_ceiling = swap->page_ceiling;
	swap_deinit(swap);
	swap_init(swap, swap->directory);
	swap->page_ceiling = page_ceiling;
	swap->broken = true;
}

bool swap_takes(const struct swap *swap, size_t length)
{
	return swap->directory != NULL && !swap->broken && length <= SWAP_BLOCK_MAX;
}

void swap_retry(struct swap *swap)
{
	swap->broken = false;
}

bool swap_is_full(const struct swap *swap, size_t length)
{
	return swap->open_page == 0 || swap->pages[swap->open_page].used + granules_of(length) > GRANULES;
}

/* Whether a block needs a page, and there are fewer to be had than so many: free ones, and those that the file may grow by. */
static bool lacks_pages(const struct swap *swap, size_t length, int64_t pages)
{
	int64_t in_file = (int64_t)swap->page_count - 1, most = (int64_t)swap->page_ceiling + 1;
	return swap->page_ceiling > 0 && swap->free_count + (most - in_file) < pages && swap_is_full(swap, length) &&
	       (swap->open_page == 0 || swap->pages[swap->open_page].live > 0);
}

bool swap_is_at_ceiling(const struct swap *swap, size_t length)
{
	return lacks_pages(swap, length, 2);
}

bool swap_may_move(const struct swap *swap, size_t length)
{
	return !lacks_pages(swap, length, 1);
}

/* Some file systems have no files without a name: there one is made and its name removed. */
static int make_file(const char *directory)
{
	char path[PATH_BYTES];
	int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_NOATIME, 0600);
	if (file >= 0 || (size_t)snprintf(path, sizeof path, "%s/swap-XXXXXX", directory) >= sizeof path)
		return file;
	file = mkostemp(path, O_CLOEXEC | O_NOATIME);
	if (file >= 0)
		unlink(path);
	return file;
}

/* What cannot be written whole is not written: a page that is read is a page that was written. */
static bool write_open_page(struct swap *swap)
{
	off_t at = (off_t)swap->open_page * SWAP_PAGE_BYTES;
	for (size_t done = 0; done < SWAP_PAGE_BYTES;) {
		ssize_t written = pwrite(swap->file, swap->open + done, SWAP_PAGE_BYTES - done, at + (off_t)done);
		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

static void give_back(struct swap *swap, uint32_t page)
{
	swap->pages[page].used = 0;
	swap->pages[page].next_free = swap->free_page;
	swap->free_page = page;
	swap->free_count++;
}

/* @return a page's number; 0: there are as many as a reference can name */
static uint32_t take_page(struct swap *swap)
{
	uint32_t page = swap->free_page;
	if (page != 0) {
		swap->free_page = swap->pages[page].next_free;
		swap->free_count--;
	} else {
		if (swap->page_count > SWAP_PAGES_MAX)
			return 0;
		if (swap->page_count >= swap->page_room) {
			swap->page_room = swap->page_room == 0 ? 64 : swap->page_room * 2;
			swap->pages = weir_realloc(swap->pages, swap->page_room, sizeof *swap->pages);
		}
		page = swap->page_count++;
	}
	swap->pages[page] = (struct swap_page){.due = INT64_MAX};
	return page;
}

bool swap_turn(struct swap *swap)
{
	if (swap->file < 0 && (swap->file = make_file(swap->directory)) < 0) {
		swap->broken = true;
		return false;
	}
	if (swap->open == NULL) {
		swap->open = weir_alloc(1, SWAP_PAGE_BYTES);
		swap->read = weir_alloc(1, SWAP_PAGE_BYTES);
	}
	uint32_t full = swap->open_page;
	if (full != 0 && swap->pages[full].live > 0 && !write_open_page(swap)) {
		swap->broken = true;
		return false;
	}
	swap->open_page = 0;
	if (full != 0 && swap->pages[full].live == 0)
		give_back(swap, full);
	swap->open_page = take_page(swap);
	swap->broken = swap->open_page == 0;
	return !swap->broken;
}

uint32_t swap_put(struct swap *swap, const struct swap_block *block, int64_t due)
{
	struct swap_page *page = &swap->pages[swap->open_page];
	uint32_t at = page->used, granules = granules_of(block->length);
	struct head head = {.tag = block->tag, .length = block->length, .note = block->note};
	assert(!swap_is_full(swap, block->length));
	memcpy(swap->open + (size_t)at * SWAP_GRANULE, &head, sizeof head);
	memcpy(swap->open + (size_t)at * SWAP_GRANULE + sizeof head, block->bytes, block->length);
	page->used = (uint16_t)(at + granules);
	page->live = (uint16_t)(page->live + granules);
	page->due = due < page->due ? due : page->due;
	swap->lately += granules - swap->lately / LATELY;
	return swap->open_page << SWAP_GRANULE_BITS | at;
}

static bool read_whole(const struct swap *swap, uint8_t *to, size_t bytes, off_t at)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = pread(swap->file, to + done, bytes - done, at + (off_t)done);
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/*
 * How much of a block is read before its length is known: the usual length and a quarter more, which most blocks do not exceed.
 * What is read beyond a block costs nearly as much as the block, as no cache has either; a longer one costs a second call.
 */
static size_t first_read_bytes(const struct swap *swap)
{
	return SWAP_HEAD_BYTES + (size_t)(swap->lately + swap->lately / 4) / LATELY * SWAP_GRANULE;
}

bool swap_get(struct swap *swap, uint32_t ref, struct swap_block *block)
{
	uint32_t page = ref >> SWAP_GRANULE_BITS;
	size_t start = (size_t)(ref & (GRANULES - 1)) * SWAP_GRANULE, room = SWAP_PAGE_BYTES - start;
	off_t at = (off_t)page * SWAP_PAGE_BYTES + (off_t)start;
	const uint8_t *bytes = swap->open + start;
	size_t usual = first_read_bytes(swap), first = room < usual ? room : usual;
	struct head head;
	if (page != swap->open_page) {
		if (!read_whole(swap, swap->read, first, at))
			return false;
		bytes = swap->read;
	}
	memcpy(&head, bytes, sizeof head);
	if (head.length > room - sizeof head)
		return false;
	size_t whole = sizeof head + head.length;
	if (page != swap->open_page && whole > first &&
	    !read_whole(swap, swap->read + first, whole - first, at + (off_t)first))
		return false;
	*block = (struct swap_block){
		.tag = head.tag, .ref = ref, .bytes = bytes + sizeof head, .length = head.length, .note = head.note};
	return true;
}

void swap_free(struct swap *swap, uint32_t ref, size_t length)
{
	uint32_t number = ref >> SWAP_GRANULE_BITS, granules = granules_of(length);
	struct swap_page *page = &swap->pages[number];
	assert(page->live >= granules);
	page->live = (uint16_t)(page->live - granules);
	if (page->live == 0 && number != swap->open_page)
		give_back(swap, number);
}

uint32_t swap_worst(struct swap *swap, uint32_t most, int64_t now)
{
	for (uint32_t looked = 0; looked < most && looked + 1 < swap->page_count; looked++) {
		swap->hand = swap->hand + 1 < swap->page_count ? swap->hand + 1 : 1;
		const struct swap_page *page = &swap->pages[swap->hand];
		if (page->used > 0 && swap->hand != swap->open_page && (page->due < now || page->live < GRANULES / 2))
			return swap->hand;
	}
	return 0;
}

void swap_set_due(struct swap *swap, uint32_t page, int64_t due)
{
	swap->pages[page].due = due;
}

void swap_all_due(struct swap *swap)
{
	for (uint32_t page = 1; page < swap->page_count; page++)
		swap->pages[page].due = INT64_MIN;
}

const uint8_t *swap_page(struct swap *swap, uint32_t page)
{
	if (page == swap->open_page)
		return swap->open;
	return read_whole(swap, swap->read, SWAP_PAGE_BYTES, (off_t)page * SWAP_PAGE_BYTES) ? swap->read : NULL;
}

bool swap_page_next(const struct swap *swap, uint32_t page, const uint8_t *bytes, uint32_t *at,
                    struct swap_block *block)
{
	struct head head;
	if (*at >= swap->pages[page].used)
		return false;
	size_t start = (size_t)*at * SWAP_GRANULE;
	memcpy(&head, bytes + start, sizeof head);
	if (head.length > SWAP_PAGE_BYTES - start - sizeof head)
		return false;
	*block = (struct swap_block){.tag = head.tag,
	                             .ref = page << SWAP_GRANULE_BITS | *at,
	                             .bytes = bytes + start + sizeof head,
	                             .length = head.length,
	                             .note = head.note};
	*at += granules_of(head.length);
	return true;
}

uint32_t swap_page_end(const struct swap *swap)
{
	return swap->page_count;
}

size_t swap_bytes(const struct swap *swap)
{
	return swap->page_room * sizeof *swap->pages + (swap->open != NULL ? (size_t)2 * SWAP_PAGE_BYTES : 0);
}

uint64_t swap_file_bytes(const struct swap *swap)
{
	return (uint64_t)(swap->page_count - 1) * SWAP_PAGE_BYTES;
}
