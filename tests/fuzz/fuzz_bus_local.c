/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local bus on files that anyone may have written: opened, mended, read to
 * the end.
 *
 * Input: a byte of flags, the length of a readers' file, that file, and the one
 * segment file of a topic. Flags 1 and 2 put right the hashes of the header and
 * of the records, so that what stands behind them is reached.
 */
#include "common/bus/local/bus_local_consumer.h"
#include "common/bytes/hash.h"

#include <assert.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTITIONS = 4, FIX_HEADER = 1, FIX_RECORDS = 2 };

static char directory[64];

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
	(void)about;
	(void)kind;
	(void)walk;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Made once, in memory where there is such a place. */
static void make_directory(void)
{
	if (directory[0] != '\0')
		return;
	snprintf(directory, sizeof directory, "%s/weir-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(directory) == NULL)
		abort();
	atexit(remove_directory);
}

static void write_file(const char *name, const char *bytes, size_t length)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, length, file) != length)
		abort();
	fclose(file);
}

static void remove_file(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	unlink(path);
}

static void put64(char *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (char)(value >> (8 * i));
}

static uint32_t get32(const char *at)
{
	const unsigned char *bytes = (const unsigned char *)at;
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Makes every record's hashes true, as far as their lengths lead. */
static void fix_records(char *bytes, size_t length)
{
	size_t at = weir_bus_segment_header_bytes(PARTITIONS);
	while (length > at && length - at >= WEIR_BUS_RECORD_HEADER_BYTES) {
		size_t body = get32(bytes + at + 20), left = length - at - WEIR_BUS_RECORD_HEADER_BYTES;
		char hashed[48];
		if (body <= left)
			put64(bytes + at + 32, weir_hash64(bytes + at + WEIR_BUS_RECORD_HEADER_BYTES, body));
		memcpy(hashed, bytes + at, 40);
		memcpy(hashed + 40, bytes + 24, 8);
		put64(bytes + at + 40, weir_hash64(hashed, sizeof hashed));
		if (body > left)
			break;
		at += WEIR_BUS_RECORD_HEADER_BYTES + body;
	}
}

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
	size_t header_bytes = weir_bus_segment_header_bytes(PARTITIONS);
	if (size < 2 || size - 2 < data[1])
		return 0;
	make_directory();
	int flags = data[0];
	size_t readers = data[1], length = size - 2 - readers;
	char *bytes = malloc(length + 1);
	memcpy(bytes, data + 2 + readers, length);
	if ((flags & FIX_HEADER) && length >= header_bytes)
		put64(bytes + header_bytes - 8, weir_hash64(bytes, header_bytes - 8));
	if (flags & FIX_RECORDS)
		fix_records(bytes, length);
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
