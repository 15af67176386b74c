/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bounds a limiter on a filled log: log_ceilings CONFIG
 *
 * Fetches the events topic by a bare librdkafka consumer, then decodes and judges
 * the same frames from memory by one thread: a shard for each partition, the
 * zones of CONFIG, from empty buckets. Prints one JSON line with the medians of
 * the seconds that each took: `fetch` by the clock, the others by the thread's
 * own time.
 */
#include "common/base/alloc.h"
#include "common/bus/kafka/bus_kafka.h"
#include "limiter/shard/shard.h"
#include "tests/bench/bare_kafka.h"
#include "tests/bench/measure.h"

#include <unistd.h>

enum { RUNS = 3, AT_ONCE = 16, WAIT_MS = 60000 };

/* One partition's messages, in order. */
struct log_part {
	struct weir_span *messages;
	size_t count, room;
};

struct ceilings {
	struct weir_config *config;
	char topic[WEIR_BUS_KAFKA_TOPIC_BYTES];
	struct log_part *parts;
	uint32_t partitions;
	size_t messages;
	uint64_t bytes, events, pairs;
};

/* ---- fetching ---- */

static void count_messages(struct ceilings *ceilings)
{
	static const struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	struct weir_error error;
	struct weir_bus *bus;
	check(weir_bus_kafka_open(ceilings->config, "log_ceilings", NULL, WAIT_MS, NULL, &log, &bus, &error), &error);
	for (uint32_t i = 0; i < bus->partitions; i++) {
		uint64_t first, next;
		check(bus->ops->extent(bus, WEIR_TOPIC_EVENTS, i, &first, &next, &error), &error);
		ceilings->messages += (size_t)(next - first);
	}
	bus->ops->close(bus);
}

static void pass_over(void *context, const rd_kafka_message_t *message)
{
	(void)context;
	(void)message;
}

static void keep(void *context, const rd_kafka_message_t *message)
{
	struct ceilings *ceilings = context;
	struct log_part *part = &ceilings->parts[message->partition];
	if (part->count == part->room) {
		part->room = part->room == 0 ? 1024 : 2 * part->room;
		part->messages = weir_realloc(part->messages, part->room, sizeof *part->messages);
	}
	part->messages[part->count++] =
		(struct weir_span){weir_copy(message->payload, message->len), (uint32_t)message->len};
	ceilings->bytes += message->len;
}

static void fetch(struct ceilings *ceilings, void (*each)(void *context, const rd_kafka_message_t *message))
{
	bare_consume(ceilings->config, ceilings->topic, ceilings->partitions, ceilings->messages, each, ceilings);
}

/* ---- decoding and judging ---- */

struct spent {
	double decode, judge;
};

static void judge_message(struct ceilings *ceilings, struct weir_frame_reader *reader, struct shard *shard,
                          struct weir_span message, uint64_t offset, struct spent *times)
{
	struct weir_frame frame;
	struct weir_error error;
	struct shard_result result;
	uint32_t segments[SHARD_SEGMENTS];
	double begun = thread_seconds();
	check(weir_frame_decode(reader, message, &frame, &error), &error);
	double decoded = thread_seconds();
	times->decode += decoded - begun;
	if (!weir_frame_is_of_events(&frame))
		return;
	shard_frame_begin(shard, &frame, offset);
	if (shard_missing(shard, segments) > 0)
		bare_fail("a shard without a store misses a segment");
	shard_frame_judge(shard, &result);
	times->judge += thread_seconds() - decoded;
	ceilings->events += result.events_taken;
	ceilings->pairs += result.pair_count;
}

/* All partitions side by side, as a consumer gives them: some messages of each by turns. */
static struct spent judge_all(struct ceilings *ceilings)
{
	const struct weir_policy *policy = ceilings->config->policy;
	const struct shard_options options = {.seed = 42, .lateness_ms = 600000};
	uint32_t count = ceilings->partitions;
	struct compiled_policy *compiled = compiled_policy_new(&policy, 1);
	struct shard **shards = weir_alloc(count, sizeof *shards);
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct spent times = {0};
	bool more = true;
	ceilings->events = ceilings->pairs = 0;
	for (uint32_t i = 0; i < count; i++)
		shards[i] = shard_new(&options, compiled);
	for (size_t from = 0; more; from += AT_ONCE) {
		more = false;
		for (uint32_t i = 0; i < count; i++) {
			const struct log_part *part = &ceilings->parts[i];
			for (size_t at = from; at < from + AT_ONCE && at < part->count; at++)
				judge_message(ceilings, reader, shards[i], part->messages[at], at, &times);
			more |= from + AT_ONCE < part->count;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		shard_free(shards[i]);
	free(shards);
	weir_frame_reader_free(reader);
	compiled_policy_free(compiled);
	return times;
}

int main(int argc, char **argv)
{
	struct ceilings ceilings = {0};
	struct weir_error error;
	double fetched[RUNS], decoded[RUNS], judged[RUNS];
	if (argc != 2) {
		fprintf(stderr, "usage: log_ceilings CONFIG\n");
		return 2;
	}
	check(weir_config_load(argv[1], &ceilings.config, &error), &error);
	ceilings.partitions = (uint32_t)ceilings.config->bus.partitions;
	ceilings.parts = weir_alloc(ceilings.partitions, sizeof *ceilings.parts);
	weir_bus_kafka_topic_name(ceilings.config->bus.prefix, WEIR_TOPIC_EVENTS, ceilings.topic);
	count_messages(&ceilings);
	for (size_t run = 0; run < RUNS; run++) {
		double begun = wall_seconds();
		fetch(&ceilings, pass_over);
		fetched[run] = wall_seconds() - begun;
	}
	fetch(&ceilings, keep);
	for (size_t run = 0; run < RUNS; run++) {
		struct spent times = judge_all(&ceilings);
		decoded[run] = times.decode;
		judged[run] = times.judge;
	}
	printf("{\"messages\":%zu,\"bytes\":%llu,\"events\":%llu,\"pairs\":%llu,\"fetch\":%.6f,\"decode\":%.6f,"
	       "\"judge\":%.6f}\n",
	       ceilings.messages, (unsigned long long)ceilings.bytes, (unsigned long long)ceilings.events,
	       (unsigned long long)ceilings.pairs, median(fetched, RUNS), median(decoded, RUNS), median(judged, RUNS));
	for (uint32_t i = 0; i < ceilings.partitions; i++) {
		for (size_t at = 0; at < ceilings.parts[i].count; at++)
			free((void *)(uintptr_t)ceilings.parts[i].messages[at].at);
		free(ceilings.parts[i].messages);
	}
	free(ceilings.parts);
	weir_config_free(ceilings.config);
	return 0;
}
