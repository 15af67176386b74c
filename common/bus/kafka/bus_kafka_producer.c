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
 * A topic that may be missed ends no producer: it has a handle of its own, in
 * bus_kafka_side.c.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weir_producer {
	struct bus_kafka *bus; /* borrowed */
	rd_kafka_t *handle;
	rd_kafka_queue_t *queue;
	struct bus_kafka_bell bell;                 /* written by librdkafka when a queue is no longer empty */
	rd_kafka_topic_t *topics[WEIR_TOPIC_COUNT]; /* created at the first message */
	uint64_t held_bytes;                        /* sent and not polled */
	bool broken;
	struct weir_error failure; /* if broken: why */
	rd_kafka_event_t *reports; /* delivery reports being taken, or NULL */
	struct bus_kafka_side *side;
};

/* send() has weir's own bounds, so librdkafka's are set higher. */
const struct weir_kafka_property weir_kafka_producer_properties[] = {
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
	rd_kafka_conf_t *conf = weir_kafka_conf(bus->kafka, weir_kafka_producer_properties);
	rd_kafka_t *handle;
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	enum weir_status status = weir_kafka_open(bus->kafka, RD_KAFKA_PRODUCER, conf, &handle, error);
	if (status != WEIR_OK)
		return status;
	struct weir_producer *made = weir_alloc(1, sizeof *made);
	made->bus = bus;
	made->handle = handle;
	made->queue = rd_kafka_queue_get_main(handle);
	weir_kafka_bell_init(&made->bell);
	weir_kafka_bell_hang(&made->bell, made->queue);
	made->side = weir_kafka_side_new(bus, &made->bell);
	*producer = made;
	return WEIR_OK;
}

void weir_kafka_producer_wake(struct weir_producer *producer, int descriptor)
{
	producer->bell.lent = descriptor;
	weir_kafka_bell_hang(&producer->bell, producer->queue);
	weir_kafka_side_wake(producer->side);
}

void weir_kafka_producer_free(struct weir_producer *producer)
{
	if (producer == NULL)
		return;
	if (producer->reports != NULL)
		rd_kafka_event_destroy(producer->reports);
	rd_kafka_purge(producer->handle,
	               RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
	weir_kafka_bell_leave(producer->queue); /* the handle's end may take longer than this */
	rd_kafka_queue_destroy(producer->queue);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (producer->topics[topic] != NULL)
			rd_kafka_topic_destroy(producer->topics[topic]);
	weir_kafka_end(producer->handle, BUS_KAFKA_END_MS);
	weir_kafka_side_free(producer->side);
	weir_kafka_bell_deinit(&producer->bell);
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
	if (weir_topic_may_be_missed(topic))
		return weir_kafka_side_send(producer->side, topic, partition, key, payload, tag, error);
	bytes += BUS_KAFKA_MESSAGE_COST_BYTES;
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
	char words[WEIR_ERROR_TEXT_BYTES / 2] = "";
	if (code == RD_KAFKA_RESP_ERR__FATAL)
		rd_kafka_fatal_error(producer->handle, words, sizeof words);
	fail(producer, name, words[0] != '\0' ? words : rd_kafka_err2str(code));
	return weir_fail(error, WEIR_IO, "%s", producer->failure.text);
}

/*
 * The topic that librdkafka's words for a fatal error name: "ProduceRequest for TOPIC [3] with ...".
 *
 * @return "Kafka": none
 */
static const char *topic_in(const struct bus_kafka *bus, const char *words)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		size_t length = strlen(bus->names[topic]);
		for (const char *at = words; (at = strstr(at, bus->names[topic])) != NULL; at += length)
			if (strncmp(at + length, " [", 2) == 0 && (at == words || at[-1] == ' '))
				return bus->names[topic];
	}
	return "Kafka";
}

/* The next delivery report; NULL: there is none now. */
static const rd_kafka_message_t *next_report(struct weir_producer *producer)
{
	for (;;) {
		if (producer->reports != NULL) {
			const rd_kafka_message_t *report = rd_kafka_event_message_next(producer->reports);
			if (report != NULL)
				return report;
			rd_kafka_event_destroy(producer->reports);
			producer->reports = NULL;
		}
		rd_kafka_event_t *event = rd_kafka_queue_poll(producer->queue, 0);
		if (event == NULL)
			return NULL;
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
			producer->reports = event;
			continue;
		}
		/* The bus's watch reports temporary errors. A fatal one ends the producer. */
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR && rd_kafka_event_error_is_fatal(event)) {
			const char *words = rd_kafka_event_error_string(event);
			fail(producer, topic_in(producer->bus, words), words);
		}
		rd_kafka_event_destroy(event);
	}
}

/* Takes the reports that there are, of the producer's own handle. */
static size_t take_reports(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most)
{
	const rd_kafka_message_t *report;
	size_t count = 0;
	int64_t appended_ms = 0;
	while (count < most && (report = next_report(producer)) != NULL) {
		rd_kafka_timestamp_type_t type;
		int64_t at_ms = rd_kafka_message_timestamp(report, &type);
		if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && report->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			appended_ms = at_ms;
		enum weir_topic topic = (enum weir_topic)(uintptr_t)rd_kafka_topic_opaque(report->rkt);
		producer->held_bytes -= report->len + report->key_len + BUS_KAFKA_MESSAGE_COST_BYTES;
		if (report->err != RD_KAFKA_RESP_ERR_NO_ERROR)
			fail(producer, producer->bus->names[topic], rd_kafka_err2str(report->err));
		else if (report->offset < 0)
			fail(producer, producer->bus->names[topic], "a broker acknowledged a message without its offset");
		deliveries[count++] = (struct weir_delivery){
			.topic = topic,
			.partition = (uint32_t)report->partition,
			.offset = producer->broken ? 0 : (uint64_t)report->offset,
			.tag = (uint64_t)(uintptr_t)report->_private,
			.status = producer->broken ? WEIR_IO : WEIR_OK,
			.why = producer->failure.text,
		};
	}
	weir_bus_kafka_note_append(producer->bus, appended_ms);
	return count;
}

size_t weir_kafka_producer_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most,
                                int timeout_ms)
{
	int64_t end_ms = timeout_ms > 0 ? weir_monotonic_ms() + timeout_ms : 0;
	for (;;) {
		weir_kafka_bell_clear(&producer->bell);
		size_t count = producer->broken ? 0 : weir_kafka_side_poll(producer->side, deliveries, most);
		count += take_reports(producer, deliveries + count, most - count);
		int64_t left_ms = timeout_ms > 0 && count == 0 ? end_ms - weir_monotonic_ms() : 0;
		if (left_ms <= 0)
			return count;
		weir_kafka_bell_wait(&producer->bell, left_ms);
	}
}
