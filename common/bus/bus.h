/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus: the partitioned, ordered, durable log that connects the roles.
 *
 * Kafka gives the rules, bus_local.c keeps them on one machine's disk: a topic
 * has P partitions; a message gets the next offset of its partition and is
 * delivered when it is durable; a consumer reads a partition from an offset of
 * its own choosing, in order; nothing below a partition's trimmed start can be
 * read again, and asking for it is an error, never a silent skip.
 */
#ifndef WEIR_COMMON_BUS_H
#define WEIR_COMMON_BUS_H

#include "common/base/span.h"
#include "common/base/status.h"

enum weir_topic {
	WEIR_TOPIC_EVENTS,
	WEIR_TOPIC_JUDGED,
	WEIR_TOPIC_DECISIONS,
	WEIR_TOPIC_SHADOW,     /* decisions of zones in shadow mode */
	WEIR_TOPIC_POLICY,     /* one partition: every policy, for the collectors */
	WEIR_TOPIC_DEADLETTER, /* one partition */
	WEIR_TOPIC_COUNT,
};

enum {
	WEIR_BUS_PARTITIONS_MAX = 1024,
	WEIR_BUS_MESSAGE_MAX_BYTES = 32 * 1024 * 1024,  /* key and payload */
	WEIR_BUS_PRODUCER_MAX_BYTES = 16 * 1024 * 1024, /* sent and not yet polled; one larger message goes alone */
};

/** "weir.events", ... */
const char *weir_topic_name(enum weir_topic topic);
/** How many partitions a topic has when events have `partitions`: so many, or one for policy and dead letters. */
uint32_t weir_topic_partitions(enum weir_topic topic, uint32_t partitions);

struct weir_message {
	enum weir_topic topic;
	uint32_t partition;
	uint64_t offset;
	int64_t appended_ms;  /* when the log took it, Unix ms by its own clock; 0: it keeps no such time */
	struct weir_span key; /* at NULL: none */
	struct weir_span payload;
};

/* What became of one sent message. */
struct weir_delivery {
	enum weir_topic topic;
	uint32_t partition;
	uint64_t offset;         /* valid when status is WEIR_OK */
	uint64_t tag;            /* the sender's */
	enum weir_status status; /* WEIR_OK: durable. Else this and every later message of this producer is not */
	const char *why;         /* then: the topic and what was wrong; the producer's, as long as it is there */
};

struct weir_bus;
struct weir_producer;
struct weir_consumer;

struct weir_bus_ops {
	const char *name;

	/** @thread each producer belongs to one thread; messages that it has not polled yet are bounded */
	enum weir_status (*producer_new)(struct weir_bus *bus, struct weir_producer **producer, struct weir_error *error);
	/**
	 * Queues a message; its bytes are copied.
	 *
	 * @return WEIR_OK; WEIR_FULL: the bound on bytes not yet polled is reached: poll and try again; WEIR_INVALID: no
	 *         such partition, or too large; WEIR_IO: the producer is broken (a delivery failed), make a new one and
	 *         send again from what was delivered
	 */
	enum weir_status (*send)(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
	                         struct weir_span key, struct weir_span payload, uint64_t tag, struct weir_error *error);
	/** Takes up to `most` deliveries, waiting at most timeout_ms for the first. Per partition in order. */
	size_t (*poll)(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most, int timeout_ms);
	/** Undelivered messages are abandoned. */
	void (*producer_free)(struct weir_producer *producer);

	/**
	 * A reader of one topic.
	 *
	 * @param reader  a name whose positions hold back trimming (`consumed`), or NULL
	 * @thread each consumer belongs to one thread
	 */
	enum weir_status (*consumer_new)(struct weir_bus *bus, enum weir_topic topic, const char *reader,
	                                 struct weir_consumer **consumer, struct weir_error *error);
	/**
	 * Begins to deliver a partition from an offset. WEIR_INVALID: that offset is trimmed or beyond the end. Where a
	 * server that does not answer just now would have to be asked, the assignment stands, and receive tells.
	 */
	enum weir_status (*assign)(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
	                           struct weir_error *error);
	void (*unassign)(struct weir_consumer *consumer, uint32_t partition);
	/** A paused partition keeps its place and delivers nothing. */
	void (*pause)(struct weir_consumer *consumer, uint32_t partition, bool paused);
	/**
	 * Up to `most` durable messages, per partition in order, waiting at most timeout_ms for the first.
	 *
	 * @param messages  their bytes are borrowed until the next receive on this consumer
	 * @return WEIR_OK with *count >= 0; WEIR_INVALID: the log is damaged or has a gap: the words say where, and
	 *         messages[0] its partition and offset; it is told again until that partition is unassigned, or assigned
	 *         elsewhere; WEIR_IO: a passing fault
	 */
	enum weir_status (*receive)(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
	                            int timeout_ms, size_t *count, struct weir_error *error);
	/**
	 * How far a partition is read: behind every message that receive has given of it and, once its end was met, behind
	 * what there is no message at, as the marks of other programs' transactions. To be compared with an extent's
	 * `next`, which the last message may never reach. 0: it is not assigned.
	 */
	uint64_t (*position)(const struct weir_consumer *consumer, uint32_t partition);
	/**
	 * How many messages of a partition are known to wait after that. No server is asked: it is as of the last answer of
	 * the partition's leader, be it to assign; 0 before there was one.
	 */
	uint64_t (*waiting)(const struct weir_consumer *consumer, uint32_t partition);
	/** The reader will never again need offsets below this one (its own checkpoint is durable). */
	void (*consumed)(struct weir_consumer *consumer, uint32_t partition, uint64_t offset);
	void (*consumer_free)(struct weir_consumer *consumer);

	/** First readable and next offset of a partition. @thread any */
	enum weir_status (*extent)(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
	                           uint64_t *next, struct weir_error *error);
	/** Whether something hinders the bus just now (it continues trying), and what, in words. @thread any */
	bool (*problem)(struct weir_bus *bus, char *text, size_t bytes);
	/** Its producers and consumers are freed before. What they sent and did not see delivered may be written or not. */
	void (*close)(struct weir_bus *bus);
};

struct weir_bus {
	const struct weir_bus_ops *ops;
	uint32_t partitions; /* of events, judged and decisions */
};

#endif
