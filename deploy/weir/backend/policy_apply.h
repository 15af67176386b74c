/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes policies to the log: numbers them, and appends a changed one to every
 * partition.
 */
#ifndef DEPLOY_WEIR_BACKEND_POLICY_APPLY_H
#define DEPLOY_WEIR_BACKEND_POLICY_APPLY_H

#include "common/bus/bus.h"
#include "common/store/store.h"
#include "limiter/lane/policy_registry.h"

/** Reads every policy of the store into the registry. */
WEIR_MUST_USE enum weir_status policy_log_load(struct weir_store *store, struct policy_registry *registry,
                                               struct weir_error *error);

/**
 * Puts a policy in force: numbers it if its zones differ from the newest in the registry, adds it to store and registry, and,
 * where there is a bus, appends it to every partition and to the policy topic. One that was numbered before but not
 * appended everywhere is appended again: partitions that have it pass it over. Zones that were armed stay so, as
 * weir_policy_stay_armed() says.
 *
 * @param bus     NULL: --once, where lanes begin with it
 * @param by      its author; NULL: whoever has logged in
 * @param now_ms  the sending time of the records
 * @return WEIR_OK with *version; else *version stays as it was. WEIR_INVALID: it cannot follow the one in force, the
 *         words say why
 */
WEIR_MUST_USE enum weir_status policy_log_apply(struct weir_store *store, struct policy_registry *registry,
                                                struct weir_bus *bus, struct weir_policy *policy, const char *by,
                                                int64_t now_ms, uint64_t *version, struct weir_error *error);

#endif
