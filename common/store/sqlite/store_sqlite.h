/* SPDX-License-Identifier: Apache-2.0 */
/* The store of one machine: a SQLite database in a directory. */
#ifndef WEIR_COMMON_STORE_SQLITE_H
#define WEIR_COMMON_STORE_SQLITE_H

#include "common/store/store.h"

/**
 * Opens or makes DIRECTORY/weir.db: WAL, synchronous FULL; an older schema is upgraded by numbered steps.
 *
 * @return WEIR_NEWER: written by a newer weir; WEIR_INVALID: not a weir database, or damaged
 */
WEIR_MUST_USE enum weir_status weir_store_sqlite_open(const char *directory, struct weir_store **store,
                                                      struct weir_error *error);

/**
 * Opens what is there to look at it, beside the process that may be writing: everything is read as of this moment, and
 * nothing can be written.
 *
 * @return as weir_store_sqlite_open; WEIR_INVALID also: there is no database, or one of an older weir; WEIR_IO also:
 *         the process that starts has not made it yet, though that was waited for
 */
WEIR_MUST_USE enum weir_status weir_store_sqlite_open_read_only(const char *directory, struct weir_store **store,
                                                                struct weir_error *error);

/** Says of an error about what is stored there what a start without it loses, and how to move it away. */
void weir_store_sqlite_say_damaged(const char *directory, struct weir_error *error);

#endif
