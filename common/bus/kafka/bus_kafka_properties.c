/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The properties that bus.kafka may set: all except those that order, durability
 * and offsets depend on. weir sets these itself, and rejects a configuration that
 * names one instead of silently overriding it.
 */
#include "common/bus/kafka/internal.h"

#include <stdio.h>
#include <string.h>

#define EXACTNESS "weir sets it, because exactly-once depends on it; remove it"
#define PLACE "weir keeps its offsets itself; remove it"
#define GROUP "the group name is \"bus.prefix\" and the role; remove it"
#define BOUNDS "weir sets it to its own limits; remove it"

static const struct weir_kafka_refusal refusals[] = {
	{"bootstrap.servers", "set the brokers in \"bus.brokers\""},
	{"metadata.broker.list", "set the brokers in \"bus.brokers\""},
	{"enable.idempotence", EXACTNESS},
	{"enable.gapless.guarantee", EXACTNESS},
	{"acks", EXACTNESS},
	{"request.required.acks", EXACTNESS},
	{"max.in.flight", EXACTNESS},
	{"max.in.flight.requests.per.connection", EXACTNESS},
	{"message.timeout.ms", EXACTNESS},
	{"delivery.timeout.ms", EXACTNESS},
	{"retries", EXACTNESS},
	{"message.send.max.retries", EXACTNESS},
	{"transactional.id", EXACTNESS},
	{"queuing.strategy", EXACTNESS},
	{"delivery.report.only.error", EXACTNESS},
	{"isolation.level", EXACTNESS},
	{"auto.offset.reset", EXACTNESS},
	{"enable.auto.commit", PLACE},
	{"auto.commit.enable", PLACE},
	{"auto.commit.interval.ms", PLACE},
	{"enable.auto.offset.store", PLACE},
	{"offset.store.method", PLACE},
	{"offset.store.path", PLACE},
	{"offset.store.sync.interval.ms", PLACE},
	{"enable.partition.eof", PLACE},
	{"group.id", GROUP},
	{"group.instance.id", "a member that leaves must give up its partitions at once; remove it"},
	{"group.protocol", "weir uses the classic protocol; remove it"},
	{"group.remote.assignor", "weir uses the classic protocol; remove it"},
	{"group.protocol.type", GROUP},
	{"partition.assignment.strategy", "weir needs \"range\" and sets it; remove it"},
	{"allow.auto.create.topics", "weir creates its topics itself, with their settings; remove it"},
	{"message.max.bytes", BOUNDS},
	{"receive.message.max.bytes", BOUNDS},
	{"fetch.max.bytes", BOUNDS},
	{"fetch.message.max.bytes", BOUNDS},
	{"max.partition.fetch.bytes", BOUNDS},
	{"queue.buffering.max.messages", BOUNDS},
	{"queue.buffering.max.kbytes", BOUNDS},
	{"statistics.interval.ms", "nothing reads them, so they would pile up; remove it"},
	{"log.queue", "nothing reads it, so it would pile up; remove it"},
	{"enabled_events", "weir sets it for each of its clients; remove it"},
	{NULL, NULL},
};

void weir_bus_kafka_topic_name(const char *prefix, enum weir_topic topic, char name[WEIR_BUS_KAFKA_TOPIC_BYTES])
{
	snprintf(name, WEIR_BUS_KAFKA_TOPIC_BYTES, "%s%s", prefix, weir_topic_name(topic) + strlen("weir"));
}

/* Whether Kafka accepts the prefix as the beginning of topic names. */
static enum weir_status check_prefix(const struct weir_config *config, struct weir_error *error)
{
	const char *prefix = config->bus.prefix;
	size_t length = strlen(prefix);
	if (length > 0 && length <= WEIR_BUS_KAFKA_PREFIX_MAX_BYTES &&
	    strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length)
		return WEIR_OK;
	struct weir_json root = weir_json_root(config->document), bus = weir_json_member(&root, "bus");
	struct weir_json at = weir_json_member(&bus, "prefix");
	return weir_json_fail(&at, error, "must be 1 to %d letters, digits, '.', '_' or '-' (topic names begin with it)",
	                      WEIR_BUS_KAFKA_PREFIX_MAX_BYTES);
}

enum weir_status weir_bus_kafka_properties(const struct weir_config *config, const char *client,
                                           const struct weir_log *log, struct weir_kafka **kafka,
                                           struct weir_error *error)
{
	struct weir_kafka_options options = {.part = "bus",
	                                     .client = client,
	                                     .brokers = config->bus.brokers,
	                                     .settings = config->bus.kafka,
	                                     .refusals = refusals,
	                                     .log = log};
	enum weir_status status = check_prefix(config, error);
	return status == WEIR_OK ? weir_kafka_new(&options, kafka, error) : status;
}

/* Opens a handle, as properties that are known and allowed may still be inconsistent with one another. */
enum weir_status weir_bus_kafka_check(const struct weir_config *config, struct weir_error *error)
{
	struct weir_log silent = {.fd = -1, .level = WEIR_LOG_ERROR};
	struct weir_kafka *kafka;
	rd_kafka_t *handle;
	enum weir_status status = weir_bus_kafka_properties(config, "weir", &silent, &kafka, error);
	if (status != WEIR_OK)
		return status;
	status = weir_kafka_open(kafka, RD_KAFKA_CONSUMER, weir_kafka_conf(kafka, NULL), &handle, error);
	if (status == WEIR_OK)
		weir_kafka_end(handle, BUS_KAFKA_END_MS);
	weir_kafka_free(kafka);
	return status;
}
