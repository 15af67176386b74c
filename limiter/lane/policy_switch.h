/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change of policy publishes, so that gateways hold the blocks of zones
 * in enforce mode and no others: a zone that is removed or goes into shadow mode
 * is lifted, and when one leaves shadow mode the blocks that operators gave in it
 * are published. Buckets drop what limits decided in shadow mode (bucket_layout.h) and publish at
 * the next breach.
 */
#ifndef LIMITER_POLICY_SWITCH_H
#define LIMITER_POLICY_SWITCH_H

#include "common/policy/policy.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/shard.h"

struct policy_switch {
	const struct weir_zone **lifted; /* of the policy before, in its order */
	uint32_t lifted_count;
	struct shard_override_decision *blocks; /* by the order of zones, then the bytes of keys */
	uint32_t block_count;
};

/**
 * Finds what a switch publishes. What is there is taken out first; zero-initialised at first.
 *
 * @param overrides    what holds behind the switch; the blocks borrow keys and words until the next command
 * @param at_ms     when the policy was sent
 * @param clock_ms  the log's clock: what has ended by it is published no more
 */
void policy_switch_find(struct policy_switch *change, const struct weir_policy *before, const struct weir_policy *after,
                        const struct overrides *overrides, int64_t at_ms, int64_t clock_ms);
void policy_switch_deinit(struct policy_switch *change);

#endif
