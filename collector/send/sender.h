/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in flight to the bus: the producer, the frames it has no acknowledgement
 * for, and the low-water marks that wait for them.
 *
 * A delivery that failed breaks a producer: nothing that it was given later
 * counts as written. A new one is made then, and whoever reads the sources goes
 * back to the last marks that are safe.
 *
 * @thread one owner, but for the metrics
 */
#ifndef COLLECTOR_SENDER_H
#define COLLECTOR_SENDER_H

#include "collector/send/in_flight.h"
#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/log/metrics.h"

enum { SENDER_STOP_LIMIT_MS = 10000 }; /* while it is to stop, the bus is waited for so long */

struct sender;

struct sender_options {
	struct weir_bus *bus; /* borrowed, as all that follows */
	const struct weir_config *config;
	const struct weir_log *log;
	const _Atomic bool *stop;
};

enum sender_state {
	SENDER_WELL,
	SENDER_BROKEN,  /* a delivery failed: sender_renew(), and send again from the last safe marks */
	SENDER_GAVE_UP, /* it is to stop, and the bus takes no more */
	SENDER_FAILED,  /* for good: sender_error() */
};

WEIR_MUST_USE enum weir_status sender_new(const struct sender_options *options, struct sender **sender,
                                          struct weir_error *error);
void sender_free(struct sender *sender);

/**
 * Sends a message without a key. While the bus is full it waits, and so nothing more is read. Of no effect where the
 * state is not SENDER_WELL.
 */
void sender_send(struct sender *sender, enum weir_topic topic, uint32_t partition, struct weir_span payload);

/** Takes acknowledgements, waiting at most timeout_ms for the first. */
void sender_poll(struct sender *sender, int timeout_ms);

enum sender_state sender_state(const struct sender *sender);

/** The words of SENDER_FAILED. */
const struct weir_error *sender_error(const struct sender *sender);

/** Messages that are not acknowledged. */
uint64_t sender_waiting(const struct sender *sender);

/** When the oldest of them was sent; now if there is none. Monotonic. */
int64_t sender_oldest_ms(const struct sender *sender);

/** How long an event waits for others of its frame: it grows while acknowledgements are slow. */
int64_t sender_linger_ms(const struct sender *sender);

/** As in_flight_mark() and in_flight_safe(). */
void sender_mark(struct sender *sender, void *stream, uint64_t position, uint64_t lines);
bool sender_safe(struct sender *sender, struct in_flight_mark *mark);

/**
 * Instead of a broken producer makes another, after a pause that doubles from time to time. What was on its way, and
 * the marks that waited for it, are forgotten.
 *
 * @return SENDER_WELL; SENDER_GAVE_UP: it is to stop; SENDER_FAILED: one producer after another breaks soon
 */
enum sender_state sender_renew(struct sender *sender);

extern const struct weir_metric_table sender_metric_table;

/** Appends its metrics. @thread any */
void sender_metrics(const struct sender *sender, struct weir_text *text);

#endif
