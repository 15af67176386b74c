/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends to Kafka and reports the deliveries.
 *
 * Idempotent, acknowledged by all in-sync replicas, without a timeout, and one
 * request at a time: with several in flight, a rejected first request of a new
 * producer can be overtaken by its second. Its retry is then taken for a duplicate
 * and reported as delivered, though it is not in the log. Such a report has no
 * offset, so one without an offset counts as failed too. A failure ends the
 * producer: nothing that it reports afterwards counts, as what was sent later must
 * not be in the log before what failed.
 *
 * A topic that may be missed ends no producer: while there is none, what is sent to
 * it is dropped and counted, and reported among the deliveries.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DROPS_MAX = 256 };
enum { MESSAGE_COST_BYTES = 128 }; /* librdkafka's own memory per message, so that many small ones are bounded too */

struct weir_producer {
	struct bus_kafka *bus; /* borrowed */
	rd_kafka_t *handle;
	rd_kafka_queue_t *queue;
	int wake; /* written by librdkafka when the queue is no longer empty; -1: nothing is */
	rd_kafka_topic_t *topics[WEIR_TOPIC_COUNT]; /* created at the first message */
	uint64_t held_bytes;                        /* sent and not polled */
	bool broken;
	struct weir_error failure;             /* if broken: why */
	rd_kafka_event_t *reports;             /* delivery reports being taken, or NULL */
	struct weir_delivery drops[DROPS_MAX]; /* dropped and not polled */
	size_t drop_count;
};

/* send() has weir's own bounds, so librdkafka's are set higher. */
static const struct weir_kafka_property properties[] = {
	{"enable.idempotence", "true", false},
	{"enable.gapless.guarantee", "true", false},
	{"acks", "all", false},
	{"max.in.flight.requests.per.connection", "1", false},
	{"message.timeout.ms", "0", false},
	{"message.send.max.retries", "2147483647", false},
	{"queuing.strategy", "fifo", false},
	{"message.max.bytes", "4194304", false},
	{"queue.buffering.max.messages", "1000000", false},
	{"queue.buffering.max.kbytes", "65536", false},
	{NULL, NULL, false},
};

enum weir_status weir_kafka_producer_new(struct weir_bus *base, struct weir_producer **producer,
                                         struct weir_error *error)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	rd_kafka_conf_t *conf = weir_kafka_conf(bus->kafka, properties);
	rd_kafka_t *handle;
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	enum weir_status status = weir_kafka_open(bus->kafka, RD_KAFKA_PRODUCER, conf, &handle, error);
	if (status != WEIR_OK)
		return status;
	struct weir_producer *made = weir_alloc(1, sizeof *made);
	made->bus = bus;
	made->handle = handle;
	made->queue = rd_kafka_queue_get_main(handle);
	made->wake = -1;
	*producer = made;
	return WEIR_OK;
}

void weir_kafka_producer_wake(struct weir_producer *producer, int descriptor)
{
	static const uint64_t one = 1;
	producer->wake = descriptor;
	rd_kafka_queue_io_event_enable(producer->queue, descriptor, &one, sizeof one);
	weir_wake_up(descriptor); /* what is in the queue already has woken nobody */
}

void weir_kafka_producer_free(struct weir_producer *producer)
{
	if (producer == NULL)
		return;
	if (producer->reports != NULL)
		rd_kafka_event_destroy(producer->reports);
	rd_kafka_purge(producer->handle,
	               RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
	rd_kafka_queue_io_event_enable(producer->queue, -1, NULL, 0); /* the handle's end may take longer than this */
	rd_kafka_queue_destroy(producer->queue);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (producer->topics[topic] != NULL)
			rd_kafka_topic_destroy(producer->topics[topic]);
	weir_kafka_end(producer->handle, BUS_KAFKA_END_MS);
	free(producer);
}

/* Notes the first failure. Messages in flight are purged, and reported as failed. */
static void fail(struct weir_producer *producer, const char *what, const char *why)
{
	if (producer->broken)
		return;
	producer->broken = true;
	(void)weir_fail(&producer->failure, WEIR_IO, "%s: %s; all later messages of this producer are discarded", what,
	                why);
	rd_kafka_purge(producer->handle,
	               RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

static enum weir_status topic_of(struct weir_producer *producer, enum weir_topic topic, rd_kafka_topic_t **made,
                                 struct weir_error *error)
{
	if (producer->topics[topic] == NULL) {
		rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(producer->handle);
		rd_kafka_topic_conf_set_opaque(conf, (void *)(uintptr_t)topic);
		producer->topics[topic] = rd_kafka_topic_new(producer->handle, producer->bus->names[topic], conf);
	}
	*made = producer->topics[topic];
	return *made != NULL ? WEIR_OK
	                     : weir_fail(error, WEIR_IO, "%s: %s", producer->bus->names[topic],
	                                 rd_kafka_err2str(rd_kafka_last_error()));
}

/* ---- topics that may be missed ---- */

static bool is_of_no_topic(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
	       code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* Takes a message only to report it. */
static enum weir_status drop(struct weir_producer *producer, enum weir_topic topic, uint32_t partition, uint64_t tag,
                             struct weir_error *error)
{
	if (producer->drop_count == DROPS_MAX)
		return weir_fail(error, WEIR_FULL, "%d dropped messages are not reported yet", DROPS_MAX);
	producer->drops[producer->drop_count++] =
		(struct weir_delivery){.topic = topic, .partition = partition, .tag = tag, .status = WEIR_OK};
	atomic_fetch_add(&producer->bus->dropped[topic], 1);
	weir_wake_up(producer->wake);
	return WEIR_OK;
}

/* @return how many there were, `most` at most */
static size_t take_drops(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most)
{
	size_t count = producer->drop_count < most ? producer->drop_count : most;
	memcpy(deliveries, producer->drops, count * sizeof *deliveries);
	producer->drop_count -= count;
	memmove(producer->drops, producer->drops + count, producer->drop_count * sizeof *producer->drops);
	return count;
}

/* ---- sending ---- */

enum weir_status weir_kafka_producer_send(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                          struct weir_span key, struct weir_span payload, uint64_t tag,
                                          struct weir_error *error)
{
	const char *name = producer->bus->names[topic];
	uint32_t key_bytes = key.at != NULL ? key.length : 0;
	uint64_t bytes = (uint64_t)key_bytes + payload.length;
	if (producer->broken)
		return weir_fail(error, WEIR_IO, "%s", producer->failure.text);
	if (partition >= weir_bus_kafka_partitions(producer->bus, topic))
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", name, partition);
	if (bytes > BUS_KAFKA_MESSAGE_MAX_BYTES - BUS_KAFKA_BATCH_OVERHEAD_BYTES)
		return weir_fail(error, WEIR_INVALID, "a message of %llu bytes is too large for %s", (unsigned long long)bytes,
		                 name);
	if (weir_topic_may_be_missed(topic) && atomic_load(&producer->bus->gone[topic]))
		return drop(producer, topic, partition, tag, error);
	bytes += MESSAGE_COST_BYTES;
	if (producer->held_bytes > 0 && producer->held_bytes + bytes > WEIR_BUS_PRODUCER_MAX_BYTES)
		return weir_fail(error, WEIR_FULL, "the send buffer is full: %llu bytes are not delivered yet",
		                 (unsigned long long)producer->held_bytes);
	rd_kafka_topic_t *to;
	enum weir_status status = topic_of(producer, topic, &to, error);
	if (status != WEIR_OK)
		return status;
	/* librdkafka copies the payload; its parameter is not const, as it can also take ownership. */
	if (rd_kafka_produce(to, (int32_t)partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)payload.at, payload.length,
	                     key.at, key_bytes, (void *)(uintptr_t)tag) == 0) {
		producer->held_bytes += bytes;
		return WEIR_OK;
	}
	rd_kafka_resp_err_t code = rd_kafka_last_error();
	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return weir_fail(error, WEIR_FULL, "the send buffer is full: %llu bytes are not delivered yet",
		                 (unsigned long long)producer->held_bytes);
	if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
		return weir_fail(error, WEIR_INVALID, "a message of %llu bytes is too large for %s", (unsigned long long)bytes,
		                 name);
	if (weir_topic_may_be_missed(topic) && is_of_no_topic(code))
		return drop(producer, topic, partition, tag, error);
	char words[WEIR_ERROR_TEXT_BYTES / 2] = "";
	if (code == RD_KAFKA_RESP_ERR__FATAL)
		rd_kafka_fatal_error(producer->handle, words, sizeof words);
	fail(producer, name, words[0] != '\0' ? words : rd_kafka_err2str(code));
	return weir_fail(error, WEIR_IO, "%s", producer->failure.text);
}

/* The next delivery report, waiting at most timeout_ms; NULL: none in time. */
static const rd_kafka_message_t *next_report(struct weir_producer *producer, int timeout_ms)
{
	int64_t end_ms = weir_monotonic_ms() + timeout_ms;
	for (;;) {
		if (producer->reports != NULL) {
			const rd_kafka_message_t *report = rd_kafka_event_message_next(producer->reports);
			if (report != NULL)
				return report;
			rd_kafka_event_destroy(producer->reports);
			producer->reports = NULL;
		}
		int64_t left_ms = timeout_ms > 0 ? end_ms - weir_monotonic_ms() : 0;
		rd_kafka_event_t *event = rd_kafka_queue_poll(producer->queue, left_ms > 0 ? (int)left_ms : 0);
		if (event == NULL)
			return NULL;
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
			producer->reports = event;
			continue;
		}
		/* The bus's watch reports temporary errors. A fatal one ends the producer. */
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR && rd_kafka_event_error_is_fatal(event))
			fail(producer, "Kafka rejected this producer", rd_kafka_event_error_string(event));
		rd_kafka_event_destroy(event);
	}
}

size_t weir_kafka_producer_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most,
                                int timeout_ms)
{
	size_t count = producer->broken ? 0 : take_drops(producer, deliveries, most);
	int64_t appended_ms = 0;
	while (count < most) {
		const rd_kafka_message_t *report = next_report(producer, count == 0 ? timeout_ms : 0);
		if (report == NULL)
			break;
		rd_kafka_timestamp_type_t type;
		int64_t at_ms = rd_kafka_message_timestamp(report, &type);
		if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && report->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			appended_ms = at_ms;
		enum weir_topic topic = (enum weir_topic)(uintptr_t)rd_kafka_topic_opaque(report->rkt);
		producer->held_bytes -= report->len + report->key_len + MESSAGE_COST_BYTES;
		bool dropped = weir_topic_may_be_missed(topic) && is_of_no_topic(report->err);
		if (dropped)
			atomic_fetch_add(&producer->bus->dropped[topic], 1);
		else if (report->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			fail(producer, producer->bus->names[topic], rd_kafka_err2str(report->err));
		else if (report->offset < 0)
			fail(producer, producer->bus->names[topic], "a broker acknowledged a message without its offset");
		deliveries[count++] = (struct weir_delivery){
			.topic = topic,
			.partition = (uint32_t)report->partition,
			.offset = producer->broken || dropped ? 0 : (uint64_t)report->offset,
			.tag = (uint64_t)(uintptr_t)report->_private,
			.status = producer->broken ? WEIR_IO : WEIR_OK,
			.why = producer->failure.text,
		};
	}
	weir_bus_kafka_note_append(producer->bus, appended_ms);
	return count;
}
