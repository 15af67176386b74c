/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The joined key of a check: such that it meets the bucket that log lines of the same client meet.
 *
 * A caller writes a key as weir prints it in decisions: the values of the zone's key fields with `|` between them, `\` and
 * `|` inside of one behind a `\`. An address of `ip`, or of a field that the zone groups, may be written in any way: it gets
 * its one form, or becomes its network.
 */
#ifndef LIMITER_CHECK_KEY_H
#define LIMITER_CHECK_KEY_H

#include "common/policy/policy.h"

/**
 * @param room    WEIR_KEY_MAX_BYTES; NULL: none, then a key that has to be written anew is WEIR_FULL
 * @param joined  points into `given`, or into room
 * @return WEIR_OK; WEIR_FULL: there is no room; WEIR_INVALID: it is no key of the zone, or the zone takes no checks:
 *         error says what to write, or to change
 */
WEIR_MUST_USE enum weir_status check_key(const struct weir_zone *zone, struct weir_span given, char *room,
                                         struct weir_span *joined, struct weir_error *error);

#endif
