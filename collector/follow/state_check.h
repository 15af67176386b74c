/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a start reads of a collector's state directory: what is remembered of its sources, and the spools of those
 * that are configured. Read by the functions of the start, which change nothing here.
 */
#ifndef COLLECTOR_STATE_CHECK_H
#define COLLECTOR_STATE_CHECK_H

#include "common/config/config.h"

/** Called for each at which a start ends. @param error  as the start says it */
typedef void state_check_take(void *context, const struct weir_error *error);

/** Looks at those that are there. Takes no lock: a process may work in the directory. */
void state_check(const char *state, const struct weir_config *config, state_check_take *take, void *context);

#endif
