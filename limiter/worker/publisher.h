/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's producer, and its messages that are not acknowledged yet.
 *
 * A partition's messages are acknowledged in order within one topic, but not
 * across topics, so each topic is counted separately. A failed delivery breaks the
 * producer for good. What was not acknowledged may then be lost, and no checkpoint
 * may pass it: the worker drops its partitions, and takes them again from their
 * checkpoints once there is a new producer. What they publish again has the same
 * ids.
 */
#ifndef LIMITER_PUBLISHER_H
#define LIMITER_PUBLISHER_H

#include "limiter/worker/core.h"

/* WORKING ─► BROKEN ─► CLOSED ─► WORKING */
enum publisher_state {
	PUBLISHER_CLOSED, /* no producer until the next one is due */
	PUBLISHER_WORKING,
	PUBLISHER_BROKEN, /* a delivery failed: nothing more is sent, and the producer must be closed */
	PUBLISHER_STATE_COUNT,
};

/** Whether one state may follow another; CLOSED is the first. */
bool publisher_state_may_follow(enum publisher_state from, enum publisher_state to);

/* How many messages a partition had published at some moment, by topic. */
struct publisher_mark {
	uint64_t sent[WEIR_TOPIC_COUNT];
};

struct publisher {
	struct worker_core *core;
	enum publisher_state state;
	struct weir_producer *producer; /* NULL: closed */
	struct unacknowledged *partitions;
	int64_t renew_ms, renewed_ms; /* monotonic: when the next producer may be made; when the last one was */
	uint32_t breaks_in_row;
	int wake; /* an eventfd that producers write; -1: none */
	/* What is done while the bus is full, timeout_ms at most, before acknowledgements are taken; NULL: they are waited for. */
	void (*idle)(void *context, int timeout_ms);
	void *idle_context;
	struct weir_fault fault;
};

/**
 * Makes the first producer.
 *
 * @param core  borrowed
 * @param wake  an eventfd, written when there are acknowledgements to take (common/bus/bus.h says when it may be waited
 *              for); -1: none
 */
WEIR_MUST_USE enum weir_status publisher_init(struct publisher *publisher, struct worker_core *core, int wake,
                                              struct weir_error *error);
void publisher_deinit(struct publisher *publisher);

/** Whether messages can be published, and the worker has not failed. */
static inline bool publisher_works(const struct publisher *publisher)
{
	return publisher->state == PUBLISHER_WORKING && publisher->core->status == WEIR_OK;
}

/**
 * Publishes one message of a partition. Waits while the bus is full; a worker that was asked to end fails after waiting
 * for WORKER_STOP_LIMIT_MS.
 *
 * @param partition  the partition of events that the message belongs to
 * @param to         the partition of the topic that it is sent to
 * @param line_ms    Unix ms: the time of the line that it comes of, to measure how long it takes; 0: it is not measured
 */
void publisher_send(struct publisher *publisher, uint32_t partition, enum weir_topic topic, uint32_t to,
                    struct weir_span key, struct weir_span payload, int64_t line_ms);

/**
 * Tries to publish one message of a partition, to the same partition of the topic. Never waits.
 *
 * @return WEIR_OK; WEIR_FULL: the bus has no room; otherwise nothing more is published: the producer is broken, or the
 *         worker has failed
 */
WEIR_MUST_USE enum weir_status publisher_try_send(struct publisher *publisher, uint32_t partition,
                                                  enum weir_topic topic, struct weir_span payload);

/** Somebody waits for the acknowledgement of what was sent to a topic. */
void publisher_hurry(struct publisher *publisher, enum weir_topic topic);

/** How many messages a partition has sent to a topic, and how many of them are acknowledged. Another producer begins anew. */
uint64_t publisher_sent(const struct publisher *publisher, uint32_t partition, enum weir_topic topic);
uint64_t publisher_acknowledged(const struct publisher *publisher, uint32_t partition, enum weir_topic topic);

/** Takes acknowledgements, waiting at most timeout_ms for the first. */
void publisher_take_acknowledgements(struct publisher *publisher, int timeout_ms);

/** Marks what a partition has published so far, but for checks: what they change is in the log after any cut. */
void publisher_mark(const struct publisher *publisher, uint32_t partition, struct publisher_mark *mark);
/** Whether all that a partition had published at the mark is acknowledged. */
bool publisher_has_passed(const struct publisher *publisher, uint32_t partition, const struct publisher_mark *mark);
/** Whether all that a partition has published is acknowledged. */
bool publisher_is_acknowledged(const struct publisher *publisher, uint32_t partition);

/** BROKEN: closes the producer. @return monotonic: when another one may be made */
int64_t publisher_close(struct publisher *publisher);
/** CLOSED: makes another producer, if that is due. No partition works then. */
void publisher_renew(struct publisher *publisher);

#endif
