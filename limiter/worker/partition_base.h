/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a partition share: the change of its state, and jobs for checkpoint I/O. */
#ifndef LIMITER_PARTITION_BASE_H
#define LIMITER_PARTITION_BASE_H

#include "limiter/worker/partition.h"

/**
 * The only way to another state. Does what the change implies: the bus delivers messages only while LIVE, EMPTY
 * releases the partition to other threads, and the view shows the state.
 */
void partition_go(struct partition *partition, enum partition_state to);

/** A new job about the partition, for the caller to complete and submit. */
struct checkpoint_job *partition_job(const struct partition *partition, enum checkpoint_job_kind kind);
/** A job that reads segments, for the caller to complete and submit: it notes as of which checkpoint. @param segments  copied */
struct checkpoint_job *partition_load_job(const struct partition *partition, const uint32_t *segments, uint32_t count);
/** Submits a job to the reading thread of checkpoint I/O. Its answer comes through partition_take_answer(). */
void partition_submit(struct partition *partition, struct checkpoint_job *job);

/**
 * Says why it is stopped, on this limiter's pages and in the store, to whoever looks from elsewhere.
 *
 * @param epoch  under which it was taken; 0: it was not
 * @param words  "": it is no longer, under the same epoch
 */
void partition_say_stopped(struct partition *partition, uint64_t epoch, const char *words);

/* ---- what metrics count ---- */

/*
 * After a broken producer, or a checkpoint that the store has lost, a lane judges again what the process has counted.
 * Rates must not double in an outage. So a lane counts from the first record on that the process has not counted, and
 * what it judges before that is only judged.
 */

/** A lane has begun. */
void partition_count_begin(struct partition *partition);
/** A record is about to be judged: the lane counts from it on, if the process has not counted it. */
void partition_count_from(struct partition *partition, uint64_t offset);
/** A record is done. */
void partition_counted(struct partition *partition, uint64_t number);
/** The lane is about to be freed: its counts stay. */
void partition_count_end(struct partition *partition);

/* ---- partition_intake.c ---- */

/** Continues with the message that waits and those queued behind it, until one must wait. */
void partition_resume(struct partition *partition);

/**
 * Takes the store's answer about the policy that a message waits for: continues, or asks again each second, as a
 * replica may show late what another server has stored.
 */
void partition_policies_read(struct partition *partition);
/** Asks for the policy again, if that is due. */
void partition_ask_for_policy(struct partition *partition, int64_t now_ms);

/** Frees the queued messages from an index on. */
void partition_cut_queue(struct partition *partition, uint32_t from);

#endif
