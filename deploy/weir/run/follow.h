/* SPDX-License-Identifier: Apache-2.0 */
/* `weir run` without --once: follows its sources until it is told to stop, or no source will give more. */
#ifndef DEPLOY_WEIR_RUN_FOLLOW_H
#define DEPLOY_WEIR_RUN_FOLLOW_H

#include "common/log/log.h"
#include "deploy/weir/run/run_options.h"
#include "deploy/weir/terminal/progress.h"

/** Gives the exit code; what went wrong was logged. */
enum weir_exit run_follow(struct run_options *options, const struct weir_log *log, struct progress *progress);

#endif
