/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus over Kafka, and what a group's member knows of its partitions.
 *
 * Topics are PREFIX.events, PREFIX.decisions and so on. Properties of the
 * configuration's bus.kafka pass to librdkafka under their own names; those on
 * which exactness rests are set here and refused there.
 */
#ifndef WEIR_COMMON_BUS_KAFKA_H
#define WEIR_COMMON_BUS_KAFKA_H

#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/config/config.h"

#include <stdbool.h>

enum {
	WEIR_BUS_KAFKA_PREFIX_MAX_BYTES = 200,
	WEIR_BUS_KAFKA_TOPIC_BYTES = 250, /* a topic's name, terminated */
};

/** "PREFIX.events", ... for a prefix of at most WEIR_BUS_KAFKA_PREFIX_MAX_BYTES. */
void weir_bus_kafka_topic_name(const char *prefix, enum weir_topic topic, char name[WEIR_BUS_KAFKA_TOPIC_BYTES]);

/** Whether bus.prefix and the properties of bus.kafka can serve; connects to nothing: for --check. */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check(const struct weir_config *config, struct weir_error *error);

/**
 * Connects, and makes the topics that are missing; those that are there are checked: partitions, replication,
 * min.insync.replicas, message size, clean-up policy, and retention against the policy's longest block and the
 * checkpoint's interval. What endangers exactness is refused, what only costs safety is a warning.
 *
 * @param config   borrowed for as long as the bus is open
 * @param wait_ms  how long a broker that does not answer is tried; each problem is logged once
 * @param stop     ends the waiting when set; NULL: none
 * @param log      borrowed likewise
 * @return WEIR_OK; WEIR_INVALID: a topic, or a property, that cannot serve; WEIR_IO: no broker in that time
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open(const struct weir_config *config, const char *client,
                                                   int64_t wait_ms, const _Atomic bool *stop,
                                                   const struct weir_log *log, struct weir_bus **bus,
                                                   struct weir_error *error);

/**
 * As weir_bus_kafka_open(), but changes nothing: the brokers are asked whether the missing topics could be made.
 *
 * @param missing  set: the topics that an open would make; the bus cannot be used for these
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open_existing(const struct weir_config *config, const char *client,
                                                            int64_t wait_ms, const _Atomic bool *stop,
                                                            const struct weir_log *log, bool missing[WEIR_TOPIC_COUNT],
                                                            struct weir_bus **bus, struct weir_error *error);

/**
 * As weir_bus_kafka_open(), but makes nothing, and the bus is good for one topic alone: for who may, or wants to, do no
 * more than that.
 *
 * @param awaited  while the topic is not there, that is said and waited for; false: WEIR_END
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_open_topic(const struct weir_config *config, const char *client,
                                                         enum weir_topic topic, bool awaited, int64_t wait_ms,
                                                         const _Atomic bool *stop, const struct weir_log *log,
                                                         struct weir_bus **bus, struct weir_error *error);

/* How long the brokers keep a message of a topic. */
struct weir_bus_kafka_retention {
	bool known;
	int64_t ms;         /* retention.ms; < 0: forever */
	int64_t segment_ms; /* segment.ms: so much longer it may be, until the file that it is in is closed */
};

/** As the brokers said when the bus was opened. */
struct weir_bus_kafka_retention weir_bus_kafka_retention(struct weir_bus *bus, enum weir_topic topic);

/**
 * Whether the topics of decisions keep them for as long as the longest block of a policy; as they were when the bus was
 * opened, which looked only at the configuration's own zones.
 *
 * @return WEIR_OK; WEIR_INVALID
 */
WEIR_MUST_USE enum weir_status weir_bus_kafka_check_policy(struct weir_bus *bus, const struct weir_policy *policy,
                                                           struct weir_error *error);

/** Appends the names of the topics that are set, ", " between them. @return how many there are */
size_t weir_bus_kafka_topic_names(const char *prefix, const bool topics[WEIR_TOPIC_COUNT], struct weir_text *names);

/*
 * Membership of a consumer group, apart from fetching: the group says which
 * partitions of the events are this process's; consumers of the bus read them.
 * So a rebalance stops nothing, and who may write state is decided by epochs.
 */
struct weir_group;

/** @param name  behind the prefix: "limiter" is PREFIX.limiter. @thread the handle belongs to one thread */
WEIR_MUST_USE enum weir_status weir_group_join(struct weir_bus *bus, const char *name, struct weir_group **group,
                                               struct weir_error *error);

/**
 * Serves the membership, waiting at most timeout_ms.
 *
 * @param owned       bus->partitions of them: set to what the group gave this process when it last spoke
 * @param generation  rises with every assignment that the group has spoken; 0: it has not spoken yet, or the
 *                    membership was lost and `owned` is all false
 * @return WEIR_OK; WEIR_IO: the group does not answer: `owned` is what it was
 */
WEIR_MUST_USE enum weir_status weir_group_poll(struct weir_group *group, int timeout_ms, bool *owned,
                                               uint64_t *generation, struct weir_error *error);

/** Leaves the group, within about five seconds; then the others take its partitions at once. */
void weir_group_leave(struct weir_group *group);

#endif
