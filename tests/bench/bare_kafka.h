/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka alone, for what stands between weir and it to be measured: handles
 * with its own defaults and what the configuration says to reach the brokers.
 * What fails ends the program with its reason.
 */
#ifndef TESTS_BENCH_BARE_KAFKA_H
#define TESTS_BENCH_BARE_KAFKA_H

#include "common/bus/kafka/kafka.h"
#include "common/config/config.h"

#include <stdio.h>
#include <stdlib.h>

static inline void bare_fail(const char *words)
{
	fprintf(stderr, "%s\n", words);
	exit(1);
}

static inline void bare_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char words[256];
	if (rd_kafka_conf_set(conf, name, value, words, sizeof words) != RD_KAFKA_CONF_OK)
		bare_fail(words);
}

static inline rd_kafka_conf_t *bare_conf(const struct weir_config *config)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *name;
	json_t *value;
	bare_set(conf, "bootstrap.servers", config->bus.brokers);
	bare_set(conf, "message.max.bytes", "4194304");
	json_object_foreach(config->bus.kafka.value, name, value) if (json_is_string(value))
		bare_set(conf, name, json_string_value(value));
	return conf;
}

static inline rd_kafka_t *bare_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
	char words[256];
	rd_kafka_t *handle = rd_kafka_new(type, conf, words, sizeof words);
	if (handle == NULL)
		bare_fail(words);
	return handle;
}

struct bare_reader {
	void (*each)(void *context, const rd_kafka_message_t *message);
	void *context;
	size_t received;
};

static inline void bare_take(rd_kafka_message_t *message, void *context)
{
	struct bare_reader *reader = context;
	if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	reader->each(reader->context, message);
	reader->received++;
}

/**
 * Reads a topic from its start, all partitions through one queue.
 *
 * @param count  how many messages there are
 * @param each   called for every message, which it borrows
 */
static inline void bare_consume(const struct weir_config *config, const char *name, uint32_t partitions, size_t count,
                                void (*each)(void *context, const rd_kafka_message_t *message), void *context)
{
	struct bare_reader reader = {.each = each, .context = context};
	rd_kafka_conf_t *conf = bare_conf(config);
	bare_set(conf, "queued.min.messages", "1000000");
	rd_kafka_t *handle = bare_handle(RD_KAFKA_CONSUMER, conf);
	rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, name, NULL);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
	for (uint32_t i = 0; i < partitions; i++)
		rd_kafka_consume_start_queue(topic, (int32_t)i, RD_KAFKA_OFFSET_BEGINNING, queue);
	while (reader.received < count)
		rd_kafka_consume_callback_queue(queue, 100, bare_take, &reader);
	for (uint32_t i = 0; i < partitions; i++)
		rd_kafka_consume_stop(topic, (int32_t)i);
	rd_kafka_queue_destroy(queue);
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(handle);
}

#endif
