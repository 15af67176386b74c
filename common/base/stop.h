/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as flags, asked for by loops: the only state that is not passed down, as signals have no argument. */
#ifndef WEIR_COMMON_STOP_H
#define WEIR_COMMON_STOP_H

#include "common/base/exit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * For the start of a program, before anything is made that an end must put away: SIGINT and SIGTERM end the process at
 * once with this code, also as the first process of a container, which a signal without a handler does not reach. A
 * SIGHUP is remembered until weir_stop_take_reload; SIGPIPE is ignored.
 */
void weir_stop_begin(enum weir_exit code);

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
