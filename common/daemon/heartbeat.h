/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that only sleeps and wakes up: where it wakes up seconds late, the
 * process did not run, and the log says so. What it then reports of brokers and
 * stores that were silent has that cause.
 */
#ifndef WEIR_COMMON_HEARTBEAT_H
#define WEIR_COMMON_HEARTBEAT_H

#include "common/log/log.h"

struct weir_heartbeat;

/** @param log  borrowed @return NULL: there is no thread for it; nothing is told then */
struct weir_heartbeat *weir_heartbeat_start(const struct weir_log *log);
/** NULL is fine. */
void weir_heartbeat_stop(struct weir_heartbeat *heartbeat);

#endif
