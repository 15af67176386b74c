/* SPDX-License-Identifier: Apache-2.0 */
/* The author of a command: the name that is stored with it, and the command's own number. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_AUTHOR_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_AUTHOR_H

#include "limiter/overrides/override_command.h"

/**
 * Signs a command.
 *
 * @param by  NULL: the login name
 * @return WEIR_OK; WEIR_IO: no random bytes
 */
WEIR_MUST_USE enum weir_status override_author(const char *by, struct override_command *command,
                                               struct weir_error *error);

#endif
