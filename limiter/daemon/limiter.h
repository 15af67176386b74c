/* SPDX-License-Identifier: Apache-2.0 */
/* The limiter as a daemon: its steps from start to stop. */
#ifndef LIMITER_LIMITER_H
#define LIMITER_LIMITER_H

#include "common/daemon/daemon.h"

extern const struct weir_daemon_role limiter_role;

/** What weir-limiter takes. */
extern const struct weir_command_line limiter_command_line;

#endif
