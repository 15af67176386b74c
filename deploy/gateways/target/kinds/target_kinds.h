/* SPDX-License-Identifier: Apache-2.0 */
/* The list of target kinds: a new one is a line in target_kinds.c. */
#ifndef DEPLOY_GATEWAYS_TARGET_KINDS_TARGET_KINDS_H
#define DEPLOY_GATEWAYS_TARGET_KINDS_TARGET_KINDS_H

#include "deploy/gateways/target/target.h"

/**
 * Makes a target; nothing is connected or written yet.
 *
 * @param name  "redis://…", "file:PATH", …
 * @return WEIR_OK; WEIR_INVALID: the words say what would be accepted
 */
WEIR_MUST_USE enum weir_status target_open(const char *name, const struct target_options *options,
                                           struct target **target, struct weir_error *error);

#endif
