/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy_*.c share: the parts of a zone that have a file of their own. */
#ifndef WEIR_COMMON_POLICY_INTERNAL_H
#define WEIR_COMMON_POLICY_INTERNAL_H

#include "common/policy/policy.h"

/**
 * policy_exempt.c: a zone's "exempt", and the one of all zones, beside one another.
 *
 * @param shared  NULL: there is none
 * @param record  whether weir_policy_text() wrote it, perhaps an older one
 */
WEIR_MUST_USE enum weir_status weir_exempt_parse(const struct weir_json *own, const struct weir_json *shared,
                                                 bool record, struct weir_zone *zone, struct weir_error *error);

/** What the "exempt" of a zone may be (common/json/json_shape.h). */
json_t *weir_exempt_shape(void);

/** policy_circle.c: refuses zones that count their own decisions, directly or through others. */
WEIR_MUST_USE enum weir_status weir_policy_check_circles(const struct weir_json *zones,
                                                         const struct weir_policy *policy, struct weir_error *error);

/** policy_zone.c: zones without the checks that are of a configuration alone. A record was checked when it was written. */
WEIR_MUST_USE enum weir_status weir_policy_read(const struct weir_json *zones, const struct weir_json *exempt,
                                                bool record, struct weir_policy **policy, struct weir_error *error);

/** policy_history.c: whether a policy's text fits into a record, and gives that policy again. */
WEIR_MUST_USE enum weir_status weir_policy_check_record(const struct weir_policy *policy, struct weir_error *error);

/** policy_arming.c: a zone's "mode", a word or an object. */
WEIR_MUST_USE enum weir_status weir_mode_parse(const struct weir_json *at, struct weir_zone *zone,
                                               struct weir_error *error);
json_t *weir_mode_shape(void);
json_t *weir_mode_json(const struct weir_zone *zone);
/** Its words in the zone's sentence. */
void weir_mode_describe(struct weir_text *text, const struct weir_zone *zone);

/** policy_text.c: the canonical text; returned, the caller frees. */
char *weir_policy_text(const struct weir_policy *policy);

#endif
