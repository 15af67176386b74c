/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The joined key of a check: such that it meets the bucket that log lines of the same client meet.
 *
 * In a zone with one key field a caller gives the value as a log line has it, whatever bytes are in it: `|` and `\` get their
 * `\` here. A key of several fields is given joined, with `|` between the values and `\` before a `\` and a `|` inside of one.
 * An address of `ip`, or of a field that the zone groups, may be written in any way: it gets its one form, or becomes its
 * network. So do a `path`, a `host` and a `method`: they are counted as they are served. What would be longer than
 * WEIR_KEY_MAX_BYTES is shortened as a log line's values are (common/matcher/key_template.h).
 */
#ifndef LIMITER_CHECK_KEY_H
#define LIMITER_CHECK_KEY_H

#include "common/base/text.h"
#include "common/policy/policy.h"

enum check_key_form {
	CHECK_KEY_GIVEN,  /* by a caller */
	CHECK_KEY_JOINED, /* by another limiter, which has made it of what its caller gave: nothing is escaped again */
};

/**
 * @param room    WEIR_KEY_MAX_BYTES; NULL: none, then a key that has to be written anew is WEIR_FULL
 * @param joined  points into `given`, or into room
 * @return WEIR_OK; WEIR_FULL: there is no room; WEIR_INVALID: it is no key of the zone, or the zone takes no checks:
 *         error says what to write, or to change
 */
WEIR_MUST_USE enum weir_status check_key(const struct weir_zone *zone, struct weir_span given, enum check_key_form form,
                                         char *room, struct weir_span *joined, struct weir_error *error);

/**
 * The values that a caller gives, as a log line has them.
 *
 * @param room    keeps those that had escapes
 * @param values  set, as many as the zone has key fields
 * @return false: it is no key of the zone
 */
WEIR_MUST_USE bool check_key_values(const struct weir_zone *zone, struct weir_span given, struct weir_text *room,
                                    struct weir_span values[WEIR_ZONE_KEY_MAX]);

/** What a caller gives for a joined key of a zone with one key field. @param room  WEIR_KEY_MAX_BYTES @return room, or joined */
struct weir_span check_key_value(struct weir_span joined, char *room);

#endif
