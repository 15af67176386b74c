/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies on the events of a log, as limiters read them: the local log of a state directory, or the topic of a
 * cluster. Nothing is read or matched again, so it costs what judging costs.
 */
#ifndef DEPLOY_WEIR_BACKTEST_LOG_JUDGE_H
#define DEPLOY_WEIR_BACKTEST_LOG_JUDGE_H

#include "common/log/log.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/backtest/policies.h"
#include "deploy/weir/run/once_watch.h"
#include "deploy/weir/terminal/progress.h"
#include "limiter/lane/policy_registry.h"

/* Where a stretch of a log begins or ends. */
struct log_end {
	enum { LOG_END_OPEN, LOG_END_OFFSET, LOG_END_TIME } kind;
	int64_t at; /* an offset of every partition, or Unix ms by the log's own clock */
};

/** Reads "FROM..TO", where each is an offset, a time, or nothing. @return NULL; else what is wrong, in words */
const char *log_range_read(const char *text, int64_t now_ms, struct log_end range[2]);

struct log_judge_options {
	const struct backtest_policies *policies; /* borrowed, as are all */
	struct weir_policy *joined;
	const char *config_path; /* of the cluster; NULL: with state_path */
	const char *state_path;  /* NULL: a cluster */
	struct log_end range[2];
	int64_t memory_bytes; /* of the buckets of all */
	uint32_t threads;
	const struct once_watch *watch; /* its ended() is not called */
	const struct weir_log *log;
	struct progress *progress;
};

struct log_judge;

/**
 * Opens the log, and refuses what its frames do not carry.
 *
 * @param judge  returned, on failure too: log_judge_free()
 * @return WEIR_OK; WEIR_INVALID: zones need what frames lack, or there is no such log; WEIR_IO
 */
WEIR_MUST_USE enum weir_status log_judge_new(const struct log_judge_options *options, struct log_judge **judge,
                                             struct weir_error *error);
void log_judge_free(struct log_judge *judge);

uint32_t log_judge_partitions(const struct log_judge *judge);

struct log_judged {
	uint64_t events;
	bool damaged;  /* something could not be read, and was told */
	bool finished; /* else a signal ended it */
};

/** Reads and judges. @return WEIR_OK; WEIR_FULL: memory_bytes do not suffice; WEIR_IO */
WEIR_MUST_USE enum weir_status log_judge_run(struct log_judge *judge, struct log_judged *judged,
                                             struct weir_error *error);

#endif
