/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local bus on files that anyone may have written: opened, mended, read to
 * the end.
 *
 * Input: a byte of flags, the length of a readers' file, that file, and the one
 * segment file of a topic. Flags 1 and 2 put right the hashes of the header and
 * of the records, so that what stands behind them is reached.
 */
#include "bus_files.h"
#include "common/bus/local/bus_local_consumer.h"

#include <assert.h>

/* Reads every partition to its end; what is received must be in order and within the extent. */
static void read_all(struct weir_bus_journal *journal)
{
	struct weir_consumer *consumer;
	struct weir_message messages[16];
	uint64_t next[PARTITIONS];
	size_t count;
	if (weir_consumer_new(journal, NULL, &consumer, NULL) != WEIR_OK)
		return;
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		next[i] = weir_bus_journal_first(journal, i);
		if (weir_consumer_assign(consumer, i, next[i], NULL) != WEIR_OK)
			abort();
	}
	while (weir_consumer_receive(consumer, messages, 16, 0, &count, NULL) == WEIR_OK && count > 0)
		for (size_t i = 0; i < count; i++) {
			assert(messages[i].offset == next[messages[i].partition]);
			next[messages[i].partition]++;
			/* Every byte is looked at, so that a sanitizer sees where it lies. */
			volatile uint64_t seen = weir_hash64(messages[i].payload.at, messages[i].payload.length);
			(void)seen;
		}
	for (uint32_t i = 0; i < PARTITIONS; i++)
		assert(next[i] == journal->next[i]);
	weir_consumer_free(consumer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size - 2 < data[1])
		return 0;
	make_directory();
	int flags = data[0];
	size_t readers = data[1], length = size - 2 - readers;
	char *bytes = malloc(length + 1);
	memcpy(bytes, data + 2 + readers, length);
	fix(flags, bytes, length);
	write_file("00000000000000000001.log", bytes, length);
	if (readers > 0)
		write_file("readers", (const char *)data + 2, readers);
	else
		remove_file("readers");
	free(bytes);

	struct weir_bus_journal_options options = {.topic = WEIR_TOPIC_EVENTS,
	                                           .partitions = PARTITIONS,
	                                           .segment_bytes = 1 << 20,
	                                           .retention_bytes = 1 << 30,
	                                           .indexes_max_bytes = 1 << 20};
	struct weir_bus_journal *journal;
	struct weir_error error = {.text = ""};
	if (weir_bus_journal_open(directory, &options, &journal, &error) != WEIR_OK) {
		assert(error.text[0] != '\0');
		return 0;
	}
	read_all(journal);
	weir_bus_journal_close(journal);
	return 0;
}
