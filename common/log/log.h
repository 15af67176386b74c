/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a daemon: plain text, or JSON lines.
 *
 * A logger is made once from the configuration and passed down; every line has
 * a level, a role and words, and goes to standard error in one write().
 */
#ifndef WEIR_COMMON_LOG_H
#define WEIR_COMMON_LOG_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_log_level { WEIR_LOG_DEBUG, WEIR_LOG_INFO, WEIR_LOG_WARNING, WEIR_LOG_ERROR };

struct weir_log {
	int fd;
	_Atomic enum weir_log_level level; /* lines below it are left out; its owner may change it while others log */
	bool json;
	const _Atomic bool *unfinished; /* while set, a line without its end stands on the terminal (progress): each line
	                                   takes it off first. NULL: none ever does. Borrowed */
};

/** One line. A line break in the words is written as a space. @thread any */
void weir_log(const struct weir_log *log, enum weir_log_level level, const char *part, const char *format, ...)
	WEIR_PRINTF(4, 5);

/*
 * Logs a lasting fault once, and once when it is over: for retries.
 * Zero-initialised; owned by the thread that retries.
 */
struct weir_fault {
	bool on;
	char text[512]; /* a stream's name and what is wrong with it are long */
	uint64_t times;
};

/** Logs at WARNING if the words are new. */
void weir_fault_raise(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
	WEIR_PRINTF(4, 5);
/** Logs at INFO that it is over, if it was on. */
void weir_fault_clear(struct weir_fault *fault, const struct weir_log *log, const char *part);

#endif
