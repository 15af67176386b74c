/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in flight to the bus: the producer, the frames it has no acknowledgement
 * for, and the low-water marks that wait for them.
 *
 * A failed delivery breaks the producer: nothing that it was given later counts as
 * written. Then a new one is made, and the collector goes back in its sources to
 * the last safe marks.
 *
 * @thread one owner, except for the metrics
 */
#ifndef COLLECTOR_SENDER_H
#define COLLECTOR_SENDER_H

#include "collector/send/in_flight.h"
#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/log/metrics.h"

enum { SENDER_STOP_LIMIT_MS = 10000 }; /* how long to wait for the bus once `stop` is set */

struct sender;

struct sender_options {
	struct weir_bus *bus; /* borrowed, like all that follows */
	const struct weir_config *config;
	const struct weir_log *log;
	const _Atomic bool *stop;
};

enum sender_state {
	SENDER_WELL,
	SENDER_BROKEN,  /* a delivery failed: call sender_renew(), and send again from the last safe marks */
	SENDER_GAVE_UP, /* `stop` is set, and the bus accepts no more */
	SENDER_FAILED,  /* for good; see sender_error() */
};

WEIR_MUST_USE enum weir_status sender_new(const struct sender_options *options, struct sender **sender,
                                          struct weir_error *error);
void sender_free(struct sender *sender);

/**
 * Sends a message without a key. Waits while the bus is full, so that nothing more is read. Does nothing unless the
 * state is SENDER_WELL.
 */
void sender_send(struct sender *sender, enum weir_topic topic, uint32_t partition, struct weir_span payload);

/** Takes acknowledgements, waiting at most timeout_ms for the first. */
void sender_poll(struct sender *sender, int timeout_ms);

enum sender_state sender_state(const struct sender *sender);

/** The error of SENDER_FAILED. */
const struct weir_error *sender_error(const struct sender *sender);

/** How many messages are not acknowledged. */
uint64_t sender_waiting(const struct sender *sender);

/** When the oldest of them was sent, monotonic; now if there is none. */
int64_t sender_oldest_ms(const struct sender *sender);

/** How long an event waits for others to fill its frame. Grows while acknowledgements are slow. */
int64_t sender_linger_ms(const struct sender *sender);

/** As in_flight_mark() and in_flight_safe(). */
void sender_mark(struct sender *sender, void *stream, uint64_t position, uint64_t lines);
bool sender_safe(struct sender *sender, struct in_flight_mark *mark);

/**
 * Replaces the broken producer, after a pause that doubles each time, up to a bound. Forgets the frames in flight, and
 * the marks that waited for them.
 *
 * @return SENDER_WELL; SENDER_GAVE_UP: `stop` is set; SENDER_FAILED: too many producers in a row broke early, or the
 *         failure is not one of I/O
 */
enum sender_state sender_renew(struct sender *sender);

extern const struct weir_metric_table sender_metric_table;

/** Appends its metrics. @thread any */
void sender_metrics(const struct sender *sender, struct weir_text *text);

#endif
