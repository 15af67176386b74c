/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's producer, and its messages that are not acknowledged yet.
 *
 * Within one topic a partition's messages are acknowledged in order, but not across
 * topics: so each topic is counted separately. A delivery that fails breaks
 * the producer for good. What was not acknowledged may be lost then, and no
 * checkpoint may pass it: the worker drops its partitions, to take them again
 * from their checkpoints once there is a new producer. What they publish again
 * has the same ids.
 */
#ifndef LIMITER_PUBLISHER_H
#define LIMITER_PUBLISHER_H

#include "limiter/worker/core.h"

/* WORKING ─► BROKEN ─► CLOSED ─► WORKING */
enum publisher_state {
	PUBLISHER_CLOSED, /* no producer until the next one is due */
	PUBLISHER_WORKING,
	PUBLISHER_BROKEN, /* a delivery failed: nothing more is sent, and the producer is to be closed */
	PUBLISHER_STATE_COUNT,
};

/** Whether one state may follow the other: CLOSED is the first. */
bool publisher_state_may_follow(enum publisher_state from, enum publisher_state to);

/* How many messages a partition had published at one moment, by topic. */
struct publisher_mark {
	uint64_t sent[WEIR_TOPIC_COUNT];
};

struct publisher {
	struct worker_core *core;
	enum publisher_state state;
	struct weir_producer *producer; /* NULL: closed */
	struct unacknowledged *partitions;
	int64_t renew_ms, renewed_ms; /* monotonic: the next producer not before then; when this one was made */
	uint32_t breaks_in_row;
	struct weir_fault fault;
};

/** Makes the first producer. @param core  borrowed */
WEIR_MUST_USE enum weir_status publisher_init(struct publisher *publisher, struct worker_core *core,
                                              struct weir_error *error);
void publisher_deinit(struct publisher *publisher);

/** Whether what partitions give can be published, and the worker has not failed. */
static inline bool publisher_works(const struct publisher *publisher)
{
	return publisher->state == PUBLISHER_WORKING && publisher->core->status == WEIR_OK;
}

/**
 * Publishes one message of a partition. While the bus is full it waits; a worker that is to end fails after
 * WORKER_STOP_LIMIT_MS of that.
 *
 * @param partition  of the events: whose it is
 * @param to         of the topic
 */
void publisher_send(struct publisher *publisher, uint32_t partition, enum weir_topic topic, uint32_t to,
                    struct weir_span key, struct weir_span payload);

/** Takes acknowledgements, waiting at most timeout_ms for the first. */
void publisher_take_acknowledgements(struct publisher *publisher, int timeout_ms);

/** What a partition has published by now. */
void publisher_mark(const struct publisher *publisher, uint32_t partition, struct publisher_mark *mark);
/** Whether all that it had published then is acknowledged. */
bool publisher_has_passed(const struct publisher *publisher, uint32_t partition, const struct publisher_mark *mark);
/** Whether all that it has published is. */
bool publisher_is_acknowledged(const struct publisher *publisher, uint32_t partition);

/** BROKEN: closes the producer. @return monotonic: when there may be another one */
int64_t publisher_close(struct publisher *publisher);
/** CLOSED: makes another producer, if that is due. No partition has a lane then. */
void publisher_renew(struct publisher *publisher);

#endif
