/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint: a cut of a lane's state between two messages, written to the store.
 *
 * Cutting is quick; the lane's own thread does it. Storing is slow; another thread
 * may do it: it writes the changed segments in small transactions, and then makes
 * the checkpoint current in one.
 */
#ifndef LIMITER_CHECKPOINT_H
#define LIMITER_CHECKPOINT_H

#include "limiter/lane/lane.h"

/* What the store has of one segment. When the deltas outgrow the base, all are merged into a new base. */
struct checkpoint_segment {
	uint64_t base_bytes, delta_bytes;
	uint32_t deltas;
};

/* What is known of one partition in the store. The lane's owner owns it; one thread at a time uses it. */
struct checkpoint_partition {
	uint32_t partition;
	uint64_t epoch;
	uint64_t current; /* the current checkpoint */
	int64_t lateness_ms;
	struct checkpoint_segment segments[SHARD_SEGMENTS];
};

struct checkpoint_cut {
	struct checkpoint_partition *partition; /* borrowed */
	struct weir_partition_state state;
	struct weir_text extra; /* the bytes of state.extra */
	struct shard_snapshot snapshot;
	struct shard *in_parts; /* whose snapshot is made while it is stored (shard_snapshot_part()); NULL: it is made */
	const struct compiled_policy *compiled; /* in force at the cut */
};

/**
 * Becomes the partition's owner, raising its epoch.
 *
 * @param extra  set to the bytes of state->extra, which then points into it
 */
WEIR_MUST_USE enum weir_status checkpoint_take(struct checkpoint_partition *partition, struct weir_store *store,
                                               uint32_t number, struct weir_partition_state *state,
                                               struct weir_text *extra, struct weir_error *error);

/** Restores a new lane from the checkpoint that was taken; all stored segments begin evicted. @thread the lane's */
WEIR_MUST_USE enum weir_status checkpoint_restore(const struct checkpoint_partition *partition,
                                                  const struct weir_partition_state *state, struct lane *lane,
                                                  struct weir_error *error);

/** Cuts the lane. The caller stores the cut (or gives it up) and then finishes it. @thread the lane's */
void checkpoint_cut(struct checkpoint_cut *cut, struct lane *lane, struct checkpoint_partition *partition);

/**
 * Stores cuts atomically: all become current, together with the archive's batch (NULL: none) and the notes, or none do.
 *
 * On WEIR_IO it can be called again with the same cuts. WEIR_FENCED: another owner took over, or the store does not
 * return what was stored before.
 */
WEIR_MUST_USE enum weir_status checkpoint_store(struct weir_store *store, struct checkpoint_cut *cuts, size_t count,
                                                const struct weir_archive_batch *batch, const char *const *names,
                                                const struct weir_span *values, size_t note_count,
                                                struct weir_error *error);

/** Tells the shard whether its cut was stored, and frees the cut. @thread the lane's */
void checkpoint_finish(struct checkpoint_cut *cut, struct lane *lane, bool stored);

/* Blobs of some segments, as read from the store, for shard_load(). */
struct checkpoint_blobs {
	struct weir_text bytes;
	struct checkpoint_blob {
		uint32_t segment;
		uint64_t checkpoint;
		size_t at, length;
	} * blobs; /* by segment, base first */
	size_t count, capacity;
};

/**
 * Reads segments as of the current checkpoint; the caller owns the blobs (checkpoint_blobs_deinit).
 *
 * @param at_least  a checkpoint that is known to be stored: the current one may not be older
 * @return as the store's read_segments
 */
WEIR_MUST_USE enum weir_status checkpoint_read(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                               uint64_t at_least, const uint32_t *segments, size_t count,
                                               struct checkpoint_blobs *blobs, struct weir_error *error);
void checkpoint_blobs_deinit(struct checkpoint_blobs *blobs);

/** Loads segments that were read into the lane's shard. Segments that the store does not have are loaded as empty. */
WEIR_MUST_USE enum weir_status checkpoint_load(struct lane *lane, const uint32_t *segments, size_t count,
                                               const struct checkpoint_blobs *blobs, struct weir_error *error);

#endif
