/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's checks: its surface asks, the partitions of the process answer. It is
 * where a worker that has a surface waits: for connections, and for whatever else
 * wakes it, by one epoll.
 */
#ifndef LIMITER_CHECKING_H
#define LIMITER_CHECKING_H

#include "limiter/worker/bundles.h"
#include "limiter/worker/partition.h"

struct checking {
	struct worker_core *core;
	struct publisher *publisher;
	struct answering *answering;
	struct partition *partitions;
	uint32_t partition_count;
	const bool *given; /* by partition: the process has it */
	struct bundles bundles;
	struct mail_packet **outgoing; /* asks that are not sent yet, by way (checking.c) */
	uint32_t ways;
	int epoll;        /* -1: no checks are asked */
	int64_t serve_ms; /* monotonic: when the surface is served though nothing has come */
	int64_t step_ms;  /* monotonic: when the thread was last seen to go on; 0: never */
	bool stopped;
};

/** @param given  borrowed, like all that is pointed to; read at each ask */
void checking_init(struct checking *checking, struct worker_core *core, struct publisher *publisher,
                   struct answering *answering, struct partition *partitions, uint32_t partition_count,
                   const bool *given);
/** Opens the worker's surface, if it is to have one. */
WEIR_MUST_USE enum weir_status checking_open(struct checking *checking, struct weir_error *error);
void checking_deinit(struct checking *checking);

static inline bool checking_is_on(const struct checking *checking)
{
	return checking->epoll >= 0;
}

/** Waits until something is to be done, timeout_ms at most. Serves the surface if that is it. */
void checking_wait(struct checking *checking, int timeout_ms);
/** Serves the surface without waiting: between two messages of a batch. */
void checking_serve(struct checking *checking);
/** Once a turn: other threads' asks and answers; what was gathered is sent, what is acknowledged is answered. */
void checking_step(struct checking *checking);
/** The worker ends: nothing more is asked. */
void checking_stop(struct checking *checking);
/** It has ended: what was answered is written, and who still waits for an answer sees that none comes. */
void checking_end(struct checking *checking);

#endif
