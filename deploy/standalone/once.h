/* `weir run --once`: reads the sources to their end, judges, writes, leaves. */
#ifndef DEPLOY_STANDALONE_ONCE_H
#define DEPLOY_STANDALONE_ONCE_H

#include "common/log.h"
#include "deploy/standalone/progress.h"
#include "deploy/standalone/run_options.h"

/** Gives the exit code; what went wrong was logged. */
int run_once(const struct run_options *options, const struct weir_log *log, struct progress *progress);

#endif
