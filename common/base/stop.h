/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as flags, asked for by loops: the only state that is not passed down, as signals have no argument. */
#ifndef WEIR_COMMON_STOP_H
#define WEIR_COMMON_STOP_H

#include "common/base/exit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** SIGINT and SIGTERM set the stop flag (a second one ends the process), SIGHUP the reload flag; SIGPIPE is ignored. */
void weir_stop_install(void);
const _Atomic bool *weir_stop_flag(void);
/** True once for each SIGHUP. */
bool weir_stop_take_reload(void);

/**
 * Ends the process with this code unless it has ended by itself in so long: for the end of libraries, which may hang, once
 * everything is stored.
 */
void weir_stop_within(int64_t ms, enum weir_exit code);

#endif
