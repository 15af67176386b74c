/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that `weir lift --all` lifts: those that `weir list` lists. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_TARGETS_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_TARGETS_H

#include "common/base/text.h"
#include "deploy/weir/inspect/unjudged.h"
#include "deploy/weir/overrides/override_options.h"

struct override_targets {
	struct override_target *all; /* owned */
	size_t count;
	size_t unnamed;  /* that are blocked too, and whose keys nobody named */
	uint64_t unread; /* places where nobody knows who is blocked */
	struct unjudged unjudged;
	struct weir_text keys; /* what the targets point into */
};

/** Reads who is blocked now. @param targets  returned, on failure too: override_targets_deinit() */
WEIR_MUST_USE enum weir_status override_targets_read(const struct override_options *options,
                                                     struct override_targets *targets, struct weir_error *error);
void override_targets_deinit(struct override_targets *targets);

/** Puts zone and key of one into a command. @return false: the policy has the zone no more */
bool override_targets_take(const struct override_targets *targets, size_t place, const struct weir_policy *policy,
                           struct override_command *command);

#endif
