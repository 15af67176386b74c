/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a local bus that a fuzzer writes, in a directory that goes away. */
#ifndef TESTS_FUZZ_BUS_FILES_H
#define TESTS_FUZZ_BUS_FILES_H

#include "common/bus/local/bus_local_format.h"
#include "common/bytes/hash.h"

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

static inline void remove_file(const char *name)
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

/* Makes what the flags say true. */
static void fix(int flags, char *bytes, size_t length)
{
	size_t header_bytes = weir_bus_segment_header_bytes(PARTITIONS);
	if ((flags & FIX_HEADER) && length >= header_bytes)
		put64(bytes + header_bytes - 8, weir_hash64(bytes, header_bytes - 8));
	if (flags & FIX_RECORDS)
		fix_records(bytes, length);
}

#endif
