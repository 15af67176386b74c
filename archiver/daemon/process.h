/* SPDX-License-Identifier: Apache-2.0 */
/* The archiver as a daemon: its steps from start to stop. */
#ifndef ARCHIVER_PROCESS_H
#define ARCHIVER_PROCESS_H

#include "common/daemon/daemon.h"

extern const struct weir_daemon_role archiver_role;

/** What weir-archiver takes. */
extern const struct weir_command_line archiver_command_line;

#endif
