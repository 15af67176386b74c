/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of a local bus on files that anyone may have written: read to the end, past what is gone or damaged.
 *
 * Input: as of fuzz_bus_local, with the readers' file as the beginning of a second segment file. Flags 1 and 2 put right
 * the hashes of headers and records, so that what stands behind them is reached.
 */
#include "bus_files.h"
#include "common/bus/local/bus_local_view.h"

#include <assert.h>

enum { GAPS_MAX = 64 };

/* What is received of a partition is in order; where something is missing it is said, and can be passed. */
static void read_all(struct weir_bus *bus)
{
	struct weir_consumer *consumer;
	struct weir_message messages[16];
	struct weir_error error = {.text = ""};
	uint64_t first, next[PARTITIONS], end;
	size_t count;
	if (bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &error) != WEIR_OK)
		abort();
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		next[i] = 0;
		if (bus->ops->extent(bus, WEIR_TOPIC_EVENTS, i, &first, &end, &error) == WEIR_OK &&
		    bus->ops->assign(consumer, i, first, &error) == WEIR_OK)
			next[i] = first;
	}
	for (int gaps = 0; gaps < GAPS_MAX;) {
		enum weir_status status = bus->ops->receive(consumer, messages, 16, 0, &count, &error);
		if (status == WEIR_OK && count == 0)
			break;
		if (status != WEIR_OK) {
			assert(error.text[0] != '\0' && count == 0);
			gaps++;
			if (status != WEIR_INVALID || messages[0].partition >= PARTITIONS ||
			    bus->ops->assign(consumer, messages[0].partition, messages[0].offset + 1, &error) != WEIR_OK)
				break;
			next[messages[0].partition] = messages[0].offset + 1;
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			assert(messages[i].partition < PARTITIONS && messages[i].offset <= next[messages[i].partition]);
			next[messages[i].partition] = messages[i].offset + 1;
			/* Every byte is looked at, so that a sanitizer sees where it lies. */
			volatile uint64_t seen = weir_hash64(messages[i].payload.at, messages[i].payload.length);
			(void)seen;
		}
	}
	bus->ops->consumer_free(consumer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size - 2 < data[1])
		return 0;
	make_directory();
	char path[80];
	snprintf(path, sizeof path, "%s/events", directory);
	mkdir(path, 0700);
	size_t second = data[1], length = size - 2 - second;
	char *bytes = malloc(length + 1), *more = malloc(second + 1);
	memcpy(bytes, data + 2 + second, length);
	memcpy(more, data + 2, second);
	fix(data[0], bytes, length);
	fix(data[0], more, second);
	write_file("partitions", "4\n", 2);
	write_file("events/00000000000000000001.log", bytes, length);
	if (second > 0)
		write_file("events/00000000000000000002.log", more, second);
	else
		remove_file("events/00000000000000000002.log");
	free(bytes);
	free(more);
	struct weir_bus *bus;
	struct weir_error error;
	if (weir_bus_local_view(directory, &bus, &error) != WEIR_OK)
		abort();
	read_all(bus);
	bus->ops->close(bus);
	return 0;
}
