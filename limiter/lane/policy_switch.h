/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy switch publishes, so that gateways have the blocks of zones in
 * enforce mode and no others. A zone that is removed or goes into shadow mode is
 * lifted. When one leaves shadow mode, the operators' blocks in it are published;
 * its buckets drop what limits decided in shadow mode (bucket_layout.h), and
 * publish at the next breach.
 */
#ifndef LIMITER_POLICY_SWITCH_H
#define LIMITER_POLICY_SWITCH_H

#include "common/policy/policy.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/shard.h"

struct policy_switch {
	const struct weir_zone **lifted; /* zones of the previous policy, in its order */
	uint32_t lifted_count;
	struct shard_override_decision *blocks; /* by the order of zones, then the bytes of keys */
	uint32_t block_count;
};

/**
 * Finds what a switch publishes, and replaces the contents of `change`, which is zero-initialised at first.
 *
 * @param overrides  those after the switch: a block that has ended by their clock is not published; the blocks borrow
 *                   keys and strings until the next command
 * @param at_ms      when the policy was sent
 */
void policy_switch_find(struct policy_switch *change, const struct weir_policy *before, const struct weir_policy *after,
                        const struct overrides *overrides, int64_t at_ms);
void policy_switch_deinit(struct policy_switch *change);

#endif
