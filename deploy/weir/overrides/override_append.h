/* SPDX-License-Identifier: Apache-2.0 */
/* Appends a command to the log: to its key's partition, or for a prefix to all; returns once it is durable. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_APPEND_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_APPEND_H

#include "common/bus/bus.h"
#include "common/json/json_writer.h"
#include "limiter/overrides/override_command.h"

struct override_place {
	uint32_t partition;
	uint64_t offset;
};

/**
 * Appends a command and waits for every acknowledgement.
 *
 * @param policy   in force; the command is checked against it
 * @param wait_ms  how long the bus may take
 * @param places   room for the bus's partitions; *count of them are set
 * @return WEIR_OK; WEIR_INVALID: the policy has no such zone, or its key is another, the words say which; WEIR_IO: not
 *         acknowledged in that time: it may be in the log or not, and giving it again does no harm
 */
WEIR_MUST_USE enum weir_status override_append(struct weir_bus *bus, const struct weir_policy *policy,
                                               const struct override_command *command, int64_t now_ms, int64_t wait_ms,
                                               struct override_place *places, uint32_t *count,
                                               struct weir_error *error);

/** The member "placed": where a command has gone. */
void override_places_json(struct weir_json_writer *json, const struct override_place *places, uint32_t count);

#endif
