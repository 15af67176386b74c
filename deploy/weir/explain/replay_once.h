/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges again what a `weir run --once` judged. It keeps no log: its input is its log. So the sources are read once
 * more, in the same order, and each event gets the number that it had.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_REPLAY_ONCE_H
#define DEPLOY_WEIR_EXPLAIN_REPLAY_ONCE_H

#include "collector/source/source_memory.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"
#include "limiter/lane/policy_registry.h"

struct replay_once {
	const struct weir_config *config; /* borrowed: the sources */
	struct policy_registry *registry; /* borrowed */
	struct weir_exempt_lists *lists;  /* borrowed: of their "exempt" */
	uint32_t partitions;
	struct source_memory *memory;    /* borrowed, empty: learns which file each position is of */
	const struct patience *patience; /* borrowed */
};

/** Answers the questions. @return WEIR_OK; WEIR_INVALID: the sources cannot be read again; WEIR_IO */
WEIR_MUST_USE enum weir_status replay_once(const struct replay_once *once, struct question *questions, size_t count,
                                           struct weir_error *error);

#endif
