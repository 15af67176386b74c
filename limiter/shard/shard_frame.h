/* SPDX-License-Identifier: Apache-2.0 */
/* How a lookup finds its bucket: shared by what begins a frame and what judges it, and included by them alone. */
#ifndef LIMITER_SHARD_FRAME_H
#define LIMITER_SHARD_FRAME_H

#include "limiter/shard/internal.h"

/** Room for so many in an array of the frame, contents kept. */
void *shard_room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes);

/** The zone that all events of the frame are of; NULL: there are several, or it is not in force. */
static inline const struct compiled_zone *shard_only_zone(const struct shard_frame *work)
{
	const struct weir_frame *frame = work->frame;
	return frame->zone_set_count == 1 && frame->zone_sets[0].count == 1 ? work->set_zones[0] : NULL;
}

/*
 * Random access is what judging costs most, and memory answers many questions at once if they are asked together. So a
 * lookup goes through three steps before its turn comes: its line of the table is asked for; what is found there says
 * where its block is, whose first line is asked for; and then, when the page of that is known, the block's other lines.
 *
 * A processor that must find a page first walks its tables for some six questions at a time; what is asked beyond those
 * waits, and everything after it, or is lost. So each step is taken for a few lookups in a row, with little between,
 * and no step right behind another.
 */
enum { AHEAD_GROUP = 6, AHEAD_REST = 5, AHEAD_BLOCK = 9, AHEAD_LINE = 18 };

/** The steps, each for the next lookups that have not taken it. */
void shard_ask_for_lines(struct shard *shard);
void shard_ask_for_blocks(struct shard *shard);
void shard_ask_for_rest(struct shard *shard);

/** Sees to it that a lookup is past LOOKUP_NEW, and those behind it on their way. Lookups come in their order. */
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
}

/* Finds what has the key's tag. Its line of the table is better on its way by now. */
static inline void shard_guess(struct shard *shard, struct lookup *lookup)
{
	if (lookup->state != LOOKUP_NEW)
		return;
	lookup->state = LOOKUP_GUESSED;
	lookup->ref = table_find(&shard->table, bucket_tag(lookup->low), 0);
	lookup->bucket = lookup->ref == 0 ? NULL : slab_at(&shard->slab, lookup->ref);
}

/* The bucket was not what was guessed, or is of an older layout: the long way. */
void shard_look_closer(struct shard *shard, struct lookup *lookup);

/* Makes sure of the guess. A bucket that counts as empty is none; its block stays to be taken over. */
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
