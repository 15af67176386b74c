/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of one worker work with: its options, its consumer, its
 * counters, and the first failure, which ends it. All of it belongs to the
 * worker's thread, except where it says so.
 */
#ifndef LIMITER_WORKER_CORE_H
#define LIMITER_WORKER_CORE_H

#include "limiter/worker/worker.h"

#include <stdatomic.h>

enum {
	WORKER_BATCH_MESSAGES = 64,
	WORKER_WAIT_MS = 20,          /* for messages: partitions come and go meanwhile */
	WORKER_BUSY_WAIT_MS = 2,      /* while checkpoint I/O or the bus owes an answer */
	WORKER_STOP_LIMIT_MS = 20000, /* without any progress, once it is to end, or a partition to leave */
	WORKER_RETRY_MS = 1000,
};

enum worker_phase {
	WORKER_WORKING,
	WORKER_DRAINING, /* what the log has is judged to its end */
	WORKER_ENDING,   /* partitions leave, and none is taken; lanes stay for who asks what they counted */
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
	uint64_t generation;                  /* of the assignment, as of the last look */
	int64_t ceiling_bytes;                /* of one partition */
	_Atomic int asked;                    /* enum worker_phase: what it is asked to come to; set by any thread */
	struct weir_fault newer, age, policy; /* what partitions wait for: said once, however many wait */
	int64_t ahead_due_ms;                 /* monotonic: before then no more is said of senders whose clock is ahead */
};

/** The first failure is kept, and ends the loop. */
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
