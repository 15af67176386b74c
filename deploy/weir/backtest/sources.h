/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines the policies are tried on: those of given logs, or those of the configurations' own sources. */
#ifndef DEPLOY_WEIR_BACKTEST_SOURCES_H
#define DEPLOY_WEIR_BACKTEST_SOURCES_H

#include "deploy/weir/backtest/policies.h"

/**
 * The configuration that a run reads by: the first one that has sources, or without any the first.
 *
 * @param logs    paths, globs, "-"; none: its own sources are read; borrowed
 * @param format  of the logs; NULL: that of the source which a log belongs to
 * @param config  returned: weir_config_free(); its policy is still its own
 * @return WEIR_OK; WEIR_INVALID: what is to be read is not clear, the words say what to give
 */
WEIR_MUST_USE enum weir_status sources_config(const struct backtest_policies *policies, const char *const *logs,
                                              uint32_t log_count, const char *format, struct weir_config **config,
                                              struct weir_error *error);

#endif
