/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of one partition's checkpoints, one at a time:
 *
 *   IDLE ─ due ─► CUT ─ all that was published before it is acknowledged ─► STORING ─ the store's answer ─► IDLE
 *                  └─ given up, as the partition is dropped ─► IDLE
 *
 * A cut is taken between two messages, and costs the lane little. Storing it,
 * changed segments first and then the row that makes it current, is checkpoint
 * I/O's work. Where that fails (another owner took the partition, or the store
 * has lost what it had) the partition continues from what the store has, or goes:
 * its owner decides.
 */
#ifndef LIMITER_CHECKPOINTING_H
#define LIMITER_CHECKPOINTING_H

#include "limiter/worker/publisher.h"

enum checkpointing_state {
	CHECKPOINTING_IDLE,    /* what has changed since the last cut waits until it is due */
	CHECKPOINTING_CUT,     /* cut; it waits for acknowledgements */
	CHECKPOINTING_STORING, /* checkpoint I/O has it */
	CHECKPOINTING_STATE_COUNT,
};

/** Whether one state may follow the other: IDLE is the first. */
bool checkpointing_state_may_follow(enum checkpointing_state from, enum checkpointing_state to);

struct checkpointing {
	enum checkpointing_state state;
	struct checkpoint_partition taken; /* what the store has of it; but for the epoch checkpoint I/O's while STORING */
	uint64_t current;                  /* the checkpoint that is known to be stored */
	struct checkpoint_job *job;        /* CUT: with the cut */
	struct publisher_mark needs;       /* CUT: what must be acknowledged */
	int64_t cut_ms;                    /* monotonic: when the cut that is current or under way was taken */
	uint64_t cut_offset;               /* next_offset of it */
	int64_t safe_ms;                   /* monotonic: all that was judged by then is stored */
	uint64_t stored;                   /* how many, since the partition was taken */
};

/** A partition was taken: the checkpoint that the store has is the first one. */
void checkpointing_begin(struct checkpointing *checkpointing, const struct checkpoint_partition *taken,
                         const struct weir_partition_state *state);

/** Whether nothing of the lane is newer than its last checkpoint. */
bool checkpointing_is_done(const struct checkpointing *checkpointing, const struct lane *lane);

/** Whether the oldest change that no checkpoint holds is too old to continue. */
bool checkpointing_is_overdue(const struct checkpointing *checkpointing, const struct lane *lane, int64_t limit_ms);

/** Whether the lane should be cut: much has changed, or some of it long ago. */
bool checkpointing_is_due(const struct checkpointing *checkpointing, struct lane *lane, int64_t interval_ms,
                          int64_t now_ms);

/** IDLE: cuts the lane, if anything has changed. Between two messages. @param publisher  that it publishes by */
void checkpointing_cut(struct checkpointing *checkpointing, const struct publisher *publisher, struct lane *lane,
                       int64_t now_ms);

/** Hands on a cut that may be stored by now, and notes where nothing has to be. */
void checkpointing_go_on(struct checkpointing *checkpointing, const struct publisher *publisher,
                         const struct lane *lane, int64_t now_ms);

/** STORING: checkpoint I/O has answered. Where the job's status is not WEIR_OK the lane still has its changes. */
void checkpointing_answered(struct checkpointing *checkpointing, struct lane *lane, struct checkpoint_job *job);

/** The job's checkpoint is current from now on: the log may forget what is before it. */
void checkpointing_advance(struct checkpointing *checkpointing, struct worker_core *core,
                           const struct checkpoint_job *job);

/** After one is stored: buckets that are clean may leave memory. Not while a message waits for segments. */
void checkpointing_clean(struct lane *lane);

/** A cut that waits is given up; one that is being stored still has its answer to come. */
void checkpointing_give_up(struct checkpointing *checkpointing, struct lane *lane);

#endif
