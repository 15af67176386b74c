/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weir policy` share. */
#ifndef DEPLOY_WEIR_POLICY_INTERNAL_H
#define DEPLOY_WEIR_POLICY_INTERNAL_H

#include "deploy/weir/backend/backend.h"

struct policy_command {
	const char *action, *config_path, *state_path, *by;
	uint64_t version; /* 0: the newest */
	bool json, dry_run;
	const char **required; /* owned: files of tests that the policy must pass */
	size_t required_count;
	struct backend backend;
	struct weir_policy_history history;
	struct weir_text text;
};

/** policy_show.c: prints one version, or a line for each. */
WEIR_MUST_USE enum weir_status policy_show(struct policy_command *command, struct weir_error *error);
WEIR_MUST_USE enum weir_status policy_show_history(struct policy_command *command, struct weir_error *error);

/** policy_show.c: the version that was asked for, else the newest. NULL: there is none, the words say so */
struct weir_policy *policy_find(const struct policy_command *command, struct weir_error *error);

#endif
