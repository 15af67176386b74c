/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs are kept in levels: when a level has as many as are merged at once, they
 * become one run of the next. So each record is written a few times at most,
 * whatever their number, and a merge never needs more than its memory. The runs
 * of a higher level came before those of a lower one: among equal records the
 * order of arrival is that of levels from above, then of runs.
 */
#include "common/files/record_sort.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FAN_IN = 256, /* runs of a level */
	LEVELS = 4,   /* 256^4 times the memory: more than any disk */
	READ_LEAST_BYTES = 4096,
	WRITE_BYTES = 1 << 18,
	LOOK_RECORDS = 1 << 14, /* between two looks at the stop flag */
	ARENA_FIRST_BYTES = 1 << 16,
};

/* Of a record in the arena and on disk. */
struct head {
	int64_t time_ms;
	uint32_t rank, length;
};

/* Where a record is in the arena: its place is its order of arrival. */
struct entry {
	int64_t time_ms;
	uint32_t rank, at;
};

struct run {
	uint64_t begin, end; /* in its level's file */
};

struct level {
	int fd; /* -1: not made yet */
	uint64_t length;
	uint32_t count;
	struct run runs[FAN_IN];
};

/* A run that is read. */
struct reader {
	int fd;
	uint64_t at, end; /* in the file: what is not in the buffer yet */
	char *buffer;
	size_t room, begin, length; /* of the buffer: its bytes, the first one not taken, how many there are */
	struct head head;           /* of the record that comes next, which is whole in the buffer */
	uint32_t order;             /* among readers */
};

struct writer {
	const struct weir_record_sort *sort;
	struct level *level;
	char *buffer;
	size_t used;
};

struct weir_record_sort {
	struct weir_record_sort_options options;
	char *arena; /* heads and bytes */
	size_t arena_used, arena_room;
	struct entry *entries;
	size_t count, room, next; /* of entries; the next to be given where nothing is on disk */
	uint64_t added;
	struct level levels[LEVELS];
	struct reader *readers; /* of the merge at work */
	size_t reader_count;
	struct reader **heap; /* those that have a record; least first */
	size_t live;
	struct reader *given; /* its record was given out, and is to be taken */
};

/* ---- memory ---- */

struct weir_record_sort *weir_record_sort_new(const struct weir_record_sort_options *options)
{
	struct weir_record_sort *sort = weir_alloc(1, sizeof *sort);
	sort->options = *options;
	assert(options->memory_bytes >= WEIR_RECORD_SORT_LEAST_BYTES);
	if (sort->options.memory_bytes > UINT32_MAX)
		sort->options.memory_bytes = UINT32_MAX; /* an entry's place is 32 bits wide */
	const char *directory = getenv("TMPDIR");
	if (sort->options.directory == NULL)
		sort->options.directory = directory != NULL && directory[0] != '\0' ? directory : "/var/tmp";
	for (int i = 0; i < LEVELS; i++)
		sort->levels[i].fd = -1;
	return sort;
}

static void close_readers(struct weir_record_sort *sort)
{
	for (size_t i = 0; i < sort->reader_count; i++)
		free(sort->readers[i].buffer);
	free(sort->readers);
	free(sort->heap);
	sort->readers = NULL;
	sort->heap = NULL;
	sort->reader_count = sort->live = 0;
	sort->given = NULL;
}

void weir_record_sort_free(struct weir_record_sort *sort)
{
	if (sort == NULL)
		return;
	close_readers(sort);
	for (int i = 0; i < LEVELS; i++)
		if (sort->levels[i].fd >= 0)
			close(sort->levels[i].fd);
	free(sort->arena);
	free(sort->entries);
	free(sort);
}

static bool is_stopped(const struct weir_record_sort *sort)
{
	return sort->options.stop != NULL && atomic_load_explicit(sort->options.stop, memory_order_relaxed);
}

static enum weir_status fail_stopped(struct weir_error *error)
{
	return weir_fail(error, WEIR_AGAIN, "stopped while sorting");
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	if (a->time_ms != b->time_ms)
		return a->time_ms < b->time_ms ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* Most logs are in order. */
static void sort_entries(struct weir_record_sort *sort)
{
	for (size_t i = 1; i < sort->count; i++)
		if (compare_entries(&sort->entries[i - 1], &sort->entries[i]) > 0) {
			qsort(sort->entries, sort->count, sizeof *sort->entries, compare_entries);
			return;
		}
}

/* ---- files ---- */

static enum weir_status fail_file(const struct weir_record_sort *sort, const char *what, struct weir_error *error)
{
	return weir_fail(error, WEIR_IO, "cannot %s the temporary file for sorting in %s: %s", what,
	                 sort->options.directory, weir_errno_words(errno));
}

/* A file without a name, or one that loses it at once where there is no such thing. */
static enum weir_status open_level(struct weir_record_sort *sort, struct level *level, struct weir_error *error)
{
	if (level->fd >= 0)
		return WEIR_OK;
	level->fd = open(sort->options.directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (level->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return level->fd >= 0 ? WEIR_OK : fail_file(sort, "make", error);
	size_t length = strlen(sort->options.directory) + sizeof "/weir-sort-XXXXXX";
	char *path = weir_alloc(length, 1);
	snprintf(path, length, "%s/weir-sort-XXXXXX", sort->options.directory);
	level->fd = mkostemp(path, O_CLOEXEC);
	if (level->fd >= 0)
		unlink(path);
	free(path);
	return level->fd >= 0 ? WEIR_OK : fail_file(sort, "make", error);
}

static enum weir_status flush(struct writer *writer, struct weir_error *error)
{
	struct level *level = writer->level;
	for (size_t done = 0; done < writer->used;) {
		ssize_t written = pwrite(level->fd, writer->buffer + done, writer->used - done, (off_t)level->length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written == 0)
			errno = ENOSPC; /* POSIX allows a write of nothing, and sets no errno then */
		if (written <= 0)
			return fail_file(writer->sort, "write", error);
		done += (size_t)written;
		level->length += (uint64_t)written;
	}
	writer->used = 0;
	return WEIR_OK;
}

static enum weir_status write_bytes(struct writer *writer, const void *bytes, size_t length, struct weir_error *error)
{
	for (const char *at = bytes; length > 0;) {
		size_t fits = WRITE_BYTES - writer->used, part = length < fits ? length : fits;
		memcpy(writer->buffer + writer->used, at, part);
		writer->used += part;
		at += part;
		length -= part;
		enum weir_status status = writer->used == WRITE_BYTES ? flush(writer, error) : WEIR_OK;
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static enum weir_status begin_run(struct weir_record_sort *sort, struct level *level, struct writer *writer,
                                  struct weir_error *error)
{
	*writer = (struct writer){.sort = sort, .level = level, .buffer = weir_alloc(WRITE_BYTES, 1)};
	level->runs[level->count].begin = level->length;
	return open_level(sort, level, error);
}

static enum weir_status end_run(struct writer *writer, enum weir_status status, struct weir_error *error)
{
	struct level *level = writer->level;
	if (status == WEIR_OK)
		status = flush(writer, error);
	if (status == WEIR_OK)
		level->runs[level->count++].end = level->length;
	free(writer->buffer);
	return status;
}

/* ---- merging ---- */

/* Reads on until the next record is whole. @return WEIR_END: there is none */
static enum weir_status advance(const struct weir_record_sort *sort, struct reader *reader, struct weir_error *error)
{
	for (size_t wanted = sizeof reader->head;;) {
		if (reader->length >= sizeof reader->head) {
			memcpy(&reader->head, reader->buffer + reader->begin, sizeof reader->head);
			wanted = sizeof reader->head + reader->head.length;
		}
		if (reader->length >= wanted)
			return WEIR_OK;
		if (reader->at == reader->end)
			return WEIR_END;
		memmove(reader->buffer, reader->buffer + reader->begin, reader->length);
		reader->begin = 0;
		if (wanted > reader->room) {
			reader->buffer = weir_realloc(reader->buffer, wanted, 1);
			reader->room = wanted;
		}
		size_t more = reader->room - reader->length;
		more = more < reader->end - reader->at ? more : (size_t)(reader->end - reader->at);
		ssize_t got = pread(reader->fd, reader->buffer + reader->length, more, (off_t)reader->at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = EIO; /* it was longer */
		if (got <= 0)
			return fail_file(sort, "read", error);
		reader->at += (uint64_t)got;
		reader->length += (size_t)got;
	}
}

static bool before(const struct reader *a, const struct reader *b)
{
	if (a->head.time_ms != b->head.time_ms)
		return a->head.time_ms < b->head.time_ms;
	return a->head.rank != b->head.rank ? a->head.rank < b->head.rank : a->order < b->order;
}

static void sift_down(struct weir_record_sort *sort, size_t at)
{
	struct reader **heap = sort->heap, *moved = heap[at];
	for (size_t child; (child = 2 * at + 1) < sort->live; at = child) {
		if (child + 1 < sort->live && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* Opens the runs of levels `first` down to `last`. */
static enum weir_status open_merge(struct weir_record_sort *sort, int first, int last, struct weir_error *error)
{
	size_t count = 0;
	for (int i = first; i >= last; i--)
		count += sort->levels[i].count;
	size_t room = sort->options.memory_bytes / (count + 1);
	sort->readers = weir_alloc(count, sizeof *sort->readers);
	sort->heap = weir_alloc(count, sizeof(struct reader *));
	for (int i = first; i >= last; i--)
		for (uint32_t j = 0; j < sort->levels[i].count; j++) {
			const struct run *run = &sort->levels[i].runs[j];
			struct reader *reader = &sort->readers[sort->reader_count];
			*reader = (struct reader){.fd = sort->levels[i].fd,
			                          .at = run->begin,
			                          .end = run->end,
			                          .room = room > READ_LEAST_BYTES ? room : READ_LEAST_BYTES,
			                          .order = (uint32_t)sort->reader_count++};
			reader->buffer = weir_alloc(reader->room, 1);
			enum weir_status status = advance(sort, reader, error);
			if (status != WEIR_OK && status != WEIR_END)
				return status;
			if (status == WEIR_OK)
				sort->heap[sort->live++] = reader;
		}
	for (size_t i = sort->live / 2; i-- > 0;)
		sift_down(sort, i);
	return WEIR_OK;
}

/* The reader whose record comes next; the one given before is taken. */
static enum weir_status merge_step(struct weir_record_sort *sort, struct reader **next, struct weir_error *error)
{
	if (sort->given != NULL) {
		struct reader *reader = sort->given;
		size_t taken = sizeof reader->head + reader->head.length;
		sort->given = NULL;
		reader->begin += taken;
		reader->length -= taken;
		enum weir_status status = advance(sort, reader, error);
		if (status != WEIR_OK && status != WEIR_END)
			return status;
		if (status == WEIR_END)
			sort->heap[0] = sort->heap[--sort->live];
		if (sort->live > 0)
			sift_down(sort, 0);
	}
	if (sort->live == 0)
		return WEIR_END;
	*next = sort->given = sort->heap[0];
	return WEIR_OK;
}

static enum weir_status copy_merged(struct weir_record_sort *sort, struct writer *writer, struct weir_error *error)
{
	struct reader *reader;
	enum weir_status status;
	for (uint64_t n = 1; (status = merge_step(sort, &reader, error)) == WEIR_OK; n++) {
		status = write_bytes(writer, reader->buffer + reader->begin, sizeof reader->head + reader->head.length, error);
		if (status == WEIR_OK && n % LOOK_RECORDS == 0 && is_stopped(sort))
			status = fail_stopped(error);
		if (status != WEIR_OK)
			return status;
	}
	return status == WEIR_END ? WEIR_OK : status;
}

/* The runs of a full level become one of the next, which has room for it. */
static enum weir_status lift_level(struct weir_record_sort *sort, int number, struct weir_error *error)
{
	struct level *level = &sort->levels[number];
	struct writer writer;
	enum weir_status status = begin_run(sort, &sort->levels[number + 1], &writer, error);
	if (status == WEIR_OK)
		status = open_merge(sort, number, number, error);
	if (status == WEIR_OK)
		status = copy_merged(sort, &writer, error);
	close_readers(sort);
	status = end_run(&writer, status, error);
	if (status == WEIR_OK && ftruncate(level->fd, 0) != 0)
		status = fail_file(sort, "shorten", error);
	level->length = level->count = 0;
	return status;
}

/* Makes room for one more run at the lowest level. */
static enum weir_status make_room(struct weir_record_sort *sort, struct weir_error *error)
{
	int full = 0;
	while (full < LEVELS && sort->levels[full].count == FAN_IN)
		full++;
	if (full == LEVELS)
		return weir_fail(error, WEIR_IO, "there are more records than can be sorted: sort the logs in parts");
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && full-- > 0)
		status = lift_level(sort, full, error);
	return status;
}

/* What is in memory becomes a run. */
static enum weir_status spill(struct weir_record_sort *sort, struct weir_error *error)
{
	struct writer writer;
	enum weir_status status = make_room(sort, error);
	if (status != WEIR_OK)
		return status;
	sort_entries(sort);
	status = begin_run(sort, &sort->levels[0], &writer, error);
	for (size_t i = 0; status == WEIR_OK && i < sort->count; i++) {
		const char *record = sort->arena + sort->entries[i].at;
		struct head head;
		memcpy(&head, record, sizeof head);
		status = write_bytes(&writer, record, sizeof head + head.length, error);
		if (status == WEIR_OK && i % LOOK_RECORDS == LOOK_RECORDS - 1 && is_stopped(sort))
			status = fail_stopped(error);
	}
	status = end_run(&writer, status, error);
	sort->arena_used = sort->count = 0;
	return status;
}

/* ---- in and out ---- */

/* What a record takes in memory: itself, its entry, and the entry once more while they are sorted. */
static size_t cost_of(size_t length)
{
	return sizeof(struct head) + length + 2 * sizeof(struct entry);
}

/* Half as much again, within `most` where that is enough. */
static size_t grown(size_t room, size_t first, size_t needed, size_t most)
{
	room = room == 0 ? first : room + room / 2;
	room = room < most ? room : most;
	return room > needed ? room : needed;
}

enum weir_status weir_record_sort_add(struct weir_record_sort *sort, int64_t time_ms, uint32_t rank,
                                      struct weir_span bytes, struct weir_error *error)
{
	struct head head = {.time_ms = time_ms, .rank = rank, .length = bytes.length};
	size_t used = sort->arena_used + 2 * sort->count * sizeof(struct entry);
	if (sort->count > 0 && used + cost_of(bytes.length) > sort->options.memory_bytes) {
		enum weir_status status = spill(sort, error);
		if (status != WEIR_OK)
			return status;
	}
	size_t needed = sort->arena_used + sizeof head + bytes.length;
	if (needed > sort->arena_room) {
		sort->arena_room = grown(sort->arena_room, ARENA_FIRST_BYTES, needed, sort->options.memory_bytes);
		sort->arena = weir_realloc(sort->arena, sort->arena_room, 1);
	}
	if (sort->count == sort->room) {
		sort->room = grown(sort->room, ARENA_FIRST_BYTES / sizeof *sort->entries, sort->count + 1,
		                   sort->options.memory_bytes / cost_of(0) + 1);
		sort->entries = weir_realloc(sort->entries, sort->room, sizeof *sort->entries);
	}
	memcpy(sort->arena + sort->arena_used, &head, sizeof head);
	if (bytes.length > 0)
		memcpy(sort->arena + sort->arena_used + sizeof head, bytes.at, bytes.length);
	sort->entries[sort->count++] = (struct entry){time_ms, rank, (uint32_t)sort->arena_used};
	sort->arena_used = needed;
	sort->added++;
	return WEIR_OK;
}

enum weir_status weir_record_sort_finish(struct weir_record_sort *sort, struct weir_error *error)
{
	if (weir_record_sort_disk_bytes(sort) == 0) {
		sort_entries(sort);
		return WEIR_OK;
	}
	enum weir_status status = sort->count > 0 ? spill(sort, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	free(sort->arena);
	free(sort->entries);
	sort->arena = NULL;
	sort->entries = NULL;
	sort->arena_room = sort->room = 0;
	return open_merge(sort, LEVELS - 1, 0, error);
}

enum weir_status weir_record_sort_next(struct weir_record_sort *sort, int64_t *time_ms, struct weir_span *bytes,
                                       struct weir_error *error)
{
	if (sort->readers == NULL) {
		if (sort->next == sort->count)
			return WEIR_END;
		const struct entry *entry = &sort->entries[sort->next++];
		struct head head;
		memcpy(&head, sort->arena + entry->at, sizeof head);
		*time_ms = head.time_ms;
		*bytes = (struct weir_span){.at = sort->arena + entry->at + sizeof head, .length = head.length};
		return WEIR_OK;
	}
	struct reader *reader;
	enum weir_status status = merge_step(sort, &reader, error);
	if (status != WEIR_OK)
		return status;
	*time_ms = reader->head.time_ms;
	*bytes =
		(struct weir_span){.at = reader->buffer + reader->begin + sizeof reader->head, .length = reader->head.length};
	return WEIR_OK;
}

uint64_t weir_record_sort_count(const struct weir_record_sort *sort)
{
	return sort->added;
}

uint64_t weir_record_sort_disk_bytes(const struct weir_record_sort *sort)
{
	uint64_t bytes = 0;
	for (int i = 0; i < LEVELS; i++)
		bytes += sort->levels[i].length;
	return bytes;
}

const char *weir_record_sort_directory(const struct weir_record_sort *sort)
{
	return sort->options.directory;
}
