/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster asks of a policy beyond what the loader does. */
#ifndef DEPLOY_WEIR_POLICY_POLICY_CHECK_H
#define DEPLOY_WEIR_POLICY_POLICY_CHECK_H

#include "common/policy/policy.h"

/** Lists that stay files are read by every collector, wherever it runs: it has to find them. @return WEIR_INVALID: not so */
WEIR_MUST_USE enum weir_status policy_check_cluster(const struct weir_policy *policy, struct weir_error *error);

#endif
