/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all kinds of bus share: the topics' names and numbers of partitions, whether a failure is worth a line, and whether a
 * topic is still the same.
 */
#include "common/bus/bus.h"

#include "common/base/clock.h"
#include "common/log/log.h"

#include <assert.h>
#include <time.h>

enum { MARKS = 256, RETRY_MS = 20 };

const char *weir_topic_name(enum weir_topic topic)
{
	static const char *const names[WEIR_TOPIC_COUNT] = {
		[WEIR_TOPIC_EVENTS] = "weir.events",       [WEIR_TOPIC_JUDGED] = "weir.judged",
		[WEIR_TOPIC_DECISIONS] = "weir.decisions", [WEIR_TOPIC_SHADOW] = "weir.decisions.shadow",
		[WEIR_TOPIC_POLICY] = "weir.policy",       [WEIR_TOPIC_DEADLETTER] = "weir.deadletter",
	};
	assert((unsigned)topic < WEIR_TOPIC_COUNT);
	return names[topic];
}

bool weir_topic_may_be_missed(enum weir_topic topic)
{
	return topic == WEIR_TOPIC_SHADOW || topic == WEIR_TOPIC_DEADLETTER;
}

uint32_t weir_topic_partitions(enum weir_topic topic, uint32_t partitions)
{
	return topic == WEIR_TOPIC_POLICY || topic == WEIR_TOPIC_DEADLETTER ? 1 : partitions;
}

bool weir_bus_failure_lasts(struct weir_bus *bus, struct weir_lasting *lasting, const struct weir_log *log)
{
	char problem[WEIR_ERROR_TEXT_BYTES];
	return weir_lasting_failed(lasting, log, bus->ops->problem(bus, problem, sizeof problem));
}

/* ---- whether a topic is still the same ---- */

enum weir_status weir_bus_ends_before(struct weir_error *error, const char *name, uint32_t partition, uint64_t next,
                                      uint64_t offset)
{
	return weir_fail(
		error, WEIR_ANEW,
		"%s was recreated or lost its newest messages (partition %u ends at %llu, and had been read up to %llu)", name,
		partition, (unsigned long long)next, (unsigned long long)offset);
}

enum weir_status weir_bus_has_another(struct weir_error *error, const char *name, uint32_t partition,
                                      const struct weir_mark *mark)
{
	return weir_fail(
		error, WEIR_ANEW,
		"%s was recreated or lost its newest messages (partition %u has another message at offset %llu than "
		"had been read there)",
		name, partition, (unsigned long long)mark->offset);
}

enum weir_status weir_bus_read_mark(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t offset,
                                    int timeout_ms, struct weir_mark *mark, struct weir_error *error)
{
	uint64_t first, next;
	struct weir_consumer *consumer;
	struct weir_message message;
	size_t count = 0;
	int64_t end_ms = weir_monotonic_ms() + timeout_ms;
	enum weir_status status = bus->ops->extent(bus, topic, partition, &first, &next, error);
	if (status != WEIR_OK)
		return status;
	if (offset < first)
		offset = first;
	if (offset >= next)
		return weir_fail(error, WEIR_END, "%s partition %u has no message at offset %llu", weir_topic_name(topic),
		                 partition, (unsigned long long)offset);
	status = bus->ops->consumer_new(bus, topic, NULL, &consumer, error);
	if (status != WEIR_OK)
		return status;
	status = bus->ops->assign(consumer, partition, offset, error);
	while (status == WEIR_OK && count == 0 && weir_monotonic_ms() < end_ms)
		status = bus->ops->receive(consumer, &message, 1, (int)(end_ms - weir_monotonic_ms()), &count, error);
	if (status == WEIR_OK && count > 0)
		*mark = weir_mark_of(message.payload, message.offset, message.appended_ms);
	bus->ops->consumer_free(consumer);
	if (status == WEIR_OK && count == 0)
		return weir_fail(error, WEIR_IO, "%s partition %u: no answer about offset %llu", weir_topic_name(topic),
		                 partition, (unsigned long long)offset);
	return status;
}

/* What verifies positions of one topic. */
struct verifying {
	struct weir_bus *bus;
	enum weir_topic topic;
	struct weir_consumer *consumer;
	struct weir_position *waiting[WEIR_BUS_PARTITIONS_MAX]; /* by partition: whose mark is being read; or NULL */
	size_t waiting_count;
	struct weir_error error; /* the last that receive() reported */
};

/* What the extent of the partition tells. */
static enum weir_status ask_extent(const struct verifying *verifying, struct weir_position *at)
{
	struct weir_bus *bus = verifying->bus;
	const char *name = weir_topic_name(verifying->topic);
	at->status = bus->ops->extent(bus, verifying->topic, at->partition, &at->first, &at->end, &at->why);
	if (at->status != WEIR_OK)
		return at->status;
	if (at->next > at->end || (weir_mark_is_set(&at->mark) && at->mark.offset >= at->end))
		at->status = weir_bus_ends_before(&at->why, name, at->partition, at->end, at->next);
	else if (at->next < at->first)
		at->status = weir_fail(&at->why, WEIR_INVALID, "%s partition %u begins at %llu", name, at->partition,
		                       (unsigned long long)at->first);
	return at->status;
}

/* Begins to read the mark of a position, unless the extent tells all. */
static void begin(struct verifying *verifying, struct weir_position *at)
{
	if (ask_extent(verifying, at) != WEIR_OK || !weir_mark_is_set(&at->mark) || at->mark.offset < at->first)
		return;
	const struct weir_bus_ops *ops = verifying->bus->ops;
	at->status = ops->assign(verifying->consumer, at->partition, at->mark.offset, &at->why);
	if (at->status == WEIR_INVALID) /* deleted since the extent was asked for */
		(void)ask_extent(verifying, at);
	else if (at->status == WEIR_OK) {
		verifying->waiting[at->partition] = at;
		verifying->waiting_count++;
	}
}

/* The mark needs no waiting for any more. */
static struct weir_position *finish(struct verifying *verifying, uint32_t partition)
{
	struct weir_position *at = verifying->waiting[partition];
	verifying->bus->ops->unassign(verifying->consumer, partition);
	verifying->waiting[partition] = NULL;
	verifying->waiting_count--;
	return at;
}

/* Compares what came with the marks. A message further on says nothing: the marked one has just been deleted. */
static void take_marks(struct verifying *verifying, const struct weir_message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (verifying->waiting[messages[i].partition] == NULL)
			continue;
		struct weir_position *at = finish(verifying, messages[i].partition);
		struct weir_mark found = weir_mark_of(messages[i].payload, messages[i].offset, messages[i].appended_ms);
		if (found.offset == at->mark.offset && !weir_mark_equal(&found, &at->mark))
			at->status = weir_bus_has_another(&at->why, weir_topic_name(verifying->topic), at->partition, &at->mark);
	}
}

/* A partition that was read to its end without a message has not got the marked one any more. */
static void drop_ended(struct verifying *verifying)
{
	for (uint32_t partition = 0; partition < WEIR_BUS_PARTITIONS_MAX && verifying->waiting_count > 0; partition++) {
		const struct weir_position *at = verifying->waiting[partition];
		if (at != NULL && verifying->bus->ops->position(verifying->consumer, partition) > at->mark.offset)
			(void)finish(verifying, partition);
	}
}

/* Takes what has come, after a while. */
static void receive_marks(struct verifying *verifying, int wait_ms)
{
	struct weir_message messages[MARKS];
	size_t count = 0;
	enum weir_status status =
		verifying->bus->ops->receive(verifying->consumer, messages, MARKS, wait_ms, &count, &verifying->error);
	if (status == WEIR_OK) {
		take_marks(verifying, messages, count);
		if (count == 0)
			drop_ended(verifying);
	} else if (status != WEIR_IO && verifying->waiting[messages[0].partition] != NULL) {
		/* It is damaged, or was deleted just now: nothing can be compared. */
		(void)ask_extent(verifying, finish(verifying, messages[0].partition));
	} else if (wait_ms > 0) {
		(void)nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
	}
}

static enum weir_status no_answer(struct verifying *verifying, struct weir_position *at)
{
	if (verifying->error.status == WEIR_IO)
		at->why = verifying->error;
	else
		(void)weir_fail(&at->why, WEIR_IO, "%s partition %u: no answer about offset %llu",
		                weir_topic_name(verifying->topic), at->partition, (unsigned long long)at->mark.offset);
	return WEIR_IO;
}

void weir_bus_verify_all(struct weir_bus *bus, enum weir_topic topic, struct weir_position *positions, size_t count,
                         int timeout_ms)
{
	int64_t end_ms = weir_monotonic_ms() + timeout_ms, left_ms;
	struct verifying verifying = {.bus = bus, .topic = topic};
	struct weir_error error;
	enum weir_status status = bus->ops->consumer_new(bus, topic, NULL, &verifying.consumer, &error);
	for (size_t i = 0; i < count; i++) {
		struct weir_position *at = &positions[i];
		if (status != WEIR_OK) {
			at->status = weir_fail(&at->why, WEIR_IO, "%s", error.text);
		} else if (weir_monotonic_ms() >= end_ms) {
			at->status = weir_fail(&at->why, WEIR_AGAIN, "%s: there was no time left to ask about partition %u",
			                       weir_topic_name(topic), at->partition);
		} else {
			begin(&verifying, at);
			if (verifying.waiting_count > 0) /* now, so that few messages are fetched behind a mark */
				receive_marks(&verifying, 0);
		}
	}
	if (status != WEIR_OK)
		return;
	while (verifying.waiting_count > 0 && (left_ms = end_ms - weir_monotonic_ms()) > 0)
		receive_marks(&verifying, (int)left_ms);
	for (uint32_t partition = 0; partition < WEIR_BUS_PARTITIONS_MAX; partition++)
		if (verifying.waiting[partition] != NULL)
			verifying.waiting[partition]->status = no_answer(&verifying, verifying.waiting[partition]);
	bus->ops->consumer_free(verifying.consumer);
}

enum weir_status weir_bus_verify(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t offset,
                                 const struct weir_mark *mark, int timeout_ms, struct weir_error *error)
{
	struct weir_position at = {.partition = partition, .next = offset};
	if (mark != NULL)
		at.mark = *mark;
	weir_bus_verify_all(bus, topic, &at, 1, timeout_ms);
	if (at.status != WEIR_OK && error != NULL)
		*error = at.why;
	return at.status;
}
