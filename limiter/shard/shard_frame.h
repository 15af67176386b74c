/* SPDX-License-Identifier: Apache-2.0 */
/* How a lookup finds its bucket: shared by what begins a frame and what judges it, and included by them alone. */
#ifndef LIMITER_SHARD_FRAME_H
#define LIMITER_SHARD_FRAME_H

#include "common/base/prefetch.h"
#include "limiter/shard/internal.h"

/** Grows one of the frame's arrays to at least `wanted` elements, contents kept. */
void *shard_room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes);

/** The zone that all events of the frame belong to; NULL: there are several, or it is not in force. */
static inline const struct compiled_zone *shard_only_zone(const struct shard_frame *work)
{
	const struct weir_frame *frame = work->frame;
	return frame->zone_set_count == 1 && frame->zone_sets[0].count == 1 ? work->set_zones[0] : NULL;
}

/*
 * Random memory access dominates the cost of judging, and memory serves many requests at once if they are issued
 * together. So a lookup takes four steps before its turn: prefetch its line of the table; find the block there and
 * prefetch its first line; then, when the translation of its page's address is known, prefetch its other lines; then
 * bring the block from the second cache to the first.
 *
 * A processor walks its page tables for about six requests at a time, and a prefetch waits for its walk. So the first
 * three steps are taken for a few lookups in a row, with little in between, and no step right after another. They
 * prefetch into the second cache: one that is meant for the first needs a place among the few misses that it keeps, and
 * is dropped where there is none, which is so beyond sixteen.
 */
enum { AHEAD_GROUP = 8, AHEAD_NEAR = 3, AHEAD_REST = 8, AHEAD_BLOCK = 16, AHEAD_LINE = 32 };

/** The first three steps. Each serves the next group of lookups that have not taken it. */
void shard_ask_for_lines(struct shard *shard);
void shard_ask_for_blocks(struct shard *shard);
void shard_ask_for_rest(struct shard *shard);

/** Takes a lookup past LOOKUP_NEW and prefetches for those after it. Called in the lookups' order. */
static inline void shard_look_ahead(struct shard *shard, uint32_t lookup)
{
	const struct shard_frame *work = &shard->work;
	const uint32_t end = work->lookup_count;
	while (__builtin_expect(work->asked < lookup + AHEAD_LINE, 0) && work->asked < end)
		shard_ask_for_lines(shard);
	while (__builtin_expect(work->guessed < lookup + AHEAD_BLOCK, 0) && work->guessed < end)
		shard_ask_for_blocks(shard);
	while (__builtin_expect(work->fetched < lookup + AHEAD_REST, 0) && work->fetched < end)
		shard_ask_for_rest(shard);
	const char *block = lookup + AHEAD_NEAR < end ? (const char *)work->lookups[lookup + AHEAD_NEAR].bucket : NULL;
	if (__builtin_expect(block != NULL, 1)) {
		weir_prefetch(block);
		weir_prefetch(block + 63);
	}
}

/* Finds the first bucket with the key's tag. Its line of the table should be prefetched by then. */
static inline void shard_guess(struct shard *shard, struct lookup *lookup)
{
	if (lookup->state != LOOKUP_NEW)
		return;
	lookup->state = LOOKUP_GUESSED;
	lookup->ref = table_find(&shard->table, bucket_tag(lookup->low), 0);
	lookup->bucket = lookup->ref == 0 ? NULL : slab_at(&shard->slab, lookup->ref);
}

/* The slow path of shard_make_sure(): the guess was wrong, or the bucket has another layout. */
void shard_look_closer(struct shard *shard, struct lookup *lookup);

/* Verifies the guess. For a forgotten bucket `bucket` becomes NULL; `ref` stays, so that its block is replaced. */
static inline void shard_make_sure(struct shard *shard, struct lookup *lookup)
{
	struct bucket *bucket = lookup->bucket;
	lookup->state = LOOKUP_FOUND;
	if (bucket == NULL)
		return;
	const struct compiled_zone *zone = lookup->zone;
	const struct layout *layout = zone->layout;
	if (__builtin_expect(((bucket->low ^ lookup->low) | (bucket->high ^ lookup->high)) != 0, 0) ||
	    __builtin_expect(bucket->layout != layout->id, 0))
		shard_look_closer(shard, lookup);
	else if (__builtin_expect(bucket->clock_s < shard->paces[zone->order].kept_s, 0) &&
	         shard->work.clock_ms >
	             bucket_remembered_until(bucket, layout, shard->options.lateness_ms, bucket_blocked_until(bucket)))
		lookup->bucket = NULL;
}

#endif
