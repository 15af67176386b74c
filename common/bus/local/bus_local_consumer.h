/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers of the local bus: one topic, partitions from offsets that the caller chooses. */
#ifndef WEIR_COMMON_BUS_LOCAL_CONSUMER_H
#define WEIR_COMMON_BUS_LOCAL_CONSUMER_H

#include "common/bus/local/bus_local_journal.h"

enum weir_status weir_consumer_new(struct weir_bus_journal *journal, const char *reader,
                                   struct weir_consumer **consumer, struct weir_error *error);
enum weir_status weir_consumer_assign(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      struct weir_error *error);
enum weir_status weir_consumer_resume(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      const struct weir_mark *mark, struct weir_error *error);
void weir_consumer_unassign(struct weir_consumer *consumer, uint32_t partition);
void weir_consumer_pause(struct weir_consumer *consumer, uint32_t partition, bool paused);
enum weir_status weir_consumer_receive(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                       int timeout_ms, size_t *count, struct weir_error *error);
uint64_t weir_consumer_position(const struct weir_consumer *consumer, uint32_t partition);
uint64_t weir_consumer_waiting(const struct weir_consumer *consumer, uint32_t partition);
void weir_consumer_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset);
void weir_consumer_wake(struct weir_consumer *consumer, int descriptor);
void weir_consumer_free(struct weir_consumer *consumer);

#endif
