/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets in swap: the store has their present version, but reading it there means reading a segment.
 *
 * A table of their own finds them. Judging knows nothing of them: what a frame, a command or a check needs is recalled
 * before it is judged. A bucket is in memory or in swap, never in both.
 */
#include "limiter/shard/internal.h"

enum {
	PAGES_VISITED = 2, /* for each page written: as many are looked through as come */
	PAGES_PASSED = 16, /* for each of these: pages that are full enough */
};

/* Whether what was read is a bucket: nothing else may be used as one. */
static bool is_sound(struct shard *shard, const struct swap_block *block)
{
	const struct bucket *bucket = block->bytes;
	if (block->length < sizeof *bucket || block->tag != bucket_tag(bucket->low))
		return false;
	const struct layout *layout = shard_layout_of(shard, bucket);
	return layout != NULL && bucket_check(bucket, layout, block->length);
}

/* What cannot be read is to be asked of the store, which has it. */
static void give_up(struct shard *shard, uint32_t tag, uint32_t ref)
{
	table_remove(&shard->swapped, tag, ref);
	shard->swap_failures++;
	shard_set_residence(shard, table_segment_of(tag), SEGMENT_UNKNOWN);
}

/* Reads a bucket. @return where it is in swap; 0: it is not there, or cannot be read: then the store is to be asked */
static uint32_t find(struct shard *shard, uint64_t low, uint64_t high, struct swap_block *block)
{
	uint32_t ref, skip = 0;
	while ((ref = table_find(&shard->swapped, bucket_tag(low), skip)) != 0) {
		if (!swap_get(&shard->swap, ref, block) || !is_sound(shard, block)) {
			give_up(shard, bucket_tag(low), ref);
			continue;
		}
		const struct bucket *bucket = block->bytes;
		if (bucket->low == low && bucket->high == high)
			return ref;
		skip++;
	}
	return 0;
}

static void forget(struct shard *shard, const struct swap_block *block)
{
	table_remove(&shard->swapped, block->tag, block->ref);
	swap_free(&shard->swap, block->ref, block->length);
}

bool shard_is_swapped(struct shard *shard, uint64_t low, uint64_t high)
{
	struct swap_block block;
	return shard->swapped.count > 0 && find(shard, low, high, &block) != 0;
}

uint32_t shard_recall(struct shard *shard, uint64_t low, uint64_t high)
{
	struct swap_block block;
	uint8_t size_class;
	if (shard->swapped.count == 0 || find(shard, low, high, &block) == 0)
		return 0;
	uint32_t ref = slab_alloc(&shard->slab, block.length, &size_class);
	struct bucket *bucket = slab_at(&shard->slab, ref);
	memcpy(bucket, block.bytes, block.length);
	bucket->flags &= BUCKET_FORM;
	bucket->size_class = size_class;
	bucket->generation = (uint8_t)(shard->generation - 1); /* clean */
	forget(shard, &block);
	table_add(&shard->table, bucket_tag(low), ref);
	shard->churn++;
	shard->recalls++;
	return ref;
}

/* Makes room for a block in the open page. @return false: there is no swap for it */
static bool make_room(struct shard *shard, size_t length)
{
	if (!swap_takes(&shard->swap, length))
		return false;
	if (!swap_is_full(&shard->swap, length) || swap_turn(&shard->swap))
		return true;
	shard->swap_failures++;
	return false;
}

/* Whether a block is the one that the table has; else it was freed. */
static bool is_live(const struct shard *shard, const struct swap_block *block)
{
	uint32_t ref, skip = 0;
	while ((ref = table_find(&shard->swapped, block->tag, skip)) != 0 && ref != block->ref)
		skip++;
	return ref != 0;
}

/* Looks through a page: drops what is forgotten, and moves the rest if the page is not worth keeping. */
static void visit_page(struct shard *shard, uint32_t page)
{
	struct swap_block block;
	uint32_t at = 0;
	bool moves = shard->swap.pages[page].live < SWAP_PAGE_BYTES / SWAP_GRANULE / 2;
	const uint8_t *bytes = swap_page(&shard->swap, page);
	while (bytes != NULL && swap_page_next(&shard->swap, page, bytes, &at, &block)) {
		if (!is_live(shard, &block))
			continue;
		if (!is_sound(shard, &block)) {
			give_up(shard, block.tag, block.ref);
			continue;
		}
		if (shard_is_forgotten(shard, block.bytes, shard->clock_ms)) {
			forget(shard, &block);
			shard->forgotten++;
		} else if (moves && make_room(shard, block.length)) {
			uint32_t moved = swap_put(&shard->swap, block.tag, block.bytes, block.length);
			table_replace(&shard->swapped, block.tag, block.ref, moved);
			swap_free(&shard->swap, block.ref, block.length);
		}
	}
}

/* Keeps the file small: what is written pays for what is looked through. */
static void visit_pages(struct shard *shard)
{
	bool all = shard->options.lateness_ms >= 0; /* else nothing is ever forgotten */
	for (int i = 0; i < PAGES_VISITED; i++) {
		uint32_t page = swap_worst(&shard->swap, all ? 1 : PAGES_PASSED, all);
		if (page != 0)
			visit_page(shard, page);
	}
}

bool shard_swap_out(struct shard *shard, const struct bucket *bucket, size_t used)
{
	bool turns = swap_is_full(&shard->swap, used);
	if (!make_room(shard, used))
		return false;
	if (turns) {
		visit_pages(shard);
		if (!make_room(shard, used)) /* what was moved may have filled the page again */
			return false;
	}
	uint32_t tag = bucket_tag(bucket->low);
	table_add(&shard->swapped, tag, swap_put(&shard->swap, tag, bucket, used));
	return true;
}

void shard_each_swapped(struct shard *shard, void (*each)(void *context, const struct bucket *bucket, size_t used),
                        void *context)
{
	struct swap_block block;
	for (uint32_t page = 1; page < swap_page_end(&shard->swap); page++) {
		const uint8_t *bytes = shard->swap.pages[page].live > 0 ? swap_page(&shard->swap, page) : NULL;
		for (uint32_t at = 0; bytes != NULL && swap_page_next(&shard->swap, page, bytes, &at, &block);)
			if (is_live(shard, &block) && is_sound(shard, &block))
				each(context, block.bytes, block.length);
	}
}
