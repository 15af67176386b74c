/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a policy that arms zones into a cluster's log, as `weir policy apply` does with an operator's. */
#ifndef ARCHIVER_ARMING_POLICY_H
#define ARCHIVER_ARMING_POLICY_H

#include "common/bus/bus.h"
#include "common/policy/policy.h"
#include "common/store/store.h"

/**
 * Puts a policy in force behind one of this version, or finishes it, where it was numbered already.
 *
 * @return WEIR_OK with *version; WEIR_AGAIN: another policy came in between, and stays; WEIR_IO: as far as it came, the
 *         next call finishes it
 */
WEIR_MUST_USE enum weir_status arming_policy_put(struct weir_store *store, struct weir_bus *bus, uint64_t behind,
                                                 struct weir_policy *policy, int64_t wait_ms, uint64_t *version,
                                                 struct weir_error *error);

#endif
