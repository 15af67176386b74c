/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check of a daemon: reports within seconds, on standard output, what a start would find on its servers. It changes
 * nothing: a missing topic, database or table is reported, and the start itself creates it.
 */
#ifndef WEIR_COMMON_DAEMON_CHECK_H
#define WEIR_COMMON_DAEMON_CHECK_H

#include "common/bus/bus.h"
#include "common/daemon/daemon.h"
#include "common/store/store.h"

/** @param bus  returned; it cannot be used for the topics that are said to be missing */
WEIR_MUST_USE enum weir_status weir_daemon_check_bus(const struct weir_daemon *daemon, struct weir_bus **bus,
                                                     struct weir_error *error);

/** @param store  returned, the caller closes; NULL: a start would make it, which is said; else nothing is said yet */
WEIR_MUST_USE enum weir_status weir_daemon_check_store(const struct weir_daemon *daemon, struct weir_store **store,
                                                       struct weir_error *error);

#endif
