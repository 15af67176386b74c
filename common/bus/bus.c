/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of bus share: the topics' names and numbers of partitions, and whether a topic is still the same. */
#include "common/bus/bus.h"

#include "common/base/clock.h"

#include <assert.h>

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

enum weir_status weir_bus_verify(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t offset,
                                 const struct weir_mark *mark, int timeout_ms, struct weir_error *error)
{
	uint64_t first, next;
	const char *name = weir_topic_name(topic);
	struct weir_mark found;
	enum weir_status status = bus->ops->extent(bus, topic, partition, &first, &next, error);
	if (status != WEIR_OK)
		return status;
	if (offset > next || (weir_mark_is_set(mark) && mark->offset >= next))
		return weir_bus_ends_before(error, name, partition, next, offset);
	if (offset < first)
		return weir_fail(error, WEIR_INVALID, "%s partition %u begins at %llu", name, partition,
		                 (unsigned long long)first);
	if (!weir_mark_is_set(mark) || mark->offset < first)
		return WEIR_OK;
	status = weir_bus_read_mark(bus, topic, partition, mark->offset, timeout_ms, &found, error);
	if (status == WEIR_END) /* it ended meanwhile */
		return weir_bus_ends_before(error, name, partition, next, offset);
	if (status == WEIR_OK && found.offset == mark->offset && !weir_mark_equal(&found, mark))
		return weir_bus_has_another(error, name, partition, mark);
	return status;
}
