/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of a cluster's configuration: each daemon and each command line tool opens them first. */
#ifndef WEIR_COMMON_CONNECT_H
#define WEIR_COMMON_CONNECT_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/store/store.h"

/**
 * Refuses a configuration that a cluster cannot use: bus.type must be kafka and store.type mysql, and the store's
 * password must be there.
 *
 * @param who  "weir-limiter", for the error
 */
WEIR_MUST_USE enum weir_status weir_connect_check(const struct weir_config *config, const char *who,
                                                  struct weir_error *error);

/** As weir_connect_check(), for programs that need no store. */
WEIR_MUST_USE enum weir_status weir_connect_check_bus(const struct weir_config *config, const char *who,
                                                      struct weir_error *error);

/** As weir_bus_kafka_open(). */
WEIR_MUST_USE enum weir_status weir_connect_bus(const struct weir_config *config, const char *client,
                                                _Atomic(struct weir_bus *) *awaited, int64_t wait_ms,
                                                const _Atomic bool *stop, const struct weir_log *log,
                                                struct weir_bus **bus, struct weir_error *error);

/** As weir_bus_kafka_open_topic(), without waiting for a topic that does not exist yet. */
WEIR_MUST_USE enum weir_status weir_connect_topic(const struct weir_config *config, const char *client,
                                                  enum weir_topic topic, int64_t wait_ms, const struct weir_log *log,
                                                  struct weir_bus **bus, struct weir_error *error);

/**
 * As weir_store_mysql_open(), retried each second for wait_ms or until `stop`; the fault is logged once.
 *
 * @param log  NULL: the caller says what it means, as one that asks again and again, beside what the process is for
 */
WEIR_MUST_USE enum weir_status weir_connect_store(const struct weir_config *config, int64_t wait_ms,
                                                  const _Atomic bool *stop, const struct weir_log *log,
                                                  struct weir_store **store, struct weir_error *error);

/** As weir_store_mysql_open_existing(), with the same retries. */
WEIR_MUST_USE enum weir_status weir_connect_existing_store(const struct weir_config *config, int64_t wait_ms,
                                                           const _Atomic bool *stop, const struct weir_log *log,
                                                           struct weir_text *missing, struct weir_store **store,
                                                           struct weir_error *error);

#endif
