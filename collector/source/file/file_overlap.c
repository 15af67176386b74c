/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read last is known by its last 256 bytes, some three lines. Lines have times, so two that are alike are one
 * line; bytes that stand there twice say nothing, and then all is read anew.
 */
#include "collector/source/file/file_overlap.h"

#include "common/base/alloc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, SEARCHED_BYTES = 256 << 20 };

void file_tail_read(struct file_tail *tail, int fd, uint64_t upto)
{
	tail->known = upto >= FILE_TAIL_BYTES &&
	              pread(fd, tail->bytes, FILE_TAIL_BYTES, (off_t)(upto - FILE_TAIL_BYTES)) == FILE_TAIL_BYTES;
}

/* @param at  where the bytes are of; @return behind the last of them that is the tail; 0: none is */
static uint64_t find(const struct file_tail *tail, const char *bytes, size_t length, uint64_t at, uint32_t *count)
{
	uint64_t behind = 0;
	const char *from = bytes;
	for (const char *found; (found = memmem(from, length, tail->bytes, FILE_TAIL_BYTES)) != NULL; ++*count) {
		behind = at + (uint64_t)(found - bytes) + FILE_TAIL_BYTES;
		length -= (size_t)(found - from) + 1;
		from = found + 1;
	}
	return behind;
}

static uint64_t search(int fd, uint64_t size, const struct file_tail *tail)
{
	char *bytes = weir_alloc(READ_BYTES, 1);
	uint64_t at = size > SEARCHED_BYTES ? size - SEARCHED_BYTES : 0, behind = 0;
	uint32_t count = 0;
	ssize_t got;
	while (count < 2 && (got = pread(fd, bytes, READ_BYTES, (off_t)at)) >= FILE_TAIL_BYTES) {
		uint64_t found = find(tail, bytes, (size_t)got, at, &count);
		behind = found != 0 ? found : behind;
		at += (uint64_t)got - (FILE_TAIL_BYTES - 1); /* one that goes on behind is found whole */
	}
	free(bytes);
	return count == 1 ? behind : 0;
}

uint64_t file_tail_find(const struct file_tail *tail, const struct file_candidate *candidate)
{
	struct stat about;
	uint64_t behind = 0;
	int fd = open(candidate->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_dev == candidate->device &&
	    about.st_ino == candidate->inode)
		behind = search(fd, (uint64_t)about.st_size, tail);
	if (fd >= 0)
		close(fd);
	return behind;
}
