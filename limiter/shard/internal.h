/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the shard share. Included by them alone.
 *
 *   shard.c           life, policy, positions, numbers
 *   shard_frame.c     a frame: which buckets it needs
 *   shard_judge.c     judging its events
 *   shard_override.c     operators' commands
 *   shard_bucket.c    finding, placing, moving and dropping a bucket
 *   shard_sweep.c     the hand: forgetting, evicting, moving blocks together
 *   shard_snapshot.c  checkpoints
 *   shard_load.c      segments from the store
 */
#ifndef LIMITER_SHARD_INTERNAL_H
#define LIMITER_SHARD_INTERNAL_H

#include "limiter/bucket/bucket_fast.h"
#include "limiter/bucket/bucket_judge.h"
#include "limiter/memory/filter.h"
#include "limiter/memory/slab.h"
#include "limiter/memory/table.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/shard.h"

/* A (key, zone) pair of the frame at work. */
struct lookup {
	uint64_t low, high;               /* fingerprint */
	const struct compiled_zone *zone; /* NULL: not in force */
	struct bucket *bucket;            /* NULL: not in memory */
	uint32_t ref;
	uint32_t alias;        /* an earlier lookup of the same pair, NO_LOOKUP: none */
	uint32_t next_missing; /* place + 1 of the next one that its segment must be loaded for; 0: none */
	uint8_t state;         /* enum lookup_state */
	bool overridden;       /* an operator's override may hold for it */
	bool settled;          /* known to be in no blob of the store that is not in memory */
};

enum lookup_state {
	LOOKUP_NONE,    /* nothing to look for: an alias, or the zone is not in force */
	LOOKUP_NEW,     /* nothing was looked for yet */
	LOOKUP_GUESSED, /* bucket has the key's tag, if there is one; its block is on its way */
	LOOKUP_FOUND,   /* bucket is the key's, or there is none */
};

enum { NO_LOOKUP = UINT32_MAX };

/* In a frame of several zone sets: events of one key in one of them have their lookups in a run. */
struct lookup_run {
	uint32_t zone_set;
	uint32_t first; /* of its lookups: one for each zone of the set */
	uint32_t next;  /* run of the same key, 0: none */
};

/* The frame at work; arrays are kept from frame to frame. */
struct shard_frame {
	const struct weir_frame *frame; /* NULL: none is waiting */
	uint64_t offset;
	int64_t clock_ms;
	uint64_t position_before;
	uint32_t first_event;                   /* those before it were taken before */
	uint32_t *set_first;                    /* by zone set: where its zones begin in set_zones */
	const struct compiled_zone **set_zones; /* NULL: not in force */
	uint32_t *key_first;     /* by key: its first lookup + 1, or with several sets its last run; 0: none */
	struct lookup_run *runs; /* from 1 on */
	struct lookup *lookups;
	uint32_t run_count, lookup_count;
	uint32_t asked;   /* of lookups before this one the table's lines are on their way, */
	uint32_t guessed; /* of those before this one, past LOOKUP_NEW, the first lines of their blocks, */
	uint32_t fetched; /* and of those before this one the rest of them */
	uint8_t *verdicts;
	struct shard_decision *decisions;
	uint32_t decision_count;
	struct weir_frame no_events;            /* stands for a command */
	const struct override_command *command; /* the one that waits, NULL: a frame does */
	const struct compiled_zone *command_zone;
	int64_t command_at_ms;
	struct shard_override_decision override_decision;
	size_t room_sets, room_set_zones, room_keys, room_runs, room_pairs, room_decisions, room_lookups;
	size_t bytes; /* of all arrays */
};

/* What the last events of a zone say of its next ones. */
struct zone_pace {
	struct fast_windows windows;
	uint32_t kept_s; /* of the frame at work: a bucket that notes this clock, or a later one, is not forgotten */
};

/* What a segment has in the store only. */
enum segment_residence {
	SEGMENT_WHOLE,   /* all its buckets are in memory */
	SEGMENT_PARTIAL, /* the filter says which may not be */
	SEGMENT_UNKNOWN, /* any may not be */
};

struct segment {
	uint8_t residence;
	bool loaded_for_frame; /* since the waiting frame was begun */
	uint32_t missing;      /* place + 1 of the first lookup that it must be loaded for; 0: none */
	struct filter evicted; /* of a partial one */
};

struct source_position {
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t position;
	int64_t used_ms; /* the clock when it was last taken from */
};

/* When the shard went over to a policy. */
struct policy_activation {
	uint64_t version;
	int64_t clock_ms;
};

struct shard {
	struct shard_options options;
	const struct compiled_policy *compiled;
	struct policy_activation *switches; /* ascending; the first policy of all is not among them */
	uint32_t switch_count;
	uint64_t policy_version;
	int64_t clock_ms;
	uint64_t events;                 /* taken so far */
	struct source_position *sources; /* by id */
	uint32_t source_count;

	struct overrides overrides;

	struct slab slab;
	struct table table;
	struct bucket_scratch scratch;
	const struct layout *last_scaled; /* of the policy in force: the one asked for last */
	struct zone_pace *paces;          /* by zone, in the policy's order */
	struct shard_frame work;
	struct segment segments[SHARD_SEGMENTS];
	uint64_t filter_bytes;
	uint32_t evicted_segments; /* not whole */

	size_t dirty_bytes;
	uint8_t generation;        /* of the last snapshot */
	bool snapshot_pending;     /* taken and not done */
	bool has_store;            /* some checkpoint holds, or may hold, buckets */
	size_t snapshot_bytes;     /* of the pending one */
	uint32_t clock_hand;       /* page that the hand is at */
	uint32_t clock_hand_large; /* large block that the hand is at */
	uint32_t churn;            /* blocks taken and freed since the last sweep */
	bool starved;              /* the hand went all around and found nothing to evict */
	uint64_t evictions, loads, forgotten;
};

/* ---- shard_bucket.c ---- */

static inline uint32_t bucket_tag(uint64_t low)
{
	return (uint32_t)(low >> 32);
}

/** Finds the bucket of a fingerprint. @return its reference, 0: not in memory */
uint32_t shard_find_ref(const struct shard *shard, uint64_t low, uint64_t high);

/** A layout by the number of the zone's own one, scaled or not; NULL: there is none. */
const struct layout *shard_layout(struct shard *shard, uint32_t number, uint32_t scale);

/** The layout that a bucket is written in. */
static inline const struct layout *shard_layout_of(struct shard *shard, const struct bucket *bucket)
{
	return shard_layout(shard, bucket->layout, bucket_scale(bucket));
}

/** The layout in force that a bucket's layout has become, NULL if its zone was removed since. */
const struct layout *shard_layout_in_force(const struct layout *layout);

/** Whether a bucket counts as empty at a clock: forgotten under some layout that it went through, or its zone removed. */
bool shard_is_forgotten(struct shard *shard, const struct bucket *bucket, int64_t clock_ms);

/** When a bucket's last decision ends, 0 if there was none, or it was left behind by a layout that the bucket went through. */
int64_t shard_blocked_until(struct shard *shard, const struct bucket *bucket);

/** Puts an image into a block of its own, instead of the one at old_ref (0: none). The image has the fingerprint. */
uint32_t shard_place(struct shard *shard, const struct bucket *image, const struct layout *layout, uint32_t old_ref);

/** The same for a single bucket: its header alone. */
uint32_t shard_place_single(struct shard *shard, const struct bucket *header, uint32_t old_ref);

/** Takes a bucket out of memory. */
void shard_drop(struct shard *shard, struct bucket *bucket, uint32_t ref);

/** Copies a bucket as it is into a new block. */
void shard_move(struct shard *shard, uint32_t ref);

/** The bucket has changed. */
void shard_set_dirty(struct shard *shard, struct bucket *bucket, uint32_t ref);

/* ---- shard_frame.c ---- */

/** The clock as a bucket notes it. */
static inline uint32_t shard_noted_clock(int64_t clock_ms)
{
	int64_t seconds = (clock_ms + 999) / 1000;
	return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

/** Looks up the bucket that a command is about, and no other. */
void shard_command_look_up(struct shard *shard, const struct compiled_zone *zone, struct weir_span key);

/* ---- shard_sweep.c ---- */

/** All memory of the shard. */
uint64_t shard_bytes(const struct shard *shard);

/** Whether buckets may be loaded that nothing needs yet. */
bool shard_has_room(const struct shard *shard);

/** Keeps memory together and below the ceiling, after a frame. */
void shard_tidy(struct shard *shard);

/* ---- shard.c ---- */

/** The position taken from a source, made if it is new. */
struct source_position *shard_source(struct shard *shard, const uint8_t source[WEIR_SOURCE_ID_BYTES], int64_t clock_ms);

void shard_set_residence(struct shard *shard, uint32_t segment, enum segment_residence residence);

#endif
