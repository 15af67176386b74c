/* SPDX-License-Identifier: Apache-2.0 */
/* Sends, counts acknowledgements, and replaces a broken producer, with growing delays if they keep breaking. */
#include "limiter/worker/publisher.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	DELIVERIES_AT_ONCE = 256,
	FULL_WAIT_MS = 100,
	PEACE_MS = 20000,   /* breaks_in_row is reset once a producer has worked for so long */
	BREAKS_COUNTED = 5, /* breaks in a row that double the delay before the next producer: from 1 s to 32 s */
};

#define TAG_TIME_MASK ((UINT64_C(1) << TAG_TIME_BITS) - 1)

/* By topic. Dropping a partition does not reset its counts, as acknowledgements of what it sent still come. */
struct unacknowledged {
	uint64_t sent[WEIR_TOPIC_COUNT], acknowledged[WEIR_TOPIC_COUNT];
};

bool publisher_state_may_follow(enum publisher_state from, enum publisher_state to)
{
	static const enum publisher_state followers[PUBLISHER_STATE_COUNT] = {
		[PUBLISHER_CLOSED] = PUBLISHER_WORKING,
		[PUBLISHER_WORKING] = PUBLISHER_BROKEN,
		[PUBLISHER_BROKEN] = PUBLISHER_CLOSED,
	};
	return followers[from] == to;
}

static void set_state(struct publisher *publisher, enum publisher_state to)
{
	assert(publisher_state_may_follow(publisher->state, to));
	publisher->state = to;
}

static enum weir_status make_producer(struct publisher *publisher, struct weir_error *error)
{
	const struct worker_core *core = publisher->core;
	enum weir_status status = core->bus->producer_new(core->options.bus, &publisher->producer, error);
	if (status != WEIR_OK)
		publisher->producer = NULL;
	else if (publisher->wake >= 0)
		core->bus->wake_producer(publisher->producer, publisher->wake);
	return status;
}

enum weir_status publisher_init(struct publisher *publisher, struct worker_core *core, int wake,
                                struct weir_error *error)
{
	*publisher = (struct publisher){.core = core, .wake = wake};
	publisher->partitions = weir_alloc(core->options.bus->partitions, sizeof *publisher->partitions);
	enum weir_status status = make_producer(publisher, error);
	if (status == WEIR_OK)
		set_state(publisher, PUBLISHER_WORKING);
	return status;
}

void publisher_deinit(struct publisher *publisher)
{
	if (publisher->producer != NULL)
		publisher->core->bus->producer_free(publisher->producer);
	free(publisher->partitions);
}

static void set_broken(struct publisher *publisher, const struct weir_error *error)
{
	weir_counter_add(&publisher->core->stats.publish_failures, 1);
	weir_fault_raise(
		&publisher->fault, publisher->core->options.log, "limiter",
		"%s. Going back to the last checkpoints and judging again from there with a new producer: no decision "
		"is lost or doubled. Does it repeat? %s",
		error->text, publisher->core->bus->advice);
	set_state(publisher, PUBLISHER_BROKEN);
}

/* ---- what a message carries with it, so that its acknowledgement tells whose it is, and how long it took ---- */

enum { TAG_TIME_BITS = 48 };

static uint64_t tag_of(uint32_t partition, int64_t line_ms)
{
	return (uint64_t)partition << TAG_TIME_BITS | ((uint64_t)(line_ms > 0 ? line_ms : 0) & TAG_TIME_MASK);
}

static void take_tag(struct publisher *publisher, const struct weir_delivery *delivery, int64_t now_ms)
{
	int64_t line_ms = (int64_t)(delivery->tag & TAG_TIME_MASK);
	publisher->partitions[delivery->tag >> TAG_TIME_BITS].acknowledged[delivery->topic]++;
	if (line_ms > 0)
		weir_histogram_observe(&publisher->core->stats.delay, &weir_delay_scale,
		                       now_ms > line_ms ? (double)(now_ms - line_ms) / 1000.0 : 0);
}

/* ---- acknowledgements ---- */

void publisher_take_acknowledgements(struct publisher *publisher, int timeout_ms)
{
	if (!publisher_works(publisher))
		return;
	struct weir_delivery deliveries[DELIVERIES_AT_ONCE];
	size_t count = publisher->core->bus->poll(publisher->producer, deliveries, DELIVERIES_AT_ONCE, timeout_ms);
	int64_t now_ms = count > 0 ? weir_wall_ms() : 0;
	if (count == DELIVERIES_AT_ONCE) /* nobody is woken for those that are left */
		weir_wake_up(publisher->wake);
	for (size_t i = 0; i < count; i++) {
		const struct weir_delivery *delivery = &deliveries[i];
		if (delivery->status != WEIR_OK) {
			struct weir_error error;
			(void)weir_fail(&error, delivery->status, "cannot publish to partition %u of %s", delivery->partition,
			                delivery->why);
			set_broken(publisher, &error);
			return;
		}
		take_tag(publisher, delivery, now_ms);
	}
	/*
	 * A message that broke one producer may break the next one, although others are acknowledged in between: so
	 * acknowledgements alone do not end the fault.
	 */
	char problem[WEIR_ERROR_TEXT_BYTES];
	if (count > 0 && publisher->fault.on && weir_monotonic_ms() - publisher->renewed_ms >= PEACE_MS &&
	    !publisher->core->bus->problem(publisher->core->options.bus, problem, sizeof problem)) {
		publisher->breaks_in_row = 0;
		weir_fault_over(&publisher->fault, publisher->core->options.log, "limiter", "everything is published again");
	}
}

void publisher_mark(const struct publisher *publisher, uint32_t partition, struct publisher_mark *mark)
{
	memcpy(mark->sent, publisher->partitions[partition].sent, sizeof mark->sent);
	mark->sent[WEIR_TOPIC_EVENTS] = 0;
}

static bool has_passed(const struct unacknowledged *counts, const uint64_t *sent)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (counts->acknowledged[topic] < sent[topic])
			return false;
	return true;
}

bool publisher_has_passed(const struct publisher *publisher, uint32_t partition, const struct publisher_mark *mark)
{
	return has_passed(&publisher->partitions[partition], mark->sent);
}

bool publisher_is_acknowledged(const struct publisher *publisher, uint32_t partition)
{
	return has_passed(&publisher->partitions[partition], publisher->partitions[partition].sent);
}

uint64_t publisher_sent(const struct publisher *publisher, uint32_t partition, enum weir_topic topic)
{
	return publisher->partitions[partition].sent[topic];
}

uint64_t publisher_acknowledged(const struct publisher *publisher, uint32_t partition, enum weir_topic topic)
{
	return publisher->partitions[partition].acknowledged[topic];
}

/* ---- sending ---- */

/* Fails a worker that was asked to end, as the bus has been full for too long. */
static void fail_full(struct publisher *publisher, enum weir_topic topic, uint32_t to)
{
	struct weir_error error;
	enum weir_status status = weir_fail(&error, WEIR_IO,
	                                    "the bus accepts no more messages for %s, partition %u: the next owner judges "
	                                    "them again",
	                                    weir_topic_name(topic), to);
	core_fail(publisher->core, status, &error);
}

/* What became of a message that the bus had room for. */
static void note_sent(struct publisher *publisher, uint32_t partition, enum weir_topic topic, enum weir_status status,
                      const struct weir_error *error)
{
	if (status == WEIR_OK)
		publisher->partitions[partition].sent[topic]++;
	else if (status == WEIR_IO)
		set_broken(publisher, error);
	else
		core_fail(publisher->core, status, error);
}

void publisher_send(struct publisher *publisher, uint32_t partition, enum weir_topic topic, uint32_t to,
                    struct weir_span key, struct weir_span payload, int64_t line_ms)
{
	uint64_t tag = tag_of(partition, line_ms);
	struct worker_core *core = publisher->core;
	struct weir_error error;
	enum weir_status status = WEIR_FULL;
	int64_t end_ms = 0; /* once the worker was asked to end: when to give up */
	while (publisher_works(publisher) &&
	       (status = core->bus->send(publisher->producer, topic, to, key, payload, tag, &error)) == WEIR_FULL) {
		if (publisher->idle != NULL)
			publisher->idle(publisher->idle_context, FULL_WAIT_MS);
		publisher_take_acknowledgements(publisher, publisher->idle != NULL ? 0 : FULL_WAIT_MS);
		if (!core_is_to_end(core))
			continue;
		if (end_ms == 0)
			end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			fail_full(publisher, topic, to);
	}
	if (publisher_works(publisher))
		note_sent(publisher, partition, topic, status, &error);
}

enum weir_status publisher_try_send(struct publisher *publisher, uint32_t partition, enum weir_topic topic,
                                    struct weir_span payload)
{
	struct weir_error error;
	if (!publisher_works(publisher))
		return WEIR_IO;
	enum weir_status status = publisher->core->bus->send(publisher->producer, topic, partition, (struct weir_span){0},
	                                                     payload, tag_of(partition, 0), &error);
	if (status != WEIR_FULL)
		note_sent(publisher, partition, topic, status, &error);
	return status;
}

void publisher_hurry(struct publisher *publisher, enum weir_topic topic)
{
	if (publisher->core->bus->hurry != NULL && publisher_works(publisher))
		publisher->core->bus->hurry(publisher->producer, topic);
}

/* ---- another producer ---- */

int64_t publisher_close(struct publisher *publisher)
{
	set_state(publisher, PUBLISHER_CLOSED);
	publisher->core->bus->producer_free(publisher->producer);
	publisher->producer = NULL;
	int64_t wait_ms = (int64_t)WORKER_RETRY_MS << publisher->breaks_in_row;
	if (publisher->breaks_in_row < BREAKS_COUNTED)
		publisher->breaks_in_row++;
	return publisher->renew_ms = weir_monotonic_ms() + wait_ms;
}

void publisher_renew(struct publisher *publisher)
{
	struct worker_core *core = publisher->core;
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms < publisher->renew_ms)
		return;
	struct weir_error error;
	if (make_producer(publisher, &error) != WEIR_OK) {
		weir_fault_raise(
			&publisher->fault, core->options.log, "limiter",
			"cannot make a producer: %s. Nothing is judged meanwhile. Retrying every second (runbook: broker-away)",
			error.text);
		publisher->renew_ms = weir_monotonic_ms() + WORKER_RETRY_MS;
		return;
	}
	set_state(publisher, PUBLISHER_WORKING);
	weir_counter_add(&core->stats.producer_restarts, 1);
	publisher->renewed_ms = weir_monotonic_ms();
	memset(publisher->partitions, 0, core->options.bus->partitions * sizeof *publisher->partitions);
}
