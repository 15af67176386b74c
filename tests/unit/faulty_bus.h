/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bus whose producers fail when told to, in front of a local one.
 *
 * As with Kafka, what failed may be in the log or not; nothing later of its
 * partition is; what was sent later to other partitions may be there, and is
 * never acknowledged.
 */
#ifndef TESTS_UNIT_FAULTY_BUS_H
#define TESTS_UNIT_FAULTY_BUS_H

#include "common/bus/bus.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct faulty_bus {
	struct weir_bus bus;
	struct weir_bus *inner;
	_Atomic int breaks_left;       /* so many producers more will fail */
	_Atomic int producers_refused; /* so many producers more cannot be made */
	_Atomic bool down;             /* takes nothing, delivers nothing */
	bool at_once;                  /* a message that fails is refused as it is sent */
	_Atomic uint64_t producers, fulls, broken;
	unsigned sends_most; /* a producer fails at one of its first so many messages */
	unsigned seed;
};

struct faulty_producer {
	struct faulty_bus *bus;
	struct weir_producer *inner;
	unsigned sends_left; /* until one fails */
	bool failing, told;
	unsigned polls_left; /* until that is told */
	uint64_t failed_tag;
	enum weir_topic failed_topic;
	uint32_t failed_partition;
	bool blocked[WEIR_TOPIC_COUNT][16]; /* nothing more gets through */
};

static inline struct faulty_bus *faulty_bus_of(struct weir_bus *bus)
{
	return (struct faulty_bus *)(void *)bus;
}

static inline struct faulty_producer *faulty_producer_of(struct weir_producer *producer)
{
	return (struct faulty_producer *)(void *)producer;
}

static inline enum weir_status faulty_producer_new(struct weir_bus *base, struct weir_producer **out,
                                                   struct weir_error *error)
{
	struct faulty_bus *bus = faulty_bus_of(base);
	if (atomic_load(&bus->producers_refused) > 0 && atomic_load(&bus->producers) > 0) {
		atomic_fetch_sub(&bus->producers_refused, 1);
		return weir_fail(error, WEIR_IO, "no producer to be had");
	}
	struct faulty_producer *producer = calloc(1, sizeof *producer);
	producer->bus = bus;
	producer->sends_left = 1 + (unsigned)rand_r(&bus->seed) % bus->sends_most;
	atomic_fetch_add(&bus->producers, 1);
	*out = (struct weir_producer *)(void *)producer;
	return bus->inner->ops->producer_new(bus->inner, &producer->inner, error);
}

static inline bool faulty_lucky(struct faulty_producer *producer)
{
	return rand_r(&producer->bus->seed) % 2 == 0;
}

static inline enum weir_status faulty_send(struct weir_producer *base, enum weir_topic topic, uint32_t partition,
                                           struct weir_span key, struct weir_span payload, uint64_t tag,
                                           struct weir_error *error)
{
	struct faulty_producer *producer = faulty_producer_of(base);
	struct faulty_bus *bus = producer->bus;
	if (producer->told)
		return weir_fail(error, WEIR_IO, "an earlier message could not be delivered");
	if (atomic_load(&bus->down)) {
		atomic_fetch_add(&bus->fulls, 1);
		return weir_fail(error, WEIR_FULL, "the bus is down");
	}
	bool *blocked = &producer->blocked[topic][partition];
	if (!producer->failing && atomic_load(&bus->breaks_left) > 0 && --producer->sends_left == 0) {
		atomic_fetch_sub(&bus->breaks_left, 1);
		producer->failing = true;
		producer->failed_tag = tag;
		producer->failed_topic = topic;
		producer->failed_partition = partition;
		producer->polls_left = 1 + (unsigned)rand_r(&bus->seed) % 4;
		*blocked = true;
		if (bus->at_once) {
			producer->told = true;
			atomic_fetch_add(&bus->broken, 1);
			return weir_fail(error, WEIR_IO, "a message is refused");
		}
		if (!faulty_lucky(producer))
			return WEIR_OK;
	} else if (producer->failing) {
		*blocked = *blocked || !faulty_lucky(producer);
		if (*blocked)
			return WEIR_OK;
	}
	return bus->inner->ops->send(producer->inner, topic, partition, key, payload, tag, error);
}

static inline void faulty_hurry(struct weir_producer *handle, enum weir_topic topic)
{
	struct faulty_producer *producer = faulty_producer_of(handle);
	producer->bus->inner->ops->hurry(producer->inner, topic);
}

static inline size_t faulty_poll(struct weir_producer *base, struct weir_delivery *deliveries, size_t most,
                                 int timeout_ms)
{
	struct faulty_producer *producer = faulty_producer_of(base);
	if (atomic_load(&producer->bus->down)) {
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		return 0;
	}
	int wait_ms = producer->failing && timeout_ms > 1 ? 1 : timeout_ms;
	size_t count = producer->bus->inner->ops->poll(producer->inner, deliveries, most, wait_ms), kept = 0;
	for (size_t i = 0; i < count; i++)
		if (!producer->failing || deliveries[i].tag < producer->failed_tag)
			deliveries[kept++] = deliveries[i];
	if (producer->failing && !producer->told && kept < most && --producer->polls_left == 0) {
		producer->told = true;
		atomic_fetch_add(&producer->bus->broken, 1);
		deliveries[kept++] = (struct weir_delivery){.topic = producer->failed_topic,
		                                            .partition = producer->failed_partition,
		                                            .tag = producer->failed_tag,
		                                            .status = WEIR_IO,
		                                            .why = "no reason"};
	}
	return kept;
}

static inline void faulty_wake_producer(struct weir_producer *base, int descriptor)
{
	struct faulty_producer *producer = faulty_producer_of(base);
	producer->bus->inner->ops->wake_producer(producer->inner, descriptor);
}

static inline void faulty_producer_free(struct weir_producer *base)
{
	struct faulty_producer *producer = faulty_producer_of(base);
	producer->bus->inner->ops->producer_free(producer->inner);
	free(producer);
}

static inline enum weir_status faulty_consumer_new(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                                   struct weir_consumer **consumer, struct weir_error *error)
{
	struct weir_bus *inner = faulty_bus_of(bus)->inner;
	return inner->ops->consumer_new(inner, topic, reader, consumer, error);
}

static inline enum weir_status faulty_extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                             uint64_t *first, uint64_t *next, struct weir_error *error)
{
	struct weir_bus *inner = faulty_bus_of(bus)->inner;
	return inner->ops->extent(inner, topic, partition, first, next, error);
}

/* Its own functions go into *ops, which must live as long as the bus. */
static inline void faulty_bus_init(struct faulty_bus *bus, struct weir_bus_ops *ops, struct weir_bus *inner,
                                   unsigned seed)
{
	*ops = *inner->ops;
	ops->producer_new = faulty_producer_new;
	ops->send = faulty_send;
	ops->hurry = inner->ops->hurry != NULL ? faulty_hurry : NULL;
	ops->poll = faulty_poll;
	ops->wake_producer = faulty_wake_producer;
	ops->producer_free = faulty_producer_free;
	ops->consumer_new = faulty_consumer_new;
	ops->extent = faulty_extent;
	*bus = (struct faulty_bus){
		.bus = {.ops = ops, .partitions = inner->partitions}, .inner = inner, .sends_most = 10, .seed = seed};
}

/* So many producers fail, each at one of its first so many messages. */
static inline void faulty_bus_break(struct faulty_bus *bus, int producers, unsigned sends_most)
{
	bus->breaks_left = producers;
	bus->sends_most = sends_most;
}

#endif
