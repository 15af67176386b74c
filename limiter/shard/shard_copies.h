/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of buckets that were checked, and the checks that they have beyond their buckets. The shard's files alone. */
#ifndef LIMITER_SHARD_COPIES_H
#define LIMITER_SHARD_COPIES_H

#include "limiter/shard/internal.h"
#include "limiter/shard/shard_check.h"

enum { COPY_CLASSES = 7, COPY_LEAST_BYTES = 64 /* blocks of 64 to 4,096 bytes are kept for the next copies */ };

struct copy {
	uint64_t low, high;   /* fingerprint */
	struct bucket *block; /* NULL: an empty bucket */
	size_t bytes;         /* of the block */
	uint32_t pending;     /* checks of it that have not come back; 0: the copy is free */
	uint32_t next_free;
};

/* A check that has not come back. */
struct pending_check {
	int64_t t, cost;
	uint32_t copy;
	bool blocked;
	bool settles; /* a reservation: the next two say what */
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	struct bucket_correction correction;
};

/* A bucket that some check waits for. */
struct wanted_bucket {
	uint64_t low, high;
	bool loaded; /* its segment was, when so many had been evicted: what memory lacks, the store has not */
	uint64_t evictions;
};

struct shard_checks {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	struct reservations open; /* those that may be settled: with what has not come back */
	struct copy *copies;
	uint32_t copy_count, copy_room; /* that are in use or free; there is room for */
	uint32_t free_copy;             /* index + 1; 0: none is free */
	uint32_t used;
	uint32_t *slots; /* index + 1 by fingerprint, linear probing; 0: free */
	uint32_t slot_mask;
	struct pending_check *pending; /* a ring, oldest first */
	uint32_t pending_head, pending_count, pending_room;
	void *free_blocks[COPY_CLASSES]; /* each begins with the next one's address */
	size_t bytes, used_bytes;        /* of blocks; of those in use */
	struct wanted_bucket wanted[SHARD_CHECKS_WANTED_MAX];
	uint32_t wanted_count;
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
uint32_t copies_find(const struct shard_checks *checks, uint64_t low, uint64_t high);
/** A copy of an empty bucket, without pending checks: to be given some, or dropped. */
uint32_t copies_add(struct shard_checks *checks, uint64_t low, uint64_t high);
void copies_drop(struct shard_checks *checks, uint32_t copy);
/** Takes over a bucket's bytes as they are. @param used  its bucket_used() */
void copies_take(struct shard_checks *checks, struct copy *copy, const struct bucket *bucket, size_t used);
/** Takes over an image that is laid out anew, with room to grow. */
void copies_place(struct shard_checks *checks, struct copy *copy, const struct bucket *image,
                  const struct layout *layout);
/** Makes it a copy of an empty bucket. */
void copies_empty(struct shard_checks *checks, struct copy *copy);

void pending_push(struct shard_checks *checks, const struct pending_check *check);
/** The oldest has come back: its copy goes with the last one. */
void pending_pop(struct shard_checks *checks);

size_t checks_bytes(const struct shard_checks *checks);
void checks_free(struct shard_checks *checks);

/* ---- shard_check.c ---- */

/** Finds out which lookups of the waiting frame have copies. */
void shard_mark_copied(struct shard *shard);
/** Records in a bucket's copy what the frame's event did to the bucket. @param bits  its verdict */
void shard_follow(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event, bool done,
                  unsigned bits);
/** The same of a settlement. */
void shard_follow_settlement(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event,
                             const struct bucket_correction *correction);
/** A command has changed a bucket: its copy, if there is one, becomes that with its pending checks. */
void shard_copy_again(struct shard *shard, const struct compiled_zone *zone, struct weir_span key);
/** Whether some check waits for a bucket. */
bool shard_check_wants(const struct shard *shard, uint64_t low, uint64_t high);
/** Swap was given up: what was loaded may be only in the store again. */
void shard_check_swap_lost(struct shard *shard);
/** A segment was loaded, and swap has kept what it was given meanwhile. */
void shard_check_loaded(struct shard *shard, uint32_t segment);

#endif
