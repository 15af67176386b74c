/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the process's threads has which partition: one at a time.
 *
 * A partition has a place, the thread that should have it, and a holder, the
 * thread that has it now. At first places go by number; balance.c changes them so
 * that threads have about equally much to do, as placement_improve() suggests. A
 * holder whose partition has its place elsewhere leaves it, as if it were assigned
 * to another process, and then the other thread takes it. So a move between
 * threads works like one between processes: a last checkpoint, then a taking.
 *
 * A holder leaves a number to the next one: up to which record the process has
 * counted the partition.
 */
#ifndef LIMITER_PLACEMENT_H
#define LIMITER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct placement;

/** Partition p has its place at thread p % threads, and no holder. */
struct placement *placement_new(uint32_t partitions, uint32_t threads);
void placement_free(struct placement *placement);

/** The thread that should have the partition. @thread any */
uint32_t placement_of(const struct placement *placement, uint32_t partition);

/** The thread that has the partition; while none has, the one that should. @thread any */
uint32_t placement_holder(const struct placement *placement, uint32_t partition);

/**
 * Makes the thread the holder.
 *
 * @param counted  set to what the holder before has left; 0: there was none
 * @return false: the partition has a holder already, and `counted` is as it was
 * @thread a worker
 */
bool placement_claim(struct placement *placement, uint32_t partition, uint32_t thread, uint64_t *counted);

/** Leaves the partition without a holder. @param counted  for the next one @thread its holder */
void placement_release(struct placement *placement, uint32_t partition, uint64_t counted);

/** Sets the thread that should have the partition. @thread always the same */
void placement_move(struct placement *placement, uint32_t partition, uint32_t thread);

/* ---- where partitions should be ---- */

/* One partition: its thread, and how much work it causes, in any unit. */
struct placement_load {
	uint64_t work;
	uint32_t thread;
};

/**
 * Finds better threads for some partitions: moves them from the busiest thread to the idlest, as long as the busier of
 * the two has less to do afterwards. A thread that no move relieves, such as one with a single large partition, stays
 * as it is. Nothing moves unless the busiest of the other threads has a sixth less to do in the end, as a move pauses
 * its partition. Each partition moves at most once.
 *
 * @param loads    `thread` is changed to where each should be
 * @param threads  at least 1
 * @param busy     by thread: one that is not busy gives nothing away
 * @return how many should move
 */
uint32_t placement_improve(struct placement_load *loads, uint32_t count, uint32_t threads, const bool *busy);

#endif
