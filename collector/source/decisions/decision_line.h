/* SPDX-License-Identifier: Apache-2.0 */
/* A published decision, as a line of the format `json`. */
#ifndef COLLECTOR_SOURCE_DECISION_LINE_H
#define COLLECTOR_SOURCE_DECISION_LINE_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/json/json.h"
#include "common/policy/policy.h"
#include "common/record/record.h"

/**
 * Appends the line, with its newline.
 *
 * The values of the key come from the message's key, which has their bytes as they are. Their names come from the
 * policy; a zone that it does not have gives no names.
 *
 * @param policy    in force at the collector
 * @param position  set: it grows with the decision's version, and is the same however often the decision is published
 * @return whether it is a decision, and one that makes an event; false: nothing was appended
 */
bool decision_line_put(struct weir_text *line, const struct weir_message *message, const struct weir_policy *policy,
                       uint64_t *position);

/**
 * How the format `json` reads the line: where a field stands whose name is a JSON pointer.
 *
 * @return its "fields": json_decref()
 */
json_t *decision_line_fields(const struct weir_field_table *fields);

#endif
