/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies that the store has lost, as one that was restored from an older copy has: put back from the policy topic,
 * under the numbers that they have there. A number names one policy for ever: partitions skip one that they have, and
 * buckets are stored by what each number meant.
 */
#ifndef WEIR_COMMON_POLICY_RECALL_H
#define WEIR_COMMON_POLICY_RECALL_H

#include "common/bus/bus.h"
#include "common/store/store.h"

struct weir_policies_recalled {
	uint64_t first, last; /* that were put back; 0: none was missing */
};

/** The newest policy of a store, at least `from`; 0: it has none from there on. */
WEIR_MUST_USE enum weir_status weir_policy_stored_newest(struct weir_store *store, uint64_t from, uint64_t *version,
                                                         struct weir_error *error);

/**
 * Puts back what the policy topic has above the store's newest policy.
 *
 * A record that this program cannot read is passed over: a stranger may have written it. Whether checkpoints name a policy
 * that is missing then is for weir_policy_check_checkpoints().
 *
 * @return WEIR_OK: the store has all that can be read of the topic; WEIR_INVALID: the topic lacks one between, or the
 *         store has been given another under a number; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_policy_recall(struct weir_store *store, struct weir_bus *bus,
                                                  struct weir_policies_recalled *recalled, struct weir_error *error);

/**
 * Whether the store has the policies that its checkpoints name: without them no next policy may be numbered.
 *
 * @return WEIR_OK; WEIR_INVALID: it lacks one, the words say of which partition; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_policy_check_checkpoints(struct weir_store *store, uint32_t partitions,
                                                             struct weir_error *error);

#endif
