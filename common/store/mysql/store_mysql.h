/* SPDX-License-Identifier: Apache-2.0 */
/* The store on a server of MySQL 8 or MariaDB 10.11 and newer: deploy/mysql/schema.sql. */
#ifndef WEIR_COMMON_STORE_MYSQL_H
#define WEIR_COMMON_STORE_MYSQL_H

#include "common/base/text.h"
#include "common/config/config.h"
#include "common/store/store.h"

/**
 * Connects, makes the database and its tables where they are missing, and upgrades an older schema by numbered steps.
 * A connection that breaks later is made again by the next call; the call that it broke in gives WEIR_IO.
 *
 * @param config  its "store"; borrowed for as long as the store is open
 * @return WEIR_OK; WEIR_NEWER: the schema is of a newer weir; WEIR_INVALID: not a weir schema, or refused access; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_store_mysql_open(const struct weir_config *config, struct weir_store **store,
                                                     struct weir_error *error);

/**
 * As weir_store_mysql_open(), but makes nothing.
 *
 * @param missing  set: what an open would make, in words
 * @param store    NULL where something is missing
 */
WEIR_MUST_USE enum weir_status weir_store_mysql_open_existing(const struct weir_config *config,
                                                              struct weir_text *missing, struct weir_store **store,
                                                              struct weir_error *error);

/**
 * Whether a role could write: asks the server to write nothing to each table that the role writes to.
 *
 * @param store  opened here
 * @param role   WEIR_STORE_ROLE_LIMITER, _ARCHIVER
 * @return WEIR_OK; WEIR_INVALID: the server refuses, and its words say why; WEIR_IO: it does not answer
 */
WEIR_MUST_USE enum weir_status weir_store_mysql_try_writes(struct weir_store *store, int role,
                                                           struct weir_error *error);

/** The server's clock, Unix ms. */
WEIR_MUST_USE enum weir_status weir_store_mysql_clock(struct weir_store *store, int64_t *now_ms,
                                                      struct weir_error *error);

#endif
