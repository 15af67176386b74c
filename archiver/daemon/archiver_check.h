/* SPDX-License-Identifier: Apache-2.0 */
/* What archivers have stored, held against the topics: for --check, and for `weir doctor`. It only looks. */
#ifndef ARCHIVER_DAEMON_ARCHIVER_CHECK_H
#define ARCHIVER_DAEMON_ARCHIVER_CHECK_H

#include "common/diagnosis/server_checks.h"

/**
 * Whether each partition's archive can go on where it stands.
 *
 * @param good       by topic: it can be asked about
 * @param oldest_ms  set: how long the oldest message that is not archived waits; -1: none does, or it is not known
 */
void archiver_check_state(const struct weir_check *check, struct weir_bus *bus, const bool good[WEIR_TOPIC_COUNT],
                          struct weir_store *store, int64_t *oldest_ms);

#endif
