/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads segment files one after another, record by record, through a window.
 *
 * Each record is checked as in recovery (bus_local_segment.c), but a broken one
 * does not end the scan: it is reported, and the scan looks for the next valid
 * record. After the last valid record of the last file, broken bytes are not
 * damage unless a mark behind them says that they were on disk: a write is in
 * progress, or a crash has cut one short.
 */
#include "common/bus/local/bus_local_scan.h"

#include "common/base/alloc.h"
#include "common/bus/local/bus_local_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { WINDOW_BYTES = 256 * 1024, PARTITIONS_FILE_BYTES = 16 };

struct weir_bus_scan {
	char *directory; /* of the topic */
	enum weir_topic topic;
	uint32_t partitions;
	uint32_t partition; /* the wanted one, or WEIR_BUS_EVERY_PARTITION */
	uint64_t from;
	uint64_t *sequences; /* of the files, ascending */
	uint32_t count;
	uint32_t place;                   /* index of the file being read, or to read next */
	struct weir_bus_segment *segment; /* NULL: none is open */
	struct weir_bus_segment *first;   /* header of the oldest file; NULL: there is none */
	int fd;
	uint64_t at, limit;
	char *window;
	size_t capacity, filled;
	uint64_t window_at;
};

enum weir_status weir_bus_scan_partitions(const char *directory, uint32_t *partitions, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *text;
	size_t length;
	enum weir_status status = weir_path_format(path, error, "%s/partitions", directory);
	if (status == WEIR_OK)
		status = weir_durable_read(path, PARTITIONS_FILE_BYTES, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	if (text == NULL)
		return weir_fail(error, WEIR_INVALID, "there is no local log in %s", directory);
	bool good = weir_bus_partitions_decode(text, partitions);
	free(text);
	if (!good)
		return weir_fail(
			error, WEIR_INVALID,
			"%s is damaged: it must be one line with the number of \"bus\".\"partitions\". Write it there: echo NUMBER > %s",
			path, path);
	return WEIR_OK;
}

static enum weir_status open_header(const struct weir_bus_scan *scan, uint32_t place, struct weir_bus_segment **segment,
                                    struct weir_error *error)
{
	return weir_bus_segment_open(scan->directory, scan->topic, scan->partitions, scan->sequences[place], segment,
	                             error);
}

/* Skips the files that end before the wanted offset. */
static void skip_files(struct weir_bus_scan *scan)
{
	while (scan->partition != WEIR_BUS_EVERY_PARTITION && scan->place + 1 < scan->count) {
		struct weir_bus_segment *next;
		if (open_header(scan, scan->place + 1, &next, NULL) != WEIR_OK)
			return;
		bool ends_before = next->first[scan->partition] <= scan->from;
		weir_bus_segment_free(next);
		if (!ends_before)
			return;
		scan->place++;
	}
}

enum weir_status weir_bus_scan_open(const char *directory, enum weir_topic topic, uint32_t partition, uint64_t from,
                                    struct weir_bus_scan **scan, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	uint32_t partitions = 0;
	const char *name = weir_topic_name(topic);
	enum weir_status status = weir_bus_scan_partitions(directory, &partitions, error);
	if (status == WEIR_OK)
		status = weir_path_format(path, error, "%s/%s", directory, name + sizeof "weir." - 1);
	if (status != WEIR_OK)
		return status;
	partitions = weir_topic_partitions(topic, partitions);
	if (partition != WEIR_BUS_EVERY_PARTITION && partition >= partitions)
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u; expected 0 to %u", name, partition,
		                 partitions - 1);
	struct weir_bus_scan *opened = weir_alloc(1, sizeof *opened);
	*opened = (struct weir_bus_scan){.topic = topic,
	                                 .partitions = partitions,
	                                 .partition = partition,
	                                 .from = from,
	                                 .fd = -1,
	                                 .directory = weir_copy(path, strlen(path)),
	                                 .window = weir_alloc(WINDOW_BYTES, 1),
	                                 .capacity = WINDOW_BYTES};
	status = weir_bus_segment_list(opened->directory, &opened->sequences, &opened->count, error);
	if (status != WEIR_OK) {
		weir_bus_scan_free(opened);
		return status;
	}
	if (opened->count > 0 && open_header(opened, 0, &opened->first, NULL) != WEIR_OK)
		opened->first = NULL;
	skip_files(opened);
	*scan = opened;
	return WEIR_OK;
}

uint64_t weir_bus_scan_first(const struct weir_bus_scan *scan, uint32_t partition)
{
	return scan->first != NULL ? scan->first->first[partition] : 0;
}

static void close_file(struct weir_bus_scan *scan)
{
	if (scan->fd >= 0)
		close(scan->fd);
	scan->fd = -1;
	weir_bus_segment_free(scan->segment);
	scan->segment = NULL;
}

void weir_bus_scan_free(struct weir_bus_scan *scan)
{
	if (scan == NULL)
		return;
	close_file(scan);
	weir_bus_segment_free(scan->first);
	free(scan->window);
	free(scan->sequences);
	free(scan->directory);
	free(scan);
}

static bool is_last(const struct weir_bus_scan *scan)
{
	return scan->place + 1 == scan->count;
}

/* Opens the file at scan->place. @return WEIR_AGAIN: it has nothing, as it was just trimmed or is being created */
static enum weir_status open_file(struct weir_bus_scan *scan, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct weir_bus_segment *next;
	enum weir_status status =
		weir_bus_segment_open_file(scan->directory, scan->sequences[scan->place], O_RDONLY, path, &scan->fd, error);
	if (status == WEIR_IO && errno == ENOENT)
		return WEIR_AGAIN;
	if (status == WEIR_OK)
		status = open_header(scan, scan->place, &scan->segment, error);
	if (status == WEIR_INVALID && is_last(scan) && scan->place > 0)
		status = WEIR_AGAIN;
	if (status != WEIR_OK) {
		close_file(scan);
		return status;
	}
	scan->at = weir_bus_segment_header_bytes(scan->partitions);
	scan->limit = scan->segment->length;
	scan->filled = 0;
	/* What is after the length in the next file's header was never acknowledged. */
	if (!is_last(scan) && open_header(scan, scan->place + 1, &next, NULL) == WEIR_OK) {
		if (next->previous_bytes < scan->limit)
			scan->limit = next->previous_bytes;
		weir_bus_segment_free(next);
	}
	return WEIR_OK;
}

/* The bytes at a place, which must be below the limit; NULL: they cannot be read. */
static const char *window_at(struct weir_bus_scan *scan, uint64_t at, size_t length)
{
	if (at >= scan->window_at && at + length <= scan->window_at + scan->filled)
		return scan->window + (at - scan->window_at);
	if (length > scan->capacity) {
		scan->window = weir_realloc(scan->window, length, 1);
		scan->capacity = length;
	}
	uint64_t rest = scan->limit - at;
	ssize_t got = weir_bus_read(scan->fd, scan->window, rest < scan->capacity ? (size_t)rest : scan->capacity, at);
	scan->window_at = at;
	scan->filled = got > 0 ? (size_t)got : 0;
	return scan->filled >= length ? scan->window : NULL;
}

enum found { FOUND_RECORD, FOUND_MARK, FOUND_NONE, FOUND_UNREADABLE };

/* Whether there is a valid record at a place, or a mark. */
static enum found inspect(struct weir_bus_scan *scan, uint64_t at, struct weir_bus_record *record, const char **body)
{
	if (scan->limit - at < WEIR_BUS_RECORD_HEADER_BYTES)
		return FOUND_NONE;
	const char *bytes = window_at(scan, at, WEIR_BUS_RECORD_HEADER_BYTES);
	if (bytes == NULL)
		return FOUND_UNREADABLE;
	uint64_t durable;
	if (!weir_bus_durable_decode(bytes, scan->segment->id, scan->partitions, &durable))
		return FOUND_NONE;
	if (!weir_bus_record_decode(bytes, scan->segment->id, scan->partitions, record))
		return durable == at ? FOUND_MARK : FOUND_NONE;
	if (weir_bus_record_bytes(record) > scan->limit - at)
		return FOUND_NONE;
	bytes = window_at(scan, at, (size_t)weir_bus_record_bytes(record));
	if (bytes == NULL)
		return FOUND_UNREADABLE;
	*body = bytes + WEIR_BUS_RECORD_HEADER_BYTES;
	return weir_bus_record_body_is_whole(record, *body) ? FOUND_RECORD : FOUND_NONE;
}

/*
 * Moves to the next valid record or mark after broken bytes, or to the limit. Those of the last file are damage only where
 * a record or a mark behind them says that they were on disk (as bus_local_mend.c decides): else a crash has torn what was
 * being written, of which whole records may be left.
 */
static enum weir_status pass_damage(struct weir_bus_scan *scan, struct weir_error *error)
{
	uint64_t broken = scan->at, behind = scan->limit;
	struct weir_bus_record record;
	const char *body;
	enum found found = FOUND_NONE;
	bool proved = !is_last(scan);
	while (++scan->at < scan->limit && found != FOUND_UNREADABLE && !(proved && behind < scan->limit)) {
		found = inspect(scan, scan->at, &record, &body);
		if (found != FOUND_RECORD && found != FOUND_MARK)
			continue;
		if (behind == scan->limit)
			behind = scan->at;
		proved = proved || found == FOUND_MARK || record.durable > broken;
	}
	scan->at = found == FOUND_UNREADABLE ? scan->limit : behind;
	if (!proved && found != FOUND_UNREADABLE)
		return WEIR_AGAIN;
	return weir_fail(error, WEIR_INVALID, "%s/%020llu.log is damaged: bytes %llu to %llu are not messages",
	                 scan->directory, (unsigned long long)scan->segment->sequence, (unsigned long long)broken,
	                 (unsigned long long)scan->at);
}

/* Reads the next record of the open file. @return WEIR_AGAIN: it has no more */
static enum weir_status next_record(struct weir_bus_scan *scan, struct weir_message *message, struct weir_error *error)
{
	struct weir_bus_record record;
	const char *body;
	while (scan->at < scan->limit) {
		switch (inspect(scan, scan->at, &record, &body)) {
		case FOUND_MARK: scan->at = scan->limit; continue;
		case FOUND_NONE: return pass_damage(scan, error);
		case FOUND_UNREADABLE:
			scan->at = scan->limit;
			return weir_fail(error, WEIR_IO, "cannot read %s/%020llu.log: %s", scan->directory,
			                 (unsigned long long)scan->segment->sequence, weir_errno_words(errno));
		case FOUND_RECORD: break;
		}
		scan->at += weir_bus_record_bytes(&record);
		if (scan->partition != WEIR_BUS_EVERY_PARTITION && record.partition != scan->partition)
			continue;
		if (record.offset < scan->from)
			continue;
		*message = (struct weir_message){.topic = scan->topic};
		weir_bus_record_message(&record, body, message);
		return WEIR_OK;
	}
	return WEIR_AGAIN;
}

enum weir_status weir_bus_scan_next(struct weir_bus_scan *scan, struct weir_message *message, struct weir_error *error)
{
	while (scan->place < scan->count) {
		enum weir_status status = scan->segment == NULL ? open_file(scan, error) : WEIR_OK;
		bool opened = status == WEIR_OK;
		if (opened)
			status = next_record(scan, message, error);
		if (opened && status != WEIR_AGAIN)
			return status;
		close_file(scan);
		scan->place++;
		if (status != WEIR_AGAIN)
			return status;
	}
	return WEIR_END;
}
