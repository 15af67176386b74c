/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the events topic with frames that follow from their numbers alone, so
 * that two topics can be given the same: limiter_feed CONFIG FROM TO RATE [hot].
 *
 * Frames FROM to TO (exclusive) of an endless log: frame i goes to partition
 * i % P, and holds EVENTS events of zone 1 by a user of that partition each,
 * 10 ms apart; hot: every second frame goes to partition 0. RATE frames a
 * second; 0: as fast as they go. It prints a line once all are acknowledged.
 * With FROM 0 it first puts the zones of CONFIG into
 * the store, as policy 1, and into every partition.
 */
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "common/cluster/connect.h"
#include "common/frame/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 100, USERS = 200, WAIT_MS = 60000 };

static const int64_t START_MS = INT64_C(1732173600000);

struct feed {
	struct weir_config *config;
	struct weir_bus *bus;
	struct weir_producer *producer;
	uint64_t sent, delivered;
	bool hot;
};

static void must(enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		return;
	fprintf(stderr, "limiter_feed: %s\n", error->text);
	exit(1);
}

static void take_deliveries(struct feed *feed, int timeout_ms)
{
	struct weir_delivery deliveries[64];
	size_t count = feed->bus->ops->poll(feed->producer, deliveries, 64, timeout_ms);
	for (size_t i = 0; i < count; i++) {
		struct weir_error error;
		if (deliveries[i].status != WEIR_OK)
			must(weir_fail(&error, deliveries[i].status, "a frame was not delivered"), &error);
	}
	feed->delivered += count;
}

static void send(struct feed *feed, uint32_t partition, struct weir_span message)
{
	struct weir_error error;
	enum weir_status status;
	while ((status = feed->bus->ops->send(feed->producer, WEIR_TOPIC_EVENTS, partition, (struct weir_span){0}, message,
	                                      0, &error)) == WEIR_FULL)
		take_deliveries(feed, 100);
	must(status, &error);
	feed->sent++;
	take_deliveries(feed, 0);
}

static void send_policy(struct feed *feed)
{
	struct weir_error error;
	struct weir_store *store;
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_WARNING};
	struct weir_span text = weir_span_of(feed->config->policy->text);
	must(weir_connect_store(feed->config, WAIT_MS, NULL, &log, &store, &error), &error);
	must(store->ops->policy_put(store, 1, text, &error), &error);
	store->ops->close(store);
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, START_MS, 1, text, &length);
	for (uint32_t partition = 0; partition < feed->bus->partitions; partition++)
		send(feed, partition, (struct weir_span){message, (uint32_t)length});
	free(message);
}

/* Scatters numbers: multiplication by an odd constant, its high bits. */
static uint32_t scattered(uint64_t number)
{
	return (uint32_t)(number * UINT64_C(0x9E3779B97F4A7C15) >> 40);
}

static void send_frame(struct feed *feed, struct weir_frame_writer *writer, uint64_t number)
{
	static const struct weir_frame_zone zone = {.id = 1};
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "limiter-feed";
	uint32_t partition = (uint32_t)((feed->hot ? number / 2 : number) % feed->bus->partitions);
	if (feed->hot && number % 2 == 1)
		partition = 0;
	int64_t at_ms = START_MS + (int64_t)number * 10;
	uint64_t position = number * EVENTS + 1;
	weir_frame_begin(writer, source, 1, at_ms, position);
	for (uint64_t i = 0; i < EVENTS; i++) {
		char key[32];
		int length = snprintf(key, sizeof key, "user%u-%u", partition, scattered(position + i) % USERS);
		struct weir_span span = {key, (uint32_t)length};
		struct weir_error error;
		enum weir_status status = weir_frame_add(writer, span, weir_hash64(key, span.length), at_ms + (int64_t)i * 10,
		                                         position + i, 1, &zone, 1);
		if (status != WEIR_OK)
			must(weir_fail(&error, status, "the frame is full"), &error);
	}
	send(feed, partition, weir_frame_finish(writer, at_ms + EVENTS * 10));
}

static void send_frames(struct feed *feed, uint64_t from, uint64_t to, double rate)
{
	struct weir_frame_writer *writer = weir_frame_writer_new();
	int64_t began_ms = weir_monotonic_ms();
	for (uint64_t number = from; number < to; number++) {
		send_frame(feed, writer, number);
		while (rate > 0 && (double)(weir_monotonic_ms() - began_ms) * rate / 1000 < (double)(number - from))
			take_deliveries(feed, 5);
	}
	weir_frame_writer_free(writer);
}

int main(int argc, char **argv)
{
	struct feed feed = {0};
	struct weir_error error;
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_WARNING};
	feed.hot = argc == 6 && strcmp(argv[5], "hot") == 0;
	if (argc != (feed.hot ? 6 : 5)) {
		fprintf(stderr, "usage: limiter_feed CONFIG FROM TO RATE [hot]\n");
		return 2;
	}
	uint64_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10);
	must(weir_config_load(argv[1], &feed.config, &error), &error);
	must(weir_connect_bus(feed.config, "limiter_feed", NULL, WAIT_MS, NULL, &log, &feed.bus, &error), &error);
	must(feed.bus->ops->producer_new(feed.bus, &feed.producer, &error), &error);
	if (from == 0)
		send_policy(&feed);
	send_frames(&feed, from, to, strtod(argv[4], NULL));
	int64_t end_ms = weir_monotonic_ms() + WAIT_MS;
	while (feed.delivered < feed.sent && weir_monotonic_ms() < end_ms)
		take_deliveries(&feed, 100);
	if (feed.delivered < feed.sent)
		must(weir_fail(&error, WEIR_IO, "not all frames were delivered"), &error);
	printf("%llu messages\n", (unsigned long long)feed.sent);
	feed.bus->ops->producer_free(feed.producer);
	feed.bus->ops->close(feed.bus);
	weir_config_free(feed.config);
	return 0;
}
