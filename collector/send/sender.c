/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One producer at a time. The bus says whether a failure is temporary or final:
 * after WEIR_IO the producer is replaced; anything else ends the collector.
 */
#include "collector/send/sender.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>

enum {
	DELIVERIES_AT_ONCE = 256,
	FULL_WAIT_MS = 100,
	PEACE_MS = 5000,   /* renewals_in_row is reset once a producer has worked for so long */
	RENEWALS_MAX = 30, /* in a row: about two minutes */
	PAUSE_LEAST_MS = 50,
	PAUSE_MOST_MS = 5000,
	NAP_MS = 20,
};

struct sender {
	struct sender_options options;
	struct weir_producer *producer; /* NULL while there is none */
	struct in_flight *flight;
	enum sender_state state;
	struct weir_error error;
	int64_t linger_ms;
	uint32_t renewals_in_row;
	int64_t renewed_ms; /* when this producer was made */
	struct weir_fault fault;
	struct weir_counter renewals, frames, frame_bytes;
	struct weir_histogram acknowledgement;
};

enum weir_status sender_new(const struct sender_options *options, struct sender **out, struct weir_error *error)
{
	struct sender *sender = weir_alloc(1, sizeof *sender);
	sender->options = *options;
	sender->linger_ms = options->config->bus.linger_ms;
	sender->flight = in_flight_new();
	enum weir_status status = options->bus->ops->producer_new(options->bus, &sender->producer, error);
	if (status != WEIR_OK) {
		sender_free(sender);
		return status;
	}
	*out = sender;
	return WEIR_OK;
}

void sender_free(struct sender *sender)
{
	if (sender == NULL)
		return;
	if (sender->producer != NULL)
		sender->options.bus->ops->producer_free(sender->producer);
	in_flight_free(sender->flight);
	free(sender);
}

static void fail(struct sender *sender, enum weir_status status)
{
	sender->error.status = status;
	sender->state = status == WEIR_IO ? SENDER_BROKEN : SENDER_FAILED;
}

static void adapt_linger(struct sender *sender, int64_t took_ms)
{
	const struct weir_config *config = sender->options.config;
	int64_t linger_ms = (sender->linger_ms * 7 + took_ms) / 8;
	sender->linger_ms = linger_ms < config->bus.linger_ms       ? config->bus.linger_ms
	                    : linger_ms > config->bus.max_linger_ms ? config->bus.max_linger_ms
	                                                            : linger_ms;
}

void sender_poll(struct sender *sender, int timeout_ms)
{
	struct weir_delivery deliveries[DELIVERIES_AT_ONCE];
	if (sender->producer == NULL || sender->state == SENDER_BROKEN || sender->state == SENDER_FAILED)
		return;
	size_t count = sender->options.bus->ops->poll(sender->producer, deliveries, DELIVERIES_AT_ONCE, timeout_ms);
	int64_t now_ms = weir_monotonic_ms();
	for (size_t i = 0; i < count; i++) {
		if (deliveries[i].status != WEIR_OK) {
			fail(sender, weir_fail(&sender->error, deliveries[i].status, "the bus rejected a message for %s: %s",
			                       weir_topic_name(deliveries[i].topic), deliveries[i].why));
			return;
		}
		int64_t took_ms = in_flight_acknowledge(sender->flight, deliveries[i].tag, now_ms);
		weir_histogram_observe(&sender->acknowledgement, &weir_latency_scale, (double)took_ms / 1000.0);
		adapt_linger(sender, took_ms);
	}
	/* Acknowledgements alone do not end the fault: another partition's messages may still be rejected. */
	if (count > 0 && sender->renewals_in_row > 0 && now_ms - sender->renewed_ms >= PEACE_MS) {
		sender->renewals_in_row = 0;
		weir_fault_clear(&sender->fault, sender->options.log, "collector");
	}
}

void sender_send(struct sender *sender, enum weir_topic topic, uint32_t partition, struct weir_span payload)
{
	if (sender->state != SENDER_WELL)
		return;
	const struct weir_bus_ops *bus = sender->options.bus->ops;
	uint64_t number = in_flight_send(sender->flight, weir_monotonic_ms());
	int64_t end_ms = 0; /* once `stop` is set: when to give up */
	while (sender->state == SENDER_WELL) {
		struct weir_span no_key = {0};
		enum weir_status status =
			bus->send(sender->producer, topic, partition, no_key, payload, number, &sender->error);
		if (status == WEIR_OK)
			break;
		if (status != WEIR_FULL) {
			fail(sender, status);
			return;
		}
		sender_poll(sender, FULL_WAIT_MS);
		if (!atomic_load(sender->options.stop))
			continue;
		if (end_ms == 0)
			end_ms = weir_monotonic_ms() + SENDER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			sender->state = SENDER_GAVE_UP;
	}
	if (sender->state != SENDER_WELL || topic != WEIR_TOPIC_EVENTS)
		return;
	weir_counter_add(&sender->frames, 1);
	weir_counter_add(&sender->frame_bytes, payload.length);
}

enum sender_state sender_state(const struct sender *sender)
{
	return sender->state;
}

const struct weir_error *sender_error(const struct sender *sender)
{
	return &sender->error;
}

uint64_t sender_waiting(const struct sender *sender)
{
	return in_flight_count(sender->flight);
}

int64_t sender_oldest_ms(const struct sender *sender)
{
	return in_flight_oldest_ms(sender->flight, weir_monotonic_ms());
}

int64_t sender_linger_ms(const struct sender *sender)
{
	return sender->linger_ms;
}

void sender_mark(struct sender *sender, void *stream, uint64_t position, uint64_t lines)
{
	in_flight_mark(sender->flight, stream, position, lines);
}

bool sender_safe(struct sender *sender, struct in_flight_mark *mark)
{
	return in_flight_safe(sender->flight, mark);
}

/* ---- after a failure ---- */

/* Pauses before an attempt. @return false: `stop` is set */
static bool pause_before(const struct sender *sender, uint32_t tries)
{
	int64_t pause_ms = PAUSE_LEAST_MS;
	for (uint32_t i = 1; i < tries && pause_ms < PAUSE_MOST_MS; i++)
		pause_ms *= 2;
	int64_t end_ms = weir_monotonic_ms() + (pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS);
	while (!atomic_load(sender->options.stop)) {
		if (weir_monotonic_ms() >= end_ms)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
	}
	return false;
}

enum sender_state sender_renew(struct sender *sender)
{
	const struct weir_bus_ops *bus = sender->options.bus->ops;
	if (sender->producer != NULL)
		bus->producer_free(sender->producer);
	sender->producer = NULL;
	in_flight_free(sender->flight);
	sender->flight = in_flight_new();
	for (;;) {
		weir_fault_raise(
			&sender->fault, sender->options.log, "collector",
			"cannot deliver: %.300s. What can be read again is not lost, and counts once: reading from the last acknowledged "
			"line with a new producer. Does it repeat? %s",
			sender->error.text, bus->advice);
		if (sender->renewals_in_row >= RENEWALS_MAX)
			return sender->state = SENDER_FAILED;
		if (!pause_before(sender, ++sender->renewals_in_row))
			return sender->state = SENDER_GAVE_UP;
		weir_counter_add(&sender->renewals, 1);
		enum weir_status status = bus->producer_new(sender->options.bus, &sender->producer, &sender->error);
		if (status == WEIR_OK) {
			sender->renewed_ms = weir_monotonic_ms();
			return sender->state = SENDER_WELL;
		}
		sender->producer = NULL;
		if (status != WEIR_IO)
			return sender->state = SENDER_FAILED;
	}
}

enum { FRAMES, FRAME_BYTES, RESTARTS, ACKNOWLEDGEMENT, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[FRAMES] = {"weir_collector_sent_frames_total", WEIR_COUNTER, "frames", WEIR_NO_LABELS,
                "Frames sent to the events topic; each holds events of one partition."},
	[FRAME_BYTES] = {"weir_collector_sent_bytes_total", WEIR_COUNTER, "bytes", WEIR_NO_LABELS,
                     "Size of the frames sent."},
	[RESTARTS] = {"weir_collector_producer_restarts_total", WEIR_COUNTER, "producers", WEIR_NO_LABELS,
                  "Producers replaced because a delivery failed. Reading resumes after the last acknowledged line. "
                  "If this keeps growing, see the log for what the brokers reject."},
	[ACKNOWLEDGEMENT] = {"weir_collector_acknowledgement_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
                         "Time from sending a frame to its acknowledgement, which makes it durable."},
};

const struct weir_metric_table sender_metric_table = {metrics, METRIC_COUNT};

void sender_metrics(const struct sender *sender, struct weir_text *text)
{
	const struct weir_histogram *histogram = &sender->acknowledgement;
	weir_metrics_counter(text, &metrics[FRAMES], weir_counter_read(&sender->frames));
	weir_metrics_counter(text, &metrics[FRAME_BYTES], weir_counter_read(&sender->frame_bytes));
	weir_metrics_counter(text, &metrics[RESTARTS], weir_counter_read(&sender->renewals));
	weir_metrics_histogram(text, &metrics[ACKNOWLEDGEMENT], &weir_latency_scale, &histogram, 1);
}
