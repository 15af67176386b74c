/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a local bus's files from outside: a topic's messages in the order of its
 * files. For people and tests.
 *
 * It takes no lock, changes nothing and does not delay trimming, so it may run
 * next to the process that has the bus open. It sees what was written when it
 * opened a file: messages at the very end may not be durable yet.
 *
 * @thread one at a time
 */
#ifndef WEIR_COMMON_BUS_LOCAL_SCAN_H
#define WEIR_COMMON_BUS_LOCAL_SCAN_H

#include "common/bus/bus.h"

#define WEIR_BUS_EVERY_PARTITION UINT32_MAX

struct weir_bus_scan;

/** Reads how many partitions a bus was created with. @return WEIR_INVALID: there is no bus in that directory */
WEIR_MUST_USE enum weir_status weir_bus_scan_partitions(const char *directory, uint32_t *partitions,
                                                        struct weir_error *error);

/**
 * @param directory  of the bus
 * @param partition  only messages of this one; or WEIR_BUS_EVERY_PARTITION, in the order in which they were written
 * @param from       only messages at or after this offset of their partition
 * @return WEIR_OK; WEIR_INVALID: there is no bus, or no such partition; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_scan_open(const char *directory, enum weir_topic topic, uint32_t partition,
                                                  uint64_t from, struct weir_bus_scan **scan, struct weir_error *error);

/**
 * @param message  borrowed until the next call
 * @return WEIR_OK; WEIR_END; WEIR_INVALID: something is damaged, the error names file and byte: the next call continues
 *         after it; WEIR_NEWER: the same, for a file of a newer version; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_scan_next(struct weir_bus_scan *scan, struct weir_message *message,
                                                  struct weir_error *error);

/** The first offset of a partition that still exists; 0 if nothing was ever written. */
uint64_t weir_bus_scan_first(const struct weir_bus_scan *scan, uint32_t partition);

void weir_bus_scan_free(struct weir_bus_scan *scan);

#endif
