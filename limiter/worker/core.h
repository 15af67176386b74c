/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of one worker share: its options, its consumer, its counters,
 * and the first failure, which ends it. Only the worker's thread uses it, except
 * where noted.
 */
#ifndef LIMITER_WORKER_CORE_H
#define LIMITER_WORKER_CORE_H

#include "limiter/worker/worker.h"

#include <stdatomic.h>

enum {
	WORKER_BATCH_MESSAGES = 64,
	WORKER_WAIT_MS = 20,          /* for messages; kept short, as the assignment may change meanwhile */
	WORKER_BUSY_WAIT_MS = 2,      /* the same, while an answer of checkpoint I/O or the bus is due */
	WORKER_STOP_LIMIT_MS = 20000, /* bound on steps of ending the worker, or of a partition's leaving */
	WORKER_RETRY_MS = 1000,
};

enum worker_phase {
	WORKER_WORKING,
	WORKER_DRAINING, /* judging what the log still has */
	WORKER_ENDING,   /* partitions leave, and none is taken; lanes stay, so that their counts can be read */
};

struct worker_core {
	struct worker_options options;
	const struct weir_bus_ops *bus;
	struct weir_consumer *consumer;
	struct checkpoint_replies replies;
	struct worker_stats stats;
	enum worker_phase phase;
	enum weir_status status; /* the first failure: ends the loop */
	struct weir_error error;
	uint64_t generation;                     /* of the assignment, as last read */
	int64_t ceiling_bytes;                   /* of one partition */
	_Atomic int asked;                       /* enum worker_phase: the phase requested; set by any thread */
	_Atomic int64_t age_limit_ms, remind_ms; /* as in the options, and as set since by any thread */
	struct weir_fault lost;                  /* checkpoints that the store has lost */
	struct weir_notice ahead, skipped;       /* senders whose clock is ahead; messages that are not judged */
	struct weir_notice shared;               /* sources that two collectors send as */
	struct weir_notice behind;               /* this machine's clock is behind checks that were answered */
};

/** Records a failure, which ends the loop. Only the first one is kept. */
static inline void core_fail(struct worker_core *core, enum weir_status status, const struct weir_error *error)
{
	if (core->status != WEIR_OK)
		return;
	core->status = status;
	core->error = *error;
}

/** Whether it has been asked to end. */
static inline bool core_is_to_end(const struct worker_core *core)
{
	return atomic_load(&core->asked) != WORKER_WORKING;
}

#endif
