/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spools of sources that were renamed, or are configured no more: what was taken from senders, and nobody reads.
 * Nothing is removed: only whoever runs weir knows whether it is still wanted.
 */
#ifndef COLLECTOR_SPOOLS_LEFT_H
#define COLLECTOR_SPOOLS_LEFT_H

#include "common/config/config.h"

struct source_memory;

enum { SPOOLS_LEFT_MAX = 16 }; /* more are not looked at */

/**
 * Called for each.
 *
 * @param waits  it has lines that were not read, or may have
 * @param words  three lines: what it is and holds, what that means, what to type
 */
typedef void spools_left_take(void *context, bool waits, const char *words);

/**
 * Looks for them in a state directory. Opens those that this user owns, so not beside a process that has them open.
 *
 * @param memory  what is remembered of sources; NULL: it is read from the directory
 */
void spools_left(const char *state, const struct weir_config *config, const struct source_memory *memory,
                 spools_left_take *take, void *context);

#endif
