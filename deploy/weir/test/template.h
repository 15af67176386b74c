/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One text for many records: {n} is the number of the record, from 1 on; {time} its time as ISO 8601, {time_s} and
 * {time_ms} as Unix time, {time:FORM} as strftime() writes it in UTC. Any other brace stands for itself.
 */
#ifndef DEPLOY_WEIR_TEST_TEMPLATE_H
#define DEPLOY_WEIR_TEST_TEMPLATE_H

#include "common/base/text.h"

/** Appends the text of one record. @param time_ms  -1: it has none, and what would be its time stays as it is */
void template_put(struct weir_text *text, struct weir_span pattern, uint64_t number, int64_t time_ms);

/** Whether a pattern has a place for the time. */
bool template_has_time(struct weir_span pattern);

#endif
