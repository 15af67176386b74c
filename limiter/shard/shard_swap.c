/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets in swap: the store has their present version, but reading it there means reading a segment. With
 * options.swap_changes there are also changed ones, which no store has. Their mark and the number of the snapshot that
 * was stored last, of which 16 bits are noted, tell them; when the next one is stored, they are changed no more, and the
 * file need not be touched. Those bits come round again after 65,536 snapshots: then a bucket is stored again.
 *
 * A table of their own finds them. Judging knows nothing of them: what a frame, a command or a check needs is recalled
 * before it is judged. A bucket is in memory or in swap, never in both.
 *
 * A file of which one part cannot be read is given up whole: what else it has lost cannot be known, and the store has it
 * all, but for changes, which are lost then: nothing may be judged any more.
 */
#include "limiter/shard/shard_copies.h"

enum {
	PAGES_VISITED = 2, /* for each page written: as many are looked through */
	PAGES_PASSED = 16, /* for each of these: pages that are full enough, and not due */
	AHEAD = 8,         /* blocks of a page from one that is looked at to one whose place in the table is fetched */
};

/* Whether what was read is a bucket: nothing else may be used as one. */
static bool is_sound(struct shard *shard, const struct swap_block *block)
{
	const struct bucket *bucket = block->bytes;
	if (block->length < sizeof *bucket || block->tag != bucket_tag(bucket->low) ||
	    (bucket->layout & LAYOUT_SCALED && block->length < sizeof *bucket + SCALE_BYTES))
		return false;
	const struct layout *layout = shard_layout_of(shard, bucket);
	return layout != NULL && bucket_check(bucket, layout, block->length);
}

/* The store is to be asked for all that was in swap. */
static void give_up(struct shard *shard)
{
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (shard->swapped.segments[i].count > 0)
			shard_set_residence(shard, i, SEGMENT_UNKNOWN);
	shard->has_lost |= shard->swapped_changes > 0;
	table_deinit(&shard->swapped);
	table_init_loose(&shard->swapped);
	swap_clear(&shard->swap);
	shard->swap_failures++;
	shard_check_swap_lost(shard);
}

/* Reads a bucket. @return where it is in swap; 0: it is not there, or cannot be read: then the store is to be asked */
static uint32_t find(struct shard *shard, uint64_t low, uint32_t high, struct swap_block *block)
{
	uint32_t ref, skip = 0;
	while ((ref = table_find(&shard->swapped, bucket_tag(low), skip)) != 0) {
		if (!swap_get(&shard->swap, ref, block) || !is_sound(shard, block)) {
			give_up(shard);
			return 0;
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

/* Whether no stored snapshot has a bucket that is in swap. */
static bool is_change(const struct shard *shard, const struct swap_block *block)
{
	const struct bucket *bucket = block->bytes;
	return (bucket->flags & BUCKET_DIRTY) && block->note == (uint16_t)shard->generation;
}

bool shard_is_swapped(struct shard *shard, uint64_t low, uint32_t high)
{
	struct swap_block block;
	return shard->swapped.count > 0 && find(shard, low, high, &block) != 0;
}

uint32_t shard_recall(struct shard *shard, uint64_t low, uint32_t high)
{
	struct swap_block block;
	if (shard->swapped.count == 0 || find(shard, low, high, &block) == 0)
		return 0;
	uint32_t ref = slab_alloc(&shard->slab, block.length);
	struct bucket *bucket = slab_at(&shard->slab, ref);
	memcpy(bucket, block.bytes, block.length);
	bool changed = is_change(shard, &block);
	bucket->flags &= BUCKET_FORM;
	bucket_set_generation(bucket, shard->generation - 1); /* clean */
	if (changed)
		shard_set_dirty(shard, bucket, ref);
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

/* Has the places in the table of the next blocks of a page in the processor's cache by the time they are looked up. */
static void look_ahead(const struct shard *shard, uint32_t page, const uint8_t *bytes, uint32_t *at, int blocks)
{
	struct swap_block block;
	while (blocks-- > 0 && swap_page_next(&shard->swap, page, bytes, at, &block))
		table_prefetch(&shard->swapped, block.tag);
}

/* The last clock at which a bucket in swap is remembered for certain, as long as the policy stays. */
static int64_t due_of(struct shard *shard, const struct bucket *bucket)
{
	const struct layout *layout = shard_layout_in_force(shard_layout_of(shard, bucket));
	if (layout == NULL)
		return INT64_MIN; /* its zone was removed */
	if (shard->options.lateness_ms < 0)
		return INT64_MAX; /* nothing is ever forgotten */
	return bucket_remembered_until(bucket, layout, shard->options.lateness_ms, bucket_blocked_until(bucket));
}

/* Looks through a page: drops what is forgotten, and moves the rest if the page is not worth keeping. */
static void visit_page(struct shard *shard, uint32_t page)
{
	struct swap_block block;
	uint32_t at = 0, ahead = 0;
	int64_t due = INT64_MAX;
	bool moves = shard->swap.pages[page].live < SWAP_PAGE_BYTES / SWAP_GRANULE / 2;
	const uint8_t *bytes = swap_page(&shard->swap, page);
	bool sound = bytes != NULL;
	if (sound)
		look_ahead(shard, page, bytes, &ahead, AHEAD);
	while (sound && swap_page_next(&shard->swap, page, bytes, &at, &block)) {
		look_ahead(shard, page, bytes, &ahead, 1);
		if (!is_live(shard, &block))
			continue;
		sound = is_sound(shard, &block);
		if (!sound)
			break;
		int64_t due_then = due_of(shard, block.bytes);
		bool needed = is_change(shard, &block) && shard->has_store; /* else an older version would be read */
		if (!needed && shard_is_forgotten(shard, block.bytes, shard->clock_ms)) {
			forget(shard, &block);
			shard->forgotten++;
		} else if (moves && swap_may_move(&shard->swap, block.length) && make_room(shard, block.length)) {
			uint32_t moved = swap_put(&shard->swap, &block, due_then);
			table_replace(&shard->swapped, block.tag, block.ref, moved);
			swap_free(&shard->swap, block.ref, block.length);
		} else if (due_then < due) {
			due = due_then;
		}
	}
	if (!sound || at < shard->swap.pages[page].used)
		give_up(shard);
	else
		swap_set_due(&shard->swap, page, due);
}

/* Keeps the file small: what is written, or would be, pays for what is looked through. */
static void visit_pages(struct shard *shard)
{
	for (int i = 0; i < PAGES_VISITED && !shard->swap.broken; i++) {
		uint32_t page = swap_worst(&shard->swap, PAGES_PASSED, shard->clock_ms);
		if (page != 0)
			visit_page(shard, page);
	}
}

/* At the ceiling of the file a bucket goes to the store alone. As many bytes as fill a page look for free ones. */
static bool is_at_ceiling(struct shard *shard, size_t used)
{
	if (!swap_takes(&shard->swap, used) || !swap_is_at_ceiling(&shard->swap, used))
		return false;
	shard->swap_refused += (uint32_t)used;
	if (shard->swap_refused < SWAP_PAGE_BYTES)
		return true;
	shard->swap_refused = 0;
	visit_pages(shard);
	return swap_is_at_ceiling(&shard->swap, used);
}

bool shard_swap_out(struct shard *shard, const struct bucket *bucket, size_t used)
{
	if (is_at_ceiling(shard, used))
		return false;
	bool turns = swap_is_full(&shard->swap, used);
	if (!make_room(shard, used))
		return false;
	if (turns) {
		visit_pages(shard);
		if (!make_room(shard, used)) /* what was moved may have filled the page again */
			return false;
	}
	const struct swap_block block = {
		.tag = bucket_tag(bucket->low), .bytes = bucket, .length = (uint16_t)used, .note = (uint16_t)shard->generation};
	table_add(&shard->swapped, block.tag, swap_put(&shard->swap, &block, due_of(shard, bucket)));
	if (is_change(shard, &block))
		shard->swapped_changes += used;
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

/* Those of a page. @return how many buckets of the segments, changed or not, it has */
static uint64_t each_change_of_page(struct shard *shard, uint32_t page, uint32_t first, uint32_t end,
                                    void (*each)(void *context, const struct bucket *bucket, size_t used),
                                    void *context)
{
	struct swap_block block;
	uint32_t at = 0;
	uint64_t found = 0;
	const uint8_t *bytes = swap_page(&shard->swap, page);
	while (bytes != NULL && swap_page_next(&shard->swap, page, bytes, &at, &block)) {
		uint32_t segment = table_segment_of(block.tag);
		if (segment < first || segment >= end || !is_live(shard, &block) || !is_sound(shard, &block))
			continue;
		found++;
		if (is_change(shard, &block))
			each(context, block.bytes, block.length);
	}
	return found;
}

enum weir_status shard_each_swapped_change(struct shard *shard, uint32_t first, uint32_t end,
                                           void (*each)(void *context, const struct bucket *bucket, size_t used),
                                           void *context, struct weir_error *error)
{
	uint64_t found = 0, wanted = 0;
	if (shard->swapped_changes == 0)
		return shard_check_whole(shard, error);
	for (uint32_t i = first; i < end; i++)
		wanted += shard->swapped.segments[i].count;
	for (uint32_t page = 1; page < swap_page_end(&shard->swap); page++)
		if (shard->swap.pages[page].live > 0)
			found += each_change_of_page(shard, page, first, end, each, context);
	if (found != wanted) /* a page that cannot be read, or was read as something else, may have had changes */
		give_up(shard);
	return shard_check_whole(shard, error);
}
