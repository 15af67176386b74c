/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local bus: throughput and latency from a producer to a consumer, each
 * beside what the disk itself gives for the same bytes in the same run.
 *
 * One JSON line a measurement. WEIR_BENCH=smoke runs each on a small size.
 */
#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/bus/bus.h"
#include "common/bus/local/bus_local.h"
#include "tests/bench/measure.h"
#include "tests/bench/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTITIONS = 16, FRAME_BYTES = 64 * 1024, BATCH_BYTES = 4 * 1024 * 1024, RUNS = 5 };

/* A bus in a directory of its own. */
struct setting {
	char *directory;
	struct weir_bus *bus;
	struct weir_producer *producer;
	struct weir_consumer *consumer;
};

static void open_bus(struct setting *setting, const char *name)
{
	struct weir_error error;
	struct weir_bus_local_options options = {.partitions = PARTITIONS};
	setting->directory = bench_scratch(name);
	check(weir_bus_local_open(setting->directory, &options, &setting->bus, &error), &error);
	const struct weir_bus_ops *ops = setting->bus->ops;
	check(ops->producer_new(setting->bus, &setting->producer, &error), &error);
	check(ops->consumer_new(setting->bus, WEIR_TOPIC_EVENTS, "bench", &setting->consumer, &error), &error);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		check(ops->assign(setting->consumer, i, 0, &error), &error);
}

static void close_bus(struct setting *setting)
{
	setting->bus->ops->consumer_free(setting->consumer);
	setting->bus->ops->producer_free(setting->producer);
	setting->bus->ops->close(setting->bus);
	bench_scratch_remove(setting->directory);
}

/* Sends `count` messages of a size; waits where the bus is full, and until all are delivered. */
struct flood {
	struct setting *setting;
	size_t count, bytes;
};

static void *produce(void *context)
{
	const struct flood *flood = context;
	const struct weir_bus_ops *ops = flood->setting->bus->ops;
	struct weir_producer *producer = flood->setting->producer;
	struct weir_delivery deliveries[256];
	struct weir_error error;
	char *payload = weir_alloc(flood->bytes, 1);
	size_t delivered = 0;
	for (size_t i = 0; i < flood->bytes; i++)
		payload[i] = (char)(i * 31);
	for (size_t sent = 0; sent < flood->count;) {
		enum weir_status status =
			ops->send(producer, WEIR_TOPIC_EVENTS, (uint32_t)(sent % PARTITIONS), (struct weir_span){0},
		              (struct weir_span){.at = payload, .length = (uint32_t)flood->bytes}, sent, &error);
		sent += status == WEIR_OK;
		if (status != WEIR_OK && status != WEIR_FULL)
			check(status, &error);
		delivered += ops->poll(producer, deliveries, 256, status == WEIR_FULL ? 1000 : 0);
	}
	while (delivered < flood->count)
		delivered += ops->poll(producer, deliveries, 256, 1000);
	free(payload);
	return NULL;
}

/* Messages a second through the bus. */
static double flood_rate(size_t count, size_t bytes)
{
	struct setting setting;
	open_bus(&setting, "bus");
	const struct weir_bus_ops *ops = setting.bus->ops;
	struct flood flood = {&setting, count, bytes};
	struct weir_message messages[256];
	struct weir_error error;
	pthread_t thread;
	double start = wall_seconds();
	pthread_create(&thread, NULL, produce, &flood);
	uint64_t next[PARTITIONS] = {0};
	for (size_t received = 0; received < count;) {
		size_t some;
		check(ops->receive(setting.consumer, messages, 256, 1000, &some, &error), &error);
		for (size_t i = 0; i < some; i++)
			next[messages[i].partition] = messages[i].offset + 1;
		for (uint32_t i = 0; i < PARTITIONS; i++)
			ops->consumed(setting.consumer, i, next[i]);
		received += some;
	}
	double rate = (double)count / (wall_seconds() - start);
	pthread_join(thread, NULL);
	close_bus(&setting);
	return rate;
}

/* Bytes a second of the disk: batches of the size that the bus writes, each synced. */
static double disk_rate(size_t total)
{
	char *directory = bench_scratch("disk"), path[4096];
	snprintf(path, sizeof path, "%s/file", directory);
	char *bytes = weir_alloc(BATCH_BYTES, 1);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	double start = wall_seconds();
	for (size_t written = 0; written < total; written += BATCH_BYTES)
		if (write(fd, bytes, BATCH_BYTES) != BATCH_BYTES || fdatasync(fd) != 0)
			exit(1);
	double rate = (double)total / (wall_seconds() - start);
	close(fd);
	free(bytes);
	bench_scratch_remove(directory);
	return rate;
}

static void measure_throughput(size_t total, int runs)
{
	double bus[RUNS], disk[RUNS];
	for (int i = 0; i < runs; i++) {
		disk[i] = disk_rate(total);
		bus[i] = flood_rate(total / FRAME_BYTES, FRAME_BYTES) * FRAME_BYTES;
	}
	double rate = part_of(bus, (size_t)runs, 0.5), ceiling = part_of(disk, (size_t)runs, 0.5);
	printf("{\"bench\":\"bus_frames\",\"unit\":\"MB/s\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.2f,\"goal\":300,"
	       "\"best\":%.0f}\n",
	       rate / 1e6, ceiling / 1e6, rate / ceiling, bus[runs - 1] / 1e6);
}

static void measure_small(size_t count, int runs)
{
	double rates[RUNS];
	for (int i = 0; i < runs; i++)
		rates[i] = flood_rate(count, 200);
	printf("{\"bench\":\"bus_small_messages\",\"unit\":\"messages/s of 200 bytes\",\"rate\":%.0f}\n",
	       part_of(rates, (size_t)runs, 0.5));
}

/* One message at a time, from send to receive; beside it one write and fdatasync of as many bytes. */
static void measure_latency(size_t count, size_t bytes)
{
	struct setting setting;
	open_bus(&setting, "bus");
	const struct weir_bus_ops *ops = setting.bus->ops;
	struct weir_message message;
	struct weir_delivery delivery;
	struct weir_error error;
	char path[4096], *payload = weir_alloc(bytes, 1);
	double *bus = weir_alloc(count, sizeof *bus), *disk = weir_alloc(count, sizeof *disk);
	snprintf(path, sizeof path, "%s/file", setting.directory);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	for (size_t i = 0; i < count; i++) {
		size_t received = 0;
		double start = wall_seconds();
		check(ops->send(setting.producer, WEIR_TOPIC_EVENTS, 0, (struct weir_span){0},
		                (struct weir_span){.at = payload, .length = (uint32_t)bytes}, i, &error),
		      &error);
		while (received == 0)
			check(ops->receive(setting.consumer, &message, 1, 1000, &received, &error), &error);
		bus[i] = wall_seconds() - start;
		while (ops->poll(setting.producer, &delivery, 1, 1000) == 0)
			;
		start = wall_seconds();
		if (write(fd, payload, bytes) != (ssize_t)bytes || fdatasync(fd) != 0)
			exit(1);
		disk[i] = wall_seconds() - start;
	}
	print_latency("bus_latency", bytes, bus, disk, count);
	close(fd);
	free(payload);
	free(bus);
	free(disk);
	close_bus(&setting);
}

/* A round of one message to each of three topics: their threads sync side by side. */
static void measure_topics(size_t count)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_EVENTS, WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS};
	struct setting setting;
	open_bus(&setting, "bus");
	const struct weir_bus_ops *ops = setting.bus->ops;
	struct weir_delivery deliveries[3];
	struct weir_error error;
	char payload[4096] = {0};
	double times[2];
	for (size_t used = 1; used <= 3; used += 2) {
		double start = wall_seconds();
		for (size_t i = 0; i < count; i++) {
			for (size_t k = 0; k < used; k++)
				check(ops->send(setting.producer, topics[k], 0, (struct weir_span){0},
				                (struct weir_span){.at = payload, .length = sizeof payload}, i, &error),
				      &error);
			for (size_t back = 0; back < used;)
				back += ops->poll(setting.producer, deliveries, 3, 1000);
		}
		times[used / 2] = (wall_seconds() - start) / (double)count * 1e3;
	}
	printf("{\"bench\":\"bus_three_topics\",\"unit\":\"ms a round\",\"rate\":%.3f,\"one_topic\":%.3f,\"ratio\":%.2f}\n",
	       times[1], times[0], times[1] / times[0]);
	close_bus(&setting);
}

int main(void)
{
	bool smoke = is_smoke();
	measure_throughput(smoke ? (size_t)16 << 20 : (size_t)1 << 30, smoke ? 1 : RUNS);
	measure_small(smoke ? 20000 : 2000000, smoke ? 1 : RUNS);
	measure_latency(smoke ? 50 : 1000, 4096);
	measure_latency(smoke ? 50 : 1000, FRAME_BYTES);
	measure_topics(smoke ? 50 : 1000);
	return 0;
}
