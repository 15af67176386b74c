/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that only sleeps and wakes up: where it wakes up seconds late, the
 * process did not run, and the log says so. What it then reports of brokers and
 * stores that were silent has that cause. It also looks whether the state directory is still there.
 */
#ifndef WEIR_COMMON_HEARTBEAT_H
#define WEIR_COMMON_HEARTBEAT_H

#include "common/files/durable_file.h"
#include "common/log/log.h"

struct weir_heartbeat;

/**
 * @param log        borrowed
 * @param directory  of the state, which the lock holds; borrowed, as is the lock; NULL: there is none to look at
 * @return NULL: there is no thread for it; nothing is told then
 */
struct weir_heartbeat *weir_heartbeat_start(const struct weir_log *log, const char *directory,
                                            const struct weir_directory_lock *lock);
/** NULL is fine. */
void weir_heartbeat_stop(struct weir_heartbeat *heartbeat);

#endif
