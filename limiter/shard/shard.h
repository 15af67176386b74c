/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard: one partition's buckets in a limiter, and the judging of frames.
 *
 * State is a function of the frames and control records applied, in order. The
 * shard reads no clock, and only the placement of keys is random. It knows no bus
 * and no store: it is given frames and returns verdicts and decisions; it returns
 * blobs of changed segments and is given blobs of missing segments. One thread
 * uses it, without locks.
 *
 * Steps of a frame:
 *   1. shard_frame_begin   looks up every (key, zone) of the frame's dictionary
 *   2. shard_missing       lists segments that must be loaded first (evicted buckets); none: continue
 *   3. shard_frame_judge   judges its events in order
 * A frame may wait between 1 and 3; the shard takes no other frame meanwhile.
 */
#ifndef LIMITER_SHARD_H
#define LIMITER_SHARD_H

#include "common/base/text.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"
#include "limiter/bucket/bucket_judge.h"
#include "limiter/overrides/override_command.h"

enum {
	SHARD_SEGMENTS = 1024,
	SHARD_SWAP_CEILINGS = 16, /* the file of evicted buckets takes at most so many times `ceiling_bytes` on disk */
	SHARD_MISSING_MOST = 64,  /* asked for at once: a frame may need all segments, more than memory can hold */
};

struct shard;
struct overrides;

struct shard_options {
	uint32_t partition;
	uint32_t partitions;   /* of the log; 0: as 1 */
	uint64_t seed;         /* of the fingerprints: one per state directory or cluster, stored with the state */
	int64_t ceiling_bytes; /* of all this shard's memory (shard_bytes()); 0: none */
	uint32_t checks_max;   /* that may be pending: shard_check.h; 0: SHARD_CHECKS_PENDING_MAX */
	int64_t lateness_ms;   /* added to the time that a bucket is remembered; < 0: nothing is forgotten (--once) */
	const char
		*swap_directory; /* where evicted buckets are kept beside the store, in a file; NULL: nowhere; borrowed */
	bool swap_changes;   /* into that file also buckets that the store does not have yet: shard_snapshot_part() */
	int64_t
		part_bytes; /* with swap_changes: of the changes in a part of a snapshot, which takes twice as much memory */
	int64_t swap_bytes; /* of that file on disk, at most; 0: SHARD_SWAP_CEILINGS times ceiling_bytes */
	bool count_events;  /* --once: a decision's offset is the partition's event number, its index within the event */
};

struct shard *shard_new(const struct shard_options *options, const struct compiled_policy *compiled);
void shard_free(struct shard *shard);

/* A decision to publish, made by a judged event. Zone, rule and key are pointers, the rest values. */
struct shard_decision {
	uint32_t event;     /* index in the frame */
	uint32_t pair;      /* running number of (event, zone) pairs in the frame */
	uint64_t id_offset; /* as options.count_events says */
	uint32_t id_index;
	enum bucket_decision kind;
	const struct compiled_zone *zone; /* valid as long as its compiled policy */
	uint32_t limit;                   /* index into zone->limits: the one with the latest reset; in a lift a queue */
	const struct weir_limit *rule;    /* the limit as judged: an operator's override may have scaled its rates */
	struct weir_span key;             /* joined; borrowed from the frame */
	int64_t at_ms, until_ms;
	int64_t count;
	uint32_t nth; /* which block of the key it is, where the zone has a list of them; else 0 */
};

/* The result of judging a frame. The shard owns the arrays; they are valid until its next frame. */
struct shard_result {
	const uint8_t *verdicts; /* 4 bits per (event, zone) pair, low half first: enum weir_verdict_bits */
	uint32_t pair_count;
	const struct shard_decision *decisions; /* ordered by pair */
	uint32_t decision_count;
	uint32_t events_taken, events_repeated; /* judged; dropped because their position was taken before */
	bool is_shared;                         /* two processes send as the frame's source: weir_sender_is_shared() */
	uint64_t first_event;                   /* the partition's number of the first judged event */
	uint32_t buckets_made;                  /* buckets that were not in memory before */
};

/**
 * Step 1. Fingerprints the frame's keys. Looks up their buckets at once only if some segment is not all in memory;
 * otherwise judging does. Buckets of new keys are not made yet.
 *
 * @param frame  borrowed until judge or abandon
 */
void shard_frame_begin(struct shard *shard, const struct weir_frame *frame, uint64_t offset);

/**
 * Step 2. Lists segments whose evicted buckets this frame may need. Load them, then call this again.
 *
 * @param segments  room for SHARD_MISSING_MOST numbers
 * @return how many; 0: go on to step 3
 */
uint32_t shard_missing(struct shard *shard, uint32_t *segments);

/**
 * Loads a segment from the store: its base, then its deltas, oldest first (as weir_store read_segments returns them).
 *
 * Buckets in memory or in swap are newer and stay. If the ceiling leaves no room, only the buckets that the waiting frame
 * needs are loaded; the rest goes into swap or stays evicted.
 *
 * @return WEIR_OK; WEIR_INVALID: the blob is damaged; WEIR_NEWER
 */
WEIR_MUST_USE enum weir_status shard_load(struct shard *shard, uint32_t segment, const struct weir_span *blobs,
                                          size_t count, struct weir_error *error);

/** Step 3. Judges the frame's events in order. shard_missing() has returned 0. */
void shard_frame_judge(struct shard *shard, struct shard_result *result);

/* What a command publishes: a block, or (lift) the end of one. */
struct shard_override_decision {
	bool lift;
	const struct weir_zone *zone;
	struct weir_span key; /* joined */
	int64_t at_ms, until_ms;
	const char *by, *reason;
};

/**
 * Begins a command. It has the steps of a frame: begin, load the segments that shard_missing() lists, apply.
 *
 * @param command  borrowed until it is applied
 * @param at_ms    its sending time
 * @return WEIR_OK; WEIR_INVALID: no such zone, not valid for the zone, or its end is not after at_ms; nothing waits
 */
WEIR_MUST_USE enum weir_status shard_command_begin(struct shard *shard, const struct override_command *command,
                                                   int64_t at_ms, struct weir_error *error);

/**
 * Applies the waiting command.
 *
 * @param decision  set to what must be published, or to NULL; its strings are the command's
 * @return WEIR_OK; WEIR_FULL: there are too many overrides already, and nothing was changed
 */
WEIR_MUST_USE enum weir_status shard_command_apply(struct shard *shard, const struct shard_override_decision **decision,
                                                   struct weir_error *error);

/** Advances the clock to the time that a control record was sent at, if that is later. */
void shard_advance_clock(struct shard *shard, int64_t sent_ms);

/**
 * Switches the policy at this offset (a policy frame): unchanged limits keep their state, changed ones start empty,
 * buckets of removed zones are dropped, and if a zone leaves shadow mode its buckets lose their last decision. The
 * caller publishes what a switch publishes (policy_switch.h).
 */
void shard_set_policy(struct shard *shard, const struct compiled_policy *compiled);

/**
 * Does some housekeeping, of about `budget` buckets: forgetting, eviction under the ceiling, compaction. With a budget
 * of two per bucket made, at most half of the buckets in memory are ones that should have been forgotten.
 */
void shard_sweep(struct shard *shard, uint32_t budget);

/* ---- checkpoint: one consistent cut between frames ---- */

/* The buckets that changed since the last snapshot, by segment: all of them, or those of a part of the segments. */
struct shard_snapshot {
	uint32_t segment_count;
	uint32_t *segments;       /* their numbers */
	struct weir_span *deltas; /* one blob for each */
	size_t bytes;
	void *memory;
	uint32_t next_segment; /* where the next part begins; SHARD_SEGMENTS: there is none */
};

/**
 * Serialises what changed and marks it clean as of this snapshot: O(changed). Its buckets may be evicted only after
 * shard_snapshot_done() has reported it stored. At most one snapshot is pending at a time.
 */
void shard_snapshot(struct shard *shard, struct shard_snapshot *snapshot);
/** Whether snapshots are made in parts: options.swap_changes. */
bool shard_snapshot_in_parts(const struct shard *shard);
/**
 * With options.swap_changes shard_snapshot() only begins: what changed may be more than memory holds, so it is serialised in
 * parts while it is stored, and the shard may be given nothing before shard_snapshot_done(). This makes the next part, in
 * place of the one before. To store all again, set next_segment to 0.
 *
 * @return WEIR_OK; WEIR_END: there are no more parts; as shard_check_whole()
 */
WEIR_MUST_USE enum weir_status shard_snapshot_part(struct shard *shard, struct shard_snapshot *snapshot,
                                                   struct weir_error *error);
/** @return WEIR_OK; WEIR_INVALID: changes were lost (options.swap_changes): what was judged since the last stored snapshot,
 *          this frame too, is void */
WEIR_MUST_USE enum weir_status shard_check_whole(const struct shard *shard, struct weir_error *error);
/** Ends a snapshot: it is current in the store (stored), or given up (its buckets are dirty again). Frees it. */
void shard_snapshot_done(struct shard *shard, struct shard_snapshot *snapshot, bool stored);
/** Whether to checkpoint now: changed buckets reach an eighth of the ceiling, or eviction found nothing to evict. */
bool shard_wants_checkpoint(const struct shard *shard);
/**
 * Whether changed buckets reach a quarter of the ceiling (without swap_changes), or nothing can be evicted: take no frame until a snapshot is
 * taken, or the pending one stored. One more frame is still judged exactly, but the shard then exceeds its ceiling by
 * what that frame adds.
 */
bool shard_is_full(const struct shard *shard);

/** The operators' overrides in force. Borrowed until the next command. */
const struct overrides *shard_overrides(const struct shard *shard);

/** Says that the store has a segment, which then begins evicted. Called after shard_new() if there is a checkpoint. */
void shard_set_stored(struct shard *shard, uint32_t segment);

/**
 * Lists segments not yet loaded since the start, to be read in the background while there is room.
 *
 * @param segments  room for `most` numbers
 * @return how many; 0: recovery is complete, or memory is full and the rest is read when it is needed
 */
uint32_t shard_unread(const struct shard *shard, uint32_t *segments, uint32_t most);

/** Sets another ceiling, 0 for none. The next sweeps evict what exceeds it; the file of evicted buckets grows no more. */
void shard_set_ceiling(struct shard *shard, int64_t ceiling_bytes);

/**
 * The `extra` of a partition's state: clock, event count, policy switches, sources' positions and overrides. Returned,
 * the caller frees.
 */
char *shard_export_extra(const struct shard *shard, size_t *length);
WEIR_MUST_USE enum weir_status shard_import_extra(struct shard *shard, struct weir_span extra,
                                                  struct weir_error *error);
/** The policy that it has switched to, of which it has the state. */
uint64_t shard_policy_version(const struct shard *shard);
int64_t shard_clock_ms(const struct shard *shard);
void shard_set_clock_ms(struct shard *shard, int64_t clock_ms);

/* ---- for people and tests ---- */

struct shard_stats {
	uint64_t buckets; /* in memory */
	uint64_t spilled; /* buckets that are not in memory; without segments not read since the start */
	uint64_t evicted_segments;
	uint64_t bytes;       /* all memory of the shard */
	uint64_t index_bytes; /* of those, what finds buckets, those that only the store has among them */
	uint64_t evictions, forgotten;
	uint64_t loads;         /* of segments, from the store */
	uint64_t recalls;       /* of buckets, from swap */
	uint64_t swap_failures; /* times that swap could not be written or read */
	uint64_t swap_file_bytes;
	uint64_t overrides; /* keys and prefixes that have an operator's override */
};
void shard_stats(const struct shard *shard, struct shard_stats *stats);

/* A bucket, in the terms of common/specification/semantics.md. */
struct shard_bucket {
	const struct compiled_zone *zone;
	struct weir_fingerprint print;           /* weir_fingerprint() of seed, zone and key: the shard keeps no keys */
	int64_t decided_at_ms, decided_until_ms; /* the last decision's; -1: there was none */
	uint32_t decided_nth;                    /* which block of the key that was; 0: there was none */
	uint32_t limit_count;
	struct weir_text limits[WEIR_ZONE_LIMITS_MAX]; /* states as JSON, in the policy's order; empty: nothing recorded */
};

/** Reads a bucket in memory; false: there is none, or it is forgotten. On true, call shard_bucket_deinit(). */
bool shard_read(struct shard *shard, uint32_t zone_id, struct weir_span key, struct shard_bucket *image);
void shard_bucket_deinit(struct shard_bucket *image);

/* What a limit of a bucket holds at a moment. */
struct shard_held {
	bool any;     /* something was recorded, and is not forgotten */
	bool late;    /* an event at that moment is late for it */
	int64_t held; /* as "count" of a decision */
};

/**
 * Reads what the limits of a bucket in memory hold for an event at t, in the policy's order.
 *
 * @return how many limits; 0: there is no such bucket, or it is forgotten
 */
uint32_t shard_read_held(struct shard *shard, uint32_t zone_id, struct weir_span key, int64_t t,
                         struct shard_held held[WEIR_ZONE_LIMITS_MAX]);

/** The segment that a bucket belongs to. */
uint32_t shard_segment_of(uint64_t fingerprint_low);

/** Calls each() for every unforgotten bucket in memory or in swap, in no order; the image is borrowed. No frame may be waiting. */
void shard_each(struct shard *shard, void (*each)(void *context, const struct shard_bucket *image), void *context);

#endif
