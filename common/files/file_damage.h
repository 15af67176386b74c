/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about a file of a state directory that cannot be read: an error that refuses a start says it, and a check
 * that finds it beforehand takes it from there.
 *
 *   "WHAT IS WRONG. Without it, WHAT IS LOST. To start: COMMAND (runbook: state-file-damaged)"
 */
#ifndef WEIR_COMMON_FILE_DAMAGE_H
#define WEIR_COMMON_FILE_DAMAGE_H

#include "common/base/status.h"

#include <stddef.h>

/**
 * Adds to an error how to start without a file: by moving it away. An error that says what to do stays as it is.
 *
 * @param path  of a file or a directory, which is moved to "damaged-NAME" beside it, or "damaged-NAME.2"
 * @param lost  what a start without it costs: "nothing is lost: weir writes it again"
 * @return the error's status
 */
enum weir_status weir_damage_move(struct weir_error *error, const char *path, const char *lost);

/** Likewise, where a start needs another command behind it. @param then  that command */
enum weir_status weir_damage_move_then(struct weir_error *error, const char *path, const char *lost, const char *then);

/** Likewise, with another command. @param format  of it; it ends with "(runbook: HEADING)" */
enum weir_status weir_damage_without(struct weir_error *error, const char *lost, const char *format, ...)
	WEIR_PRINTF(3, 4);

/** Likewise, of what is whole: words that end with "(runbook: HEADING)". */
enum weir_status weir_damage_remedy(struct weir_error *error, const char *format, ...) WEIR_PRINTF(2, 3);

/** Finds the remedy in an error's text. @param what  set to how long the text before it is. @return NULL: it has none */
const char *weir_damage_find_remedy(const char *text, size_t *what);

#endif
