/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy that the log has named, and what is compiled from them.
 *
 * A bucket stores under which version of its zone's limits it was written, so a
 * compiled policy needs the policies before it. It lives as long as the registry:
 * shards and decisions point into it.
 */
#ifndef LIMITER_POLICY_REGISTRY_H
#define LIMITER_POLICY_REGISTRY_H

#include "common/policy/policy.h"
#include "limiter/bucket/compiled_policy.h"

struct policy_registry;

struct policy_registry *policy_registry_new(void);
void policy_registry_free(struct policy_registry *registry);

/**
 * Adds a policy by its canonical text. Does nothing if it has the version already.
 *
 * @param version  above every one added so far, or one of them
 * @return WEIR_OK; WEIR_INVALID: the text is not a policy, cannot follow the one before it, or a version is missing
 * @thread any
 */
WEIR_MUST_USE enum weir_status policy_registry_add(struct policy_registry *registry, uint64_t version,
                                                   struct weir_span text, struct weir_error *error);

/** The compiled policy of a version; NULL if it was never added. @thread any */
const struct compiled_policy *policy_registry_compiled(struct policy_registry *registry, uint64_t version);

/** The policy of a version; NULL if it was never added. Lives as long as the registry. @thread any */
const struct weir_policy *policy_registry_policy(struct policy_registry *registry, uint64_t version);

/** The highest version, 0 if there is none. @thread any */
uint64_t policy_registry_newest(struct policy_registry *registry);

#endif
