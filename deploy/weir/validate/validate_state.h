/* SPDX-License-Identifier: Apache-2.0 */
/* What the state directory, or the cluster, makes of a configuration: the ids of its zones, and what a start would refuse. */
#ifndef DEPLOY_WEIR_VALIDATE_VALIDATE_STATE_H
#define DEPLOY_WEIR_VALIDATE_VALIDATE_STATE_H

#include "deploy/weir/validate/validate_report.h"

/**
 * Gives the zones the ids that they will have, and checks the configuration against every earlier policy.
 *
 * @param config      its policy's ids are set
 * @param state_path  --state; NULL: that of the machine, if there is one
 * @return WEIR_OK, with a warning in the report where nobody could be asked; WEIR_INVALID: a start would be refused
 */
WEIR_MUST_USE enum weir_status validate_state(struct weir_config *config, const char *state_path,
                                              struct validate_report *report, struct weir_error *error);

#endif
