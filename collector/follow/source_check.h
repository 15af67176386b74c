/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the configured sources can be read, and their newest lines are of their formats: for --check, and `weir doctor`. */
#ifndef COLLECTOR_SOURCE_CHECK_H
#define COLLECTOR_SOURCE_CHECK_H

#include "common/diagnosis/server_checks.h"

/**
 * Looks at each source as this process can see it. Follows nothing, remembers nothing and takes nothing away; of a file
 * the last lines are read.
 *
 * @param user  NULL: this process is the collector's, and what it cannot read no collector reads; else whose process the
 *              collector is, for the words: "weir". What only this process cannot read is a ticket then
 * @param state  the collector's directory, for spools that are left in it; NULL: it is not known
 */
void source_check(const struct weir_check *check, const char *user, const char *state);

#endif
