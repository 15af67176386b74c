/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of each policy, in a file of its own: the lines that `weir run --once` writes by that policy alone, those
 * of zones in shadow mode among them: who tries a policy asks for both.
 */
#ifndef DEPLOY_WEIR_BACKTEST_DECISION_FILES_H
#define DEPLOY_WEIR_BACKTEST_DECISION_FILES_H

#include "common/files/durable_file.h"
#include "common/log/log.h"
#include "deploy/weir/backtest/policies.h"
#include "deploy/weir/run/once_watch.h"
#include "deploy/weir/terminal/progress.h"

struct decision_files;

struct decision_files_options {
	const struct backtest_policies *policies; /* borrowed, as are all */
	const char *directory;                    /* made where it is not there; a file is NAME.jsonl */
	const struct weir_log *log;
	struct progress *progress;
	uint32_t partitions, threads;
};

/** The paths of a policy's file: its own, and the one of before it is whole. @param policy  its name */
WEIR_MUST_USE enum weir_status decision_files_path(const char *directory, const char *policy,
                                                   char path[WEIR_PATH_BYTES], char unfinished[WEIR_PATH_BYTES],
                                                   struct weir_error *error);

/** Begins files beside those of before, which stay until they are finished. @param files  returned, on failure too */
WEIR_MUST_USE enum weir_status decision_files_new(const struct decision_files_options *options,
                                                  struct decision_files **files, struct weir_error *error);
/** What was not finished is removed. NULL is fine. */
void decision_files_free(struct decision_files *files);

/** As once_watch.judged. */
void decision_files_add(struct decision_files *files, unsigned place, uint32_t worker, const struct lane *lane,
                        const struct lane_result *result);
/** As once_watch.written. */
WEIR_MUST_USE enum weir_status decision_files_write(struct decision_files *files, unsigned place,
                                                    struct weir_error *error);
/** All is written: the files get their names. */
WEIR_MUST_USE enum weir_status decision_files_finish(struct decision_files *files, struct weir_error *error);

#endif
