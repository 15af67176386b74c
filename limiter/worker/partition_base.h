/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a partition stand on: the change of its state, and jobs for checkpoint I/O. */
#ifndef LIMITER_PARTITION_BASE_H
#define LIMITER_PARTITION_BASE_H

#include "limiter/worker/partition.h"

/**
 * The only way to another state, with all that goes with it: the bus delivers to LIVE alone, EMPTY is free for another
 * thread, and the view shows it.
 */
void partition_go(struct partition *partition, enum partition_state to);

/** A job about it: to be completed and submitted. */
struct checkpoint_job *partition_job(const struct partition *partition, enum checkpoint_job_kind kind);
/** Gives it to the thread that reads; its answer comes by partition_take_answer(). */
void partition_submit(struct partition *partition, struct checkpoint_job *job);

/* ---- partition_intake.c ---- */

/** Goes on with the message that waits, and those behind it as far as they can. */
void partition_resume(struct partition *partition);

/**
 * The store was asked for the policy that a message waits for: goes on, or asks again each second, as a store may show
 * what another one has taken a little later.
 */
void partition_policies_read(struct partition *partition);
/** Asks for it again, if that is due. */
void partition_ask_for_policy(struct partition *partition, int64_t now_ms);

/** Frees what is queued from a place on. */
void partition_cut_queue(struct partition *partition, uint32_t from);

#endif
