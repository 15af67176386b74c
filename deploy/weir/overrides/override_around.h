/* SPDX-License-Identifier: Apache-2.0 */
/* What a command about one key leaves in force: gateways that hold a network keep all of its members out. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_AROUND_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_AROUND_H

#include "deploy/weir/backend/backend.h"
#include "limiter/overrides/override_command.h"

/**
 * Finds the blocked networks around the key of a command that was appended.
 *
 * @param partition  one that it was appended to
 * @param networks   gets their texts, with commas between them, the narrowest first
 * @return WEIR_OK; WEIR_INVALID, WEIR_IO: it cannot be known, or not within seconds
 */
WEIR_MUST_USE enum weir_status override_around(const struct backend *backend, const struct override_command *command,
                                               uint32_t zone_id, uint32_t partition, struct weir_text *networks,
                                               struct weir_error *error);

#endif
