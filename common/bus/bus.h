/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus: the partitioned, ordered, durable log that connects the roles.
 *
 * Its rules are Kafka's; bus_local.c follows them on one machine's disk. A topic
 * has P partitions. A message gets the next offset of its partition, and is
 * delivered when it is durable. A consumer reads a partition in order, from an
 * offset that it chooses. Nothing below a partition's trimmed start can be read
 * again; asking for it is an error, and never skipped silently.
 */
#ifndef WEIR_COMMON_BUS_H
#define WEIR_COMMON_BUS_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/bus/mark.h"

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
	WEIR_BUS_PRODUCER_MAX_BYTES = 16 * 1024 * 1024, /* sent and not polled; a larger message is sent on its own */
};

/** "weir.events", ... */
const char *weir_topic_name(enum weir_topic topic);
/** Whether weir works on without the topic: what is written to it is dropped and counted while it is missing or refuses it. */
bool weir_topic_may_be_missed(enum weir_topic topic);
/** How many partitions a topic has: one for policy and dead letters, `partitions` for events and all others. */
uint32_t weir_topic_partitions(enum weir_topic topic, uint32_t partitions);

struct weir_message {
	enum weir_topic topic;
	uint32_t partition;
	uint64_t offset;
	int64_t appended_ms;  /* when the log took it, Unix ms by the log's own clock; 0: the log stores no such time */
	struct weir_span key; /* at NULL: none */
	struct weir_span payload;
};

/* The outcome of one sent message. */
struct weir_delivery {
	enum weir_topic topic;
	uint32_t partition;
	uint64_t offset; /* valid when status is WEIR_OK */
	uint64_t tag;    /* as given to send() */
	/*
	 * WEIR_OK: durable, or dropped as its topic may be missed (weir_topic_may_be_missed()), and is missing or refuses it
	 * (its offset is 0 then);
	 * otherwise neither this nor any later message of the producer is durable.
	 */
	enum weir_status status;
	const char *why; /* unless WEIR_OK: the topic and the reason; owned by the producer until it is freed */
};

struct weir_bus;
struct weir_producer;
struct weir_consumer;

struct weir_bus_ops {
	const char *name;
	const char *advice; /* a sentence for operators: what to look at where it fails again and again */

	/** @thread each producer belongs to one thread; the messages that it has sent and not polled are bounded */
	enum weir_status (*producer_new)(struct weir_bus *bus, struct weir_producer **producer, struct weir_error *error);
	/**
	 * Queues a message; its bytes are copied.
	 *
	 * @return WEIR_OK; WEIR_FULL: the bound on bytes not yet polled is reached: poll and try again; WEIR_INVALID: no
	 *         such partition, or too large; WEIR_IO: the producer is broken (a delivery failed): make a new one, and
	 *         send again all after the last delivered message
	 */
	enum weir_status (*send)(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
	                         struct weir_span key, struct weir_span payload, uint64_t tag, struct weir_error *error);
	/**
	 * Somebody waits for the acknowledgement of what was sent to a topic: it does not wait for more to be gathered. NULL:
	 * the bus makes no difference.
	 */
	void (*hurry)(struct weir_producer *producer, enum weir_topic topic);
	/** Takes up to `most` deliveries, in order per partition. Waits at most timeout_ms for the first. */
	size_t (*poll)(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most, int timeout_ms);
	/**
	 * From now on, writes to an eventfd (common/base/wake.h) when there is something to poll. It is written once there is
	 * something where there was nothing: wait for it only after a poll() since then has returned less than was asked for.
	 *
	 * @param descriptor  must not block, and outlives the producer; -1: nothing is written any more
	 */
	void (*wake_producer)(struct weir_producer *producer, int descriptor);
	/** Frees the producer, and abandons undelivered messages. */
	void (*producer_free)(struct weir_producer *producer);

	/**
	 * Creates a reader of one topic.
	 *
	 * @param reader  a name; the log is not trimmed beyond its positions (`consumed`); or NULL
	 * @thread each consumer belongs to one thread
	 */
	enum weir_status (*consumer_new)(struct weir_bus *bus, enum weir_topic topic, const char *reader,
	                                 struct weir_consumer **consumer, struct weir_error *error);
	/**
	 * Begins to deliver a partition from an offset. WEIR_INVALID: that offset is trimmed or beyond the end. If the
	 * server that knows does not answer now, the partition is assigned all the same, and receive() reports it.
	 */
	enum weir_status (*assign)(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
	                           struct weir_error *error);
	/**
	 * As assign(), at a position that was stored, perhaps long ago: also verifies that the topic is still the one of then.
	 * Where the message of the mark was deleted, or there is no mark, only the topic's extent can tell.
	 *
	 * @param offset  the next message to receive
	 * @param mark    of the message before it, or of that message itself; borrowed
	 * @return as assign(); WEIR_ANEW: the topic was made anew or lost its end: it ends before the offset, or has another
	 *         message in the marked one's place. If this is found out later, receive() returns it
	 */
	enum weir_status (*resume)(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
	                           const struct weir_mark *mark, struct weir_error *error);
	void (*unassign)(struct weir_consumer *consumer, uint32_t partition);
	/** Pauses or resumes a partition. A paused one keeps its position and delivers nothing. */
	void (*pause)(struct weir_consumer *consumer, uint32_t partition, bool paused);
	/**
	 * Receives up to `most` durable messages, in order per partition. Waits at most timeout_ms for the first.
	 *
	 * @param messages  their bytes are borrowed until the next receive() on this consumer
	 * @return WEIR_OK with *count >= 0; WEIR_INVALID: the log is damaged or has a gap: the error says where, and
	 *         messages[0] has the partition and offset; repeated until that partition is unassigned, or assigned at
	 *         another offset; WEIR_ANEW: likewise, because the topic was made anew; WEIR_IO: a temporary failure
	 */
	enum weir_status (*receive)(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
	                            int timeout_ms, size_t *count, struct weir_error *error);
	/**
	 * The offset up to which a partition is read: after every message that receive() has returned and, once the end was
	 * reached, also after offsets without a message, such as transaction markers of other programs. Compare it with an
	 * extent's `next`, which the offset after the last message may never reach. 0: it is not assigned.
	 */
	uint64_t (*position)(const struct weir_consumer *consumer, uint32_t partition);
	/**
	 * How many messages of a partition are known to wait after its position. Asks no server: the number is from the
	 * last answer of the partition's leader, which may be the one to assign(); 0 before there was any.
	 */
	uint64_t (*waiting)(const struct weir_consumer *consumer, uint32_t partition);
	/** Says that the reader never needs offsets below this one again (its own checkpoint is durable). */
	void (*consumed)(struct weir_consumer *consumer, uint32_t partition, uint64_t offset);
	/**
	 * From now on, writes to an eventfd (common/base/wake.h) when there is something to receive. Wait for it only after a
	 * receive() without a timeout has returned nothing; and after assign(), resume() or pause() receive() first.
	 *
	 * NULL: the bus only views files of another process, and is not told.
	 *
	 * @param descriptor  must not block, and outlives the consumer; -1: nothing is written any more
	 */
	void (*wake_consumer)(struct weir_consumer *consumer, int descriptor);
	void (*consumer_free)(struct weir_consumer *consumer);

	/** Reads the first readable and the next offset of a partition. @thread any */
	enum weir_status (*extent)(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
	                           uint64_t *next, struct weir_error *error);
	/** Whether the bus has a problem now, while it keeps retrying. @param text  set to it, for people @thread any */
	bool (*problem)(struct weir_bus *bus, char *text, size_t bytes);
	/** Closes the bus, once its producers and consumers are freed. Undelivered messages may or may not be written. */
	void (*close)(struct weir_bus *bus);
};

struct weir_bus {
	const struct weir_bus_ops *ops;
	uint32_t partitions; /* of events, judged and decisions */
};

struct weir_lasting;
struct weir_log;

/**
 * A call of a bus has failed: whether that is worth a line of the caller's own.
 *
 * @param lasting  of what fails, which weir_lasting_worked() ends
 * @return whether it has failed for a while, and the bus has no problem of which it tells itself
 * @thread as weir_lasting_failed()
 */
bool weir_bus_failure_lasts(struct weir_bus *bus, struct weir_lasting *lasting, const struct weir_log *log);

/**
 * Reads the mark of the message at an offset, or of the first one after it.
 *
 * @return WEIR_OK; WEIR_END: there is none; WEIR_IO: no answer in time
 */
WEIR_MUST_USE enum weir_status weir_bus_read_mark(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                                  uint64_t offset, int timeout_ms, struct weir_mark *mark,
                                                  struct weir_error *error);

/* A stored position, and what a topic has there. */
struct weir_position {
	uint32_t partition;
	uint64_t next;         /* the first offset that is not done */
	struct weir_mark mark; /* as for resume(); it may be none */
	/* returned */
	enum weir_status status; /* of weir_bus_verify_all() */
	uint64_t first, end;     /* the first readable and the next offset, where a server has answered */
	struct weir_error why;   /* unless WEIR_OK */
};

/**
 * Verifies stored positions of one topic, without a consumer that goes on from there. All are asked about together: that
 * takes little longer than one.
 *
 * Each gets a status. WEIR_OK: it is the same topic, as far as can be told. WEIR_INVALID: the offset was deleted, so
 * `next` is below `first`. WEIR_ANEW: the topic was made anew. WEIR_IO: no answer. WEIR_AGAIN: no time was left to ask.
 *
 * @param positions   at most one for each partition
 * @param timeout_ms  for all of them; one question that is asked already may take longer
 */
void weir_bus_verify_all(struct weir_bus *bus, enum weir_topic topic, struct weir_position *positions, size_t count,
                         int timeout_ms);

/** As weir_bus_verify_all(), of one position. @param mark  NULL: none */
WEIR_MUST_USE enum weir_status weir_bus_verify(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                               uint64_t offset, const struct weir_mark *mark, int timeout_ms,
                                               struct weir_error *error);

/** The words for WEIR_ANEW, one for each way to find it out. @param name  the topic's @return WEIR_ANEW */
enum weir_status weir_bus_ends_before(struct weir_error *error, const char *name, uint32_t partition, uint64_t next,
                                      uint64_t offset);
enum weir_status weir_bus_has_another(struct weir_error *error, const char *name, uint32_t partition,
                                      const struct weir_mark *mark);

#endif
