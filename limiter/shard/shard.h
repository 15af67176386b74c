/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard: one partition's buckets in a limiter, and the judging of frames.
 *
 * State follows from the frames applied, in their order, and nothing else: no
 * clock is read and nothing is random but the placement of keys. The shard
 * knows no bus and no store: it is told frames and gives verdicts and
 * decisions; it gives blobs of changed segments and is given blobs of segments
 * that it misses. One thread touches it, without locks.
 *
 * Life of a frame:
 *   1. shard_frame_begin   looks up every (key, zone) of the frame's dictionary
 *   2. shard_missing       segments that must be loaded first (evicted buckets); none: continue
 *   3. shard_frame_judge   judges its events in order
 * A frame between 1 and 3 may be left waiting; the shard takes no other frame meanwhile.
 */
#ifndef LIMITER_SHARD_H
#define LIMITER_SHARD_H

#include "common/base/text.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"
#include "limiter/bucket/compiled_policy.h"
#include "limiter/overrides/override_command.h"

enum {
	SHARD_SEGMENTS = 1024,
	SHARD_MISSING_MOST = 64, /* asked for at once: a frame may need all, and those may be far more than memory */
};

struct shard;
struct overrides;

struct shard_options {
	uint32_t partition;
	uint64_t seed;         /* of the fingerprints: one per state directory or cluster, kept with the state */
	int64_t ceiling_bytes; /* of this shard's memory: slabs, tables and itself; 0: none */
	int64_t lateness_ms;   /* added to a bucket's memory before it is forgotten; < 0: nothing is forgotten (--once) */
	bool count_events;     /* --once: a decision's offset is the partition's event number, its index within the event */
};

struct shard *shard_new(const struct shard_options *options, const struct compiled_policy *compiled);
void shard_free(struct shard *shard);

/* A change that a judged event publishes: limits and zone by pointer, the rest by value. */
struct shard_decision {
	uint32_t event;     /* index in the frame */
	uint32_t pair;      /* running number of (event, zone) pairs in the frame */
	uint64_t id_offset; /* as options.count_events says */
	uint32_t id_index;
	const struct compiled_zone *zone; /* valid while the compiled policy that it came from lives */
	uint32_t limit;                   /* index into zone->limits: the one with the latest reset */
	const struct weir_limit *rule;    /* as it was judged by: its rates may be multiplied by an operator */
	struct weir_span key;             /* joined; borrowed from the frame */
	int64_t at_ms, until_ms;
	int64_t count;
};

/* What judging a frame gives; arrays are the shard's, valid until its next frame. */
struct shard_result {
	const uint8_t *verdicts; /* 4 bits a (event, zone) pair, low half first: enum weir_verdict_bits */
	uint32_t pair_count;
	const struct shard_decision *decisions; /* in order of the pairs */
	uint32_t decision_count;
	uint32_t events_taken, events_repeated; /* judged; dropped because their position was taken before */
	uint64_t first_event;                   /* the partition's number of the first that was judged */
	uint32_t buckets_made;                  /* that were not in memory before */
};

/**
 * Step 1. The frame's keys are fingerprinted, found (new ones are not yet made) and prefetched.
 *
 * @param frame  borrowed until judge or abandon
 */
void shard_frame_begin(struct shard *shard, const struct weir_frame *frame, uint64_t offset);

/**
 * Step 2. Segments whose evicted buckets this frame may need. Once they are loaded it is asked again.
 *
 * @param segments  room for SHARD_MISSING_MOST numbers
 * @return how many; 0: judge
 */
uint32_t shard_missing(struct shard *shard, uint32_t *segments);

/**
 * A segment from the store: its base, then its deltas, oldest first (as weir_store read_segments gives them).
 *
 * Buckets in memory are newer and stay. Where the ceiling has no room only the buckets that the waiting frame needs
 * are taken and the rest stays evicted.
 *
 * @return WEIR_OK; WEIR_INVALID: the blob is damaged; WEIR_NEWER
 */
WEIR_MUST_USE enum weir_status shard_load(struct shard *shard, uint32_t segment, const struct weir_span *blobs,
                                          size_t count, struct weir_error *error);

/** Step 3. */
void shard_frame_judge(struct shard *shard, struct shard_result *result);

/* What a command publishes: a block, or the end of one. */
struct shard_override_decision {
	bool lift;
	const struct weir_zone *zone;
	struct weir_span key; /* joined */
	int64_t at_ms, until_ms;
	const char *by, *reason;
};

/**
 * A command takes the place of a frame: begun, its bucket's segment loaded where shard_missing() says so, applied.
 *
 * @param command  borrowed until it is applied
 * @param at_ms    its sending time
 * @return WEIR_OK; WEIR_INVALID: there is no such zone, or the command is not for it: nothing waits
 */
WEIR_MUST_USE enum weir_status shard_command_begin(struct shard *shard, const struct override_command *command,
                                                   int64_t at_ms, struct weir_error *error);

/**
 * Applies the command that waits.
 *
 * @param decision  what is to be published, NULL: nothing; its strings are the command's
 * @return WEIR_OK; WEIR_FULL: too many overrides hold already: nothing was changed
 */
WEIR_MUST_USE enum weir_status shard_command_apply(struct shard *shard, const struct shard_override_decision **decision,
                                                   struct weir_error *error);

/** A control record was sent then: the clock continues to that, if it is later. */
void shard_advance_clock(struct shard *shard, int64_t sent_ms);

/**
 * Switches the policy at this offset (a policy frame): unchanged limits keep their state, changed ones start empty,
 * removed zones' buckets are dropped, and where a zone leaves shadow mode its buckets leave their last decision behind.
 * What a switch publishes is the caller's affair (policy_switch.h).
 */
void shard_set_policy(struct shard *shard, const struct compiled_policy *compiled);

/**
 * A bit of housekeeping, bounded to about `budget` buckets: compaction, forgetting, eviction under the ceiling. With two
 * for each bucket that was made, half of what is in memory at most is what should be forgotten.
 */
void shard_sweep(struct shard *shard, uint32_t budget);

/* ---- checkpoint: one consistent cut between frames ---- */

/* The changed buckets of the dirty segments since the last snapshot. */
struct shard_snapshot {
	uint32_t segment_count;
	uint32_t *segments;       /* which */
	struct weir_span *deltas; /* blob of each */
	size_t bytes;
	void *memory;
};

/**
 * Serialises what changed and marks it clean as of this snapshot: O(changed). Evicted-and-clean is judged against the
 * last snapshot reported stored. At most one snapshot is unfinished at a time.
 */
void shard_snapshot(struct shard *shard, struct shard_snapshot *snapshot);
/** The snapshot is current in the store (stored) or is given up (its buckets are dirty again). */
void shard_snapshot_done(struct shard *shard, struct shard_snapshot *snapshot, bool stored);
/** More memory is wanted than clean buckets can give: checkpoint now. */
bool shard_wants_checkpoint(const struct shard *shard);
/**
 * The ceiling is reached and nothing can be evicted: take no further frame until a snapshot was taken or the one on its
 * way is stored. One frame more stays exact, but makes the shard grow past its ceiling by what that frame adds.
 */
bool shard_is_full(const struct shard *shard);

/** What operators' commands hold. Borrowed until the next command. */
const struct overrides *shard_overrides(const struct shard *shard);

/** Which segments the store holds: called after shard_new when there is a checkpoint; those begin evicted. */
void shard_set_stored(struct shard *shard, uint32_t segment);

/**
 * Segments that nothing has asked for since the start, and that there is room for: to be read in the background.
 *
 * @param segments  room for `most` numbers
 * @return how many; 0: recovery is complete, or memory is full and the rest is read when it is asked for
 */
uint32_t shard_unread(const struct shard *shard, uint32_t *segments, uint32_t most);

/** Another ceiling, 0 for none; what is above it goes with the next sweeps. */
void shard_set_ceiling(struct shard *shard, int64_t ceiling_bytes);

/** Positions taken by source, clock, event count: the `extra` of a partition's state. Returned, the caller frees. */
char *shard_export_extra(const struct shard *shard, size_t *length);
WEIR_MUST_USE enum weir_status shard_import_extra(struct shard *shard, struct weir_span extra,
                                                  struct weir_error *error);
int64_t shard_clock_ms(const struct shard *shard);
void shard_set_clock_ms(struct shard *shard, int64_t clock_ms);

/* ---- what people and tests look at ---- */

struct shard_stats {
	uint64_t buckets; /* in memory */
	uint64_t spilled; /* buckets that only the store has; of a segment not read since the start none is known */
	uint64_t evicted_segments;
	uint64_t bytes; /* all memory of the shard */
	uint64_t evictions, loads, forgotten;
	uint64_t overrides; /* keys and prefixes that operators' commands hold for */
};
void shard_stats(const struct shard *shard, struct shard_stats *stats);

/* A bucket in the words of common/specification/semantics.md. */
struct shard_bucket {
	const struct compiled_zone *zone;
	uint64_t fingerprint_low, fingerprint_high; /* weir_fingerprint() of seed, zone and key: the shard keeps no keys */
	int64_t decided_at_ms, decided_until_ms;    /* of the last decision; -1: there was none */
	uint32_t limit_count;
	struct weir_text limits[WEIR_ZONE_LIMITS_MAX]; /* states as JSON, in the policy's order; empty: nothing recorded */
};

/** Reads a bucket that is in memory; false: there is none, or it is forgotten. The image is to be freed. */
bool shard_read(struct shard *shard, uint32_t zone_id, struct weir_span key, struct shard_bucket *image);
void shard_bucket_deinit(struct shard_bucket *image);

/** The segment that a bucket lies in. */
uint32_t shard_segment_of(uint64_t fingerprint_low);

/** Calls each for every bucket in memory that is not forgotten, in no order; the image is borrowed. No frame waits. */
void shard_each(struct shard *shard, void (*each)(void *context, const struct shard_bucket *image), void *context);

#endif
