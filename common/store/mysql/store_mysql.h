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

#endif
