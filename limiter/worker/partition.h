/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition at a worker, from taking it to leaving it. The worker says whether
 * it is wanted, passes it messages and checkpoint I/O's answers, and calls its
 * steps in every turn. partition_state.h has the states.
 *
 *   partition.c         the way through the states
 *   partition_intake.c  messages: judged, or queued behind one that waits
 *   partition_base.c    what both use: the change of state, jobs
 */
#ifndef LIMITER_PARTITION_H
#define LIMITER_PARTITION_H

#include "limiter/worker/checkpointing.h"
#include "limiter/worker/output.h"
#include "limiter/worker/partition_checks.h"
#include "limiter/worker/partition_state.h"
#include "limiter/worker/view.h"

enum { PARTITION_QUEUED_MAX = WORKER_BATCH_MESSAGES }; /* behind a message that waits */

/* A message that waits, or is queued behind one that does. */
struct queued {
	uint64_t offset;
	int64_t appended_ms;
	uint32_t length;
	char *bytes;
};

/* After a start, segments that no message needs yet are read in the background, a few at a time. */
enum partition_backfill { BACKFILL_IDLE, BACKFILL_READING, BACKFILL_COMPLETE /* or there is no room for more */ };

/* What a worker's partitions share. */
struct partition_tools {
	struct worker_core *core;
	struct publisher *publisher;
	struct output *output;
	struct view *view;
	struct answering *answering; /* NULL: no checks are asked */
};

struct partition {
	uint32_t number;
	const struct partition_tools *tools;
	enum partition_state state; /* changed by partition_go() alone */
	bool wanted;                /* set by the worker: take it, or keep it; false: leave it */
	uint32_t jobs;              /* at checkpoint I/O, except the checkpoint itself */
	/* EMPTY, TAKING, PARKED */
	uint64_t generation; /* of the assignment, when it was taken */
	int64_t retry_ms;    /* monotonic: not taken before this */
	int64_t asked_ms;    /* monotonic: when it was first asked for; 0: it is not being asked for */
	uint32_t fenced;     /* times that another process took it, none long after the one before */
	int64_t fenced_ms;   /* monotonic: the last time */
	int64_t state_us;    /* monotonic: since when it has been in its state */
	/* LIVE to RELEASING */
	struct lane *lane;
	uint64_t counted; /* the number after the last record that the process has counted; kept while it is the holder */
	bool counting;    /* the lane is past that; before, it judges again what was counted: see partition_count() */
	struct checkpointing checkpointing;
	struct partition_checks checks;
	struct queued queue[PARTITION_QUEUED_MAX]; /* queue[0] is the message that waits */
	uint32_t queued;
	int64_t policy_due_ms; /* monotonic: when to ask the store again for the policy that it waits for; 0: none */
	int64_t remind_due_ms; /* monotonic: when to check its operators' blocks again */
	enum partition_backfill backfill;
	/* FINISHING to RELEASING */
	int64_t leave_end_ms;   /* monotonic: when it stops waiting for its last checkpoint (see is_late()) */
	enum weir_status fault; /* why it will be PARKED; WEIR_OK: it will be EMPTY */

	struct weir_counter messages, bytes; /* received since the worker began; read by any thread */
};

/** @param tools  borrowed */
void partition_init(struct partition *partition, uint32_t number, const struct partition_tools *tools);
/** Called after checkpoint I/O has stopped and its answers were taken. */
void partition_deinit(struct partition *partition);

/** In every turn: takes the partition if it is wanted, leaves it if not, and retries what is due. */
void partition_step(struct partition *partition, int64_t now_ms);

/** Takes a message of the partition: judges it at once, or queues it behind one that waits. */
void partition_take_message(struct partition *partition, const struct weir_message *message);

/** Its log is damaged or has a gap: parks it, after storing what was judged if that still counts. */
void partition_meet_gap(struct partition *partition, const struct weir_message *at, struct weir_error *error);

/** In every turn: the next step of its checkpoint, background reading of segments, and asking for a policy if due. */
void partition_checkpoint(struct partition *partition, int64_t now_ms);

/** Takes an answer of checkpoint I/O. The caller still owns the job. */
void partition_take_answer(struct partition *partition, struct checkpoint_job *job);

/** Publishes its operators' blocks again, if that is due. */
void partition_remind(struct partition *partition, int64_t now_ms);

/** Whether the worker, which ends, leaves it without a last checkpoint: what was judged since the one before is judged again. */
bool partition_is_unstored(const struct partition *partition);

/** Leaves it without a checkpoint. It may be taken again from retry_ms on. Its state is one that works. */
void partition_drop(struct partition *partition, int64_t retry_ms);

/** Whether an answer of checkpoint I/O about it, or an acknowledgement of the bus, is outstanding. */
bool partition_is_owed(const struct partition *partition);

/** Tells the view its position. */
void partition_show(const struct partition *partition);

#endif
