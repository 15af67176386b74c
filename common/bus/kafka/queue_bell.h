/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for a queue of librdkafka, by a descriptor that it writes when it has something.
 *
 * librdkafka's own waits end at a moment of the wall clock: where that is set back, they last for as long as the step. So
 * its queues are asked without a timeout, and weir waits by itself, in time that cannot be set.
 */
#ifndef WEIR_COMMON_QUEUE_BELL_H
#define WEIR_COMMON_QUEUE_BELL_H

#include "common/bus/kafka/kafka.h"

#include <stdint.h>

/* Of one thread; any number of queues may write it. */
struct bus_kafka_bell {
	int own;  /* an eventfd; -1: none could be made */
	int lent; /* what the queues write instead, at which somebody else waits; -1: nothing */
};

void weir_kafka_bell_init(struct bus_kafka_bell *bell);
/** Closes it. No queue may write it any more: see weir_kafka_bell_leave(). */
void weir_kafka_bell_deinit(struct bus_kafka_bell *bell);

/** From now on a queue writes it; again, after `lent` has changed. */
void weir_kafka_bell_hang(const struct bus_kafka_bell *bell, rd_kafka_queue_t *queue);
/** A queue writes nothing any more, whoever else still holds it. */
void weir_kafka_bell_leave(rd_kafka_queue_t *queue);

/** Before a queue is asked: what comes after this is told by weir_kafka_bell_wait(). */
void weir_kafka_bell_clear(const struct bus_kafka_bell *bell);
/** After a queue had nothing: waits until one may have something, and for left_ms at most. */
void weir_kafka_bell_wait(const struct bus_kafka_bell *bell, int64_t left_ms);

#endif
