/* SPDX-License-Identifier: Apache-2.0 */
/* `weir run --once`: reads the sources to their end, judges, writes, leaves. */
#ifndef DEPLOY_WEIR_RUN_ONCE_H
#define DEPLOY_WEIR_RUN_ONCE_H

#include "common/log/log.h"
#include "deploy/weir/run/run_options.h"
#include "deploy/weir/terminal/progress.h"

/** Gives the exit code; what went wrong was logged. */
enum weir_exit run_once(const struct run_options *options, const struct weir_log *log, struct progress *progress);

#endif
