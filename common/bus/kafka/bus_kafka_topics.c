/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates missing topics, with the settings that weir's guarantees need. Several
 * roles may start at once, so a topic that was created meanwhile is used as it is.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SEEN_UNKNOWN, SEEN_MISSING, SEEN_READY };

static void set(rd_kafka_NewTopic_t *topic, const char *name, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, value);
	rd_kafka_NewTopic_set_config(topic, name, text);
}

static rd_kafka_NewTopic_t *describe(const struct bus_kafka *bus, enum weir_topic topic)
{
	const struct weir_config *config = bus->config;
	char words[WEIR_ERROR_TEXT_BYTES / 2];
	rd_kafka_NewTopic_t *made = rd_kafka_NewTopic_new(bus->names[topic], (int)weir_bus_kafka_partitions(bus, topic),
	                                                  (int)config->bus.replication, words, sizeof words);
	assert(made != NULL); /* it rejects only numbers that a configuration cannot have */
	set(made, "min.insync.replicas", config->bus.min_insync);
	set(made, "max.message.bytes", BUS_KAFKA_MESSAGE_MAX_BYTES);
	rd_kafka_NewTopic_set_config(made, "unclean.leader.election.enable", "false");
	if (topic == WEIR_TOPIC_POLICY) {
		rd_kafka_NewTopic_set_config(made, "cleanup.policy", "compact");
	} else {
		rd_kafka_NewTopic_set_config(made, "cleanup.policy", "delete");
		set(made, "retention.ms", config->bus.retention_ms);
		set(made, "retention.bytes", -1);
	}
	if (topic == WEIR_TOPIC_EVENTS) /* a second clock, against which limiters check the senders' clocks */
		rd_kafka_NewTopic_set_config(made, "message.timestamp.type", "LogAppendTime");
	return made;
}

void weir_bus_kafka_note_unfit(struct bus_kafka *bus, enum weir_topic topic, const char *why)
{
	pthread_mutex_lock(&bus->lock);
	snprintf(bus->unfit[topic], sizeof bus->unfit[topic], "%s", why);
	pthread_mutex_unlock(&bus->lock);
}

bool weir_bus_kafka_pardons(struct bus_kafka *bus, enum weir_topic topic, enum weir_status status,
                            const struct weir_error *why)
{
	if (status != WEIR_INVALID || bus->sole || bus->absent == BUS_KAFKA_LOOK || !weir_topic_may_be_missed(topic))
		return false;
	weir_bus_kafka_note_unfit(bus, topic, why->text);
	return true;
}

/* Reads the result of the request for one topic. */
static enum weir_status take_made(const struct bus_kafka *bus, const rd_kafka_topic_result_t *result,
                                  struct weir_error *error)
{
	const char *name = rd_kafka_topic_result_name(result), *words = rd_kafka_topic_result_error_string(result);
	rd_kafka_resp_err_t code = rd_kafka_topic_result_error(result);
	if (words == NULL)
		words = rd_kafka_err2str(code);
	switch (code) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		if (bus->absent == BUS_KAFKA_MAKE)
			weir_log(bus->log, WEIR_LOG_INFO, "bus", "created topic %s", name);
		return WEIR_OK;
	case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: return WEIR_OK;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: /* a right may come back: it is waited for */
		return weir_fail(error, WEIR_IO, "topic %s is missing and cannot be created: %s", name, words);
	case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
	case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
		return weir_fail(error, WEIR_INVALID, "topic %s is missing and cannot be created: %s", name, words);
	case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
		return weir_fail(error, WEIR_IO, "topic %s is missing and cannot be created with \"bus.replication\" %lld: %s",
		                 name, (long long)bus->config->bus.replication, words);
	default: return weir_fail(error, WEIR_IO, "topic %s is missing and was not created: %s", name, words);
	}
}

/* Whether brokers that are asked again say the same. */
static bool is_refusal(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
	       code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED || code == RD_KAFKA_RESP_ERR_POLICY_VIOLATION ||
	       code == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION || code == RD_KAFKA_RESP_ERR_INVALID_CONFIG;
}

/* A topic that the brokers refuse to create, where weir goes on without it. */
static bool is_done_without(struct bus_kafka *bus, const rd_kafka_topic_result_t *result)
{
	int topic = 0;
	while (topic < WEIR_TOPIC_COUNT && strcmp(bus->names[topic], rd_kafka_topic_result_name(result)) != 0)
		topic++;
	if (topic == WEIR_TOPIC_COUNT || bus->sole || !is_refusal(rd_kafka_topic_result_error(result)) ||
	    !weir_topic_may_be_missed((enum weir_topic)topic))
		return false;
	bus->uncreatable[topic] = true;
	atomic_store(&bus->gone[topic], true);
	return true;
}

/* Creates the missing topics, or only asks whether they could be created. */
static enum weir_status make(struct bus_kafka *bus, const int *seen, int timeout_ms, struct weir_error *error)
{
	rd_kafka_NewTopic_t *wanted[WEIR_TOPIC_COUNT];
	char words[WEIR_ERROR_TEXT_BYTES / 2];
	struct weir_error failure;
	size_t count = 0;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (seen[topic] == SEEN_MISSING)
			wanted[count++] = describe(bus, (enum weir_topic)topic);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(bus->control);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(bus->control, RD_KAFKA_ADMIN_OP_CREATETOPICS);
	rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, words, sizeof words);
	rd_kafka_AdminOptions_set_validate_only(options, bus->absent == BUS_KAFKA_TRY, words, sizeof words);
	rd_kafka_CreateTopics(bus->control, wanted, count, options, queue);
	rd_kafka_event_t *event = weir_kafka_queue_poll(queue, timeout_ms + BUS_KAFKA_ASK_MS);
	enum weir_status status = WEIR_OK;
	if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
		status = weir_fail(error, WEIR_IO, "the missing topics were not created: %s",
		                   event != NULL ? rd_kafka_event_error_string(event) : "no answer");
	} else {
		const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
		size_t results;
		const rd_kafka_topic_result_t **each = rd_kafka_CreateTopics_result_topics(result, &results);
		for (size_t i = 0; i < results && status == WEIR_OK; i++)
			if (take_made(bus, each[i], &failure) != WEIR_OK && !is_done_without(bus, each[i]))
				status = weir_fail(error, failure.status, "%s", failure.text);
	}
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_NewTopic_destroy_array(wanted, count);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_queue_destroy(queue);
	return status;
}

/*
 * What reads one topic alone reads all the partitions that it has, whatever else somebody configured or added: it need not
 * know which key belongs where.
 */
static bool takes_all(struct bus_kafka *bus, enum weir_topic topic, int count)
{
	uint32_t configured = weir_topic_partitions(topic, (uint32_t)bus->config->bus.partitions);
	if (!bus->sole || configured == 1 || count <= (int)configured || count > WEIR_BUS_PARTITIONS_MAX)
		return false;
	if (bus->bus.partitions != (uint32_t)count)
		weir_log(
			bus->log, WEIR_LOG_WARNING, "bus",
			"topic %s has %d partitions, and \"bus.partitions\" is %u: all are read. Either partitions were added to "
			"it, and a daemon that starts ends at once, or this configuration is wrong (runbook: partitions-changed)",
			bus->names[topic], count, configured);
	bus->bus.partitions = (uint32_t)count;
	return true;
}

/* Checks the metadata of one topic. */
static enum weir_status look(struct bus_kafka *bus, enum weir_topic topic, const rd_kafka_metadata_topic_t *metadata,
                             int *seen, struct weir_error *error)
{
	uint32_t partitions = weir_bus_kafka_partitions(bus, topic);
	*seen = SEEN_UNKNOWN;
	switch (metadata->err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR: break;
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: *seen = SEEN_MISSING; return WEIR_OK;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: /* a right may come back: it is waited for */
		return weir_fail(error, WEIR_IO, "topic %s: %s", metadata->topic, rd_kafka_err2str(metadata->err));
	default: return weir_fail(error, WEIR_AGAIN, "topic %s: %s", metadata->topic, rd_kafka_err2str(metadata->err));
	}
	if (metadata->partition_cnt != (int)partitions && !takes_all(bus, topic, metadata->partition_cnt))
		return weir_fail(
			error, WEIR_INVALID,
			"topic %s has %d partitions, not %u. The number cannot change once the topic has data%s (runbook: "
			"partitions-changed)",
			metadata->topic, metadata->partition_cnt, partitions,
			partitions > 1 ? ": where the configuration is wrong, set \"bus.partitions\" to it; where "
							 "partitions were added to the topic, delete the topic and create it again"
						   : ": delete the topic and create it again");
	for (int i = 0; i < metadata->partition_cnt; i++)
		if (metadata->partitions[i].leader < 0)
			return weir_fail(error, WEIR_AGAIN, "%s partition %d has no leader yet", metadata->topic,
			                 metadata->partitions[i].id);
	*seen = SEEN_READY;
	bus->replicas[topic] = metadata->partitions[0].replica_cnt;
	if (metadata->partitions[0].replica_cnt < bus->config->bus.min_insync)
		return weir_fail(
			error, WEIR_INVALID,
			"topic %s has replication factor %d, less than the %lld of \"bus.min_insync\": no message can ever be "
			"acknowledged",
			metadata->topic, metadata->partitions[0].replica_cnt, (long long)bus->config->bus.min_insync);
	return WEIR_OK;
}

/* Does what bus->absent says about missing topics. @param looked  WEIR_AGAIN: others are not ready yet */
static enum weir_status handle_missing(struct bus_kafka *bus, const int *seen, enum weir_status looked, int timeout_ms,
                                       struct weir_error *error)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		bus->missing[topic] = seen[topic] == SEEN_MISSING;
		if (bus->missing[topic] && (bus->absent == BUS_KAFKA_AWAIT || bus->absent == BUS_KAFKA_LEAVE))
			return weir_fail(error, bus->absent == BUS_KAFKA_AWAIT ? WEIR_IO : WEIR_END,
			                 "topic %s does not exist yet: the first limiter or `weir policy apply %s` creates it",
			                 bus->names[topic], weir_config_zones_words(bus->config));
	}
	if (bus->absent == BUS_KAFKA_LOOK)
		return looked;
	struct weir_error failure;
	enum weir_status status = make(bus, seen, timeout_ms, &failure);
	if (status != WEIR_OK)
		return weir_fail(error, status, "%s", failure.text);
	if (bus->absent == BUS_KAFKA_TRY)
		return looked;
	return weir_fail(error, WEIR_AGAIN, "topics are being created");
}

/* Whether weir goes on without a topic that it may not use, or that nobody lets it create. */
static bool goes_on_without(struct bus_kafka *bus, enum weir_topic topic, const rd_kafka_metadata_topic_t *metadata)
{
	if (bus->sole || !weir_topic_may_be_missed(topic))
		return false;
	bool denied = metadata->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	if (denied)
		atomic_store(&bus->denied[topic], true);
	return denied || (metadata->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && bus->uncreatable[topic]);
}

enum weir_status weir_bus_kafka_make_topics(struct bus_kafka *bus, int timeout_ms, struct weir_error *error)
{
	const struct rd_kafka_metadata *metadata;
	int seen[WEIR_TOPIC_COUNT] = {0};
	bool missing = false, unknown = false;
	enum weir_status status = weir_bus_kafka_metadata(bus, timeout_ms, &metadata, error);
	if (status != WEIR_OK)
		return status;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT && (status == WEIR_OK || status == WEIR_AGAIN); topic++) {
		if (bus->topics[topic] == NULL)
			continue;
		for (int i = 0; i < metadata->topic_cnt; i++) {
			if (strcmp(metadata->topics[i].topic, bus->names[topic]) != 0)
				continue;
			enum weir_status of_one = look(bus, (enum weir_topic)topic, &metadata->topics[i], &seen[topic], error);
			if (bus->absent == BUS_KAFKA_LOOK) {
				weir_bus_kafka_look_topic(bus, (enum weir_topic)topic, &metadata->topics[i], of_one, error);
				of_one = WEIR_OK;
				if (seen[topic] == SEEN_UNKNOWN)
					seen[topic] = SEEN_READY;
			} else if (goes_on_without(bus, (enum weir_topic)topic, &metadata->topics[i])) {
				of_one = WEIR_OK;
				seen[topic] = SEEN_READY;
			}
			if (of_one != WEIR_OK)
				status = of_one;
		}
		missing |= seen[topic] == SEEN_MISSING;
		pthread_mutex_lock(&bus->lock);
		bus->down[topic] = seen[topic] != SEEN_READY;
		pthread_mutex_unlock(&bus->lock);
		unknown |= seen[topic] == SEEN_UNKNOWN;
	}
	rd_kafka_metadata_destroy(metadata);
	memset(bus->missing, 0, sizeof bus->missing);
	if (status != WEIR_OK && status != WEIR_AGAIN)
		return status;
	if (status == WEIR_OK && unknown)
		status = weir_fail(error, WEIR_AGAIN, "the brokers have not reported every topic yet");
	return missing ? handle_missing(bus, seen, status, timeout_ms, error) : status;
}

size_t weir_bus_kafka_topic_names(const char *prefix, const bool topics[WEIR_TOPIC_COUNT], struct weir_text *names)
{
	size_t count = 0;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
		if (!topics[topic])
			continue;
		weir_bus_kafka_topic_name(prefix, (enum weir_topic)topic, name);
		weir_text_printf(names, "%s%s", count++ > 0 ? ", " : "", name);
	}
	return count;
}
