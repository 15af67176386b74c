/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Kafka bus share: bus_kafka.c ties them together. */
#ifndef WEIR_COMMON_BUS_KAFKA_INTERNAL_H
#define WEIR_COMMON_BUS_KAFKA_INTERNAL_H

#include "common/bus/kafka/bus_kafka.h"
#include "common/bus/kafka/clock_skew.h"
#include "common/bus/kafka/kafka.h"
#include "common/bus/kafka/queue_bell.h"

#include <pthread.h>

enum {
	BUS_KAFKA_MESSAGE_MAX_BYTES = 4 * 1024 * 1024, /* max.message.bytes of created topics: a batch of one message */
	BUS_KAFKA_BATCH_OVERHEAD_BYTES = 1024,         /* the part of it that Kafka adds, a generous estimate */
	BUS_KAFKA_ASK_MS = 5000,                       /* how long to wait for a broker's answer */
	BUS_KAFKA_END_MS = 2000,                       /* how long to wait for a handle's end */
	BUS_KAFKA_MESSAGE_COST_BYTES =
		128, /* librdkafka's own memory per message, so that many small ones are bounded too */
};

/* What to do about topics that do not exist. */
enum bus_kafka_absent {
	BUS_KAFKA_MAKE,  /* create them */
	BUS_KAFKA_TRY,   /* ask the brokers whether they could be created */
	BUS_KAFKA_AWAIT, /* wait for them */
	BUS_KAFKA_LEAVE, /* return WEIR_END */
	BUS_KAFKA_LOOK,  /* leave them, tell of them in bus->looks, and refuse nothing else either */
};

struct bus_kafka {
	struct weir_bus bus;              /* first, so that a pointer to it is one to this */
	const struct weir_config *config; /* borrowed */
	struct weir_kafka *kafka;
	const struct weir_log *log; /* borrowed */
	rd_kafka_t *control;        /* for queries: metadata, extents, settings; reads and writes no messages */
	char names[WEIR_TOPIC_COUNT][WEIR_BUS_KAFKA_TOPIC_BYTES];
	rd_kafka_topic_t *topics[WEIR_TOPIC_COUNT]; /* of `control`: the topics of its metadata; NULL: not needed here */
	enum bus_kafka_absent absent;
	bool sole;                          /* opened for one topic alone */
	bool uncreatable[WEIR_TOPIC_COUNT]; /* may be missed, does not exist, and the brokers refuse to create it */
	bool missing[WEIR_TOPIC_COUNT]; /* BUS_KAFKA_TRY, _LOOK: it does not exist, and (of the first) could be created */
	struct weir_bus_kafka_look *looks; /* BUS_KAFKA_LOOK: what is found, by topic; borrowed, only while it is opened */
	int replicas[WEIR_TOPIC_COUNT];    /* how many brokers have a topic, as read when the bus was opened */

	/* bus_kafka_watch.c */
	pthread_t watch;
	bool watching;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool closing;
	char problem[WEIR_ERROR_TEXT_BYTES];  /* "": none */
	int64_t problem_ms;                   /* Unix ms: since when */
	char settings[WEIR_ERROR_TEXT_BYTES]; /* why a start would refuse a topic's settings; "": it would not */
	char unfit[WEIR_TOPIC_COUNT]
			  [WEIR_ERROR_TEXT_BYTES]; /* likewise, of topics that may be missed: these are not refused */
	int64_t answered_ms;               /* monotonic: when the brokers answered last; 0: never */
	bool answers;                      /* they do now */
	bool unused[WEIR_TOPIC_COUNT];     /* this process neither reads nor writes the topic */
	bool only_read[WEIR_TOPIC_COUNT];  /* it reads the topic, and publishes nothing there */
	bool down[WEIR_TOPIC_COUNT];       /* the topic does not exist, or some partition cannot be written */
	uint32_t counts[WEIR_TOPIC_COUNT]; /* partitions that the brokers say the topic has; 0: not known */
	struct weir_bus_kafka_retention retention[WEIR_TOPIC_COUNT]; /* as read last */
	struct weir_clock_skew skew;

	_Atomic bool gone[WEIR_TOPIC_COUNT];        /* the topic does not exist */
	_Atomic bool denied[WEIR_TOPIC_COUNT];      /* this process's user has no right to it */
	_Atomic int refused[WEIR_TOPIC_COUNT];      /* may be missed, and takes no message: librdkafka's code; 0: it does */
	_Atomic uint64_t dropped[WEIR_TOPIC_COUNT]; /* messages for it, for one of these reasons */
	_Atomic int64_t message_bytes[WEIR_TOPIC_COUNT]; /* its max.message.bytes as read last; 0: not known */
	_Atomic bool settings_suspect;                   /* a topic has refused a message that these bytes should allow */

	_Atomic uint64_t found; /* how often brokers or topics were lost and found: consumers verify their topic again */
	_Atomic bool suspect;   /* a consumer had an error that may mean that its topic was lost */
};

static inline struct bus_kafka *weir_bus_kafka_of(struct weir_bus *bus)
{
	return (struct bus_kafka *)bus;
}

static inline uint32_t weir_bus_kafka_partitions(const struct bus_kafka *bus, enum weir_topic topic)
{
	return weir_topic_partitions(topic, bus->bus.partitions);
}

/* ---- bus_kafka_properties.c ---- */

/** Reads the properties of config->bus.kafka. Does not connect. */
WEIR_MUST_USE enum weir_status weir_bus_kafka_properties(const struct weir_config *config, const char *client,
                                                         const struct weir_log *log, struct weir_kafka **kafka,
                                                         struct weir_error *error);

/* ---- bus_kafka_topics.c ---- */

/*
 * Creates missing topics, or does what bus->absent says about them, and checks whether all partitions have a leader.
 *
 * @return WEIR_OK; WEIR_AGAIN: not ready yet, the error says what; WEIR_INVALID: a topic cannot be used; WEIR_END: with
 *         BUS_KAFKA_LEAVE, a topic is missing; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_make_topics(struct bus_kafka *bus, int timeout_ms,
                                                          struct weir_error *error);

/** Notes why a topic that may be missed cannot be used as it is. @param why  "": it can */
void weir_bus_kafka_note_unfit(struct bus_kafka *bus, enum weir_topic topic, const char *why);

/**
 * Whether weir goes on without what is wrong with a topic, as the topic may be missed; then it is noted. Not where the bus
 * was opened for that topic alone.
 *
 * @param status  what was found; WEIR_INVALID: it cannot be used as it is, and `why` says so
 */
bool weir_bus_kafka_pardons(struct bus_kafka *bus, enum weir_topic topic, enum weir_status status,
                            const struct weir_error *why);

/* ---- bus_kafka_check.c ---- */

/* A topic's settings on the brokers, as text; NULL: not reported. */
struct weir_bus_kafka_settings {
	const char *min_insync, *retention_ms, *retention_bytes, *message_bytes, *cleanup, *unclean, *segment_ms,
		*timestamp;
};

/**
 * Checks whether a topic with these settings can be used. What endangers exactness is an error, the rest a warning.
 *
 * @param warning  a sentence is appended for each warning
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check_settings(const struct weir_config *config, enum weir_topic topic,
                                                             const char *name,
                                                             const struct weir_bus_kafka_settings *settings,
                                                             struct weir_text *warning, struct weir_error *error);

/** Reads the settings of all topics and checks them. @return as weir_bus_kafka_make_topics() */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check_topics(struct bus_kafka *bus, int timeout_ms,
                                                           struct weir_error *error);

/**
 * Reads the settings of all topics again while the bus is open. Logs whose retention has changed, and what it means;
 * readiness ends while a start would refuse it. If no broker answers, all stays as it is.
 */
void weir_bus_kafka_check_again(struct bus_kafka *bus, int timeout_ms);

/* ---- bus_kafka_look.c: what was found of a topic is told in bus->looks ---- */

void weir_bus_kafka_look_topic(const struct bus_kafka *bus, enum weir_topic topic,
                               const rd_kafka_metadata_topic_t *metadata, enum weir_status status,
                               const struct weir_error *error);
void weir_bus_kafka_look_settings(const struct bus_kafka *bus, enum weir_topic topic,
                                  const struct weir_bus_kafka_settings *settings, const struct weir_text *warning,
                                  enum weir_status status, const struct weir_error *error);

/* ---- bus_kafka_signals.c ---- */

/** Notes a message that the brokers have just written. @param appended_ms  when, by their clock; 0: not known */
void weir_bus_kafka_note_append(struct bus_kafka *bus, int64_t appended_ms);

/** Logs that this machine's clock is wrong, while it is. @thread the watch's */
void weir_bus_kafka_tell_skew(struct bus_kafka *bus, struct weir_fault *fault);

/* ---- bus_kafka_watch.c ---- */

/** Reads the metadata of weir's topics, and notes whether brokers answer, for rd_kafka_metadata_destroy() to free. @return WEIR_OK; WEIR_IO: no answer */
WEIR_MUST_USE enum weir_status weir_bus_kafka_metadata(struct bus_kafka *bus, int timeout_ms,
                                                       const struct rd_kafka_metadata **metadata,
                                                       struct weir_error *error);
/** Notes what keeps the bus from working. @param problem  "": nothing */
void weir_bus_kafka_note_problem(struct bus_kafka *bus, const char *problem);
/** Starts the thread that checks each second whether Kafka works, and logs when that changes. */
WEIR_MUST_USE enum weir_status weir_bus_kafka_watch_start(struct bus_kafka *bus, struct weir_error *error);
void weir_bus_kafka_watch_stop(struct bus_kafka *bus);
bool weir_bus_kafka_problem(struct weir_bus *bus, char *text, size_t bytes);

/* ---- bus_kafka_producer.c, bus_kafka_consumer.c: see struct weir_bus_ops ---- */

WEIR_MUST_USE enum weir_status weir_kafka_producer_new(struct weir_bus *bus, struct weir_producer **producer,
                                                       struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_kafka_producer_send(struct weir_producer *producer, enum weir_topic topic,
                                                        uint32_t partition, struct weir_span key,
                                                        struct weir_span payload, uint64_t tag,
                                                        struct weir_error *error);
size_t weir_kafka_producer_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most,
                                int timeout_ms);
void weir_kafka_producer_wake(struct weir_producer *producer, int descriptor);
void weir_kafka_producer_free(struct weir_producer *producer);

extern const struct weir_kafka_property weir_kafka_producer_properties[];

/* ---- bus_kafka_letter.c ---- */

/**
 * Cuts a dead letter's text so that the letter, which then says that it is cut, has at most so many bytes.
 *
 * @param cut  returned
 * @return false: it is no dead letter, or has more without any text
 */
bool weir_kafka_letter_cut(struct weir_span letter, size_t most, struct weir_text *cut);

/* ---- bus_kafka_side.c: a producer's messages for topics that may be missed ---- */

struct bus_kafka_side;

/** @param bell  borrowed */
struct bus_kafka_side *weir_kafka_side_new(struct bus_kafka *bus, const struct bus_kafka_bell *bell);
void weir_kafka_side_free(struct bus_kafka_side *side);
/** Queues a message, or drops it. @return WEIR_OK; WEIR_FULL: poll and try again */
WEIR_MUST_USE enum weir_status weir_kafka_side_send(struct bus_kafka_side *side, enum weir_topic topic,
                                                    uint32_t partition, struct weir_span key, struct weir_span payload,
                                                    uint64_t tag, struct weir_error *error);
/** Takes up to `most` deliveries, each of WEIR_OK, and waits for none. */
size_t weir_kafka_side_poll(struct bus_kafka_side *side, struct weir_delivery *deliveries, size_t most);
/** The bell has changed. */
void weir_kafka_side_wake(struct bus_kafka_side *side);

WEIR_MUST_USE enum weir_status weir_kafka_consumer_new(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                                       struct weir_consumer **consumer, struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_kafka_consumer_assign(struct weir_consumer *consumer, uint32_t partition,
                                                          uint64_t offset, struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_kafka_consumer_resume(struct weir_consumer *consumer, uint32_t partition,
                                                          uint64_t offset, const struct weir_mark *mark,
                                                          struct weir_error *error);
void weir_kafka_consumer_unassign(struct weir_consumer *consumer, uint32_t partition);
void weir_kafka_consumer_pause(struct weir_consumer *consumer, uint32_t partition, bool paused);
WEIR_MUST_USE enum weir_status weir_kafka_consumer_receive(struct weir_consumer *consumer,
                                                           struct weir_message *messages, size_t most, int timeout_ms,
                                                           size_t *count, struct weir_error *error);
uint64_t weir_kafka_consumer_position(const struct weir_consumer *consumer, uint32_t partition);
uint64_t weir_kafka_consumer_waiting(const struct weir_consumer *consumer, uint32_t partition);
void weir_kafka_consumer_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset);
void weir_kafka_consumer_wake(struct weir_consumer *consumer, int descriptor);
void weir_kafka_consumer_free(struct weir_consumer *consumer);

/** Asks a partition's leader for the first readable and the next offset. */
WEIR_MUST_USE enum weir_status weir_bus_kafka_extent(struct bus_kafka *bus, enum weir_topic topic, uint32_t partition,
                                                     int timeout_ms, uint64_t *first, uint64_t *next,
                                                     struct weir_error *error);

#endif
