/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs: run to their end with bytes on their standard input, or kept running behind a pipe. */
#ifndef DEPLOY_GATEWAYS_TARGET_EXEC_PROGRAM_H
#define DEPLOY_GATEWAYS_TARGET_EXEC_PROGRAM_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"

#include <sys/types.h>

enum { PROGRAM_OUTPUT_MAX_BYTES = 64 * 1024 };
#define PROGRAM_LISTING_MAX_BYTES ((size_t)64 << 20)

struct program_run {
	const char *const *arguments; /* the first is looked for in PATH; ended by NULL */
	const char *input;            /* its standard input */
	size_t input_bytes;
	int64_t timeout_ms;     /* then it is killed, with all that it started */
	int *left_with;         /* set to its exit status, or -1: it was not let end by itself; NULL: not wanted */
	struct weir_text *said; /* its output and error output, the last `said_most` bytes; NULL: not wanted */
	size_t said_most;       /* 0: PROGRAM_OUTPUT_MAX_BYTES */
};

/**
 * Runs a program to its end.
 *
 * @return WEIR_OK: it left with 0; WEIR_IO: the words say how it left, and the line of what it said that tells most
 */
WEIR_MUST_USE enum weir_status program_run(const struct program_run *run, struct weir_error *error);

/** Starts `/bin/sh -c COMMAND` in a process group of its own, to write to its standard input. */
WEIR_MUST_USE enum weir_status program_start(const char *command, pid_t *pid, int *input, struct weir_error *error);

/** Whether it has ended: then it is WEIR_IO with words how, or WEIR_OK if it left with 0. WEIR_AGAIN: it runs. */
enum weir_status program_ended(pid_t pid, const char *name, struct weir_error *error);

/**
 * Waits for its end, and makes one after wait_ms: terminated, then killed. Its standard input is closed before.
 *
 * @return WEIR_OK: it left with 0 by itself
 */
enum weir_status program_end(pid_t pid, const char *name, int64_t wait_ms, struct weir_error *error);

#endif
