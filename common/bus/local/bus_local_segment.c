/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment files: see bus_local_format.h for their bytes.
 *
 * A file is read through a window that moves forward, so walking only the headers
 * reads little of a file with large messages. After a crash only the last file can
 * have a torn tail: a file's successor is created when everything before it is on
 * disk, and has its length in the header.
 */
#include "common/bus/local/bus_local_segment.h"

#include "common/base/alloc.h"
#include "common/files/file_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { WINDOW_BYTES = 256 * 1024, NAME_DIGITS = 20 };

static struct weir_bus_segment *segment_new(const struct weir_bus_segment_header *header, uint64_t *first)
{
	struct weir_bus_segment *segment = weir_alloc(1, sizeof *segment);
	segment->sequence = header->sequence;
	segment->id = header->id;
	segment->previous_bytes = header->previous_bytes;
	segment->first = first;
	segment->partitions = header->partitions;
	return segment;
}

void weir_bus_segment_free(struct weir_bus_segment *segment)
{
	if (segment == NULL)
		return;
	weir_bus_index_free(segment->index);
	free(segment->first);
	free(segment);
}

enum weir_status weir_bus_segment_path(const char *directory, uint64_t sequence, char path[WEIR_PATH_BYTES],
                                       struct weir_error *error)
{
	return weir_path_format(path, error, "%s/%020llu.log", directory, (unsigned long long)sequence);
}

static int compare_sequences(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

enum weir_status weir_bus_segment_list(const char *directory, uint64_t **sequences, uint32_t *count,
                                       struct weir_error *error)
{
	DIR *listing = opendir(directory);
	if (listing == NULL)
		return weir_fail(error, WEIR_IO, "cannot open directory %s: %s", directory, weir_errno_words(errno));
	uint64_t *found = NULL;
	uint32_t used = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(listing);
		if (entry == NULL)
			break;
		if (strspn(entry->d_name, "0123456789") != NAME_DIGITS || strcmp(entry->d_name + NAME_DIGITS, ".log") != 0)
			continue;
		found = weir_realloc(found, used + 1, sizeof *found);
		found[used++] = strtoull(entry->d_name, NULL, 10);
	}
	int failed = errno;
	closedir(listing);
	if (failed != 0) { /* a file that was not seen would be begun anew by the next one of its number */
		free(found);
		return weir_fail(error, WEIR_IO, "cannot list directory %s: %s", directory, weir_errno_words(failed));
	}
	if (used > 0)
		qsort(found, used, sizeof *found, compare_sequences);
	*sequences = found;
	*count = used;
	return WEIR_OK;
}

ssize_t weir_bus_read(int fd, char *bytes, size_t length, uint64_t at)
{
	size_t used = 0;
	while (used < length) {
		ssize_t count = pread(fd, bytes + used, length - used, (off_t)(at + used));
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	return (ssize_t)used;
}

int weir_bus_write(int fd, const char *bytes, size_t length, uint64_t at)
{
	for (size_t used = 0; used < length;) {
		ssize_t count = pwrite(fd, bytes + used, length - used, (off_t)(at + used));
		if (count < 0 && errno == EINTR)
			continue;
		if (count == 0)
			errno = ENOSPC;
		if (count <= 0)
			return -1;
		used += (size_t)count;
	}
	return 0;
}

enum weir_status weir_bus_segment_create(const char *directory, struct weir_bus_segment_header *header,
                                         struct weir_bus_segment **segment, int *fd, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	size_t length = weir_bus_segment_header_bytes(header->partitions);
	char *bytes = weir_alloc(length, 1);
	*fd = -1;
	enum weir_status status = weir_bus_segment_path(directory, header->sequence, path, error);
	if (status != WEIR_OK)
		goto cleanup;
	if (getrandom(&header->id, sizeof header->id, 0) != (ssize_t)sizeof header->id) {
		status = weir_fail(error, WEIR_IO, "cannot get random bytes: %s", weir_errno_words(errno));
		goto cleanup;
	}
	weir_bus_segment_header_encode(header, bytes);
	*fd = weir_file_make(path, O_RDWR | O_TRUNC, 0640);
	if (*fd < 0)
		status = weir_file_refused(error, "cannot create", path);
	else if (weir_bus_write(*fd, bytes, length, 0) != 0)
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", path, weir_errno_words(errno));
	else if (fdatasync(*fd) != 0)
		status = weir_fail(error, WEIR_IO, "cannot sync %s: %s", path, weir_errno_words(errno));
	else
		status = weir_directory_sync(directory, error);
	if (status != WEIR_OK) {
		if (*fd >= 0) {
			close(*fd);
			unlink(path);
		}
		*fd = -1;
		goto cleanup;
	}
	uint64_t *first = weir_alloc(header->partitions, sizeof *first);
	memcpy(first, header->next_offsets, header->partitions * sizeof *first);
	*segment = segment_new(header, first);
	(*segment)->length = length;
	(*segment)->index = weir_bus_index_new(header->partitions);

cleanup:
	free(bytes);
	return status;
}

enum weir_status weir_bus_segment_open_file(const char *directory, uint64_t sequence, int flags,
                                            char path[WEIR_PATH_BYTES], int *fd, struct weir_error *error)
{
	enum weir_status status = weir_bus_segment_path(directory, sequence, path, error);
	if (status != WEIR_OK)
		return status;
	*fd = open(path, flags | O_CLOEXEC);
	if (*fd < 0)
		return weir_file_refused(error, "cannot open", path);
	return WEIR_OK;
}

enum weir_status weir_bus_segment_open(const char *directory, enum weir_topic topic, uint32_t partitions,
                                       uint64_t sequence, struct weir_bus_segment **segment, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], bytes[WEIR_BUS_SEGMENT_HEADER_MAX_BYTES];
	int fd;
	enum weir_status status = weir_bus_segment_open_file(directory, sequence, O_RDONLY, path, &fd, error);
	if (status != WEIR_OK)
		return status;
	uint64_t *first = weir_alloc(partitions, sizeof *first);
	struct weir_bus_segment_header header;
	ssize_t length = weir_bus_read(fd, bytes, sizeof bytes, 0);
	off_t size = length >= 0 ? lseek(fd, 0, SEEK_END) : -1;
	int reason = errno;
	close(fd);
	if (length < 0 || size < 0) {
		status = weir_fail(error, reason == EISDIR ? WEIR_INVALID : WEIR_IO, "cannot read %s: %s", path,
		                   weir_errno_words(reason));
	} else if (size > UINT32_MAX) {
		status = weir_fail(error, WEIR_INVALID, "%s is larger than any file that weir writes", path);
	} else {
		status = weir_bus_segment_header_decode((struct weir_span){.at = bytes, .length = (uint32_t)length}, partitions,
		                                        first, &header, error);
		if (status == WEIR_OK && (header.topic != topic || header.sequence != sequence))
			status = weir_fail(error, WEIR_INVALID, "it is a copy of another file");
		if (status != WEIR_OK)
			weir_error_prefix(error, "%s", path);
	}
	if (status != WEIR_OK) {
		free(first);
		return status;
	}
	*segment = segment_new(&header, first);
	(*segment)->length = (uint64_t)size;
	return WEIR_OK;
}

/* ---- walking ---- */

/* A part of a file in memory. */
struct window {
	int fd;
	char *bytes;
	size_t capacity;
	uint64_t at;
	size_t length;
	uint64_t limit; /* nothing is read beyond this */
};

/* The `length` bytes at `at`, or NULL. @param failed  set to whether reading failed; if not, the file ends before */
static const char *window_at(struct window *window, uint64_t at, uint64_t length, bool *failed)
{
	*failed = false;
	if (length > window->limit - at)
		return NULL;
	if (at >= window->at && at + length <= window->at + window->length)
		return window->bytes + (at - window->at);
	if (length > window->capacity) {
		window->bytes = weir_realloc(window->bytes, (size_t)length, 1);
		window->capacity = (size_t)length;
	}
	uint64_t left = window->limit - at;
	ssize_t count =
		weir_bus_read(window->fd, window->bytes, left < window->capacity ? (size_t)left : window->capacity, at);
	*failed = count < 0;
	window->at = at;
	window->length = count > 0 ? (size_t)count : 0;
	return window->length >= length ? window->bytes : NULL;
}

/* Checks one record at walk->end. @return WEIR_OK: it is valid, and walk->end is moved past it */
static enum weir_status walk_record(struct window *window, const struct weir_bus_segment *segment, bool bodies,
                                    struct weir_bus_index *index, uint64_t *next_offsets, struct weir_bus_walk *walk)
{
	bool failed;
	struct weir_bus_record record;
	walk->why = "no record begins there";
	const char *header = window_at(window, walk->end, WEIR_BUS_RECORD_HEADER_BYTES, &failed);
	if (failed)
		return WEIR_IO;
	if (header == NULL || !weir_bus_record_decode(header, segment->id, segment->partitions, &record))
		return WEIR_INVALID;
	walk->why = "an offset is out of order";
	if (record.offset != next_offsets[record.partition] || record.durable > walk->end)
		return WEIR_INVALID;
	walk->why = "the record is incomplete";
	uint64_t bytes = weir_bus_record_bytes(&record);
	if (bytes > window->limit - walk->end)
		return WEIR_INVALID;
	if (bodies) {
		const char *body = window_at(window, walk->end, bytes, &failed);
		if (failed)
			return WEIR_IO;
		if (body == NULL || !weir_bus_record_body_is_whole(&record, body + WEIR_BUS_RECORD_HEADER_BYTES))
			return WEIR_INVALID;
	}
	if (index != NULL)
		weir_bus_index_add(index, record.partition,
		                   (struct weir_bus_place){.at = (uint32_t)walk->end, .bytes = (uint32_t)bytes});
	next_offsets[record.partition]++;
	walk->end += bytes;
	walk->durable = record.durable;
	return WEIR_OK;
}

enum weir_status weir_bus_segment_walk(int fd, const struct weir_bus_segment *segment, uint64_t limit, bool bodies,
                                       struct weir_bus_index *index, uint64_t *next_offsets, struct weir_bus_walk *walk)
{
	struct window window = {.fd = fd, .capacity = WINDOW_BYTES, .limit = limit};
	window.bytes = weir_alloc(WINDOW_BYTES, 1);
	walk->end = walk->durable = weir_bus_segment_header_bytes(segment->partitions);
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && walk->end < limit)
		status = walk_record(&window, segment, bodies, index, next_offsets, walk);
	free(window.bytes);
	return status;
}

enum weir_status weir_bus_segment_damaged(const char *path, const struct weir_bus_walk *walk, struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "%s is damaged at byte %llu: %s", path, (unsigned long long)walk->end,
	                 walk->why);
}

enum weir_status weir_bus_segment_load(const char *directory, const struct weir_bus_segment *segment,
                                       struct weir_bus_index **index, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	int fd;
	enum weir_status status = weir_bus_segment_open_file(directory, segment->sequence, O_RDONLY, path, &fd, error);
	if (status != WEIR_OK)
		return status;
	struct weir_bus_index *loaded = weir_bus_index_new(segment->partitions);
	uint64_t *next_offsets = weir_alloc(segment->partitions, sizeof *next_offsets);
	memcpy(next_offsets, segment->first, segment->partitions * sizeof *next_offsets);
	struct weir_bus_walk walk;
	status = weir_bus_segment_walk(fd, segment, segment->length, false, loaded, next_offsets, &walk);
	if (status == WEIR_INVALID)
		weir_bus_segment_damaged(path, &walk, error);
	else if (status != WEIR_OK)
		weir_fail(error, status, "cannot read %s: %s", path, weir_errno_words(errno));
	close(fd);
	free(next_offsets);
	if (status == WEIR_OK)
		*index = loaded;
	else
		weir_bus_index_free(loaded);
	return status;
}
