/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at everything that a bus's opening would refuse, and refuses nothing: each topic is told with what is wrong with
 * it, and the bus can be used for the topics that are there.
 *
 * Which of a topic's settings is the wrong one is found by asking again without it: so the rules stand in one place,
 * weir_bus_kafka_check_settings().
 */
#include "common/bus/kafka/internal.h"

#include "common/base/words.h"

#include <stdio.h>
#include <string.h>

/* Settings that a command can put right, in the order in which they are suspected. */
static const struct {
	const char *name;
	size_t place; /* in struct weir_bus_kafka_settings */
} curable[] = {
	{"retention.ms", offsetof(struct weir_bus_kafka_settings, retention_ms)},
	{"cleanup.policy", offsetof(struct weir_bus_kafka_settings, cleanup)},
	{"min.insync.replicas", offsetof(struct weir_bus_kafka_settings, min_insync)},
	{"max.message.bytes", offsetof(struct weir_bus_kafka_settings, message_bytes)},
	{"retention.bytes", offsetof(struct weir_bus_kafka_settings, retention_bytes)},
	{"unclean.leader.election.enable", offsetof(struct weir_bus_kafka_settings, unclean)},
	{"message.timestamp.type", offsetof(struct weir_bus_kafka_settings, timestamp)},
};

/* @return whether nothing is said of these settings */
static bool passes(const struct bus_kafka *bus, enum weir_topic topic, const struct weir_bus_kafka_settings *settings)
{
	struct weir_text warning = {0};
	struct weir_error error;
	enum weir_status status =
		weir_bus_kafka_check_settings(bus->config, topic, bus->names[topic], settings, &warning, &error);
	bool good = status == WEIR_OK && warning.length == 0;
	weir_text_deinit(&warning);
	return good;
}

static const char *find_culprit(const struct bus_kafka *bus, enum weir_topic topic,
                                const struct weir_bus_kafka_settings *settings)
{
	for (size_t i = 0; i < sizeof curable / sizeof *curable; i++) {
		struct weir_bus_kafka_settings without = *settings;
		*(const char **)((char *)&without + curable[i].place) = NULL;
		if (passes(bus, topic, &without))
			return curable[i].name;
	}
	return NULL;
}

void weir_bus_kafka_look_settings(const struct bus_kafka *bus, enum weir_topic topic,
                                  const struct weir_bus_kafka_settings *settings, const struct weir_text *warning,
                                  enum weir_status status, const struct weir_error *error)
{
	struct weir_bus_kafka_look *look = &bus->looks[topic];
	if (look->fault != WEIR_TOPIC_GOOD || (status == WEIR_OK && warning->length == 0))
		return;
	look->fault = status != WEIR_OK ? WEIR_TOPIC_SETTINGS : WEIR_TOPIC_DOUBTFUL;
	if (status != WEIR_OK)
		snprintf(look->words, sizeof look->words, "%s", error->text);
	else
		snprintf(look->words, sizeof look->words, "%.*s", (int)warning->length - 1, warning->at);
	look->setting = find_culprit(bus, topic, settings);
}

void weir_bus_kafka_look_topic(const struct bus_kafka *bus, enum weir_topic topic,
                               const rd_kafka_metadata_topic_t *metadata, enum weir_status status,
                               const struct weir_error *error)
{
	struct weir_bus_kafka_look *look = &bus->looks[topic];
	*look = (struct weir_bus_kafka_look){.partitions = (uint32_t)metadata->partition_cnt};
	if (metadata->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
		look->fault = WEIR_TOPIC_MISSING;
	else if (status == WEIR_AGAIN)
		look->fault = WEIR_TOPIC_UNSERVED;
	else if (metadata->err == RD_KAFKA_RESP_ERR_NO_ERROR && look->partitions != weir_bus_kafka_partitions(bus, topic))
		look->fault = WEIR_TOPIC_PARTITIONS;
	else if (status != WEIR_OK)
		look->fault = WEIR_TOPIC_SETTINGS;
	for (int i = 0; look->fault == WEIR_TOPIC_GOOD && i < metadata->partition_cnt; i++)
		if (metadata->partitions[i].isr_cnt < bus->config->bus.min_insync) {
			look->fault = WEIR_TOPIC_UNSERVED;
			snprintf(look->words, sizeof look->words,
			         "%s partition %d has %d in-sync replicas; it needs %lld before anything is acknowledged",
			         metadata->topic, i, metadata->partitions[i].isr_cnt, (long long)bus->config->bus.min_insync);
		}
	if (status != WEIR_OK)
		snprintf(look->words, sizeof look->words, "%s", error->text);
}

/* ---- the group ---- */

static void tell_member(const rd_kafka_MemberDescription_t *member, const char *topic, weir_bus_kafka_member *each,
                        void *context)
{
	const rd_kafka_MemberAssignment_t *assignment = rd_kafka_MemberDescription_assignment(member);
	const rd_kafka_topic_partition_list_t *list =
		assignment != NULL ? rd_kafka_MemberAssignment_partitions(assignment) : NULL;
	const char *host = rd_kafka_MemberDescription_host(member), *client = rd_kafka_MemberDescription_client_id(member);
	uint32_t partitions[WEIR_BUS_PARTITIONS_MAX];
	size_t count = 0;
	for (int i = 0; list != NULL && i < list->cnt && count < WEIR_BUS_PARTITIONS_MAX; i++)
		if (strcmp(list->elems[i].topic, topic) == 0)
			partitions[count++] = (uint32_t)list->elems[i].partition;
	each(context, client != NULL ? client : "?", host != NULL ? host : "?", partitions, count);
}

static enum weir_status tell_members(const struct bus_kafka *bus, rd_kafka_event_t *event, const char *id,
                                     weir_bus_kafka_member *each, void *context, struct weir_error *error)
{
	size_t count = 0;
	const rd_kafka_ConsumerGroupDescription_t **groups =
		rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(event), &count);
	if (count == 0)
		return weir_fail(error, WEIR_IO, "the brokers do not tell of consumer group %s", id);
	const rd_kafka_error_t *failed = rd_kafka_ConsumerGroupDescription_error(groups[0]);
	if (failed != NULL)
		return weir_fail(error, WEIR_IO, "consumer group %s: %s", id, rd_kafka_error_string(failed));
	size_t members = rd_kafka_ConsumerGroupDescription_member_count(groups[0]);
	for (size_t i = 0; i < members; i++)
		tell_member(rd_kafka_ConsumerGroupDescription_member(groups[0], i), bus->names[WEIR_TOPIC_EVENTS], each,
		            context);
	return WEIR_OK;
}

enum weir_status weir_bus_kafka_members(struct weir_bus *base, const char *name, int timeout_ms,
                                        weir_bus_kafka_member *each, void *context, struct weir_error *error)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	char id[WEIR_BUS_KAFKA_TOPIC_BYTES], words[WEIR_ERROR_TEXT_BYTES / 2];
	snprintf(id, sizeof id, "%s.%s", bus->config->bus.prefix, name);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(bus->control);
	rd_kafka_AdminOptions_t *options =
		rd_kafka_AdminOptions_new(bus->control, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
	rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, words, sizeof words);
	const char *ids[] = {id};
	rd_kafka_DescribeConsumerGroups(bus->control, ids, 1, options, queue);
	rd_kafka_event_t *event = weir_kafka_queue_poll(queue, timeout_ms);
	enum weir_status status;
	if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		status = weir_fail(error, WEIR_IO, "consumer group %s: %s", id,
		                   event != NULL ? rd_kafka_event_error_string(event) : "no answer");
	else
		status = tell_members(bus, event, id, each, context, error);
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_queue_destroy(queue);
	return status;
}
