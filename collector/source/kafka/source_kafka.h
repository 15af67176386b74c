/* SPDX-License-Identifier: Apache-2.0 */
/* Topics of Kafka as a source: what services and log shippers put there. */
#ifndef COLLECTOR_SOURCE_KAFKA_H
#define COLLECTOR_SOURCE_KAFKA_H

#include "collector/source/source.h"

/*
 * { "type": "kafka", "brokers": "HOST:PORT", "topics": ["app-logs"], "format": "json" }: each message is one record.
 *
 * Collectors of the same "group" share the partitions. A partition is a stream: its id is the same in each collector,
 * its position is the offset after the message, and its low-water mark is the group's committed offset; so a partition
 * goes from one collector to another without loss, and what is sent twice meanwhile the limiters drop. Nothing is
 * remembered on this machine. In `once` nothing is connected to: there is no end to read to.
 */
extern const struct source_ops source_kafka_ops;

#endif
