/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint: one cut of a lane, brought to the store.
 *
 * Cutting is quick and is done by the lane's own thread between two messages;
 * storing is slow and may be done by another: it writes the changed segments in
 * small transactions, and then makes the checkpoint current in one.
 */
#ifndef LIMITER_CHECKPOINT_H
#define LIMITER_CHECKPOINT_H

#include "limiter/lane/lane.h"

/* What the store holds of one segment: when deltas outgrow the base they are merged into a new one. */
struct checkpoint_segment {
	uint64_t base_bytes, delta_bytes;
	uint32_t deltas;
};

/* What is known of one partition in the store. Owned by whoever owns the lane; used by one thread at a time. */
struct checkpoint_partition {
	uint32_t partition;
	uint64_t epoch;
	uint64_t current; /* the checkpoint that is current */
	int64_t lateness_ms;
	struct checkpoint_segment segments[SHARD_SEGMENTS];
};

struct checkpoint_cut {
	struct checkpoint_partition *partition; /* borrowed */
	struct weir_partition_state state;
	struct weir_text extra; /* the bytes of state.extra */
	struct shard_snapshot snapshot;
	const struct compiled_policy *compiled; /* in force at the cut */
};

/** Becomes the partition's owner. @param extra  set to the bytes of state->extra, which point into it */
WEIR_MUST_USE enum weir_status checkpoint_take(struct checkpoint_partition *partition, struct weir_store *store,
                                               uint32_t number, struct weir_partition_state *state,
                                               struct weir_text *extra, struct weir_error *error);

/** Brings a new lane to where the taken checkpoint left off; all its segments begin evicted. @thread the lane's */
WEIR_MUST_USE enum weir_status checkpoint_restore(const struct checkpoint_partition *partition,
                                                  const struct weir_partition_state *state, struct lane *lane,
                                                  struct weir_error *error);

/** Cuts the lane. The cut is to be stored (or given up) and then finished. @thread the lane's */
void checkpoint_cut(struct checkpoint_cut *cut, struct lane *lane, struct checkpoint_partition *partition);

/**
 * Stores cuts as one: all become current, with what was archived (NULL: nothing) and the notes, or none.
 *
 * On WEIR_IO it can be called again with the same cuts. WEIR_FENCED: another owner took over, or the store does not
 * have what was stored before.
 */
WEIR_MUST_USE enum weir_status checkpoint_store(struct weir_store *store, struct checkpoint_cut *cuts, size_t count,
                                                const struct weir_archive_batch *batch, const char *const *names,
                                                const struct weir_span *values, size_t note_count,
                                                struct weir_error *error);

/** Tells the shard what became of its cut, and frees it. @thread the lane's */
void checkpoint_finish(struct checkpoint_cut *cut, struct lane *lane, bool stored);

/* Blobs of some segments, read from the store: what shard_load() takes. */
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
 * Reads segments as of the checkpoint current by then; the blobs are owned by the caller (checkpoint_blobs_deinit).
 *
 * @param at_least  the checkpoint that is known to be stored
 * @return as read_segments of the store
 */
WEIR_MUST_USE enum weir_status checkpoint_read(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                               uint64_t at_least, const uint32_t *segments, size_t count,
                                               struct checkpoint_blobs *blobs, struct weir_error *error);
void checkpoint_blobs_deinit(struct checkpoint_blobs *blobs);

/** Gives read segments to the lane's shard. Segments that the store does not hold are loaded as empty. */
WEIR_MUST_USE enum weir_status checkpoint_load(struct lane *lane, const uint32_t *segments, size_t count,
                                               const struct checkpoint_blobs *blobs, struct weir_error *error);

#endif
