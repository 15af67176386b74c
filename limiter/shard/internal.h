/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shard's files share. Only they include it.
 *
 *   shard.c           creation, policy, source positions, statistics
 *   shard_frame.c     a frame: which buckets it needs
 *   shard_judge.c     judging its events
 *   shard_override.c  operators' commands
 *   shard_bucket.c    finding, opening, placing, moving and dropping a bucket
 *   shard_sweep.c     the clock hand: forgetting, evicting, compacting
 *   shard_swap.c      evicted buckets in a file
 *   shard_snapshot.c  checkpoints
 *   shard_load.c      segments from the store
 *   shard_extra.c     what a checkpoint stores besides buckets
 *   shard_check.c     checks: judging them on copies, and keeping the copies
 *   shard_copies.c    where copies lie
 *   shard_reserve.c   reservations: opening and settling them
 *   reservations.c    those that are open
 *   shard_read.c      reading buckets, for people and tests
 *   segment_blob.c    the form of buckets in the store
 */
#ifndef LIMITER_SHARD_INTERNAL_H
#define LIMITER_SHARD_INTERNAL_H

#include "common/frame/sender_watch.h"
#include "limiter/bucket/bucket_fast.h"
#include "limiter/bucket/bucket_judge.h"
#include "limiter/memory/filter.h"
#include "limiter/memory/slab.h"
#include "limiter/memory/swap.h"
#include "limiter/memory/table.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/reservations.h"
#include "limiter/shard/shard.h"

/* A (key, zone) pair of the current frame. */
struct lookup {
	uint64_t low; /* fingerprint */
	uint32_t high;
	const struct compiled_zone *zone; /* NULL: not in force */
	struct bucket *bucket;            /* NULL: not in memory */
	uint32_t ref;
	uint32_t alias;        /* an earlier lookup of the same pair, NO_LOOKUP: none */
	uint32_t next_missing; /* index + 1 of the next lookup that waits for the same segment; 0: none */
	uint8_t state;         /* enum lookup_state */
	bool overridden;       /* an operator's override may apply to it */
	bool settled  : 1;     /* the store is known to have no bucket for it that memory lacks */
	bool recalled : 1;     /* its bucket came from swap for this frame */
	bool outdated : 1;     /* it is copied, and its copy may have to be made again first */
	bool copied;           /* checks of it are pending: its copy has to follow */
};

enum lookup_state {
	LOOKUP_NONE,    /* nothing to look up: an alias, or the zone is not in force */
	LOOKUP_NEW,     /* not looked up yet */
	LOOKUP_GUESSED, /* `bucket` is the first one with the key's tag, or NULL; its block is being prefetched */
	LOOKUP_FOUND,   /* `bucket` is the key's, or NULL if it has none */
};

enum { NO_LOOKUP = UINT32_MAX };

/* In a frame of several zone sets: the lookups of one key in one zone set are adjacent, in a run. */
struct lookup_run {
	uint32_t zone_set;
	uint32_t first; /* its first lookup; it has one for each zone of the set */
	uint32_t next;  /* another run of the same key, 0: none */
};

/* The current frame; its arrays are reused from frame to frame. */
struct shard_frame {
	const struct weir_frame *frame; /* NULL: none is waiting */
	uint64_t offset;
	int64_t clock_ms;
	uint64_t position_before;
	uint32_t first_event;                   /* earlier events are repeats: their positions were taken before */
	uint32_t *set_first;                    /* by zone set: where its zones begin in set_zones */
	const struct compiled_zone **set_zones; /* NULL: not in force */
	uint32_t *key_first;     /* by key: its first lookup + 1, or with several sets its last run; 0: none */
	struct lookup_run *runs; /* numbered from 1 */
	struct lookup *lookups;
	uint32_t run_count, lookup_count;
	uint32_t asked;   /* lookups before this one: the table's lines are prefetched */
	uint32_t guessed; /* lookups before this one: past LOOKUP_NEW, and their blocks' first lines are prefetched */
	uint32_t fetched; /* lookups before this one: the rest of their blocks is prefetched */
	uint8_t *verdicts;
	struct shard_decision *decisions;
	uint32_t decision_count;
	struct weir_frame no_events;            /* `frame` points to it while a command waits */
	const struct override_command *command; /* the waiting command; NULL: a frame waits, or nothing */
	const struct compiled_zone *command_zone;
	int64_t command_at_ms;
	struct shard_override_decision override_decision;
	size_t room_sets, room_set_zones, room_keys, room_runs, room_pairs, room_decisions, room_lookups;
	size_t bytes; /* of all arrays */
};

/* Cached from a zone's recent events for its next ones. */
struct zone_pace {
	struct fast_windows windows;
	uint32_t kept_s; /* in the current frame: a bucket with this clock_s or a later one is not forgotten */
};

/* Which of a segment's buckets may be in the store only. */
enum segment_residence {
	SEGMENT_WHOLE,   /* none: all are in memory */
	SEGMENT_PARTIAL, /* those that the filter has */
	SEGMENT_UNKNOWN, /* any */
};

struct segment {
	uint8_t residence;
	bool loaded_for_frame; /* it was loaded after the waiting frame began */
	uint32_t missing;      /* index + 1 of the first lookup that waits for it; 0: none */
	struct filter evicted; /* of a SEGMENT_PARTIAL */
};

struct source_position {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t position;
	int64_t used_ms; /* the clock at its last frame with events */
	struct weir_sender_watch watch;
};

/* When the shard switched to a policy. */
struct policy_activation {
	uint64_t version;
	int64_t clock_ms;
};

struct shard {
	struct shard_options options;
	const struct compiled_policy *compiled;
	struct policy_activation *switches; /* ascending; without the policy that the shard began with */
	uint32_t switch_count;
	uint64_t policy_version;
	int64_t clock_ms;
	uint64_t events;                 /* judged so far */
	struct source_position *sources; /* by id */
	uint32_t source_count;

	struct overrides overrides;
	struct reservations reserved; /* open ones, as of the log */
	struct shard_checks *checks;  /* NULL: nobody asks (shard_copies.h) */

	struct slab slab;
	struct table table;
	struct swap swap;     /* of buckets that were evicted while the store had them */
	struct table swapped; /* where they are in it; none of them is in memory */
	struct bucket_scratch scratch;
	const struct layout *last_scaled; /* cache: the scaled layout of the policy in force that was last asked for */
	struct zone_pace *paces;          /* by zone, in the policy's order */
	struct shard_frame work;
	struct segment segments[SHARD_SEGMENTS];
	uint64_t filter_bytes;
	uint32_t evicted_segments; /* segments that are not SEGMENT_WHOLE */

	size_t dirty_bytes;
	uint64_t swapped_changes;  /* bytes put into swap that no stored snapshot has; some may have come back since */
	bool has_lost;             /* some of those could not be read */
	uint32_t generation;       /* the number of the last snapshot */
	bool snapshot_pending;     /* one was taken, and shard_snapshot_done() was not called yet */
	bool has_store;            /* a checkpoint holds, or may hold, buckets */
	size_t snapshot_bytes;     /* of the pending one */
	uint32_t clock_hand;       /* the page that the hand is at */
	uint32_t clock_hand_large; /* the large block that the hand is at */
	uint32_t churn;            /* blocks allocated and freed since shard_tidy() */
	uint32_t swap_refused; /* bytes that were not put into swap, as its file is at its ceiling; to less than a page */
	bool starved;          /* the hand went all the way round and found nothing to evict */
	uint64_t evictions, loads, recalls, forgotten, swap_failures;
};

/* ---- shard_bucket.c ---- */

static inline uint32_t bucket_tag(uint64_t low)
{
	return (uint32_t)(low >> 32);
}

/** A fingerprint's 64 evenly spread bits for the filter of its segment: those that name the segment are no help. */
static inline uint64_t shard_filter_hash(uint64_t low, uint32_t high)
{
	return low << (32 - TABLE_SEGMENT_SHIFT) ^ high;
}

/** Finds the bucket of a fingerprint. @return its reference, 0: not in memory */
uint32_t shard_find_ref(const struct shard *shard, uint64_t low, uint32_t high);

/** The layout of a number (with or without LAYOUT_SCALED) at a scale; NULL: there is none. */
const struct layout *shard_layout(struct shard *shard, uint32_t number, uint32_t scale);

/** The layout that a bucket is stored in. */
static inline const struct layout *shard_layout_of(struct shard *shard, const struct bucket *bucket)
{
	return shard_layout(shard, bucket->layout, bucket_scale(bucket));
}

/** The layout in force that has replaced a bucket's layout; NULL if its zone has been removed. */
const struct layout *shard_layout_in_force(const struct layout *layout);

/** Whether a bucket counts as empty at a clock: forgotten under its layout or a later one, or its zone removed. */
bool shard_is_forgotten(struct shard *shard, const struct bucket *bucket, int64_t clock_ms);

/** When a bucket's last decision ends; 0: there was none, or a policy has since ended the zone's shadow mode. */
int64_t shard_blocked_until(struct shard *shard, const struct bucket *bucket);

/**
 * Opens a bucket where it lies, or what it becomes in another layout in scratch.
 *
 * @param bucket  NULL: an empty one of that fingerprint, in scratch
 * @param c       the cost for which scratch has room
 */
void shard_open(struct shard *shard, struct bucket *bucket, uint64_t low, uint32_t high, const struct layout *layout,
                int64_t c, struct bucket_work *work);

/**
 * Copies an image, which has the fingerprint, into a new block, and replaces the block at old_ref (0: none), which may be
 * the image. Whoever changes a bucket marks it: the new block is not marked as changed, whatever the old one was.
 */
uint32_t shard_place(struct shard *shard, const struct bucket *image, const struct layout *layout, uint32_t old_ref);

/** The same for a bucket that is a header alone (BUCKET_SINGLE). */
uint32_t shard_place_single(struct shard *shard, const struct bucket *header, uint32_t old_ref);

/** Removes a bucket from memory. */
void shard_drop(struct shard *shard, struct bucket *bucket, uint32_t ref);

/** Moves a bucket, unchanged, to a new block. */
void shard_move(struct shard *shard, uint32_t ref);

/** Marks a bucket as changed since the last snapshot. */
void shard_set_dirty(struct shard *shard, struct bucket *bucket, uint32_t ref);

/* ---- shard_frame.c ---- */

/** The clock as stored in a bucket: seconds, rounded up. */
static inline uint32_t shard_noted_clock(int64_t clock_ms)
{
	int64_t seconds = (clock_ms + 999) / 1000;
	return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

/** Looks up the one bucket that a command is about. */
void shard_command_look_up(struct shard *shard, const struct compiled_zone *zone, struct weir_span key);

/* ---- shard_sweep.c ---- */

/** All memory that the shard uses. */
uint64_t shard_bytes(const struct shard *shard);
/** Of those, what finds buckets: the table, and what is known of buckets that only the store has. */
uint64_t shard_index_bytes(const struct shard *shard);

/** Whether there is room to load buckets that nothing needs yet. */
bool shard_has_room(const struct shard *shard);

/**
 * Whether there is room for what is looked at and left alone, while a frame waits and nothing can be evicted: an eighth
 * beyond what may be live, of what is left for pages that are not full.
 */
bool shard_has_slack(const struct shard *shard);

/** Evicts down to the ceiling and compacts; called after each frame and command, and by shard_sweep(). */
void shard_tidy(struct shard *shard);

/* ---- shard_swap.c ---- */

/**
 * Puts a bucket that is not in swap into it: one that the store has or, with options.swap_changes, one that is marked as
 * changed.
 *
 * @return false: there is no swap for it
 */
bool shard_swap_out(struct shard *shard, const struct bucket *bucket, size_t used);

/** Brings a bucket back into memory, which lacks it, if it is in swap. @return its reference; 0: it is not */
uint32_t shard_recall(struct shard *shard, uint64_t low, uint32_t high);

bool shard_is_swapped(struct shard *shard, uint64_t low, uint32_t high);

/** Calls each() for every bucket in swap that can be read; borrowed. */
void shard_each_swapped(struct shard *shard, void (*each)(void *context, const struct bucket *bucket, size_t used),
                        void *context);

/**
 * Calls each() for every bucket in swap that no stored snapshot has, of some segments; borrowed.
 *
 * @return as shard_check_whole()
 */
WEIR_MUST_USE enum weir_status shard_each_swapped_change(struct shard *shard, uint32_t first, uint32_t end,
                                                         void (*each)(void *context, const struct bucket *bucket,
                                                                      size_t used),
                                                         void *context, struct weir_error *error);

/* ---- shard.c ---- */

/** A source's position; a new entry if the source is new. */
struct source_position *shard_source(struct shard *shard, const uint8_t source[WEIR_SOURCE_ID_BYTES], int64_t clock_ms);

void shard_set_residence(struct shard *shard, uint32_t segment, enum segment_residence residence);

#endif
