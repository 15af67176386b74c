/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the policies that a limiter works by in the store. A store that was restored from an older copy lacks the newest
 * ones, and a checkpoint under a policy that it lacks can be read by nobody: so they are put back, under the numbers that
 * they had, from the policy topic, or from what this process has of them.
 *
 * @thread checkpoint I/O
 */
#ifndef LIMITER_POLICY_KEEPER_H
#define LIMITER_POLICY_KEEPER_H

#include "common/bus/bus.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "limiter/lane/policy_registry.h"

/* Zero-initialised. */
struct policy_keeper {
	struct weir_bus *bus; /* borrowed; NULL: the topic is not read */
	const struct weir_log *log;
	struct weir_fault fault;
	int64_t looked_ms; /* monotonic */
	int64_t failed_ms; /* monotonic: when one could not be put back; 0: the last one could */
};

/**
 * Puts back what the store lacks of the policies up to a version; says so, or why it cannot. After a failure it tries
 * nothing for some seconds: reading the topic takes as long, and other partitions' jobs wait for the thread.
 */
void policy_keeper_look(struct policy_keeper *keeper, struct weir_store *store, struct policy_registry *registry,
                        uint64_t version);

/** Likewise, but every few seconds only, however often it is called: for what is stored all the time. */
void policy_keeper_look_sometimes(struct policy_keeper *keeper, struct weir_store *store,
                                  struct policy_registry *registry, uint64_t version);

#endif
