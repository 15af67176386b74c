/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's internals: its parts, in the order in which they call each other,
 * from worker.c down.
 *
 *   worker.c ─► partition.c ─► partition_intake.c ─► partition_base.c ─► view.c
 *     │  │           ├─► checkpointing.c ─┐   └─► output.c ─┐
 *     │  └─► worker_figures.c             ├────────────► publisher.c ─► core.h
 *     └─► checking.c ─► partition_checks.c ─► answering.c ─► mail.c
 */
#ifndef LIMITER_WORKER_INTERNAL_H
#define LIMITER_WORKER_INTERNAL_H

#include "limiter/worker/checking.h"

struct worker {
	struct worker_core core;
	struct publisher publisher;
	struct output output;
	struct view view;
	struct answering answering;
	struct checking checking;
	struct partition_tools tools;
	struct partition *partitions; /* by number */
	uint32_t partition_count;
	bool *given; /* the assignment, as last read */
	uint64_t assignment_version;
	struct weir_fault consumer_fault;
	struct weir_lasting consumer_fails;
	int64_t places_due_ms, gauges_due_ms, remind_due_ms; /* monotonic */
	pthread_t thread;
	bool started;
	_Atomic bool ended;
};

/** Updates what other threads see: what is due, or all. */
void worker_refresh(struct worker *worker, bool all);

#endif
