/* SPDX-License-Identifier: Apache-2.0 */
/* Topics of Kafka, to which services and log shippers write, as a source. */
#ifndef COLLECTOR_SOURCE_KAFKA_H
#define COLLECTOR_SOURCE_KAFKA_H

#include "collector/source/source.h"

/*
 * { "type": "kafka", "brokers": "HOST:PORT", "topics": ["app-logs"], "format": "json" }: each message is one record.
 *
 * Collectors of the same "group" share the partitions. A partition is a stream. Its id is the same in each collector,
 * its position is the offset after the message, and its low-water mark is the group's committed offset. So a partition
 * moves from one collector to another without loss, and limiters drop what is sent twice meanwhile. Nothing is saved on
 * this machine. With `once` it does not connect, as there is no end to read to.
 */
extern const struct source_ops source_kafka_ops;

#endif
