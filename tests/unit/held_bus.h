/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's publisher on a bus that a test holds in its hand: it takes what is
 * sent, and answers for it when, and as, the test says.
 */
#ifndef TESTS_UNIT_HELD_BUS_H
#define TESTS_UNIT_HELD_BUS_H

#include "limiter/worker/publisher.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PARTITIONS = 3, SENT_MAX = 16 };

/* What was sent, and what the next polls give. */
static struct {
	struct weir_delivery sent[SENT_MAX], ready[SENT_MAX];
	size_t sent_count, ready_count;
	enum weir_status refusal; /* of what is sent */
	int producers, freed;
	uint64_t consumed; /* the last offset that was said to be */
	bool none_to_be_had;
} bus;

static enum weir_status held_producer_new(struct weir_bus *base, struct weir_producer **producer,
                                          struct weir_error *error)
{
	(void)base;
	if (bus.none_to_be_had)
		return weir_fail(error, WEIR_IO, "no producer just now");
	bus.producers++;
	*producer = (struct weir_producer *)(void *)&bus;
	return WEIR_OK;
}

static enum weir_status held_send(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                  struct weir_span key, struct weir_span payload, uint64_t tag,
                                  struct weir_error *error)
{
	(void)producer, (void)key, (void)payload;
	if (bus.refusal != WEIR_OK)
		return weir_fail(error, bus.refusal, "refused");
	bus.sent[bus.sent_count++] = (struct weir_delivery){.topic = topic, .partition = partition, .tag = tag};
	return WEIR_OK;
}

static size_t held_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most, int timeout_ms)
{
	(void)producer, (void)timeout_ms;
	size_t count = bus.ready_count < most ? bus.ready_count : most;
	for (size_t i = 0; i < count; i++)
		deliveries[i] = bus.ready[i];
	bus.ready_count = 0;
	return count;
}

static void held_free(struct weir_producer *producer)
{
	(void)producer;
	bus.freed++;
}

static void held_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset)
{
	(void)consumer, (void)partition;
	bus.consumed = offset;
}

static const struct weir_bus_ops held_ops = {.name = "held",
                                             .producer_new = held_producer_new,
                                             .send = held_send,
                                             .poll = held_poll,
                                             .producer_free = held_free,
                                             .consumed = held_consumed};

struct held {
	struct weir_bus base;
	struct weir_log log;
	struct worker_core core;
	struct publisher publisher;
	struct weir_error error;
};

/* All that a publisher needs: it begins with its first producer. */
static inline void held_begin(struct held *held)
{
	*held = (struct held){.base = {.ops = &held_ops, .partitions = PARTITIONS},
	                      .log = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR}};
	bus.sent_count = bus.ready_count = 0;
	bus.refusal = WEIR_OK;
	bus.producers = bus.freed = 0;
	bus.consumed = 0;
	bus.none_to_be_had = false;
	held->core.options.bus = &held->base;
	held->core.options.log = &held->log;
	held->core.bus = &held_ops;
	assert_int_equal(publisher_init(&held->publisher, &held->core, -1, &held->error), WEIR_OK);
}

static inline void held_end(struct held *held)
{
	publisher_deinit(&held->publisher);
	assert_int_equal(bus.producers, bus.freed);
}

static inline void held_publish(struct held *held, uint32_t partition, enum weir_topic topic)
{
	publisher_send(&held->publisher, partition, topic, partition, (struct weir_span){0}, weir_span_of("payload"), 0);
}

/* The bus answers for one message, by its number. */
static inline void held_answer(struct held *held, size_t number, enum weir_status status)
{
	bus.ready[0] = bus.sent[number];
	bus.ready[0].status = status;
	bus.ready[0].why = "no reason";
	bus.ready_count = 1;
	publisher_take_acknowledgements(&held->publisher, 0);
}

/* Whether the program ends, by an assertion, where it does something. */
static inline bool held_is_asserted(void (*act)(void *context), void *context)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		act(context);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
