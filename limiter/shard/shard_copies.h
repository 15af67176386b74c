/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of buckets that were checked, and the checks that they have beyond their buckets. The shard's files alone. */
#ifndef LIMITER_SHARD_COPIES_H
#define LIMITER_SHARD_COPIES_H

#include "limiter/shard/internal.h"
#include "limiter/shard/shard_check.h"

enum {
	COPY_INSIDE_BYTES = 96, /* what most buckets need at most */
	COPY_LEAST_BYTES = 256,
	COPY_CLASSES = 5, /* blocks of 256 to 4,096 bytes are kept for the next copies */
};

struct copy {
	uint64_t low; /* fingerprint */
	uint32_t high;
	bool stale;             /* its pending checks count otherwise now: it is copied again when it is needed */
	struct bucket *outside; /* a block of its own, for a bucket that is larger; NULL: it is inside, or empty */
	uint32_t bytes;         /* of the block, 0: an empty bucket */
	uint32_t pending;       /* checks of it that have not come back; 0: the copy is free */
	uint32_t first_pending, first_settlement; /* numbers in their rings: none of this copy is before them */
	_Alignas(struct bucket) uint8_t inside[COPY_INSIDE_BYTES];
};

/** Its bucket, which stays where it is until a copy is added; NULL: an empty one. */
static inline struct bucket *copy_bucket(struct copy *copy)
{
	if (copy->outside != NULL)
		return copy->outside;
	return copy->bytes > 0 ? (struct bucket *)(void *)copy->inside : NULL;
}

/* Where a copy is found. */
struct copy_slot {
	uint32_t tag;  /* the lower half of its fingerprint's `low` */
	uint32_t copy; /* index + 1; 0: free */
};

/* A check that has not come back. */
struct pending_check {
	int64_t t, cost;
	uint32_t copy, tag; /* as of its slot */
	bool blocked;
	bool settles; /* a reservation: the next one of `settlements` says which */
};

struct pending_settlement {
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	struct bucket_correction correction;
};

/* Which elements of an array are in use, oldest first. */
struct ring {
	uint32_t head, count, room; /* room: 0 or a power of two */
	uint32_t popped;            /* elements that have left it: their numbers, modulo 2^32, go on from there */
};

static inline uint32_t ring_at(const struct ring *ring, uint32_t i)
{
	return (ring->head + i) & (ring->room - 1);
}

/* A bucket that some check waits for. */
struct wanted_bucket {
	uint64_t low;
	uint32_t high;
	bool loaded; /* its segment was, when so many had been evicted: what memory lacks, the store has not */
	uint64_t evictions;
};

struct shard_checks {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	struct reservations open; /* those that may be settled: with what has not come back */
	struct copy *copies;
	uint32_t copy_count, copy_room; /* that are in use or free; there is room for */
	uint32_t *free_copies;          /* those that are free; the last one is taken next */
	uint32_t free_count, used;
	struct copy_slot *slots; /* linear probing */
	uint32_t slot_mask;
	struct pending_check *pending;
	struct pending_settlement *settlements;
	struct ring pending_ring, settlement_ring;
	void *free_blocks[COPY_CLASSES]; /* each begins with the next one's address */
	size_t bytes, used_bytes;        /* of blocks; of those in use */
	struct wanted_bucket wanted[SHARD_CHECKS_WANTED_MAX];
	uint32_t wanted_count;
	int64_t asked_ms; /* Unix ms: when the newest check since the newest command was asked */
};

/** Whether any bucket has a copy. */
static inline bool shard_has_copies(const struct shard *shard)
{
	return shard->checks != NULL && shard->checks->used > 0;
}

static inline bool shard_is_own_frame(const struct shard *shard, const struct weir_frame *frame)
{
	return shard->checks != NULL && frame->kind == WEIR_FRAME_CHECKS &&
	       memcmp(frame->source, shard->checks->source, WEIR_SOURCE_ID_BYTES) == 0;
}

/** @return its number, NO_COPY: there is none */
enum { NO_COPY = UINT32_MAX };
uint32_t copies_find(const struct shard_checks *checks, uint64_t low, uint32_t high);
/** Prefetches where the copy of a fingerprint is found. */
void copies_prefetch(const struct shard_checks *checks, uint64_t low);
/** Then its copy. @return whether there seems to be one, by the tag of the first slot alone */
bool copies_prefetch_found(const struct shard_checks *checks, uint64_t low);
/** Prefetches the copy that is taken after so many others. */
void copies_prefetch_free(const struct shard_checks *checks, uint32_t after);
/** A copy of an empty bucket, without pending checks: to be given some. */
uint32_t copies_add(struct shard_checks *checks, uint64_t low, uint32_t high);
/** Takes over a bucket's bytes as they are. @param used  its bucket_used() */
void copies_take(struct shard_checks *checks, struct copy *copy, const struct bucket *bucket, size_t used);
/** Takes over an image that is laid out anew, with room to grow. */
void copies_place(struct shard_checks *checks, struct copy *copy, const struct bucket *image,
                  const struct layout *layout);
/**
 * Gives a copy that has the layout, or is of an empty bucket, room for one more time: an empty bucket is laid out then,
 * without a clock.
 *
 * @return no: there is none where the copy lies, or it must be laid out anew for it
 */
bool copies_grow(struct shard_checks *checks, struct copy *copy, const struct layout *layout);
/** Makes it a copy of an empty bucket. */
void copies_empty(struct shard_checks *checks, struct copy *copy);

/** All copies are stale. */
void copies_outdate(struct shard_checks *checks);
/** That of a bucket is, if there is one. */
void copies_outdate_one(struct shard_checks *checks, uint64_t low, uint32_t high);

/** @param settlement  what it settles; NULL: nothing */
void pending_push(struct shard_checks *checks, const struct pending_check *check,
                  const struct pending_settlement *settlement);
/** The oldest ones have come back: a copy goes with the last one of it. */
void pending_pop(struct shard_checks *checks, uint32_t count);

size_t checks_bytes(const struct shard_checks *checks);
void checks_free(struct shard_checks *checks);

/* ---- shard_check.c ---- */

/** Finds out which lookups of the waiting frame have copies, and which of these may be outdated. */
void shard_mark_copied(struct shard *shard);
/** Before an event of the frame is judged: copies the bucket again, if that is so. */
void shard_renew_copy(struct shard *shard, const struct lookup *lookup, struct weir_span key);
/** Records in a bucket's copy what the frame's event did to the bucket. @param bits  its verdict */
void shard_follow(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event, bool done,
                  unsigned bits);
/** The same of a settlement. */
void shard_follow_settlement(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event,
                             const struct bucket_correction *correction);
/** A command has come: checks before it were perhaps asked by a clock that was ahead. */
void shard_checks_set_back(struct shard *shard);
/** A command has changed a bucket: its copy, if there is one, becomes that with its pending checks. */
void shard_copy_again(struct shard *shard, const struct compiled_zone *zone, struct weir_span key);
/** Whether some check waits for a bucket. */
bool shard_check_wants(const struct shard *shard, uint64_t low, uint32_t high);
/** Swap was given up: what was loaded may be only in the store again. */
void shard_check_swap_lost(struct shard *shard);
/** A segment was loaded, and swap has kept what it was given meanwhile. */
void shard_check_loaded(struct shard *shard, uint32_t segment);

#endif
