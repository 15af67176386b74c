/* SPDX-License-Identifier: Apache-2.0 */
/* The exit codes of every program of weir, and of each of its commands and checks. */
#ifndef WEIR_COMMON_EXIT_H
#define WEIR_COMMON_EXIT_H

#include "common/base/status.h"

enum weir_exit {
	WEIR_EXIT_NOT_YET = -1,    /* of a step: continue; no program ends with it */
	WEIR_EXIT_DONE = 0,        /* all is done */
	WEIR_EXIT_FAILED = 1,      /* it failed, or a part of it: what could be done is done */
	WEIR_EXIT_USAGE = 2,       /* the command line or the configuration is wrong */
	WEIR_EXIT_INTERRUPTED = 3, /* `weir run --once` was stopped by a signal; its state holds the last cut */
};

/** What a status ends a program with: what is invalid is the configuration's affair, a topic that cannot serve too. */
static inline enum weir_exit weir_exit_of(enum weir_status status)
{
	return status == WEIR_OK ? WEIR_EXIT_DONE : status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
}

#endif
