/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic read once, from its start to the end that it had when reading began:
 * of a bus that is open, or of a state directory's log from beside its owner.
 */
#ifndef DEPLOY_WEIR_INSPECT_TOPIC_READ_H
#define DEPLOY_WEIR_INSPECT_TOPIC_READ_H

#include "common/bus/bus.h"
#include "common/bus/local/bus_local_scan.h"

struct topic_read;

/**
 * @param bus        borrowed; NULL: the log of `directory` is looked at
 * @param partition  only this one; or WEIR_BUS_EVERY_PARTITION
 * @param from       only offsets from this one on
 * @return WEIR_OK; WEIR_INVALID: there is no such partition, or no log; WEIR_IO
 */
WEIR_MUST_USE enum weir_status topic_read_open(struct weir_bus *bus, const char *directory, enum weir_topic topic,
                                               uint32_t partition, uint64_t from, struct topic_read **read,
                                               struct weir_error *error);

/**
 * @param message  borrowed until the next call
 * @return WEIR_OK; WEIR_END; WEIR_INVALID: something is damaged or was trimmed, the next call continues after it;
 *         WEIR_NEWER: likewise; WEIR_IO: nothing came in 15 seconds, though there is more
 */
WEIR_MUST_USE enum weir_status topic_read_next(struct topic_read *read, struct weir_message *message,
                                               struct weir_error *error);
/** The first offset that a partition still has. */
uint64_t topic_read_first(const struct topic_read *read, uint32_t partition);
void topic_read_free(struct topic_read *read);

#endif
