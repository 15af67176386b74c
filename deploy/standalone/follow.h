/* `weir run` without --once: follows its sources until it is told to stop, or no source will give more. */
#ifndef DEPLOY_STANDALONE_FOLLOW_H
#define DEPLOY_STANDALONE_FOLLOW_H

#include "common/log.h"
#include "deploy/standalone/progress.h"
#include "deploy/standalone/run_options.h"

/** Gives the exit code; what went wrong was logged. */
int run_follow(struct run_options *options, const struct weir_log *log, struct progress *progress);

#endif
