/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the process's threads has which partition: one at a time.
 *
 * A partition has a place, which says whose it is to be, and a holder, who has it
 * by now. At first places go by number; balance.c changes them so that
 * threads have about as much to do, as placement_improve() finds. Whoever holds a
 * partition that is another's to be lets it go, as if it were another process's;
 * the other takes it from then on. So a move between threads is a move between
 * processes, a checkpoint and a taking, in a small way.
 */
#ifndef LIMITER_PLACEMENT_H
#define LIMITER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct placement;

/** Partition p has its place at thread p % threads, and no holder. */
struct placement *placement_new(uint32_t partitions, uint32_t threads);
void placement_free(struct placement *placement);

/** Whose it is to be. @thread any */
uint32_t placement_of(const struct placement *placement, uint32_t partition);

/** Who has it; while nobody has, whose it is to be. @thread any */
uint32_t placement_holder(const struct placement *placement, uint32_t partition);

/** Gives whether the thread has it from now on: another may still have it. @thread a worker */
bool placement_claim(struct placement *placement, uint32_t partition, uint32_t thread);

/** Nobody has it any more. @thread its holder */
void placement_release(struct placement *placement, uint32_t partition);

/** Another thread is to have it. @thread one for all */
void placement_move(struct placement *placement, uint32_t partition, uint32_t thread);

/* ---- where partitions should be ---- */

/* One partition: where it is, and how much it gives to do, in any unit. */
struct placement_load {
	uint64_t work;
	uint32_t thread;
};

/**
 * Finds better threads for some partitions: from the busiest thread to the idlest, as long as the busier of the two has
 * less to do after it. A thread that nothing relieves, as one with a single large partition, stays as it is. Nothing is
 * moved unless the busiest of the others has a sixth less to do in the end, as a move costs its partition a pause. Each
 * partition moves once at most.
 *
 * @param loads    changed: where they should be
 * @param threads  at least 1
 * @param busy     one for each of them: the others give nothing away
 * @return how many are to move
 */
uint32_t placement_improve(struct placement_load *loads, uint32_t count, uint32_t threads, const bool *busy);

#endif
