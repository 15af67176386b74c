/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the last segment file after a crash: keeps what was acknowledged, and
 * leaves out what was not and may be torn.
 *
 * The records after a broken byte, and the mark behind them, tell which of the two
 * it is: each says how much of the file was on disk when it was written. What is
 * left out is cut when the file is next written: whoever refuses to start finds the
 * file as the crash left it.
 */
#include "common/bus/local/bus_local_segment.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEND_BYTES = 1024 * 1024 };

/* Whether a record or a mark after `end` says that bytes after `end` were on disk when it was written. */
static enum weir_status find_witness(int fd, const struct weir_bus_segment *segment, uint64_t end, bool *found)
{
	char *bytes = weir_alloc(MEND_BYTES, 1);
	enum weir_status status = WEIR_OK;
	*found = false;
	for (uint64_t at = end; at < segment->length && !*found && status == WEIR_OK;) {
		ssize_t count = weir_bus_read(fd, bytes, MEND_BYTES, at);
		if (count < 0)
			status = WEIR_IO;
		if (count < WEIR_BUS_RECORD_HEADER_BYTES)
			break;
		size_t last = (size_t)count - WEIR_BUS_RECORD_HEADER_BYTES;
		for (size_t i = 0; i <= last && !*found; i++) {
			const char *next = memchr(bytes + i, 'w', last - i + 1);
			uint64_t durable;
			if (next == NULL)
				break;
			i = (size_t)(next - bytes);
			*found = weir_bus_durable_decode(next, segment->id, segment->partitions, &durable) && durable > end;
		}
		at += last + 1;
	}
	free(bytes);
	return status;
}

/*
 * Writes bytes over themselves. After a failed fsync the operating system may have pages that it considers written, but
 * that are not on disk. This makes them dirty again, so that the next fsync writes them.
 */
static int rewrite(int fd, uint64_t from, uint64_t to)
{
	char *bytes = weir_alloc(MEND_BYTES, 1);
	int result = 0;
	while (result == 0 && from < to) {
		size_t length = to - from < MEND_BYTES ? (size_t)(to - from) : MEND_BYTES;
		if (weir_bus_read(fd, bytes, length, from) != (ssize_t)length)
			result = -1;
		else
			result = weir_bus_write(fd, bytes, length, from);
		from += length;
	}
	free(bytes);
	return result;
}

/* Whether all that was acknowledged is whole. @param walk  set to where what is whole ends */
static enum weir_status examine(int fd, const char *path, const struct weir_bus_segment *segment,
                                struct weir_bus_index *index, uint64_t *next_offsets, struct weir_bus_walk *walk,
                                struct weir_error *error)
{
	bool witness = false;
	memcpy(next_offsets, segment->first, segment->partitions * sizeof *next_offsets);
	enum weir_status status = weir_bus_segment_walk(fd, segment, segment->length, true, index, next_offsets, walk);
	if (status == WEIR_INVALID)
		status = find_witness(fd, segment, walk->end, &witness);
	if (status != WEIR_OK)
		weir_fail(error, status, "cannot read %s: %s", path, weir_errno_words(errno));
	return witness ? weir_bus_segment_damaged(path, walk, error) : status;
}

enum weir_status weir_bus_segment_examine(const char *directory, const struct weir_bus_segment *segment,
                                          uint64_t *next_offsets, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct weir_bus_walk walk;
	int fd;
	enum weir_status status = weir_bus_segment_open_file(directory, segment->sequence, O_RDONLY, path, &fd, error);
	if (status != WEIR_OK)
		return status;
	status = examine(fd, path, segment, NULL, next_offsets, &walk, error);
	close(fd);
	return status;
}

enum weir_status weir_bus_segment_mend(const char *directory, struct weir_bus_segment *segment, uint64_t *next_offsets,
                                       int *fd, bool *torn, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = weir_bus_segment_open_file(directory, segment->sequence, O_RDWR, path, fd, error);
	if (status != WEIR_OK)
		return status;
	struct weir_bus_index *index = weir_bus_index_new(segment->partitions);
	struct weir_bus_walk walk;
	status = examine(*fd, path, segment, index, next_offsets, &walk, error);
	if (status == WEIR_OK && (rewrite(*fd, walk.durable, walk.end) != 0 || fdatasync(*fd) != 0))
		status = weir_fail(error, WEIR_IO, "cannot repair %s: %s", path, weir_errno_words(errno));
	if (status != WEIR_OK) {
		weir_bus_index_free(index);
		close(*fd);
		*fd = -1;
		return status;
	}
	/* What is no longer than a record's header, as the mark behind a batch, the next record covers whole. */
	*torn = segment->length - walk.end > WEIR_BUS_RECORD_HEADER_BYTES;
	segment->length = walk.end;
	segment->index = index;
	return WEIR_OK;
}
