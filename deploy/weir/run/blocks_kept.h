/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps every block that is in force in the local log of decisions: its reader
 * "blocks" lets the log trim only what is over. So whoever reads the topic from
 * its start, such as a gateway's list or `weir list`, learns of all of them.
 *
 * An operator's block of more than BLOCKS_REMIND_MS is published again by the
 * limiter, so it holds back nothing for longer than twice that.
 */
#ifndef DEPLOY_WEIR_RUN_BLOCKS_KEPT_H
#define DEPLOY_WEIR_RUN_BLOCKS_KEPT_H

#include "common/bus/bus.h"
#include "common/log/log.h"

#define BLOCKS_REMIND_MS INT64_C(86400000)

struct blocks_kept;

/**
 * Begins to read, on a thread of its own.
 *
 * @param bus  borrowed, as the log, until blocks_kept_stop()
 */
WEIR_MUST_USE enum weir_status blocks_kept_start(struct weir_bus *bus, const struct weir_log *log,
                                                 struct blocks_kept **kept, struct weir_error *error);
/** NULL is fine. */
void blocks_kept_stop(struct blocks_kept *kept);

#endif
