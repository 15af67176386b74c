/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check of a daemon: what a start would meet of its servers, within seconds, in words on standard output. It only
 * looks: a topic, a database or a table that is missing is named, and made by the start itself.
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
