/* SPDX-License-Identifier: Apache-2.0 */
/* Producers of the local bus: messages on their way to a topic's thread, and back as deliveries. */
#ifndef WEIR_COMMON_BUS_LOCAL_PRODUCER_H
#define WEIR_COMMON_BUS_LOCAL_PRODUCER_H

#include "common/bus/local/bus_local_journal.h"

/** @param journals  by topic; borrowed until the producer and all its messages are freed */
struct weir_producer *weir_producer_new(struct weir_bus_journal *const *journals);
void weir_producer_free(struct weir_producer *producer);

enum weir_status weir_producer_send(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                    struct weir_span key, struct weir_span payload, uint64_t tag,
                                    struct weir_error *error);
void weir_producer_hurry(struct weir_producer *producer, enum weir_topic topic);
size_t weir_producer_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most,
                          int timeout_ms);
void weir_producer_wake(struct weir_producer *producer, int descriptor);

/** Returns messages to their producers, each with its status. @thread a topic's */
void weir_producer_deliver(struct weir_bus_entries *entries);

#endif
