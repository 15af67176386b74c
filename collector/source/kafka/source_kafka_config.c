/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kafka source's configuration.
 *
 *     { "type": "kafka", "brokers": "127.0.0.1:9092", "topics": ["app-logs"], "format": "json" }
 *
 *     brokers     brokers of the topics' cluster, HOST:PORT, separated by commas
 *     topics      one or more
 *     group       consumer group, "weir-collector": collectors of one group share the partitions
 *     generation  1; raise it when a topic was deleted and recreated, as its offsets begin anew
 *     start       "beginning" or "end": where a topic is begun of which the group has committed nothing
 *     kafka       properties for librdkafka, under their own names
 *     name        under which its streams are shown, "kafka"
 *     line_max    longest record, 64 KiB; a longer one is malformed
 */
#include "collector/source/kafka/internal.h"

#include "collector/source/source_words.h"
#include "common/json/json_shape.h"

#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 << 10, NAME_MAX_BYTES = 200, TOPIC_MAX_BYTES = 249, GENERATION_MAX = 1000000 };

static const struct weir_kafka_refusal refusals[] = {
	{"bootstrap.servers", "set the brokers in \"brokers\""},
	{"metadata.broker.list", "set the brokers in \"brokers\""},
	{"group.id", "set the consumer group in \"group\""},
	{"auto.offset.reset", "\"start\" sets where reading begins, and weir never skips a gap silently; remove it"},
	{"enable.auto.commit", "weir commits offsets itself, once their events are acknowledged; remove it"},
	{"auto.commit.enable", "weir commits offsets itself, once their events are acknowledged; remove it"},
	{"auto.commit.interval.ms", "weir commits offsets itself, once their events are acknowledged; remove it"},
	{"enable.auto.offset.store", "weir commits offsets itself, once their events are acknowledged; remove it"},
	{"offset.store.method", "weir commits offsets itself, once their events are acknowledged; remove it"},
	{"enable.partition.eof", "weir does not use it; remove it"},
	{"partition.assignment.strategy", "weir needs \"range\" and sets it; remove it"},
	{"group.protocol", "weir uses the classic protocol; remove it"},
	{"group.remote.assignor", "weir uses the classic protocol; remove it"},
	{"statistics.interval.ms", "nothing reads them, so they would pile up; remove it"},
	{"log.queue", "nothing reads it, so it would pile up; remove it"},
	{"enabled_events", "weir sets it for each of its clients; remove it"},
	{NULL, NULL},
};

static enum weir_status check_name(const struct weir_json *config, const char *member, const char *name,
                                   struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, member);
	return name[0] != '\0' && strlen(name) <= NAME_MAX_BYTES
	           ? WEIR_OK
	           : weir_json_fail(&at, error, "must have 1 to %d bytes", NAME_MAX_BYTES);
}

static enum weir_status read_topics(struct kafka_config *config, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json topics = weir_json_member(json, "topics");
	enum weir_status status = weir_json_list(&topics, 1, KAFKA_TOPICS_MAX, &config->topic_count, error);
	for (size_t i = 0; status == WEIR_OK && i < config->topic_count; i++) {
		struct weir_json at = weir_json_element(&topics, i);
		const char *topic = "";
		status = weir_json_string(&at, &topic, error);
		size_t length = strlen(topic);
		if (status == WEIR_OK &&
		    (length == 0 || length > TOPIC_MAX_BYTES ||
		     strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != length))
			status = weir_json_fail(&at, error, "is not a topic name: use 1 to %d letters, digits, '.', '_' or '-'",
			                        TOPIC_MAX_BYTES);
		for (size_t k = 0; status == WEIR_OK && k < i; k++)
			if (strcmp(config->topics[k], topic) == 0)
				status = weir_json_fail(&at, error, "is listed twice");
		config->topics[i] = topic;
	}
	return status;
}

#define AT(member) offsetof(struct kafka_config, member)

static json_t *name_shape(void)
{
	return weir_shape_name(0);
}

static json_t *topics_shape(void)
{
	return weir_shape_list(1, KAFKA_TOPICS_MAX, weir_shape_pattern("^[A-Za-z0-9._-]+$"));
}

const struct weir_json_rule kafka_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name", .kind = WEIR_JSON_TEXT, .offset = AT(name), .meaning = "the name by which partitions appear"},
	{.name = "brokers",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(brokers),
     .needed = "give HOST:PORT of one or more brokers, such as \"127.0.0.1:9092\"",
     .meaning = "the cluster's brokers: HOST:PORT, separated by commas",
     .shape = name_shape},
	{.name = "topics",
     .needed = "list one or more topics, such as [\"app-logs\"]",
     .meaning = "the topics",
     .shape = topics_shape},
	{.name = "group",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(group),
     .meaning = "the consumer group; collectors of one group share the partitions",
     .shape = name_shape},
	{.name = "generation",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(generation),
     .least = 1,
     .most = GENERATION_MAX,
     .meaning = "raise it when a topic was recreated, because offsets start again"},
	SOURCE_START_RULE(AT(start)),
	{.name = "kafka", .meaning = "librdkafka properties by their own names", .shape = weir_shape_properties},
	SOURCE_FORMAT_RULE,
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = NULL},
};

/* Refuses formats with a header line: a topic has none, and another collector would not have seen it. */
static enum weir_status check_format(const struct weir_json *json, struct weir_error *error)
{
	struct weir_json format = weir_json_member(json, "format"), header = weir_json_member(&format, "header");
	if (!json_is_true(header.value))
		return WEIR_OK;
	return weir_json_fail(&header, error, "is for files: a topic has no header line; list the columns");
}

enum weir_status kafka_configure(struct kafka_config *config, const struct weir_json *json,
                                 const struct source_context *context, struct weir_kafka **kafka,
                                 struct weir_error *error)
{
	static const struct weir_log silent = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR}; /* status() says it all */
	struct weir_json brokers = weir_json_member(json, "brokers");
	*config = (struct kafka_config){
		.group = "weir-collector",
		.name = "kafka",
		.generation = 1,
		.line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES,
	};
	enum weir_status status = weir_json_read(json, kafka_members, config, error);
	if (status == WEIR_OK && config->brokers[0] == '\0')
		status = weir_json_fail(&brokers, error, "must not be empty");
	if (status != WEIR_OK || (status = read_topics(config, json, error)) != WEIR_OK ||
	    (status = check_name(json, "group", config->group, error)) != WEIR_OK ||
	    (status = check_name(json, "name", config->name, error)) != WEIR_OK ||
	    (status = check_format(json, error)) != WEIR_OK)
		return status;
	struct weir_kafka_options options = {.part = "collector",
	                                     .client = "weir-collector",
	                                     .brokers = config->brokers,
	                                     .settings = weir_json_member(json, "kafka"),
	                                     .refusals = refusals,
	                                     .log = &silent};
	return weir_kafka_new(&options, kafka, error);
}

static bool read_identity(const struct weir_json *json, const char **brokers, int64_t *generation)
{
	struct weir_error ignored;
	struct weir_json brokers_at = weir_json_member(json, "brokers");
	struct weir_json generation_at = weir_json_member(json, "generation");
	*brokers = "";
	*generation = 1;
	return weir_json_string(&brokers_at, brokers, &ignored) == WEIR_OK &&
	       weir_json_int(&generation_at, 1, GENERATION_MAX, generation, &ignored) == WEIR_OK;
}

enum weir_status kafka_apart(const struct weir_json *json, const struct weir_json *other, struct weir_error *error)
{
	const char *brokers, *others_brokers;
	int64_t generation, others_generation;
	struct weir_json topics = weir_json_member(json, "topics"), others = weir_json_member(other, "topics");
	if (!read_identity(json, &brokers, &generation) || !read_identity(other, &others_brokers, &others_generation) ||
	    strcmp(brokers, others_brokers) != 0 || generation != others_generation)
		return WEIR_OK;
	size_t count = 0, others_count = 0;
	enum weir_status status = weir_json_list(&topics, 1, KAFKA_TOPICS_MAX, &count, error);
	if (status == WEIR_OK)
		status = weir_json_list(&others, 1, KAFKA_TOPICS_MAX, &others_count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		for (size_t k = 0; k < others_count && status == WEIR_OK; k++) {
			struct weir_json at = weir_json_element(&topics, i), others_at = weir_json_element(&others, k);
			const char *topic = "", *others_topic = "";
			status = weir_json_string(&at, &topic, error);
			if (status == WEIR_OK)
				status = weir_json_string(&others_at, &others_topic, error);
			if (status == WEIR_OK && strcmp(topic, others_topic) == 0)
				status = weir_json_fail(
					&at, error,
					"is already read by another source with the same brokers and generation: limiters would drop "
					"one's events as duplicates of the other's; list it once");
		}
	}
	return status;
}
