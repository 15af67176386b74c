/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a process's threads about equally busy, by moving partitions between them.
 */
#ifndef LIMITER_BALANCE_H
#define LIMITER_BALANCE_H

#include "limiter/worker/worker.h"

struct balance;

/* All borrowed. */
struct balance_options {
	struct weir_assignment *assignment; /* the process's */
	struct placement *placement;
	uint32_t partitions;
	struct worker *const *workers; /* by thread */
	uint32_t worker_count;
	const struct checkpoint_io *checkpoint_writer,
		*checkpoint_reader; /* nothing moves while one fails, as a moving partition could not continue */
	const struct weir_log *log;
};

struct balance *balance_new(const struct balance_options *options);
void balance_free(struct balance *balance);

/** Checks, when that is due, whether partitions should move, and moves them. Called often. @thread always the same */
void balance_turn(struct balance *balance);

/** How many partitions it has moved. @thread any */
uint64_t balance_moves(const struct balance *balance);

#endif
