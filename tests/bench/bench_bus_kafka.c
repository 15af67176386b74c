/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kafka bus against librdkafka itself, on the same topic in the same run:
 * frames of 64 KiB and small messages, in and out, and one message at a time
 * from send to receive. The bare loop has librdkafka's defaults with acks=all:
 * no idempotence, any number of requests in flight.
 *
 * WEIR_BUS names a configuration with the section "bus", such as the weir.json
 * of deploy/cluster/up; without one nothing is measured, and a line says so. One
 * JSON line a measurement. WEIR_BENCH=smoke runs each on a small size. The
 * topics have a prefix of their own and are removed again.
 */
#include "common/base/alloc.h"
#include "common/bus/kafka/bus_kafka.h"
#include "tests/bench/bare_kafka.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77, FRAME_BYTES = 64 * 1024, SMALL_BYTES = 200, RUNS = 3, AT_ONCE = 256, WAIT_MS = 60000 };

struct bench {
	struct weir_config *config;
	struct weir_bus *bus;
	char topic[WEIR_BUS_KAFKA_TOPIC_BYTES]; /* of the events */
	char *payload;
};

/* ---- through the bus ---- */

static double bus_produce(struct bench *bench, size_t count, size_t bytes)
{
	const struct weir_bus_ops *ops = bench->bus->ops;
	struct weir_delivery deliveries[AT_ONCE];
	struct weir_producer *producer;
	struct weir_error error;
	struct weir_span payload = {.at = bench->payload, .length = (uint32_t)bytes};
	check(ops->producer_new(bench->bus, &producer, &error), &error);
	double start = wall_seconds();
	for (size_t sent = 0, delivered = 0; delivered < count;) {
		enum weir_status status = WEIR_FULL;
		if (sent < count)
			status = ops->send(producer, WEIR_TOPIC_EVENTS, (uint32_t)(sent % bench->bus->partitions),
			                   (struct weir_span){0}, payload, sent, &error);
		sent += status == WEIR_OK;
		if (status != WEIR_OK && status != WEIR_FULL)
			check(status, &error);
		size_t some = ops->poll(producer, deliveries, AT_ONCE, status == WEIR_FULL ? WAIT_MS : 0);
		for (size_t i = 0; i < some; i++)
			if (deliveries[i].status != WEIR_OK)
				bare_fail("a delivery failed");
		delivered += some;
	}
	double rate = (double)count / (wall_seconds() - start);
	ops->producer_free(producer);
	return rate;
}

static double bus_consume(struct bench *bench, size_t count)
{
	const struct weir_bus_ops *ops = bench->bus->ops;
	struct weir_message messages[AT_ONCE];
	struct weir_consumer *consumer;
	struct weir_error error;
	check(ops->consumer_new(bench->bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &error), &error);
	double start = wall_seconds();
	for (uint32_t i = 0; i < bench->bus->partitions; i++)
		check(ops->assign(consumer, i, 0, &error), &error);
	for (size_t received = 0, some; received < count; received += some)
		check(ops->receive(consumer, messages, AT_ONCE, WAIT_MS, &some, &error), &error);
	double rate = (double)count / (wall_seconds() - start);
	ops->consumer_free(consumer);
	return rate;
}

/* ---- librdkafka alone ---- */

static void count_report(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context)
{
	(void)handle;
	if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		bare_fail(rd_kafka_err2str(message->err));
	++*(size_t *)context;
}

static double bare_produce(struct bench *bench, size_t count, size_t bytes)
{
	size_t sent = 0, delivered = 0;
	rd_kafka_conf_t *conf = bare_conf(bench->config);
	bare_set(conf, "acks", "all");
	rd_kafka_conf_set_opaque(conf, &delivered);
	rd_kafka_conf_set_dr_msg_cb(conf, count_report);
	rd_kafka_t *handle = bare_handle(RD_KAFKA_PRODUCER, conf);
	rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, bench->topic, NULL);
	double start = wall_seconds();
	while (delivered < count) {
		/* As much in flight as the bus has. */
		bool room = sent < count && (sent - delivered) * bytes < WEIR_BUS_PRODUCER_MAX_BYTES;
		if (room)
			room = rd_kafka_produce(topic, (int32_t)(sent % bench->bus->partitions), RD_KAFKA_MSG_F_COPY,
			                        bench->payload, bytes, NULL, 0, NULL) == 0;
		sent += room;
		rd_kafka_poll(handle, room ? 0 : 100);
	}
	double rate = (double)count / (wall_seconds() - start);
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(handle);
	return rate;
}

static void count_message(void *context, const rd_kafka_message_t *message)
{
	(void)message;
	++*(size_t *)context;
}

static double consume_bare(struct bench *bench, size_t count)
{
	size_t received = 0;
	double start = wall_seconds();
	bare_consume(bench->config, bench->topic, bench->bus->partitions, count, count_message, &received);
	return (double)received / (wall_seconds() - start);
}

/* ---- a bus with topics of its own ---- */

static void open_bus(struct bench *bench, const char *name)
{
	static const struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	struct weir_error error;
	char prefix[64];
	snprintf(prefix, sizeof prefix, "bench-%d-%s", (int)getpid(), name);
	free(bench->config->bus.prefix);
	bench->config->bus.prefix = weir_copy(prefix, strlen(prefix));
	weir_bus_kafka_topic_name(prefix, WEIR_TOPIC_EVENTS, bench->topic);
	check(weir_bus_kafka_open(bench->config, "bench", NULL, WAIT_MS, NULL, &log, &bench->bus, &error), &error);
}

static void close_bus(struct bench *bench)
{
	rd_kafka_DeleteTopic_t *topics[WEIR_TOPIC_COUNT];
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	bench->bus->ops->close(bench->bus);
	rd_kafka_t *handle = bare_handle(RD_KAFKA_PRODUCER, bare_conf(bench->config));
	rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		weir_bus_kafka_topic_name(bench->config->bus.prefix, (enum weir_topic)topic, name);
		topics[topic] = rd_kafka_DeleteTopic_new(name);
	}
	rd_kafka_DeleteTopics(handle, topics, WEIR_TOPIC_COUNT, NULL, queue);
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_DeleteTopic_destroy_array(topics, WEIR_TOPIC_COUNT);
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(handle);
}

/* ---- what is measured ---- */

static void print(const char *name, const char *unit, double *bus, double *bare, size_t runs, double factor)
{
	double rate = part_of(bus, runs, 0.5) * factor, ceiling = part_of(bare, runs, 0.5) * factor;
	printf("{\"bench\":\"%s\",\"unit\":\"%s\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.2f}\n", name, unit, rate,
	       ceiling, rate / ceiling);
}

/* In and out, the bare loop and the bus by turns going first. */
static void measure_flood(struct bench *bench, const char *name, const char *unit, size_t count, size_t bytes,
                          size_t runs, double factor)
{
	double in[RUNS], bare_in[RUNS], out[RUNS], bare_out[RUNS];
	char line[64];
	for (size_t run = 0; run < runs; run++) {
		open_bus(bench, name);
		if (run % 2 == 1)
			bare_in[run] = bare_produce(bench, count, bytes);
		in[run] = bus_produce(bench, count, bytes);
		if (run % 2 == 0)
			bare_in[run] = bare_produce(bench, count, bytes);
		if (run % 2 == 1)
			bare_out[run] = consume_bare(bench, 2 * count);
		out[run] = bus_consume(bench, 2 * count);
		if (run % 2 == 0)
			bare_out[run] = consume_bare(bench, 2 * count);
		close_bus(bench);
	}
	snprintf(line, sizeof line, "bus_kafka_%s_in", name);
	print(line, unit, in, bare_in, runs, factor);
	snprintf(line, sizeof line, "bus_kafka_%s_out", name);
	print(line, unit, out, bare_out, runs, factor);
}

static void bus_round_trips(struct bench *bench, double *times, size_t count, size_t bytes)
{
	const struct weir_bus_ops *ops = bench->bus->ops;
	struct weir_span payload = {.at = bench->payload, .length = (uint32_t)bytes};
	struct weir_producer *producer;
	struct weir_consumer *consumer;
	struct weir_message message;
	struct weir_delivery delivery;
	struct weir_error error;
	uint64_t first, next;
	check(ops->producer_new(bench->bus, &producer, &error), &error);
	check(ops->consumer_new(bench->bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &error), &error);
	check(ops->extent(bench->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, &error), &error);
	check(ops->assign(consumer, 0, next, &error), &error);
	for (size_t i = 0; i < count; i++) {
		size_t received = 0;
		double start = wall_seconds();
		check(ops->send(producer, WEIR_TOPIC_EVENTS, 0, (struct weir_span){0}, payload, i, &error), &error);
		while (received == 0)
			check(ops->receive(consumer, &message, 1, WAIT_MS, &received, &error), &error);
		times[i] = wall_seconds() - start;
		while (ops->poll(producer, &delivery, 1, WAIT_MS) == 0)
			;
	}
	ops->consumer_free(consumer);
	ops->producer_free(producer);
}

static void bare_round_trips(struct bench *bench, double *times, size_t count, size_t bytes)
{
	size_t delivered = 0;
	rd_kafka_conf_t *conf = bare_conf(bench->config);
	bare_set(conf, "acks", "all");
	bare_set(conf, "linger.ms", "0");
	bare_set(conf, "socket.nagle.disable", "true");
	rd_kafka_conf_set_opaque(conf, &delivered);
	rd_kafka_conf_set_dr_msg_cb(conf, count_report);
	rd_kafka_t *from = bare_handle(RD_KAFKA_PRODUCER, conf), *to;
	conf = bare_conf(bench->config);
	bare_set(conf, "socket.nagle.disable", "true");
	to = bare_handle(RD_KAFKA_CONSUMER, conf);
	rd_kafka_topic_t *in = rd_kafka_topic_new(from, bench->topic, NULL),
					 *out = rd_kafka_topic_new(to, bench->topic, NULL);
	uint64_t first, next;
	struct weir_error error;
	check(bench->bus->ops->extent(bench->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, &error), &error);
	rd_kafka_consume_start(out, 0, (int64_t)next);
	for (size_t i = 0; i < count; i++) {
		rd_kafka_message_t *message = NULL;
		double start = wall_seconds();
		rd_kafka_produce(in, 0, RD_KAFKA_MSG_F_COPY, bench->payload, bytes, NULL, 0, NULL);
		while (message == NULL)
			message = rd_kafka_consume(out, 0, WAIT_MS);
		times[i] = wall_seconds() - start;
		rd_kafka_message_destroy(message);
		while (delivered <= i)
			rd_kafka_poll(from, 100);
	}
	rd_kafka_consume_stop(out, 0);
	rd_kafka_topic_destroy(in);
	rd_kafka_topic_destroy(out);
	rd_kafka_destroy(from);
	rd_kafka_destroy(to);
}

static void measure_latency(struct bench *bench, size_t count, size_t bytes)
{
	double *bus = weir_alloc(count, sizeof *bus), *bare = weir_alloc(count, sizeof *bare);
	open_bus(bench, "latency");
	bus_round_trips(bench, bus, count, bytes);
	bare_round_trips(bench, bare, count, bytes);
	close_bus(bench);
	print_latency("bus_kafka_latency", bytes, bus, bare, count);
	free(bus);
	free(bare);
}

int main(void)
{
	const char *path = getenv("WEIR_BUS");
	bool smoke = is_smoke();
	if (path == NULL) {
		printf("{\"bench\":\"bus_kafka\",\"skipped\":\"WEIR_BUS names no configuration of brokers: "
		       "deploy/cluster/up makes one\"}\n");
		return SKIPPED;
	}
	struct bench bench = {0};
	struct weir_error error;
	size_t runs = smoke ? 1 : RUNS;
	check(weir_config_load(path, &bench.config, &error), &error);
	bench.payload = weir_alloc(FRAME_BYTES, 1);
	for (size_t i = 0; i < FRAME_BYTES; i++)
		bench.payload[i] = (char)(i * 31);
	measure_flood(&bench, "frames", "MB/s", smoke ? 200 : 8000, FRAME_BYTES, runs, FRAME_BYTES / 1e6);
	measure_flood(&bench, "small", "messages/s of 200 bytes", smoke ? 10000 : 1000000, SMALL_BYTES, runs, 1);
	measure_latency(&bench, smoke ? 50 : 1000, 4096);
	measure_latency(&bench, smoke ? 50 : 1000, FRAME_BYTES);
	free(bench.payload);
	weir_config_free(bench.config);
	return 0;
}
