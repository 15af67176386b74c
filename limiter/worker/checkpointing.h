/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of one partition's checkpoints, one at a time:
 *
 *   IDLE ─ due ─► CUT ─ all that was published before it is acknowledged ─► STORING ─ the store's answer ─► IDLE
 *                  └─ given up, as the partition is dropped ─► IDLE
 *
 * A cut is taken between two messages, and costs the lane little. Checkpoint I/O
 * stores it: changed segments first, then the row that makes it current. If that
 * fails (another owner took the partition, or the store has lost what it had) the
 * partition continues from what the store has, or is parked: partition.c decides.
 */
#ifndef LIMITER_CHECKPOINTING_H
#define LIMITER_CHECKPOINTING_H

#include "limiter/worker/publisher.h"

enum checkpointing_state {
	CHECKPOINTING_IDLE,    /* no cut; the next one is taken when it is due */
	CHECKPOINTING_CUT,     /* the cut waits for acknowledgements */
	CHECKPOINTING_STORING, /* checkpoint I/O has the cut */
	CHECKPOINTING_STATE_COUNT,
};

/** Whether one state may follow another; IDLE is the first. */
bool checkpointing_state_may_follow(enum checkpointing_state from, enum checkpointing_state to);

struct checkpointing {
	enum checkpointing_state state;
	struct checkpoint_partition taken; /* what the store has; while STORING checkpoint I/O's alone, but for the epoch */
	uint64_t current;                  /* the checkpoint that is known to be stored */
	struct checkpoint_job *job;        /* CUT: holds the cut */
	struct publisher_mark needs;       /* CUT: what must be acknowledged */
	int64_t cut_ms;                    /* monotonic: when the last cut was taken */
	uint64_t cut_offset;               /* the lane's next offset at the last cut */
	int64_t safe_ms;                   /* monotonic: all that was judged before is stored */
	uint64_t stored;                   /* how many checkpoints were stored since the partition was taken */
};

/** Begins for a partition that was taken, from the checkpoint that the store has. */
void checkpointing_begin(struct checkpointing *checkpointing, const struct checkpoint_partition *taken,
                         const struct weir_partition_state *state);

/** Whether everything that the lane judged is in a stored checkpoint, and no cut is in progress. */
bool checkpointing_is_done(const struct checkpointing *checkpointing, const struct lane *lane);

/** Whether something has been in no stored checkpoint for longer than limit_ms (0: no limit): the lane must wait. */
bool checkpointing_is_overdue(const struct checkpointing *checkpointing, const struct lane *lane, int64_t limit_ms);

/** Whether the lane should be cut: the shard wants a checkpoint, or the last cut is interval_ms old. */
bool checkpointing_is_due(const struct checkpointing *checkpointing, struct lane *lane, int64_t interval_ms,
                          int64_t now_ms);

/** IDLE: cuts the lane, if anything has changed. Called between two messages. @param publisher  the lane's */
void checkpointing_cut(struct checkpointing *checkpointing, const struct publisher *publisher, struct lane *lane,
                       int64_t now_ms);

/** Submits the cut once all that it needs is acknowledged. If everything is stored, sets safe_ms to now. */
void checkpointing_go_on(struct checkpointing *checkpointing, const struct publisher *publisher,
                         const struct lane *lane, int64_t now_ms);

/** STORING: takes checkpoint I/O's answer. If its status is not WEIR_OK, the cut's changes count as unsaved again. */
void checkpointing_answered(struct checkpointing *checkpointing, struct lane *lane, struct checkpoint_job *job);

/** Notes that the job's checkpoint is current: the log may drop what is before it. */
void checkpointing_advance(struct checkpointing *checkpointing, struct worker_core *core,
                           const struct checkpoint_job *job);

/** Sweeps after a checkpoint is stored, as its buckets may now be evicted. Not while a message waits for segments. */
void checkpointing_clean(struct lane *lane);

/** Gives up a cut that waits. For one that is being stored, the answer still comes. */
void checkpointing_give_up(struct checkpointing *checkpointing, struct lane *lane);

#endif
