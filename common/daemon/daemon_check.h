/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check of a daemon: reports within seconds, on standard output, what a start would find on its servers, and what
 * would keep it from working there, by the checks of `weir doctor`. It changes nothing: a missing topic, database or
 * table is reported, and the start itself creates it.
 */
#ifndef WEIR_COMMON_DAEMON_CHECK_H
#define WEIR_COMMON_DAEMON_CHECK_H

#include "common/bus/bus.h"
#include "common/daemon/daemon.h"
#include "common/diagnosis/server_checks.h"
#include "common/store/store.h"

/**
 * @param missing  set: the topics that a start would make
 * @param bus      returned; it cannot be used for the topics that are said to be missing
 */
WEIR_MUST_USE enum weir_status weir_daemon_check_bus(const struct weir_daemon *daemon, bool missing[WEIR_TOPIC_COUNT],
                                                     struct weir_bus **bus, struct weir_error *error);

/** @param store  returned, the caller closes; NULL: a start would make it, which is said; else nothing is said yet */
WEIR_MUST_USE enum weir_status weir_daemon_check_store(const struct weir_daemon *daemon, struct weir_store **store,
                                                       struct weir_error *error);

/**
 * Begins the checks that are shared with `weir doctor`.
 *
 * @param findings  zero-initialised; weir_daemon_check_end() ends them
 */
struct weir_check weir_daemon_check_begin(const struct weir_daemon *daemon, struct weir_findings *findings);

/**
 * Prints what was found, the worst first, and the verdict.
 *
 * @param hinders  what is so bad, or worse, keeps the daemon from its work
 * @return WEIR_OK; WEIR_IO: something does
 */
WEIR_MUST_USE enum weir_status weir_daemon_check_end(const struct weir_daemon *daemon, struct weir_check *check,
                                                     enum weir_severity hinders, struct weir_error *error);

#endif
