/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks topics that someone else created or changed.
 *
 * A setting that would lose an acknowledged record, delete one before it is read,
 * or reject one that weir sends, is an error that says how to fix it. A setting
 * that only makes this likelier is a warning, as is a broker that denies us the
 * settings.
 */
#include "common/bus/kafka/internal.h"
#include "common/json/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RETENTION_CHECKPOINTS = 2,      /* a checkpoint may be as old as half of the retention */
	DECISION_MESSAGE_BYTES = 65536, /* a decision's key has at most WEIR_KEY_MAX_BYTES, its JSON some more */
};

/* How long a block of the policy can last, which is also how old a decision in force can be. */
static int64_t longest_block_ms(const struct weir_policy *policy)
{
	int64_t longest_ms = 0;
	for (uint32_t i = 0; policy != NULL && i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		int64_t block_ms = weir_zone_block_ms(zone, WEIR_ZONE_BLOCKS_MAX);
		if (block_ms > longest_ms)
			longest_ms = block_ms;
		for (uint32_t k = 0; k < zone->limit_count; k++) {
			int64_t memory_ms = weir_limit_memory_ms(&zone->limits[k]);
			if (memory_ms > longest_ms)
				longest_ms = memory_ms;
		}
	}
	return longest_ms;
}

static bool number_of(const char *text, int64_t *number)
{
	char *end;
	if (text == NULL || *text == '\0')
		return false;
	*number = strtoll(text, &end, 10);
	return *end == '\0';
}

/* A decision must stay on its topic for as long as its block lasts. */
static enum weir_status check_blocks(const struct weir_policy *policy, const char *name, int64_t retention_ms,
                                     struct weir_error *error)
{
	int64_t block_ms = longest_block_ms(policy);
	char has[24], needs[24];
	if (block_ms == 0 || retention_ms > block_ms)
		return WEIR_OK;
	return weir_fail(
		error, WEIR_INVALID,
		"topic %s keeps its messages for %s (retention.ms), but a block can last %s: a gateway that starts later "
		"would never see it. Set the topic's retention.ms above that, and \"bus.retention\", which topics get that are "
		"made from then on (runbook: retention)",
		name, weir_format_duration(retention_ms, has, sizeof has), weir_format_duration(block_ms, needs, sizeof needs));
}

static enum weir_status check_retention(const struct weir_config *config, enum weir_topic topic, const char *name,
                                        const struct weir_bus_kafka_settings *settings, struct weir_text *warning,
                                        struct weir_error *error)
{
	int64_t retention_ms, bytes, interval_ms = config->limiter.checkpoint_interval_ms;
	char has[24], needs[24];
	if (number_of(settings->retention_bytes, &bytes) && bytes >= 0)
		weir_text_printf(warning,
		                 "topic %s keeps %" PRId64
		                 " bytes per partition (retention.bytes): a reader that falls further "
		                 "behind loses messages. ",
		                 name, bytes);
	if (!number_of(settings->retention_ms, &retention_ms) || retention_ms < 0)
		return WEIR_OK;
	weir_format_duration(retention_ms, has, sizeof has);
	bool decisions = topic == WEIR_TOPIC_DECISIONS || topic == WEIR_TOPIC_SHADOW;
	if (decisions && check_blocks(config->policy, name, retention_ms, error) != WEIR_OK)
		return WEIR_INVALID;
	if (!decisions && topic != WEIR_TOPIC_DEADLETTER && retention_ms < RETENTION_CHECKPOINTS * interval_ms)
		return weir_fail(
			error, WEIR_INVALID,
			"topic %s keeps its messages for %s (retention.ms), but limiters read them again from checkpoints "
			"that are up to \"limiter.checkpoint_interval\" old: it needs %s at least",
			name, has, weir_format_duration(RETENTION_CHECKPOINTS * interval_ms, needs, sizeof needs));
	if (retention_ms < config->bus.retention_ms)
		weir_text_printf(warning, "topic %s keeps its messages for %s, less than \"bus.retention\" (%s). ", name, has,
		                 weir_format_duration(config->bus.retention_ms, needs, sizeof needs));
	return WEIR_OK;
}

static enum weir_status check_cleanup(enum weir_topic topic, const char *name, const char *cleanup,
                                      struct weir_error *error)
{
	if (cleanup == NULL)
		return WEIR_OK;
	if (topic == WEIR_TOPIC_POLICY)
		return strcmp(cleanup, "compact") == 0
		           ? WEIR_OK
		           : weir_fail(error, WEIR_INVALID,
		                       "topic %s has cleanup.policy %s, which deletes old policies: it must be compact", name,
		                       cleanup);
	return strcmp(cleanup, "delete") == 0
	           ? WEIR_OK
	           : weir_fail(
					 error, WEIR_INVALID,
					 "topic %s has cleanup.policy %s, which removes records before they are read: it must be delete",
					 name, cleanup);
}

enum weir_status weir_bus_kafka_check_settings(const struct weir_config *config, enum weir_topic topic,
                                               const char *name, const struct weir_bus_kafka_settings *settings,
                                               struct weir_text *warning, struct weir_error *error)
{
	int64_t number, least = topic == WEIR_TOPIC_DECISIONS || topic == WEIR_TOPIC_SHADOW ? DECISION_MESSAGE_BYTES
	                                                                                    : BUS_KAFKA_MESSAGE_MAX_BYTES;
	if (number_of(settings->min_insync, &number) && number < config->bus.min_insync)
		return weir_fail(error, WEIR_INVALID,
		                 "topic %s has min.insync.replicas %" PRId64 ", less than \"bus.min_insync\" (%" PRId64 "): "
		                 "acknowledged messages could be lost. Raise the topic's value or lower the setting",
		                 name, number, config->bus.min_insync);
	if (number_of(settings->message_bytes, &number) && number < least)
		return weir_fail(error, WEIR_INVALID,
		                 "topic %s has max.message.bytes %" PRId64 ", less than weir's largest message (%" PRId64 ")",
		                 name, number, least);
	enum weir_status status = check_cleanup(topic, name, settings->cleanup, error);
	if (status == WEIR_OK && topic != WEIR_TOPIC_POLICY)
		status = check_retention(config, topic, name, settings, warning, error);
	if (status == WEIR_OK && settings->unclean != NULL && strcmp(settings->unclean, "true") == 0)
		weir_text_printf(warning,
		                 "topic %s has unclean.leader.election.enable: a broker without the acknowledged "
		                 "records may become leader; those records are then lost. ",
		                 name);
	if (status == WEIR_OK && topic == WEIR_TOPIC_EVENTS && settings->timestamp != NULL &&
	    strcmp(settings->timestamp, "LogAppendTime") != 0)
		weir_text_printf(warning,
		                 "topic %s has message.timestamp.type %s: a sender with a fast clock makes limiters forget "
		                 "what they count; with LogAppendTime its clock is bounded by the brokers'. ",
		                 name, settings->timestamp);
	return status;
}

static void take_setting(const rd_kafka_ConfigEntry_t *entry, struct weir_bus_kafka_settings *settings)
{
	const struct {
		const char *name;
		const char **value;
	} wanted[] = {
		{"min.insync.replicas", &settings->min_insync},  {"retention.ms", &settings->retention_ms},
		{"retention.bytes", &settings->retention_bytes}, {"max.message.bytes", &settings->message_bytes},
		{"cleanup.policy", &settings->cleanup},          {"unclean.leader.election.enable", &settings->unclean},
		{"segment.ms", &settings->segment_ms},           {"message.timestamp.type", &settings->timestamp},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (strcmp(rd_kafka_ConfigEntry_name(entry), wanted[i].name) == 0)
			*wanted[i].value = rd_kafka_ConfigEntry_value(entry);
}

/* Reads what the brokers say of one topic. @return its number; WEIR_TOPIC_COUNT: it is none of weir's */
static int read_settings(const struct bus_kafka *bus, const rd_kafka_ConfigResource_t *resource,
                         struct weir_bus_kafka_settings *settings, struct weir_bus_kafka_retention *retention)
{
	size_t count;
	const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
	*settings = (struct weir_bus_kafka_settings){0};
	for (size_t i = 0; i < count; i++)
		take_setting(entries[i], settings);
	retention->known =
		number_of(settings->retention_ms, &retention->ms) && number_of(settings->segment_ms, &retention->segment_ms);
	int topic = 0;
	while (topic < WEIR_TOPIC_COUNT && strcmp(rd_kafka_ConfigResource_name(resource), bus->names[topic]) != 0)
		topic++;
	return topic;
}

static void note_settings(struct bus_kafka *bus, int topic, const struct weir_bus_kafka_settings *settings,
                          const struct weir_bus_kafka_retention *retention)
{
	int64_t bytes;
	atomic_store(&bus->message_bytes[topic], number_of(settings->message_bytes, &bytes) ? bytes : 0);
	pthread_mutex_lock(&bus->lock);
	bus->retention[topic] = *retention;
	pthread_mutex_unlock(&bus->lock);
}

static enum weir_status check_one(struct bus_kafka *bus, const rd_kafka_ConfigResource_t *resource,
                                  struct weir_text *warning, struct weir_error *error)
{
	const char *name = rd_kafka_ConfigResource_name(resource);
	rd_kafka_resp_err_t code = rd_kafka_ConfigResource_error(resource);
	if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
	    code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED) {
		weir_text_printf(warning, "cannot check the settings of topic %s: %s. ", name, rd_kafka_err2str(code));
		return WEIR_OK;
	}
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		return weir_fail(error, WEIR_IO, "cannot read the settings of topic %s: %s", name, rd_kafka_err2str(code));
	struct weir_bus_kafka_settings settings;
	struct weir_bus_kafka_retention retention;
	int topic = read_settings(bus, resource, &settings, &retention);
	if (topic == WEIR_TOPIC_COUNT)
		return WEIR_OK;
	note_settings(bus, topic, &settings, &retention);
	if (bus->replicas[topic] > 0 && bus->replicas[topic] < bus->config->bus.replication)
		weir_text_printf(warning, "topic %s has replication factor %d, not the %" PRId64 " of \"bus.replication\". ",
		                 name, bus->replicas[topic], bus->config->bus.replication);
	enum weir_status status =
		weir_bus_kafka_check_settings(bus->config, (enum weir_topic)topic, name, &settings, warning, error);
	if (bus->absent != BUS_KAFKA_LOOK)
		return weir_bus_kafka_pardons(bus, (enum weir_topic)topic, status, error) ? WEIR_OK : status;
	weir_bus_kafka_look_settings(bus, (enum weir_topic)topic, &settings, warning, status, error);
	weir_text_clear(warning);
	return WEIR_OK;
}

struct weir_bus_kafka_retention weir_bus_kafka_retention(struct weir_bus *base, enum weir_topic topic)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	pthread_mutex_lock(&bus->lock);
	struct weir_bus_kafka_retention retention = bus->retention[topic];
	pthread_mutex_unlock(&bus->lock);
	return retention;
}

enum weir_status weir_bus_kafka_check_policy(struct weir_bus *base, const struct weir_policy *policy,
                                             struct weir_error *error)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW};
	const struct bus_kafka *bus = weir_bus_kafka_of(base);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < sizeof topics / sizeof *topics && status == WEIR_OK; i++) {
		struct weir_bus_kafka_retention retention = weir_bus_kafka_retention(base, topics[i]);
		if (retention.known && retention.ms >= 0)
			status = check_blocks(policy, bus->names[topics[i]], retention.ms, error);
	}
	return status;
}

typedef enum weir_status each_topic(struct bus_kafka *bus, const rd_kafka_ConfigResource_t *resource,
                                    struct weir_text *words, struct weir_error *error);

/* Asks for the settings of all topics that there are. @param out  the callback's words */
static enum weir_status describe_topics(struct bus_kafka *bus, int timeout_ms, each_topic *call, struct weir_text *out,
                                        struct weir_error *error)
{
	rd_kafka_ConfigResource_t *wanted[WEIR_TOPIC_COUNT];
	char words[WEIR_ERROR_TEXT_BYTES / 2];
	size_t wanted_count = 0;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (bus->topics[topic] != NULL && !bus->missing[topic] &&
		    !(bus->uncreatable[topic] && atomic_load(&bus->gone[topic])))
			wanted[wanted_count++] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, bus->names[topic]);
	if (wanted_count == 0)
		return WEIR_OK;
	rd_kafka_queue_t *queue = rd_kafka_queue_new(bus->control);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(bus->control, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, words, sizeof words);
	rd_kafka_DescribeConfigs(bus->control, wanted, wanted_count, options, queue);
	rd_kafka_event_t *event = weir_kafka_queue_poll(queue, timeout_ms + BUS_KAFKA_ASK_MS);
	enum weir_status status = WEIR_OK;
	if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
		status = weir_fail(error, WEIR_IO, "cannot read the settings of the topics: %s",
		                   event != NULL ? rd_kafka_event_error_string(event) : "no answer");
	} else {
		size_t count;
		const rd_kafka_ConfigResource_t **resources =
			rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
		for (size_t i = 0; i < count && status == WEIR_OK; i++)
			status = call(bus, resources[i], out, error);
	}
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_ConfigResource_destroy_array(wanted, wanted_count);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_queue_destroy(queue);
	return status;
}

enum weir_status weir_bus_kafka_check_topics(struct bus_kafka *bus, int timeout_ms, struct weir_error *error)
{
	struct weir_text warning = {0};
	enum weir_status status = describe_topics(bus, timeout_ms, check_one, &warning, error);
	if (status == WEIR_OK && warning.length > 0)
		weir_log(bus->log, WEIR_LOG_WARNING, "bus", "%.*s", (int)warning.length - 1, warning.at);
	weir_text_deinit(&warning);
	return status;
}

/* ---- while the bus is open ---- */

static void tell_retention(const struct bus_kafka *bus, int topic, const struct weir_bus_kafka_retention *before,
                           const struct weir_bus_kafka_retention *now)
{
	char had[24], has[24];
	const char *name = bus->names[topic];
	weir_format_duration(before->ms, had, sizeof had);
	weir_format_duration(now->ms, has, sizeof has);
	int64_t wanted_ms = bus->config->bus.retention_ms;
	if (now->ms < 0 || now->ms >= wanted_ms)
		weir_log(bus->log, WEIR_LOG_INFO, "bus", "topic %s now keeps its messages for %s; nothing to do", name,
		         now->ms < 0 ? "ever" : has);
	else
		weir_log(bus->log, WEIR_LOG_WARNING, "bus",
		         "topic %s now keeps its messages for %s instead of %s: what is not read in that time is lost, and "
		         "limiters pause when a checkpoint is older than half of it. To undo it: kafka-configs --alter "
		         "--entity-type topics --entity-name %s --add-config retention.ms=%" PRId64 " (runbook: retention)",
		         name, has, before->ms < 0 ? "for ever" : had, name, wanted_ms);
}

/* @param refused  the first reason for which a start would refuse a topic is appended */
static enum weir_status check_one_again(struct bus_kafka *bus, const rd_kafka_ConfigResource_t *resource,
                                        struct weir_text *refused, struct weir_error *error)
{
	struct weir_bus_kafka_settings settings;
	struct weir_bus_kafka_retention now;
	struct weir_text warning = {0};
	if (rd_kafka_ConfigResource_error(resource) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return WEIR_OK; /* the brokers do not tell, or the topic is gone, which the watch sees */
	int topic = read_settings(bus, resource, &settings, &now);
	if (topic == WEIR_TOPIC_COUNT)
		return WEIR_OK;
	struct weir_bus_kafka_retention before = weir_bus_kafka_retention(&bus->bus, (enum weir_topic)topic);
	pthread_mutex_lock(&bus->lock);
	bool used = !bus->unused[topic];
	pthread_mutex_unlock(&bus->lock);
	note_settings(bus, topic, &settings, &now);
	if (topic != WEIR_TOPIC_POLICY && before.known && now.known && before.ms != now.ms)
		tell_retention(bus, topic, &before, &now);
	enum weir_status status = weir_bus_kafka_check_settings(bus->config, (enum weir_topic)topic, bus->names[topic],
	                                                        &settings, &warning, error);
	weir_text_deinit(&warning);
	weir_bus_kafka_note_unfit(bus, (enum weir_topic)topic, "");
	if (!used || status == WEIR_OK || weir_bus_kafka_pardons(bus, (enum weir_topic)topic, status, error))
		return WEIR_OK;
	if (refused->length == 0)
		weir_text_puts(refused, error->text);
	return WEIR_OK;
}

void weir_bus_kafka_check_again(struct bus_kafka *bus, int timeout_ms)
{
	struct weir_text refused = {0};
	struct weir_error error;
	if (describe_topics(bus, timeout_ms, check_one_again, &refused, &error) == WEIR_OK) {
		pthread_mutex_lock(&bus->lock);
		bool news = refused.length > 0 && bus->settings[0] == '\0';
		snprintf(bus->settings, sizeof bus->settings, "%.*s", (int)refused.length,
		         refused.length > 0 ? refused.at : "");
		pthread_mutex_unlock(&bus->lock);
		if (news)
			weir_log(
				bus->log, WEIR_LOG_ERROR, "bus",
				"%s. This process goes on, but a restart would refuse that: correct the topic (runbook: retention)",
				bus->settings);
	}
	weir_text_deinit(&refused);
}
