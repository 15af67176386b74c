/* SPDX-License-Identifier: Apache-2.0 */
/* Over a bus every partition is read at once, as its server gives them; a partition is in order. */
#include "deploy/weir/inspect/topic_read.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/files/durable_file.h"

#include <stdlib.h>

enum { BATCH_MESSAGES = 64, POLL_MS = 500, PATIENCE_MS = 15000 };

struct topic_read {
	struct weir_bus_scan *scan; /* NULL: over a bus */
	struct weir_bus *bus;
	enum weir_topic topic;
	struct weir_consumer *consumer;
	uint64_t *firsts;
	uint64_t *ends; /* by partition: read up to here; 0: not read */
	uint32_t open;  /* partitions not at their end */
	uint32_t count; /* of the topic */
	struct weir_message batch[BATCH_MESSAGES];
	size_t batched, taken;
};

static enum weir_status begin_partition(struct topic_read *read, enum weir_topic topic, uint32_t partition,
                                        uint64_t from, struct weir_error *error)
{
	uint64_t first, next;
	enum weir_status status = read->bus->ops->extent(read->bus, topic, partition, &first, &next, error);
	if (status != WEIR_OK)
		return status;
	read->firsts[partition] = first;
	first = from > first ? from : first;
	if (first >= next)
		return WEIR_OK;
	read->ends[partition] = next;
	read->open++;
	return read->bus->ops->assign(read->consumer, partition, first, error);
}

static enum weir_status open_bus(struct topic_read *read, enum weir_topic topic, uint32_t partition, uint64_t from,
                                 struct weir_error *error)
{
	read->count = weir_topic_partitions(topic, read->bus->partitions);
	read->ends = weir_alloc(read->count, sizeof *read->ends);
	read->firsts = weir_alloc(read->count, sizeof *read->firsts);
	if (partition != WEIR_BUS_EVERY_PARTITION && partition >= read->count)
		return weir_fail(error, WEIR_INVALID, "%s has no such partition; expected 0 to %u", weir_topic_name(topic),
		                 read->count - 1);
	enum weir_status status = read->bus->ops->consumer_new(read->bus, topic, NULL, &read->consumer, error);
	for (uint32_t i = 0; status == WEIR_OK && i < read->count; i++)
		if (partition == WEIR_BUS_EVERY_PARTITION || partition == i)
			status = begin_partition(read, topic, i, from, error);
	return status;
}

enum weir_status topic_read_open(struct weir_bus *bus, const char *directory, enum weir_topic topic, uint32_t partition,
                                 uint64_t from, struct topic_read **out, struct weir_error *error)
{
	struct topic_read *read = weir_alloc(1, sizeof *read);
	char path[WEIR_PATH_BYTES];
	enum weir_status status;
	read->bus = bus;
	read->topic = topic;
	if (bus != NULL) {
		status = open_bus(read, topic, partition, from, error);
	} else {
		status = weir_path_format(path, error, "%s/log", directory);
		if (status == WEIR_OK)
			status = weir_bus_scan_open(path, topic, partition, from, &read->scan, error);
	}
	if (status == WEIR_OK)
		*out = read;
	else
		topic_read_free(read);
	return status;
}

/* Once all that was received is handed out: which partitions are at their ends. */
static void close_partitions(struct topic_read *read)
{
	for (uint32_t i = 0; i < read->count; i++)
		if (read->ends[i] > 0 && read->bus->ops->position(read->consumer, i) >= read->ends[i]) {
			read->ends[i] = 0;
			read->open--;
		}
}

/* Goes on behind a message that was refused, or with the first that there still is. @return WEIR_INVALID, or WEIR_IO */
static enum weir_status pass_over(struct topic_read *read, const struct weir_error *refusal, struct weir_error *error)
{
	struct weir_message refused = read->batch[0];
	uint64_t first, next, at = refused.offset + 1;
	enum weir_status status = read->bus->ops->extent(read->bus, read->topic, refused.partition, &first, &next, error);
	if (status == WEIR_OK && first > at)
		at = first;
	if (status == WEIR_OK)
		status = read->bus->ops->assign(read->consumer, refused.partition, at, error);
	return status == WEIR_OK ? weir_fail(error, WEIR_INVALID, "%s", refusal->text) : WEIR_IO;
}

/* One more batch, or none where that was all. What goes wrong for a moment is tried again. */
static enum weir_status receive(struct topic_read *read, struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	read->batched = read->taken = 0;
	weir_fail(error, WEIR_IO, "the topic has more messages, but none arrived in %d s", PATIENCE_MS / 1000);
	close_partitions(read);
	while (read->open > 0 && read->batched == 0 && weir_monotonic_ms() < end_ms) {
		enum weir_status status =
			read->bus->ops->receive(read->consumer, read->batch, BATCH_MESSAGES, POLL_MS, &read->batched, error);
		if (status == WEIR_INVALID) {
			struct weir_error refusal = *error;
			read->batched = 0;
			return pass_over(read, &refusal, error);
		}
		if (status != WEIR_OK && status != WEIR_IO)
			return status;
		if (read->batched == 0)
			close_partitions(read);
	}
	return read->batched > 0 || read->open == 0 ? WEIR_OK : WEIR_IO;
}

enum weir_status topic_read_next(struct topic_read *read, struct weir_message *message, struct weir_error *error)
{
	if (read->scan != NULL)
		return weir_bus_scan_next(read->scan, message, error);
	while (read->open > 0) {
		if (read->taken == read->batched) {
			enum weir_status status = receive(read, error);
			if (status != WEIR_OK && status != WEIR_INVALID)
				read->open = 0;
			if (status != WEIR_OK)
				return status;
		}
		if (read->taken == read->batched)
			continue;
		*message = read->batch[read->taken++];
		if (message->offset < read->ends[message->partition]) /* what came since the start is not asked for */
			return WEIR_OK;
	}
	return WEIR_END;
}

uint64_t topic_read_first(const struct topic_read *read, uint32_t partition)
{
	return read->scan != NULL ? weir_bus_scan_first(read->scan, partition) : read->firsts[partition];
}

void topic_read_free(struct topic_read *read)
{
	if (read == NULL)
		return;
	weir_bus_scan_free(read->scan);
	if (read->bus != NULL && read->consumer != NULL)
		read->bus->ops->consumer_free(read->consumer);
	free(read->firsts);
	free(read->ends);
	free(read);
}
