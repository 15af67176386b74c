/* SPDX-License-Identifier: Apache-2.0 */
/* Commands through the control socket: both ends. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_CONTROL_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_CONTROL_H

#include "deploy/weir/overrides/control.h"
#include "deploy/weir/overrides/override_append.h"
#include "limiter/lane/policy_registry.h"

/* What the running process appends with. Both are safe to use from any thread. */
struct override_control {
	struct weir_bus *bus;
	struct policy_registry *registry;
	const struct weir_log *log;
};

/** Of the running process. @param context  a struct override_control */
control_answer override_control_answer;

/** Of the command: as override_append(), by way of the process that holds the directory. */
WEIR_MUST_USE enum weir_status override_control_append(const char *directory, const struct override_command *command,
                                                       struct override_place *places, uint32_t *count,
                                                       struct weir_error *error);

#endif
