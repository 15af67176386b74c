/* SPDX-License-Identifier: Apache-2.0 */
/* One finding for a fault that several topics share, as one command ends it. */
#include "common/bus/kafka/bus_kafka.h"
#include "common/diagnosis/server_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char topics_check[] = "topics", brokers_check[] = "brokers";

/* What does not work while a topic is missing, or some of its partitions cannot be written. */
static const char *const meaning[WEIR_TOPIC_COUNT] = {
	[WEIR_TOPIC_EVENTS] = "No event can be sent or judged: nobody is newly blocked",
	[WEIR_TOPIC_JUDGED] = "Limiters cannot publish, so they judge nothing",
	[WEIR_TOPIC_DECISIONS] = "No decision can be published: nobody is newly blocked, and no list changes",
	[WEIR_TOPIC_SHADOW] = "Limiters cannot publish, so they judge nothing",
	[WEIR_TOPIC_POLICY] = "A collector that starts learns no policy, and reads nothing",
	[WEIR_TOPIC_DEADLETTER] = "Malformed lines are not kept",
};

/* Of a topic that may be missed, where it is missing or refuses messages. */
static const char *const done_without[WEIR_TOPIC_COUNT] = {
	[WEIR_TOPIC_SHADOW] = "Decisions of zones in shadow mode are dropped and counted; judging and blocking go on",
	[WEIR_TOPIC_DEADLETTER] = "Malformed lines are not kept; judging and blocking go on",
};

static bool contains(const char *words, const char *part)
{
	return strcasestr(words, part) != NULL;
}

static void add_unreachable(const struct weir_check *check, const char *words)
{
	if (contains(words, "authentication") || contains(words, "SASL"))
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, brokers_check,
		                  "%s\nCollectors, limiters and subscribers that start now are refused\nput the user and the "
		                  "password that the brokers know into \"bus.kafka\" (sasl.username, sasl.password), then "
		                  "restart the daemons (runbook: credentials)",
		                  words);
	else if (contains(words, "handshake") || contains(words, "certificate"))
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, brokers_check,
		                  "%s\nNo daemon that starts now reaches the brokers; what is connected works until its "
		                  "connection ends\nsee what is said of certificates; renew the brokers' certificate, or name "
		                  "its authority in \"bus.kafka\" (ssl.ca.location) (runbook: certificates)",
		                  words);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, brokers_check,
			"%s\nNothing is judged and no list changes; nothing is lost while the logs are kept\nstart the "
			"brokers; their own logs and disks say why they ended (runbook: broker-away)",
			words);
}

/* ---- topics ---- */

static void add_missing(const struct weir_check *check, const struct weir_bus_kafka_look *looks)
{
	struct weir_text names = {0};
	bool missing[WEIR_TOPIC_COUNT], missed = true; /* all that are missing may be */
	int first = WEIR_TOPIC_COUNT;
	for (int topic = WEIR_TOPIC_COUNT - 1; topic >= 0; topic--) {
		missing[topic] = looks[topic].fault == WEIR_TOPIC_MISSING;
		if (missing[topic])
			first = topic;
		missed &= !missing[topic] || weir_topic_may_be_missed((enum weir_topic)topic);
	}
	size_t count = weir_bus_kafka_topic_names(check->config->bus.prefix, missing, &names);
	if (count == WEIR_TOPIC_COUNT)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, topics_check,
		                  "no topic with prefix \"%s\" exists\nThe cluster was never set up, or all topics were "
		                  "deleted: nothing is judged\nweir policy apply %s (runbook: topic-deleted)",
		                  check->config->bus.prefix, check->config_words);
	else if (count > 0)
		weir_findings_add(check->findings, missed ? WEIR_SEVERITY_TICKET : WEIR_SEVERITY_PAGE, topics_check,
		                  "%s %.*s %s not exist\n%s\nweir policy apply %s (runbook: topic-deleted)",
		                  count > 1 ? "topics" : "topic", (int)names.length, names.at, count > 1 ? "do" : "does",
		                  missed ? done_without[first] : meaning[first], check->config_words);
	weir_text_deinit(&names);
}

/* The value that a setting should have, as a command takes it. */
static void name_value(const struct weir_config *config, enum weir_topic topic, const char *setting, char value[32])
{
	snprintf(value, 32, "true");
	if (strcmp(setting, "retention.ms") == 0)
		snprintf(value, 32, "%" PRId64, config->bus.retention_ms);
	else if (strcmp(setting, "cleanup.policy") == 0)
		snprintf(value, 32, "%s", topic == WEIR_TOPIC_POLICY ? "compact" : "delete");
	else if (strcmp(setting, "min.insync.replicas") == 0)
		snprintf(value, 32, "%" PRId64, config->bus.min_insync);
	else if (strcmp(setting, "max.message.bytes") == 0)
		snprintf(value, 32, "%d", 4 << 20);
	else if (strcmp(setting, "retention.bytes") == 0)
		snprintf(value, 32, "-1");
	else if (strcmp(setting, "unclean.leader.election.enable") == 0)
		snprintf(value, 32, "false");
	else if (strcmp(setting, "message.timestamp.type") == 0)
		snprintf(value, 32, "LogAppendTime");
}

/* A topic as it is now. @param effect  what that means @param remedy  with its runbook */
static void add_look(const struct weir_check *check, enum weir_topic topic, const struct weir_bus_kafka_look *look,
                     const char *effect, const char *remedy)
{
	bool page = look->fault == WEIR_TOPIC_SETTINGS && !weir_topic_may_be_missed(topic);
	weir_findings_add(check->findings, page ? WEIR_SEVERITY_PAGE : WEIR_SEVERITY_TICKET, topics_check, "%s\n%s\n%s",
	                  look->words, effect, remedy);
}

/* What a topic as it is now means. @param refused, taken  of one that all wait for, where weir refuses it, or not */
static const char *effect_of(enum weir_topic topic, const struct weir_bus_kafka_look *look, const char *refused,
                             const char *taken)
{
	if (look->fault != WEIR_TOPIC_SETTINGS)
		return taken;
	return done_without[topic] != NULL ? done_without[topic] : refused;
}

static void add_setting(const struct weir_check *check, enum weir_topic topic, const struct weir_bus_kafka_look *look)
{
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES], value[32], remedy[WEIR_ERROR_TEXT_BYTES];
	weir_bus_kafka_topic_name(check->config->bus.prefix, topic, name);
	if (contains(look->words, "authorization failed") && look->setting == NULL) {
		add_look(check, topic, look,
		         effect_of(topic, look,
		                   "A limiter or collector that starts now waits for it, and does nothing meanwhile",
		                   "It works for now"),
		         "give the user of weir's daemons its rights to the topic again (runbook: credentials)");
		return;
	}
	if (look->setting == NULL) {
		add_look(check, topic, look,
		         effect_of(topic, look, "A limiter or collector that starts now refuses to work", "It works for now"),
		         "set the topic right with the brokers' own tools, or change the configuration (runbook: retention)");
		return;
	}
	name_value(check->config, topic, look->setting, value);
	snprintf(remedy, sizeof remedy,
	         "kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%s "
	         "(runbook: retention)",
	         check->config->bus.brokers, name, look->setting, value);
	add_look(check, topic, look,
	         effect_of(topic, look, "A limiter or collector that starts now refuses to work, and records may be lost",
	                   "An outage that lasts longer than that loses records"),
	         remedy);
}

/* Where other topics have what is configured, somebody has added partitions to this one; else the configuration is another. */
static void add_partitions(const struct weir_check *check, enum weir_topic topic,
                           const struct weir_bus_kafka_look *looks, const char *name)
{
	uint32_t wanted = weir_topic_partitions(topic, (uint32_t)check->config->bus.partitions);
	bool others = false;
	for (int other = 0; other < WEIR_TOPIC_COUNT; other++)
		others |= other != WEIR_TOPIC_POLICY && looks[other].fault != WEIR_TOPIC_MISSING &&
		          looks[other].fault != WEIR_TOPIC_PARTITIONS;
	if (others && looks[topic].partitions > wanted)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, topics_check,
			"topic %s has %u partitions, not %u as the others: partitions were added to it\nA daemon that "
			"starts now ends at once; those that run go on with the first %u\nKafka cannot take them away: "
			"once limiters have no lag, delete that topic and make it anew, as the runbook says (runbook: "
			"partitions-changed)",
			name, looks[topic].partitions, wanted, wanted);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, topics_check,
			"topic %s has %u partitions, not %u\nNo daemon with this configuration starts: the number "
			"cannot change\nset \"bus.partitions\" to %u in the configuration, or back to what the topics "
			"have (runbook: partitions-changed)",
			name, looks[topic].partitions, wanted, looks[topic].partitions);
}

static void add_topic(const struct weir_check *check, enum weir_topic topic, const struct weir_bus_kafka_look *looks)
{
	const struct weir_bus_kafka_look *look = &looks[topic];
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	weir_bus_kafka_topic_name(check->config->bus.prefix, topic, name);
	switch (look->fault) {
	case WEIR_TOPIC_PARTITIONS: add_partitions(check, topic, looks, name); break;
	case WEIR_TOPIC_UNSERVED:
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, topics_check,
		                  "%s\n%s for these partitions\nstart the brokers that are missing; their own logs and disks "
		                  "say why they ended (runbook: broker-away)",
		                  look->words, meaning[topic]);
		break;
	case WEIR_TOPIC_SETTINGS:
	case WEIR_TOPIC_DOUBTFUL: add_setting(check, topic, look); break;
	default: break;
	}
}

void weir_check_bus(const struct weir_check *check, const char *client, bool good[WEIR_TOPIC_COUNT],
                    struct weir_bus **bus)
{
	struct weir_bus_kafka_look looks[WEIR_TOPIC_COUNT] = {0};
	struct weir_error error;
	uint32_t count = 0;
	*bus = NULL;
	memset(good, 0, WEIR_TOPIC_COUNT * sizeof *good);
	enum weir_status status =
		weir_bus_kafka_open_looking(check->config, client, check->wait_ms, check->log, looks, bus, &error);
	if (status != WEIR_OK) {
		add_unreachable(check, error.text);
		return;
	}
	add_missing(check, looks);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		enum weir_topic_fault fault = looks[topic].fault;
		add_topic(check, (enum weir_topic)topic, looks);
		good[topic] = fault == WEIR_TOPIC_GOOD || fault == WEIR_TOPIC_SETTINGS || fault == WEIR_TOPIC_DOUBTFUL;
		count += fault == WEIR_TOPIC_GOOD;
	}
	weir_findings_good(check->findings, "brokers: %s answers; %u of %d topics are as they should be",
	                   check->config->bus.brokers, count, WEIR_TOPIC_COUNT);
}
