/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read last is known by its last 256 bytes, some three lines. Lines have times, so two that are alike are one
 * line; bytes that stand there twice say nothing, and then all is read anew.
 */
#include "collector/source/file/file_overlap.h"

#include "common/base/alloc.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL_BYTES = 256, TAIL_LEAST_BYTES = 64, READ_BYTES = 256 << 10, SEARCHED_BYTES = 256 << 20 };

struct tail {
	char bytes[TAIL_BYTES];
	size_t length;
};

/* @return false: too little was read */
static bool read_tail(int fd, uint64_t upto, struct tail *tail)
{
	tail->length = upto < TAIL_BYTES ? (size_t)upto : TAIL_BYTES;
	return tail->length >= TAIL_LEAST_BYTES &&
	       pread(fd, tail->bytes, tail->length, (off_t)(upto - tail->length)) == (ssize_t)tail->length;
}

/* @param at  where the bytes are of; @return behind the last of them that is the tail; 0: none is */
static uint64_t find(const struct tail *tail, const char *bytes, size_t length, uint64_t at, uint32_t *count)
{
	uint64_t behind = 0;
	const char *from = bytes;
	for (const char *found; (found = memmem(from, length, tail->bytes, tail->length)) != NULL; ++*count) {
		behind = at + (uint64_t)(found - bytes) + tail->length;
		length -= (size_t)(found - from) + 1;
		from = found + 1;
	}
	return behind;
}

static uint64_t search(int fd, uint64_t size, const struct tail *tail)
{
	char *bytes = weir_alloc(READ_BYTES, 1);
	uint64_t at = size > SEARCHED_BYTES ? size - SEARCHED_BYTES : 0, behind = 0;
	uint32_t count = 0;
	ssize_t got;
	while (count < 2 && (got = pread(fd, bytes, READ_BYTES, (off_t)at)) >= (ssize_t)tail->length) {
		uint64_t found = find(tail, bytes, (size_t)got, at, &count);
		behind = found != 0 ? found : behind;
		at += (uint64_t)got - (tail->length - 1); /* one that goes on behind is found whole */
	}
	free(bytes);
	return count == 1 ? behind : 0;
}

uint64_t file_overlap(int fd, uint64_t upto, const char *path)
{
	struct tail tail;
	struct stat about;
	uint64_t behind = 0;
	if (!read_tail(fd, upto, &tail))
		return 0;
	int other = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (other >= 0 && fstat(other, &about) == 0 && S_ISREG(about.st_mode))
		behind = search(other, (uint64_t)about.st_size, &tail);
	if (other >= 0)
		close(other);
	return behind;
}
