/* SPDX-License-Identifier: Apache-2.0 */
/* From command line values to a zone's key, exactly as a collector makes it from a record. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_KEY_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_KEY_H

#include "deploy/weir/overrides/override_options.h"

/**
 * Finds the zone and joins the key.
 *
 * @param command  its kind is set; zone, key and scope are filled in
 * @return WEIR_INVALID: the words say which zones there are and what their keys are made of
 */
WEIR_MUST_USE enum weir_status override_key_make(const struct override_options *options,
                                                 const struct weir_policy *policy, struct override_command *command,
                                                 struct weir_error *error);

/** The joined key of a record of the zone with these values, of which there are as many as it has fields. */
WEIR_MUST_USE enum weir_status override_key_join(const struct override_options *options, const struct weir_zone *zone,
                                                 struct override_command *command, struct weir_error *error);

/** Whether so many values can be a key of the zone. */
bool override_key_fits(const struct override_options *options, const struct weir_zone *zone);

/** Whether one value was given, and meant as a network of addresses. */
bool override_key_is_network(const struct override_options *options);

/** Of a key that is there already: whether it is one of the zone's, or a network whose members are meant. */
void override_key_find_scope(struct override_command *command, const struct weir_zone *zone);

/** A joined key from the digits of --key-hex: fills in the command's key. @return WEIR_INVALID: it is none */
WEIR_MUST_USE enum weir_status override_key_hex(const char *text, struct override_command *command,
                                                struct weir_error *error);

/** The first value that is a host's name where the zone counts addresses; NULL: none is. Borrowed from the options */
const char *override_key_name(const struct override_options *options, const struct weir_zone *zone);

#endif
