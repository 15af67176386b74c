/* SPDX-License-Identifier: Apache-2.0 */
/* Judges again what a log holds: from its first record of a partition to the last that is asked about. */
#ifndef DEPLOY_WEIR_EXPLAIN_REPLAY_LOG_H
#define DEPLOY_WEIR_EXPLAIN_REPLAY_LOG_H

#include "common/store/store.h"
#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"
#include "limiter/lane/policy_registry.h"

struct replay_log {
	struct weir_bus *bus;     /* borrowed; NULL: the log of `directory` is read from beside its owner */
	const char *directory;    /* borrowed */
	struct weir_store *store; /* borrowed */
	struct policy_registry *registry;
	uint32_t partitions;
	int64_t lateness_ms;
	const struct patience *patience; /* borrowed */
};

/** Answers the questions. @return WEIR_OK, also where something is missing: the questions say it; WEIR_IO, also where patience ended */
WEIR_MUST_USE enum weir_status replay_log(const struct replay_log *log, struct question *questions, size_t count,
                                          struct weir_error *error);

#endif
