/* How a lookup finds its bucket: shared by what begins a frame and what judges it, and included by them alone. */
#ifndef LIMITER_SHARD_FRAME_H
#define LIMITER_SHARD_FRAME_H

#include "limiter/shard_parts.h"

/** Room for so many in an array of the frame, contents kept. */
void *shard_room_for(struct shard_frame *work, void *array, size_t *room, size_t wanted, size_t bytes);

/* Finds what has the key's tag, and asks for its block. */
static inline void shard_guess(struct shard *shard, struct lookup *lookup)
{
	uint32_t ref = table_find(&shard->table, bucket_tag(lookup->low), 0);
	lookup->ref = ref;
	lookup->state = LOOKUP_GUESSED;
	if (ref == 0)
		return;
	char *block = slab_at(&shard->slab, ref);
	lookup->bucket = (struct bucket *)(void *)block;
	__builtin_prefetch(block, 1);
	__builtin_prefetch(block + sizeof(struct table_line) - 1, 1);
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
	const struct layout *layout = lookup->zone->layout;
	int64_t lateness_ms = shard->options.lateness_ms;
	if (__builtin_expect(((bucket->low ^ lookup->low) | (bucket->high ^ lookup->high)) != 0, 0) ||
	    __builtin_expect(bucket->layout != layout->id, 0))
		shard_look_closer(shard, lookup);
	else if (lateness_ms >= 0 && shard->work.clock_ms > bucket_remembered_until(bucket, layout, lateness_ms))
		lookup->bucket = NULL;
}

#endif
