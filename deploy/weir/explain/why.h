/* SPDX-License-Identifier: Apache-2.0 */
/* Explains single decisions within a `weir run`, for its API. */
#ifndef DEPLOY_WEIR_EXPLAIN_WHY_H
#define DEPLOY_WEIR_EXPLAIN_WHY_H

#include "common/base/text.h"

struct why;

/** @param state_path  of this process; borrowed. @param partitions  of its log */
struct why *why_new(const char *state_path, uint32_t partitions);
void why_free(struct why *why);

/**
 * Appends the JSON object of `weir explain --json`.
 *
 * @param why  a struct why
 * @param id   of a decision
 * @return WEIR_OK, also where something is missing, as the object says; WEIR_INVALID: it is no id of a decision here;
 *         WEIR_IO: it cannot be told now, the words say why: it takes longer than 10 seconds, this process ends, another is
 *         being explained
 * @thread any
 */
WEIR_MUST_USE enum weir_status why_answer(void *why, const char *id, struct weir_text *json, struct weir_error *error);

#endif
