/* How a lookup finds its bucket: shared by what begins a frame and what judges it, and included by them alone. */
#ifndef LIMITER_SHARD_FRAME_H
#define LIMITER_SHARD_FRAME_H

#include "limiter/shard_parts.h"

/** Room for so many in an array of the frame, contents kept. */
void *shard_room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes);

/** The zone that all events of the frame are of; NULL: there are several, or it is not in force. */
static inline const struct zone_rules *shard_only_zone(const struct shard_frame *work)
{
	const struct weir_frame *frame = work->frame;
	return frame->zone_set_count == 1 && frame->zone_sets[0].count == 1 ? work->set_zones[0] : NULL;
}

/*
 * Asks for the table's line of a lookup. A processor that must find a page first walks its tables for a few questions
 * at a time, if it meets those close together in the program: so this and the next are called for many lookups in a
 * row, with little between.
 */
static inline void shard_ask(const struct shard *shard, const struct lookup *lookup)
{
	if (lookup->state == LOOKUP_NEW)
		table_prefetch(&shard->table, bucket_tag(lookup->low));
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
	const struct zone_rules *zone = lookup->zone;
	const struct layout *layout = zone->layout;
	if (__builtin_expect(((bucket->low ^ lookup->low) | (bucket->high ^ lookup->high)) != 0, 0) ||
	    __builtin_expect(bucket->layout != layout->id, 0))
		shard_look_closer(shard, lookup);
	else if (__builtin_expect(bucket->clock_s < shard->paces[zone->order].kept_s, 0) &&
	         shard->work.clock_ms > bucket_remembered_until(bucket, layout, shard->options.lateness_ms))
		lookup->bucket = NULL;
}

#endif
