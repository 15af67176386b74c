/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of limiter.c, for the files that show it and check it. */
#ifndef LIMITER_DAEMON_INTERNAL_H
#define LIMITER_DAEMON_INTERNAL_H

#include "common/cluster/lag.h"
#include "common/cluster/membership.h"
#include "limiter/daemon/limiter.h"
#include "limiter/daemon/limiter_checks.h"
#include "limiter/daemon/live_watch.h"
#include "limiter/worker/balance.h"

enum limiter_phase {
	LIMITER_CONNECTING, /* to the brokers */
	LIMITER_OPENING,    /* the brokers answer: the bus is there; the store is waited for */
	LIMITER_WORKING,
	LIMITER_STOPPING,
};

struct limiter {
	struct weir_daemon *daemon;
	struct weir_daemon_pages pages;
	_Atomic int phase; /* from LIMITER_WORKING on all that follows is there, and stays */
	_Atomic(struct weir_bus *)
		awaited; /* while it connects: the bus before its topics are there; else NULL, or that bus */
	struct weir_bus *bus;
	uint64_t seed;
	struct policy_registry *registry;
	struct weir_assignment *assignment;
	struct placement *placement;
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
	struct limiter_checks *checks; /* NULL: none are asked */
	struct worker **workers;
	uint32_t worker_count;
	struct balance *balance;
	struct weir_membership *membership;
	struct weir_lag *lag;
	struct live_watch live;
};

/** What stands of a partition at the worker that has it. @thread any */
void limiter_view(const struct limiter *limiter, uint32_t partition, struct worker_partition *look);

/**
 * Whether the topics outlast the blocks of the newest policy in the store. One that this weir cannot read is told by the
 * partitions that wait for it.
 *
 * @param version  set: the policy's; 0: there is none
 */
WEIR_MUST_USE enum weir_status limiter_check_policy(struct weir_bus *bus, struct weir_store *store, uint64_t *version,
                                                    struct weir_error *error);

/** --check: says on standard output what a start would meet. @param self  a struct limiter */
WEIR_MUST_USE enum weir_status limiter_check(void *self, struct weir_error *error);

void limiter_pages_init(struct limiter *limiter);

#endif
