/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on the Kafka bus until standard input ends: bus_kafka_load CONFIG send BYTES FILE
 *                                                  bus_kafka_load CONFIG follow SEED FILE
 *
 * `send` gives each partition of the events its own numbers, 0, 1, 2, …, and
 * writes "PARTITION NUMBER OFFSET" to FILE for every delivery; a producer that
 * breaks is made anew and sends from what was delivered. `follow` reads all
 * partitions from 0 while it pauses them, unassigns them and goes back at
 * random, and holds every message against the offset that is due. So on a fresh
 * topic NUMBER == OFFSET says that nothing was lost and nothing doubled. The
 * last line of FILE is "end" and what was done.
 */
#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "tests/support/driver_watch.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AT_ONCE = 256, QUIET_MS = 60000, MOST_BYTES = 1 << 20, ACTION_MS = 20, RATE_PER_MS = 10 };

struct load {
	struct weir_bus *bus;
	const struct weir_bus_ops *ops;
	FILE *file;
	struct weir_error error;
};

static void must(enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		return;
	fprintf(stderr, "bus_kafka_load: %s\n", error->text);
	exit(1);
}

static bool input_ended(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&input, 1, 0) > 0;
}

/* ---- send ---- */

struct sender {
	struct load *load;
	struct weir_producer *producer;
	uint64_t *sent, *delivered; /* by partition: how many numbers */
	uint64_t breaks, failed;
};

static void take_deliveries(struct sender *sender, int timeout_ms)
{
	struct weir_delivery deliveries[AT_ONCE];
	size_t count = sender->load->ops->poll(sender->producer, deliveries, AT_ONCE, timeout_ms);
	for (size_t i = 0; i < count; i++) {
		const struct weir_delivery *delivery = &deliveries[i];
		if (delivery->status != WEIR_OK) {
			sender->failed++;
			continue;
		}
		if (delivery->tag != sender->delivered[delivery->partition]) {
			fprintf(stderr, "partition %u: number %" PRIu64 " was delivered, not %" PRIu64 "\n", delivery->partition,
			        delivery->tag, sender->delivered[delivery->partition]);
			exit(1);
		}
		sender->delivered[delivery->partition]++;
		fprintf(sender->load->file, "%u %" PRIu64 " %" PRIu64 "\n", delivery->partition, delivery->tag,
		        delivery->offset);
	}
	if (count > 0)
		fflush(sender->load->file);
}

static void renew(struct sender *sender)
{
	const struct weir_bus_ops *ops = sender->load->ops;
	sender->breaks++;
	fprintf(stderr, "bus_kafka_load: %s\n", sender->load->error.text);
	ops->producer_free(sender->producer);
	must(ops->producer_new(sender->load->bus, &sender->producer, &sender->load->error), &sender->load->error);
	memcpy(sender->sent, sender->delivered, sender->load->bus->partitions * sizeof *sender->sent);
}

static void send_next(struct sender *sender, uint32_t partition, char *payload, size_t bytes)
{
	struct weir_error *error = &sender->load->error;
	int length = snprintf(payload, bytes, "%u %" PRIu64, partition, sender->sent[partition]);
	struct weir_span text = {.at = payload, .length = (uint32_t)bytes};
	memset(payload + length, ' ', bytes - (size_t)length);
	enum weir_status status = sender->load->ops->send(sender->producer, WEIR_TOPIC_EVENTS, partition,
	                                                  (struct weir_span){0}, text, sender->sent[partition], error);
	if (status == WEIR_OK)
		sender->sent[partition]++;
	else if (status == WEIR_IO)
		renew(sender);
	else if (status != WEIR_FULL)
		must(status, error);
	take_deliveries(sender, status == WEIR_FULL ? 100 : 0);
}

static bool all_delivered(const struct sender *sender)
{
	return memcmp(sender->sent, sender->delivered, sender->load->bus->partitions * sizeof *sender->sent) == 0;
}

static int send_all(struct load *load, size_t bytes)
{
	struct sender sender = {.load = load};
	char *payload = malloc(bytes);
	sender.sent = calloc(load->bus->partitions, sizeof *sender.sent);
	sender.delivered = calloc(load->bus->partitions, sizeof *sender.delivered);
	must(load->ops->producer_new(load->bus, &sender.producer, &load->error), &load->error);
	int64_t start_ms = weir_monotonic_ms();
	for (uint64_t i = 0; i % AT_ONCE != 0 || !input_ended(); i++) {
		send_next(&sender, (uint32_t)(i % load->bus->partitions), payload, bytes);
		while ((int64_t)i / RATE_PER_MS > weir_monotonic_ms() - start_ms) /* leaves the others some of the machine */
			take_deliveries(&sender, 1);
	}
	int64_t end_ms = weir_monotonic_ms() + QUIET_MS;
	while (!all_delivered(&sender) && weir_monotonic_ms() < end_ms)
		take_deliveries(&sender, 100);
	bool whole = all_delivered(&sender);
	fprintf(load->file, "end %" PRIu64 " breaks %" PRIu64 " failed\n", sender.breaks, sender.failed);
	load->ops->producer_free(sender.producer);
	free(sender.sent);
	free(sender.delivered);
	free(payload);
	return whole ? 0 : 1;
}

/* ---- follow ---- */

struct follower {
	struct load *load;
	struct weir_consumer *consumer;
	uint64_t *due; /* by partition: the offset that comes next */
	bool *on, *paused;
	uint64_t random, received, faults, actions;
};

static uint64_t random_below(struct follower *follower, uint64_t bound)
{
	follower->random = follower->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (follower->random >> 33) % bound;
}

static void act(struct follower *follower)
{
	const struct weir_bus_ops *ops = follower->load->ops;
	uint32_t partition = (uint32_t)random_below(follower, follower->load->bus->partitions);
	follower->actions++;
	switch (random_below(follower, 4)) {
	case 0:
		ops->unassign(follower->consumer, partition);
		follower->on[partition] = follower->paused[partition] = false;
		break;
	case 1: /* goes back, where it is assigned, too */
		follower->due[partition] -= random_below(follower, follower->due[partition] + 1) / 4;
		must(ops->assign(follower->consumer, partition, follower->due[partition], &follower->load->error),
		     &follower->load->error);
		follower->on[partition] = true;
		follower->paused[partition] = false;
		break;
	default:
		follower->paused[partition] = follower->on[partition] && !follower->paused[partition];
		ops->pause(follower->consumer, partition, follower->paused[partition]);
		break;
	}
}

static void check(struct follower *follower, const struct weir_message *message)
{
	unsigned partition;
	uint64_t number;
	char text[64];
	snprintf(text, sizeof text, "%.*s", message->payload.length < 60 ? (int)message->payload.length : 60,
	         message->payload.at);
	bool read = sscanf(text, "%u %" SCNu64, &partition, &number) == 2;
	if (!read || !follower->on[message->partition] || follower->paused[message->partition] ||
	    message->offset != follower->due[message->partition] || partition != message->partition ||
	    number != message->offset) {
		fprintf(stderr, "partition %u offset %" PRIu64 " (due %" PRIu64 ", %s%s): %s\n", message->partition,
		        message->offset, follower->due[message->partition],
		        follower->on[message->partition] ? "assigned" : "not assigned",
		        follower->paused[message->partition] ? ", paused" : "", text);
		exit(1);
	}
	follower->due[message->partition]++;
	follower->received++;
}

static size_t receive(struct follower *follower, int timeout_ms)
{
	struct weir_message messages[AT_ONCE];
	size_t count;
	enum weir_status status =
		follower->load->ops->receive(follower->consumer, messages, AT_ONCE, timeout_ms, &count, &follower->load->error);
	follower->faults += status == WEIR_IO;
	if (status != WEIR_IO)
		must(status, &follower->load->error);
	for (size_t i = 0; i < count; i++)
		check(follower, &messages[i]);
	return count;
}

/* All there is, of every partition. */
static bool read_to_end(struct follower *follower)
{
	const struct weir_bus_ops *ops = follower->load->ops;
	int64_t end_ms = weir_monotonic_ms() + QUIET_MS;
	for (uint32_t i = 0; i < follower->load->bus->partitions; i++) {
		uint64_t first, next;
		must(ops->extent(follower->load->bus, WEIR_TOPIC_EVENTS, i, &first, &next, &follower->load->error),
		     &follower->load->error);
		if (!follower->on[i])
			must(ops->assign(follower->consumer, i, follower->due[i], &follower->load->error), &follower->load->error);
		ops->pause(follower->consumer, i, false);
		follower->on[i] = true;
		follower->paused[i] = false;
		while (follower->due[i] < next && weir_monotonic_ms() < end_ms)
			receive(follower, 100);
		if (follower->due[i] != next)
			return false;
	}
	return true;
}

static int follow_all(struct load *load, uint64_t seed)
{
	struct follower follower = {.load = load, .random = seed};
	follower.due = calloc(load->bus->partitions, sizeof *follower.due);
	follower.on = calloc(load->bus->partitions, sizeof *follower.on);
	follower.paused = calloc(load->bus->partitions, sizeof *follower.paused);
	must(load->ops->consumer_new(load->bus, WEIR_TOPIC_EVENTS, "load", &follower.consumer, &load->error), &load->error);
	int64_t next_ms = 0;
	while (!input_ended()) {
		receive(&follower, 10);
		if (weir_monotonic_ms() < next_ms)
			continue;
		act(&follower);
		next_ms = weir_monotonic_ms() + (int64_t)random_below(&follower, ACTION_MS);
	}
	bool whole = read_to_end(&follower);
	fprintf(load->file, "end %" PRIu64 " received %" PRIu64 " troubles %" PRIu64 " actions\n", follower.received,
	        follower.faults, follower.actions);
	driver_watch("closing the consumer");
	load->ops->consumer_free(follower.consumer);
	free(follower.due);
	free(follower.on);
	free(follower.paused);
	return whole ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_INFO};
	struct weir_config *config;
	struct load load = {0};
	if (argc != 5)
		return 2;
	must(weir_config_load(argv[1], &config, &load.error), &load.error);
	driver_watch("opening");
	must(weir_bus_kafka_open(config, "load", NULL, 60000, NULL, &log, &load.bus, &load.error), &load.error);
	driver_watch_over();
	load.ops = load.bus->ops;
	load.file = fopen(argv[4], "w");
	if (load.file == NULL)
		return 2;
	uint64_t number = strtoull(argv[3], NULL, 10);
	int code = strcmp(argv[2], "send") == 0 ? send_all(&load, number <= MOST_BYTES ? number : MOST_BYTES)
	                                        : follow_all(&load, number);
	fclose(load.file);
	driver_watch("closing");
	load.ops->close(load.bus);
	weir_config_free(config);
	return code;
}
