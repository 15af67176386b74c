/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the newest file is wherever no whole record follows: one may be in the writing. A file has ended when
 * there is another behind it, and then all of it is there; so it is looked into once more before it is left. One whose
 * header could not be synced is removed again.
 */
#include "common/bus/local/bus_local_cursor.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW_BYTES = 256 * 1024 };

void weir_bus_cursor_init(struct weir_bus_cursor *cursor, const char *directory, enum weir_topic topic,
                          uint32_t partitions)
{
	*cursor = (struct weir_bus_cursor){.directory = weir_copy(directory, strlen(directory)),
	                                   .topic = topic,
	                                   .partitions = partitions,
	                                   .next = weir_alloc(partitions, sizeof *cursor->next),
	                                   .retreat = weir_alloc(partitions, sizeof *cursor->retreat),
	                                   .fd = -1,
	                                   .window = weir_alloc(WINDOW_BYTES, 1),
	                                   .capacity = WINDOW_BYTES};
	memset(cursor->retreat, 0xFF, partitions * sizeof *cursor->retreat);
}

void weir_bus_cursor_leave(struct weir_bus_cursor *cursor)
{
	if (cursor->fd >= 0)
		close(cursor->fd);
	cursor->fd = -1;
	weir_bus_segment_free(cursor->segment);
	cursor->segment = NULL;
}

void weir_bus_cursor_deinit(struct weir_bus_cursor *cursor)
{
	weir_bus_cursor_leave(cursor);
	free(cursor->directory);
	free(cursor->next);
	free(cursor->retreat);
	free(cursor->window);
}

static enum weir_status open_header(const struct weir_bus_cursor *cursor, uint64_t sequence,
                                    struct weir_bus_segment **segment, struct weir_error *error)
{
	return weir_bus_segment_open(cursor->directory, cursor->topic, cursor->partitions, sequence, segment, error);
}

/* Takes up a file at its beginning. @param segment  taken on success @return WEIR_AGAIN: it was removed this moment */
static enum weir_status take_up(struct weir_bus_cursor *cursor, struct weir_bus_segment *segment,
                                struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	int fd;
	enum weir_status status =
		weir_bus_segment_open_file(cursor->directory, segment->sequence, O_RDONLY, path, &fd, error);
	if (status != WEIR_OK)
		return errno == ENOENT ? WEIR_AGAIN : status;
	for (uint32_t i = 0; i < cursor->partitions; i++)
		if (cursor->segment != NULL && segment->first[i] < cursor->next[i])
			cursor->retreat[i] = segment->first[i];
	memcpy(cursor->next, segment->first, cursor->partitions * sizeof *cursor->next);
	weir_bus_cursor_leave(cursor);
	cursor->segment = segment;
	cursor->fd = fd;
	cursor->at = weir_bus_segment_header_bytes(cursor->partitions);
	cursor->filled = 0;
	return WEIR_OK;
}

static bool begins_before(const struct weir_bus_segment *segment, const uint64_t *wanted)
{
	for (uint32_t i = 0; wanted != NULL && i < segment->partitions; i++)
		if (segment->first[i] > wanted[i])
			return false;
	return true;
}

enum weir_status weir_bus_cursor_place(struct weir_bus_cursor *cursor, const uint64_t *wanted, struct weir_error *error)
{
	uint64_t *sequences;
	uint32_t count;
	struct weir_bus_segment *segment = NULL;
	weir_bus_cursor_leave(cursor);
	enum weir_status status = weir_bus_segment_list(cursor->directory, &sequences, &count, error);
	if (status != WEIR_OK)
		return errno == ENOENT ? WEIR_AGAIN : status;
	status = WEIR_AGAIN;
	for (uint32_t i = count; i-- > 0;) {
		struct weir_bus_segment *before;
		enum weir_status opened = open_header(cursor, sequences[i], &before, error);
		bool unmade = opened == WEIR_INVALID || (opened == WEIR_IO && errno == ENOENT); /* as yet, or again */
		if (unmade && i + 1 == count && count > 1)
			continue;
		if (unmade && count == 1)
			break;
		if (opened != WEIR_OK) {
			status = segment != NULL ? WEIR_OK : opened; /* older ones are being trimmed */
			break;
		}
		weir_bus_segment_free(segment);
		segment = before;
		status = WEIR_OK;
		if (begins_before(segment, wanted))
			break;
	}
	free(sequences);
	if (status == WEIR_OK)
		status = take_up(cursor, segment, error);
	if (status != WEIR_OK)
		weir_bus_segment_free(segment);
	return status;
}

/* The bytes at a place; NULL: there are not as many. The file grows, so what was not there is looked for again. */
static const char *window_at(struct weir_bus_cursor *cursor, uint64_t at, size_t length)
{
	if (at >= cursor->window_at && at + length <= cursor->window_at + cursor->filled)
		return cursor->window + (at - cursor->window_at);
	if (length > cursor->capacity) {
		cursor->window = weir_realloc(cursor->window, length, 1);
		cursor->capacity = length;
	}
	ssize_t got = weir_bus_read(cursor->fd, cursor->window, cursor->capacity, at);
	cursor->window_at = at;
	cursor->filled = got > 0 ? (size_t)got : 0;
	return cursor->filled >= length ? cursor->window : NULL;
}

/* Whether a whole record stands at the place that has this offset, or a later one where some were damaged. */
static bool record_here(struct weir_bus_cursor *cursor, struct weir_bus_record *record, const char **body)
{
	const char *bytes = window_at(cursor, cursor->at, WEIR_BUS_RECORD_HEADER_BYTES);
	if (bytes == NULL || !weir_bus_record_decode(bytes, cursor->segment->id, cursor->partitions, record) ||
	    record->offset < cursor->next[record->partition] || record->body_bytes > WEIR_BUS_MESSAGE_MAX_BYTES)
		return false;
	bytes = window_at(cursor, cursor->at, (size_t)weir_bus_record_bytes(record));
	if (bytes == NULL || !weir_bus_record_body_is_whole(record, bytes + WEIR_BUS_RECORD_HEADER_BYTES))
		return false;
	*body = bytes + WEIR_BUS_RECORD_HEADER_BYTES;
	return true;
}

/* The file behind this one. @return WEIR_AGAIN: there is none yet */
static enum weir_status find_successor(const struct weir_bus_cursor *cursor, struct weir_bus_segment **segment,
                                       struct weir_error *error)
{
	uint64_t *sequences;
	uint32_t count;
	enum weir_status status = weir_bus_segment_list(cursor->directory, &sequences, &count, error);
	if (status != WEIR_OK)
		return errno == ENOENT ? WEIR_AGAIN : status;
	status = WEIR_AGAIN;
	for (uint32_t i = 0; i < count; i++) {
		if (sequences[i] <= cursor->segment->sequence)
			continue;
		status = open_header(cursor, sequences[i], segment, error);
		if (status == WEIR_INVALID && i + 1 == count)
			status = WEIR_AGAIN; /* it is being made */
		if (status == WEIR_IO && errno == ENOENT)
			status = WEIR_AGAIN; /* it was trimmed this moment */
		break;
	}
	free(sequences);
	return status;
}

static bool is_removed(const struct weir_bus_cursor *cursor)
{
	struct stat about;
	return fstat(cursor->fd, &about) == 0 && about.st_nlink == 0;
}

/* Behind what is damaged, up to where the file ended. */
static bool record_further_on(struct weir_bus_cursor *cursor, uint64_t end, struct weir_bus_record *record,
                              const char **body)
{
	while (cursor->at < end) {
		if (record_here(cursor, record, body) && cursor->at + weir_bus_record_bytes(record) <= end)
			return true;
		cursor->at++;
	}
	return false;
}

enum weir_status weir_bus_cursor_read(struct weir_bus_cursor *cursor, struct weir_bus_record *record, const char **body,
                                      struct weir_error *error)
{
	struct weir_bus_segment *successor = NULL;
	bool found = record_here(cursor, record, body);
	if (!found) {
		cursor->filled = 0; /* what was read may have been half written */
		enum weir_status status = find_successor(cursor, &successor, error);
		if (status == WEIR_AGAIN && is_removed(cursor)) {
			weir_bus_cursor_leave(cursor);
			return WEIR_END;
		}
		if (status != WEIR_OK)
			return status;
		/* Where files between the two are gone, nobody says where this one ended. */
		uint64_t end = successor->sequence == cursor->segment->sequence + 1 ? successor->previous_bytes
		                                                                    : (uint64_t)lseek(cursor->fd, 0, SEEK_END);
		found = record_further_on(cursor, end, record, body);
	}
	if (found) {
		cursor->next[record->partition] = record->offset + 1;
		cursor->at += weir_bus_record_bytes(record);
		weir_bus_segment_free(successor);
		return WEIR_OK;
	}
	enum weir_status status = take_up(cursor, successor, error);
	if (status != WEIR_OK)
		weir_bus_segment_free(successor);
	return status == WEIR_OK ? WEIR_END : status;
}
