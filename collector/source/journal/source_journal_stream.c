/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next lines of one seqnum id and name: file by file, in the order of their numbers.
 *
 * A file is left when another of these continues after it, and one more read has shown that it has no more entries:
 * journald writes to the newest file only. The newest number in a file's header may belong to an entry that is just
 * being written, so only numbers before it are skipped for good.
 */
#include "collector/source/journal/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RETRY_MS = 10000,
	PROBLEM_SHOWN_MS = 60000,
	STEPS_MAX = 64, /* bound on the steps of one call; not reached in practice */
};

/* The outcome of a step. */
enum step { STEP_AGAIN, STEP_LINES, STEP_NOTHING, STEP_FAILED };

static void WEIR_PRINTF(4, 5)
	state(struct journal_source *source, struct journal_stream *stream, int64_t until_ms, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	pthread_mutex_lock(&source->mutex);
	vsnprintf(stream->status.problem, sizeof stream->status.problem, format, arguments);
	stream->problem_until_ms = until_ms;
	stream->status.reads_on = until_ms != INT64_MAX; /* otherwise it is shown until the stream is read again */
	pthread_mutex_unlock(&source->mutex);
	va_end(arguments);
}

static void count_lost(struct journal_source *source, struct journal_stream *stream, uint64_t count, int64_t now_ms,
                       const char *why)
{
	pthread_mutex_lock(&source->mutex);
	stream->status.lost_records += count;
	pthread_mutex_unlock(&source->mutex);
	state(source, stream, now_ms + PROBLEM_SHOWN_MS, "up to %" PRIu64 " entries after number %" PRIu64 " are lost: %s",
	      count, stream->through, why);
}

static enum step fail(struct journal_source *source, struct journal_stream *stream, int64_t now_ms,
                      struct weir_error *error)
{
	weir_error_prefix(error, "%s", strrchr(stream->at.path, '/') + 1); /* the directory is in the stream's name */
	pthread_mutex_lock(&source->mutex);
	stream->status.errors++;
	pthread_mutex_unlock(&source->mutex);
	state(source, stream, INT64_MAX, "%s", error->text);
	stream->retry_ms = now_ms + RETRY_MS;
	return STEP_FAILED;
}

void journal_stream_close(struct journal_stream *stream)
{
	if (stream->file == NULL)
		return;
	journal_file_close(stream->file);
	close(stream->fd);
	stream->file = NULL;
}

static bool same_file(const struct journal_listed *a, const struct journal_listed *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* Opens a listed file. It may have been renamed since, and another file may have its path. */
static enum step open_listed(struct journal_source *source, struct journal_stream *stream,
                             const struct journal_listed *listed, int64_t now_ms, struct weir_error *error)
{
	struct stat about;
	char *path = weir_copy(listed->path, strlen(listed->path));
	free(stream->at.path);
	stream->at = *listed;
	stream->at.path = path;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno != ENOENT) {
		(void)weir_fail(error, WEIR_IO, "cannot open it: %s", weir_errno_words(errno));
		return fail(source, stream, now_ms, error);
	}
	if (fd < 0 || fstat(fd, &about) != 0 || about.st_ino != listed->inode || about.st_dev != listed->device) {
		if (fd >= 0)
			close(fd);
		source->files.scanned_ms = 0; /* the list is outdated */
		source->scan_ms = 0;
		return STEP_NOTHING;
	}
	if (journal_file_open(fd, &source->filter, stream->id, stream->through, &stream->file, error) != WEIR_OK) {
		close(fd);
		return fail(source, stream, now_ms, error);
	}
	stream->fd = fd;
	stream->succeeded = stream->complete = false;
	return STEP_AGAIN;
}

static enum step open_next(struct journal_source *source, struct journal_stream *stream, int64_t now_ms,
                           struct weir_error *error)
{
	bool kept;
	size_t place = journal_files_after(&source->files, stream->id, stream->name, stream->through, &kept);
	if (place == source->files.count)
		return STEP_NOTHING;
	const struct journal_listed *listed = &source->files.list[place];
	uint64_t head = listed->header.head;
	enum step step = open_listed(source, stream, listed, now_ms, error);
	if (step == STEP_AGAIN && !kept && !stream->complete && stream->through > 0 && head > stream->through + 1) {
		count_lost(source, stream, head - stream->through - 1, now_ms, "they were removed before they were read");
		stream->through = head - 1;
	}
	return step;
}

/* Whether a listed file continues after the one being read. */
static bool has_successor(const struct journal_source *source, const struct journal_stream *stream)
{
	for (size_t i = 0; i < source->files.count; i++) {
		const struct journal_listed *listed = &source->files.list[i];
		if (journal_is_of(listed, stream->id, stream->name) && !same_file(listed, &stream->at) &&
		    listed->header.head > stream->at.header.head && listed->header.tail > stream->through)
			return true;
	}
	return false;
}

/* The newest number in the file's header, or the last known one if the header cannot be read. */
static uint64_t newest_of(struct journal_stream *stream)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_header header;
	if (pread(stream->fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes &&
	    journal_header_parse(bytes, sizeof bytes, &header))
		stream->at.header.tail = header.tail;
	return stream->at.header.tail;
}

static void pass_over(struct journal_stream *stream, uint64_t seqnum)
{
	if (seqnum > stream->through)
		stream->through = seqnum;
}

/* Saves skipped numbers too, if all that was handed out is acknowledged: a restart need not search them again. */
static void remember(struct journal_source *source, struct journal_stream *stream)
{
	if (stream->handed == stream->acknowledged)
		source_memory_acknowledge(source->memory, stream->record, JOURNAL_POSITION_BASE + stream->through);
}

/* Handles the present end of the file: it may still grow, or another file may continue after it. */
static enum step at_end(struct journal_source *source, struct journal_stream *stream, uint64_t newest, int64_t now_ms)
{
	if (stream->succeeded) {
		pass_over(stream, newest);
		journal_stream_close(stream);
		stream->complete = true;
		return STEP_AGAIN;
	}
	journal_source_scan(source, now_ms);
	stream->succeeded = has_successor(source, stream);
	if (stream->succeeded)
		return STEP_AGAIN;
	if (newest > 0)
		pass_over(stream, newest - 1);
	remember(source, stream);
	return STEP_NOTHING;
}

/* Leaves a damaged file if another continues after it; otherwise retries, as journald may be about to replace it. */
static enum step at_damage(struct journal_source *source, struct journal_stream *stream, uint64_t newest,
                           int64_t now_ms, struct weir_error *error)
{
	enum step step = fail(source, stream, now_ms, error);
	journal_stream_close(stream);
	journal_source_scan(source, now_ms);
	if (!has_successor(source, stream))
		return step;
	if (newest > stream->through)
		count_lost(source, stream, newest - stream->through, now_ms, error->text);
	pass_over(stream, newest);
	stream->complete = true;
	stream->retry_ms = 0;
	return STEP_AGAIN;
}

/* Adds the newest entry's line to the chunk, or puts it aside if it is too long. */
static void take(struct journal_source *source, struct journal_stream *stream, const struct journal_entry *entry)
{
	size_t before = stream->text.length;
	uint64_t left_out = journal_file_text(stream->file, entry, source->line_max, &stream->text);
	size_t length = stream->text.length - before;
	stream->through = entry->seqnum;
	if (length <= source->line_max && left_out == 0) {
		weir_text_append(&stream->text, "\n", 1);
		stream->positions[stream->count++] = JOURNAL_POSITION_BASE + entry->seqnum;
		return;
	}
	size_t kept = length < source->line_max ? length : source->line_max;
	weir_text_clear(&stream->long_text);
	weir_text_append(&stream->long_text, stream->text.at + before, kept);
	stream->text.length = before;
	stream->long_held = true;
	stream->long_skipped = left_out + (length - kept) + 1;
	stream->long_seqnum = entry->seqnum;
}

static enum step read_file(struct journal_source *source, struct journal_stream *stream, int64_t now_ms,
                           struct weir_error *error)
{
	uint64_t newest = newest_of(stream); /* read before the end is reached, so that no later entry is skipped */
	while (stream->count < JOURNAL_CHUNK_ENTRIES && stream->text.length < JOURNAL_CHUNK_BYTES && !stream->long_held) {
		struct journal_entry entry;
		enum weir_status status = journal_file_next(stream->file, &entry, error);
		if (status != WEIR_OK && stream->count > 0)
			break; /* it occurs again after these are handed out */
		if (status == WEIR_AGAIN)
			return at_end(source, stream, newest, now_ms);
		if (status != WEIR_OK)
			return at_damage(source, stream, newest, now_ms, error);
		if (entry.seqnum > stream->through && entry.seqnum < JOURNAL_SEQNUM_MAX)
			take(source, stream, &entry);
	}
	return STEP_LINES;
}

/* Fills the chunk with the lines, or with the long line that waited after them. */
static void hand_out(struct journal_stream *stream, struct source_chunk *chunk)
{
	*chunk = (struct source_chunk){.stream = &stream->stream, .positions = stream->positions, .keeps = true};
	if (stream->count > 0) {
		chunk->data = stream->text.at;
		chunk->length = stream->text.length;
		stream->handed = stream->positions[stream->count - 1] - JOURNAL_POSITION_BASE;
	} else {
		stream->positions[0] = JOURNAL_POSITION_BASE + stream->long_seqnum;
		chunk->data = stream->long_text.at;
		chunk->length = stream->long_text.length;
		chunk->too_long = true;
		chunk->skipped = stream->long_skipped;
		stream->handed = stream->long_seqnum;
		stream->long_held = false;
	}
	chunk->position = stream->positions[0];
}

static void tell(struct journal_source *source, struct journal_stream *stream, bool caught_up, int64_t now_ms)
{
	uint64_t newest = stream->at.header.tail;
	for (size_t i = 0; i < source->files.count; i++)
		if (journal_is_of(&source->files.list[i], stream->id, stream->name) &&
		    source->files.list[i].header.tail > newest)
			newest = source->files.list[i].header.tail;
	pthread_mutex_lock(&source->mutex);
	stream->status.position = JOURNAL_POSITION_BASE + stream->handed;
	stream->status.lag_records = caught_up || newest <= stream->through ? 0 : newest - stream->through;
	if (stream->status.lag_records == 0)
		stream->caught_up_ms = now_ms;
	if (now_ms >= stream->problem_until_ms)
		stream->status.problem[0] = '\0';
	pthread_mutex_unlock(&source->mutex);
}

enum weir_status journal_stream_collect(struct journal_source *source, struct journal_stream *stream, int64_t now_ms,
                                        struct source_chunk *chunk, struct weir_error *error)
{
	*chunk = (struct source_chunk){.stream = &stream->stream};
	if (stream->failed)
		return WEIR_END;
	weir_text_clear(&stream->text);
	stream->count = 0;
	enum step step = stream->long_held ? STEP_LINES : now_ms < stream->retry_ms ? STEP_NOTHING : STEP_AGAIN;
	for (int i = 0; step == STEP_AGAIN && i < STEPS_MAX; i++)
		step =
			stream->file == NULL ? open_next(source, stream, now_ms, error) : read_file(source, stream, now_ms, error);
	/* That a damaged file can be opened again does not end its problem. */
	bool reads = step == STEP_LINES || (step == STEP_NOTHING && stream->file != NULL);
	if (reads && stream->problem_until_ms == INT64_MAX)
		state(source, stream, 0, "%s", "");
	if (step == STEP_LINES)
		hand_out(stream, chunk);
	tell(source, stream, step == STEP_NOTHING && now_ms >= stream->retry_ms, now_ms);
	switch (step) {
	case STEP_LINES: return WEIR_OK;
	case STEP_FAILED: stream->failed = source->once; return source->once ? WEIR_IO : WEIR_AGAIN;
	case STEP_NOTHING: return source->once ? WEIR_END : WEIR_AGAIN;
	case STEP_AGAIN: break;
	}
	return WEIR_AGAIN;
}
