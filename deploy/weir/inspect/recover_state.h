/* SPDX-License-Identifier: Apache-2.0 */
/* `weir recover --drop-damaged`: lets a partition go on whose state in the store cannot be read. */
#ifndef DEPLOY_WEIR_INSPECT_RECOVER_STATE_H
#define DEPLOY_WEIR_INSPECT_RECOVER_STATE_H

#include "deploy/weir/backend/backend.h"
#include "limiter/lane/policy_registry.h"

/**
 * Says on standard output what of a partition's state cannot be read, and what goes with it; with `yes`, that part is
 * dropped, and the rest is kept.
 *
 * @param damaged  set where something cannot be read
 * @return WEIR_OK; WEIR_IO, also where somebody stored meanwhile, or where the store has lost the policy that it was saved
 *         under, which is no damage; WEIR_NEWER: a newer weir wrote it, which is none either
 */
WEIR_MUST_USE enum weir_status recover_state(const struct backend *backend, struct policy_registry *registry,
                                             uint32_t partition, bool yes, bool *damaged, struct weir_error *error);

#endif
