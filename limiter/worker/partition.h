/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition at a worker, from taking it to leaving it: the worker tells it
 * what is its to do, gives it messages and answers of checkpoint I/O, and lets
 * it take a step in every turn. partition_state.h says which states there are.
 *
 *   partition.c         the way through the states
 *   partition_intake.c  messages: judged, or queued behind one that waits
 *   partition_base.c    what both stand on: the change of state, jobs
 */
#ifndef LIMITER_PARTITION_H
#define LIMITER_PARTITION_H

#include "limiter/worker/checkpointing.h"
#include "limiter/worker/output.h"
#include "limiter/worker/partition_state.h"
#include "limiter/worker/view.h"

enum { PARTITION_QUEUED_MAX = WORKER_BATCH_MESSAGES }; /* behind a message that waits */

/* A message that waits, or is behind one that does. */
struct queued {
	uint64_t offset;
	int64_t appended_ms;
	uint32_t length;
	char *bytes;
};

/* Segments that nothing has asked for are read one by one, beside everything else. */
enum partition_backfill { BACKFILL_IDLE, BACKFILL_READING, BACKFILL_COMPLETE /* or there is no room for more */ };

/* What a worker's partitions have in common. */
struct partition_tools {
	struct worker_core *core;
	struct publisher *publisher;
	struct output *output;
	struct view *view;
};

struct partition {
	uint32_t number;
	const struct partition_tools *tools;
	enum partition_state state; /* changed by partition_go() alone */
	bool wanted;                /* the worker's to say: it is to be taken, or to stay */
	uint32_t jobs;              /* that checkpoint I/O has, beside the checkpoint itself */
	/* EMPTY, TAKING, PARKED */
	uint64_t generation; /* of the assignment, when it was taken */
	int64_t retry_ms;    /* monotonic: not taken before then */
	int64_t asked_ms;    /* monotonic: when it was first asked for; 0: it is not */
	/* LIVE to RELEASING */
	struct lane *lane;
	struct checkpointing checkpointing;
	struct queued queue[PARTITION_QUEUED_MAX]; /* queue[0] is the waiting one */
	uint32_t queued;
	int64_t policy_due_ms; /* monotonic: when the store is asked again for the policy that it waits for; 0: none */
	int64_t remind_due_ms; /* monotonic: when its operators' blocks are looked through again */
	enum partition_backfill backfill;
	/* FINISHING to RELEASING */
	int64_t leave_end_ms;   /* monotonic: then it goes without a last checkpoint */
	enum weir_status fault; /* why it will be PARKED; WEIR_OK: it will be EMPTY */

	struct weir_counter messages, bytes; /* received, ever; read by any thread */
};

/** @param tools  borrowed */
void partition_init(struct partition *partition, uint32_t number, const struct partition_tools *tools);
/** After checkpoint I/O has stopped, and its answers are taken. */
void partition_deinit(struct partition *partition);

/** In every turn: takes it if it is wanted, lets it go if not, and retries what is due. */
void partition_step(struct partition *partition, int64_t now_ms);

/** What was received of it: judged at once, or queued after what waits. */
void partition_take_message(struct partition *partition, const struct weir_message *message);

/** Its log is not whole at a place: it is parked, once what was judged of it is stored. */
void partition_meet_gap(struct partition *partition, const struct weir_message *at, struct weir_error *error);

/** In every turn: its checkpoint's next step, segments that nothing has asked for, a policy that is to be asked for. */
void partition_checkpoint(struct partition *partition, int64_t now_ms);

/** An answer of checkpoint I/O; the job stays the caller's. */
void partition_take_answer(struct partition *partition, struct checkpoint_job *job);

/** Publishes its operators' blocks again, if that is due. */
void partition_remind(struct partition *partition, int64_t now_ms);

/** Lets it go without a checkpoint, to be taken again at retry_ms. It has a lane that works. */
void partition_drop(struct partition *partition, int64_t retry_ms);

/** Whether checkpoint I/O owes an answer about it, or the bus an acknowledgement. */
bool partition_is_owed(const struct partition *partition);

/** Tells the view how far it is. */
void partition_show(const struct partition *partition);

#endif
