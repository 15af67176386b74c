/* SPDX-License-Identifier: Apache-2.0 */
/* What limiters have stored, held against the topics: for --check, and for `weir doctor`. It only looks. */
#ifndef LIMITER_DAEMON_LIMITER_CHECK_H
#define LIMITER_DAEMON_LIMITER_CHECK_H

#include "common/diagnosis/server_checks.h"

struct limiter_state {
	uint64_t policy;   /* the newest in the store; 0: none */
	uint32_t stuck;    /* partitions that cannot go on */
	uint64_t behind;   /* messages that are not in a checkpoint, over all partitions */
	int64_t oldest_ms; /* how long the oldest of them waits; -1: nothing waits, or it is not known */
	bool asked;        /* store and brokers have told of every partition */
};

/**
 * Whether the store is of as many partitions as the topics, the topics outlast the policy's blocks, the policy is in
 * every partition, and each partition can go on from its checkpoint.
 *
 * @param good  by topic: it can be asked about
 */
void limiter_check_state(const struct weir_check *check, struct weir_bus *bus, const bool good[WEIR_TOPIC_COUNT],
                         struct weir_store *store, struct limiter_state *state);

/** The last part of that: each partition's checkpoint against the topic of events. The policy is not looked at. */
void limiter_check_positions(const struct weir_check *check, struct weir_bus *bus, struct weir_store *store,
                             struct limiter_state *state);

/** How long a message may be in no checkpoint while limiters keep up. */
int64_t limiter_check_late_ms(const struct weir_config *config);

#endif
