/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus over Kafka, and what a group's member knows of its partitions.
 *
 * Topics are PREFIX.events, PREFIX.decisions and so on. Properties of the
 * configuration's bus.kafka are passed to librdkafka under their own names. Those
 * on which exactness depends are set here, and a configuration may not set them.
 */
#ifndef WEIR_COMMON_BUS_KAFKA_H
#define WEIR_COMMON_BUS_KAFKA_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/log/metrics.h"

#include <stdbool.h>

enum {
	WEIR_BUS_KAFKA_PREFIX_MAX_BYTES = 200,
	WEIR_BUS_KAFKA_TOPIC_BYTES = 250, /* a topic's name, terminated */
};

/** "PREFIX.events", ... for a prefix of at most WEIR_BUS_KAFKA_PREFIX_MAX_BYTES. */
void weir_bus_kafka_topic_name(const char *prefix, enum weir_topic topic, char name[WEIR_BUS_KAFKA_TOPIC_BYTES]);

/** Checks bus.prefix and the properties of bus.kafka, for --check. Does not connect. */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check(const struct weir_config *config, struct weir_error *error);

/**
 * Connects, and creates missing topics. Checks existing ones: partitions, replication, min.insync.replicas, message
 * size, clean-up policy, and retention against the policy's longest block and the checkpoint interval. What endangers
 * exactness is an error; what only reduces safety is a warning.
 *
 * @param config   borrowed as long as the bus is open
 * @param awaited  set first to a bus that already has metrics, and whether it is ready; NULL: nobody looks meanwhile. If
 *                 opening fails, that one is still open: the caller closes it, or ends
 * @param wait_ms  how long to retry if no broker answers; each problem is logged once
 * @param stop     ends the waiting when set; NULL: none
 * @param log      borrowed as long as the bus is open
 * @return WEIR_OK; WEIR_INVALID: a topic or a property cannot be used; WEIR_IO: no broker answered in that time
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open(const struct weir_config *config, const char *client,
                                                   _Atomic(struct weir_bus *) *awaited, int64_t wait_ms,
                                                   const _Atomic bool *stop, const struct weir_log *log,
                                                   struct weir_bus **bus, struct weir_error *error);

/**
 * As weir_bus_kafka_open(), but changes nothing: asks the brokers whether missing topics could be created.
 *
 * @param missing  set to the topics that weir_bus_kafka_open() would create; the bus cannot be used for these
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open_existing(const struct weir_config *config, const char *client,
                                                            int64_t wait_ms, const _Atomic bool *stop,
                                                            const struct weir_log *log, bool missing[WEIR_TOPIC_COUNT],
                                                            struct weir_bus **bus, struct weir_error *error);

/**
 * As weir_bus_kafka_open(), but creates nothing, and the bus can be used for one topic only: for programs that need, or
 * may do, no more. Of a topic with more partitions than configured, all are read: the bus's `partitions` is their number.
 *
 * @param awaited  NULL: returns WEIR_END for a topic that does not exist. Otherwise such a topic is waited for, which is
 *                 logged, and this is set as weir_bus_kafka_open() does
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open_topic(const struct weir_config *config, const char *client,
                                                         enum weir_topic topic, _Atomic(struct weir_bus *) *awaited,
                                                         int64_t wait_ms, const _Atomic bool *stop,
                                                         const struct weir_log *log, struct weir_bus **bus,
                                                         struct weir_error *error);

enum weir_topic_fault {
	WEIR_TOPIC_GOOD,
	WEIR_TOPIC_MISSING,
	WEIR_TOPIC_PARTITIONS, /* another number than configured */
	WEIR_TOPIC_UNSERVED,   /* a partition has no leader, or too few replicas to be written to */
	WEIR_TOPIC_SETTINGS,   /* an opening would refuse it */
	WEIR_TOPIC_DOUBTFUL,   /* an opening would warn of it */
};

/* What there is to say of a topic. */
struct weir_bus_kafka_look {
	enum weir_topic_fault fault;
	uint32_t partitions;               /* that it has */
	const char *setting;               /* the topic's setting that is wrong: "retention.ms"; NULL: none alone */
	char words[WEIR_ERROR_TEXT_BYTES]; /* of the last four */
};

/**
 * As weir_bus_kafka_open_existing(), but asks for nothing to be created, and refuses no topic: what an opening would
 * refuse is told. The bus can be asked about topics that are there.
 *
 * @param looks  set, by topic; borrowed until this returns
 * @return WEIR_OK; WEIR_INVALID: a property cannot be used; WEIR_IO: no broker answered in that time
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open_looking(const struct weir_config *config, const char *client,
                                                           int64_t wait_ms, const struct weir_log *log,
                                                           struct weir_bus_kafka_look looks[WEIR_TOPIC_COUNT],
                                                           struct weir_bus **bus, struct weir_error *error);

/** Called with a member of a group and the partitions of the events that the group has given to it. */
typedef void weir_bus_kafka_member(void *context, const char *client, const char *host, const uint32_t *partitions,
                                   size_t count);

/**
 * Calls for each member of a consumer group.
 *
 * @param name  as for weir_group_join()
 * @return WEIR_OK; WEIR_IO: the brokers do not tell
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_members(struct weir_bus *bus, const char *name, int timeout_ms,
                                                      weir_bus_kafka_member *each, void *context,
                                                      struct weir_error *error);

/**
 * The first offset of a partition whose message has this time, or a later one, by the log's clock.
 *
 * @return WEIR_OK; WEIR_END: there is none; WEIR_IO: the brokers do not tell
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_offset_at(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                                        int64_t time_ms, uint64_t *offset, struct weir_error *error);

/* How long the brokers keep a message of a topic. */
struct weir_bus_kafka_retention {
	bool known;
	int64_t ms;         /* retention.ms; < 0: forever */
	int64_t segment_ms; /* segment.ms: it may be kept this much longer, until its segment file is closed */
};

/** A topic's retention, as the brokers reported it last: they are asked every ten seconds. @thread any */
struct weir_bus_kafka_retention weir_bus_kafka_retention(struct weir_bus *bus, enum weir_topic topic);

/**
 * Checks that the topics of decisions keep them for as long as the longest block of a policy. Opening the bus has
 * checked only the configuration's own zones; the topics' retention is the one read last.
 *
 * @return WEIR_OK; WEIR_INVALID
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check_policy(struct weir_bus *bus, const struct weir_policy *policy,
                                                           struct weir_error *error);

/* ---- what metrics and pages show ---- */

extern const struct weir_metric_table weir_bus_kafka_metric_table;

/**
 * Says which topics this process reads or writes; by default, all. The others may be away without being a problem, and
 * so may those of weir_topic_may_be_missed(), which then have a line of their own in the log.
 */
void weir_bus_kafka_use(struct weir_bus *bus, const bool topics[WEIR_TOPIC_COUNT]);
/**
 * Says that this process publishes nothing in a topic of weir_topic_may_be_missed(): its line says only that it is not there,
 * and nothing of what is dropped. Whoever reads it says why it cannot be read.
 */
void weir_bus_kafka_only_read(struct weir_bus *bus, enum weir_topic topic);

/** Appends the bus's metrics. @param bus  NULL: it is not open yet @param partitions  bus.partitions @thread any */
void weir_bus_kafka_metrics(struct weir_bus *bus, uint32_t partitions, struct weir_text *page);

/** Whether the brokers answer, and a topic exists and can be written. @thread any */
bool weir_bus_kafka_serves(struct weir_bus *bus, enum weir_topic topic);

/**
 * Whether the brokers answer, the topics that this process needs can be written, and a start would accept them.
 * Otherwise appends why not, and since when, in lines. @thread any
 */
bool weir_bus_kafka_ready(struct weir_bus *bus, struct weir_text *why);

/** Appends why a bus that is being opened is not open yet, in a line. @param awaited  NULL: it has not begun @thread any */
void weir_bus_kafka_awaits(struct weir_bus *awaited, struct weir_text *why);

/** Appends the names of the topics whose element is set, separated by ", ". @return how many there are */
size_t weir_bus_kafka_topic_names(const char *prefix, const bool topics[WEIR_TOPIC_COUNT], struct weir_text *names);

/*
 * Membership of a consumer group, without fetching. The group says which
 * partitions of the events are this process's; consumers of the bus read them. So
 * a rebalance stops nothing, and epochs decide who may write state.
 */
struct weir_group;

/** @param name  the part after the prefix: "limiter" is PREFIX.limiter @thread the handle belongs to one thread */
WEIR_MUST_USE enum weir_status weir_group_join(struct weir_bus *bus, const char *name, struct weir_group **group,
                                               struct weir_error *error);

/**
 * Serves the membership, waiting at most timeout_ms.
 *
 * @param owned       bus->partitions elements: set to the group's last assignment to this process
 * @param generation  increases with every assignment; 0: there was none yet, or membership was lost and `owned` is all
 *                    false
 * @return WEIR_OK; WEIR_IO: the group does not answer, and `owned` is unchanged
 */
WEIR_MUST_USE enum weir_status weir_group_poll(struct weir_group *group, int timeout_ms, bool *owned,
                                               uint64_t *generation, struct weir_error *error);

/** Leaves the group, within about five seconds, so that others take its partitions at once. */
void weir_group_leave(struct weir_group *group);

#endif
