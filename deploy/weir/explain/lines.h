/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an event back to its line. A position says where the line ends, in a file that may have got another name since
 * and been compressed. So a line is taken from a file only if, read by the source's own format, it gives the event's key
 * and time: then it is that line, whatever the file is called.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_LINES_H
#define DEPLOY_WEIR_EXPLAIN_LINES_H

#include "collector/source/source_memory.h"
#include "common/config/config.h"
#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"
#include "limiter/lane/policy_registry.h"

struct lines_options {
	const struct weir_config *config;   /* borrowed: its sources; NULL: no line is found */
	const struct source_memory *memory; /* borrowed: which stream has which id; NULL: unknown */
	struct policy_registry *registry;   /* borrowed: the zones' keys, by the policy that a question was judged under */
	const struct patience *patience;    /* borrowed: where it ends, no more is found */
};

/** Finds the lines of all events. What was not found stays LINE_SOUGHT. */
void lines_find_all(const struct lines_options *options, struct question *questions, size_t count);

#endif
