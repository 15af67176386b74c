/* A stream's open files, what is stated about it, and beginning a new file. */
#include "collector/source/file/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_MOST_BYTES = 256 << 10, READ_LEAST_BYTES = 16 << 10, BUFFERS_BYTES = 256 << 20 };

/* Parts are added by up to three at a time. */
enum { PARTS_RESERVED = 4 };

/* ---- open files ---- */

/* With very many streams (a merge holds a chunk of each) each reads less at a time. */
static size_t read_bytes(const struct file_source *source)
{
	size_t share = source->stream_count > 0 ? BUFFERS_BYTES / source->stream_count : BUFFERS_BYTES;
	return share > READ_MOST_BYTES ? READ_MOST_BYTES : share < READ_LEAST_BYTES ? READ_LEAST_BYTES : share;
}

struct open_file *open_file_new(struct source_memory_file *file, struct file_beginning *beginning, const char *path,
                                const struct file_source *source)
{
	struct open_file *opened = weir_alloc(1, sizeof *opened);
	opened->file = file;
	opened->about = beginning->about;
	opened->path = weir_copy(path, strlen(path));
	opened->lines = input_lines_new(beginning->input, source->line_max, read_bytes(source));
	memcpy(opened->head, beginning->head, beginning->length);
	opened->head_bytes = beginning->length;
	return opened;
}

void open_file_free(struct open_file *opened)
{
	if (opened == NULL)
		return;
	input_lines_free(opened->lines);
	free(opened->path);
	free(opened);
}

void open_file_end(struct open_file *opened)
{
	struct stat about;
	if (opened->ended || fstat(input_fd(input_lines_input(opened->lines)), &about) != 0)
		return;
	opened->ended = true;
	opened->about = about;
}

/* Bytes of 0 at a log's beginning are no line's: the writer went on where it stood when the file was truncated. */
void open_file_skip_hole(struct file_stream *stream, struct open_file *current)
{
	struct input *input = input_lines_input(current->lines);
	char bytes[4096];
	int fd = input_fd(input);
	if (input_compressed(input) || input_lines_read_offset(current->lines) > 0 || pread(fd, bytes, 1, 0) != 1 ||
	    bytes[0] != '\0')
		return;
	off_t at = lseek(fd, 0, SEEK_DATA);
	at = at > 0 ? at : 0;
	for (ssize_t got; (got = pread(fd, bytes, sizeof bytes, at)) > 0;) {
		ssize_t zeros = 0;
		while (zeros < got && bytes[zeros] == '\0')
			zeros++;
		at += zeros;
		if (zeros < got)
			break;
	}
	if (input_lines_seek(current->lines, (uint64_t)at, NULL) == WEIR_OK)
		stream->offset = (uint64_t)at;
}

struct open_file *file_stream_opened(const struct file_stream *stream, const struct source_memory_file *file)
{
	for (size_t i = 0; i < stream->open_count; i++)
		if (stream->open[i]->file == file)
			return stream->open[i];
	return NULL;
}

void file_stream_adopt(struct file_stream *stream, struct open_file *opened, int64_t now_ms)
{
	struct source_memory_file *file = opened->file;
	fingerprint_head(&file->fingerprint, opened->head, opened->head_bytes); /* it may have grown since it was judged */
	stream->open = weir_realloc(stream->open, stream->open_count + 1, sizeof(struct open_file *));
	stream->open[stream->open_count++] = opened;
	/* From a copy on, it is the copy that is meant. */
	file->device = opened->about.st_dev;
	file->inode = opened->about.st_ino;
	file->modified_ns = file_modified_ns(&opened->about);
	file->seen_s = weir_wall_ms() / 1000;
	file->absences = 0;
	free(file->where);
	file->where = weir_copy(opened->path, strlen(opened->path));
	if (!input_compressed(input_lines_input(opened->lines)) && file->size < (uint64_t)opened->about.st_size)
		file->size = (uint64_t)opened->about.st_size;
	int64_t age_ms = weir_wall_ms() - file->modified_ns / 1000000;
	opened->grown_ms = now_ms - (age_ms > 0 ? age_ms : 0);
}

void file_stream_close(struct file_stream *stream, struct open_file *opened)
{
	for (size_t i = 0; i < stream->open_count; i++)
		if (stream->open[i] == opened) {
			stream->open[i] = stream->open[--stream->open_count];
			open_file_free(opened);
			return;
		}
}

bool open_file_plain(const struct open_file *opened)
{
	return !input_compressed(input_lines_input(opened->lines));
}

/* ---- what is stated ---- */

void file_stream_trouble(struct file_stream *stream, int64_t now_ms, const char *format, ...)
{
	const struct file_timing *timing = &stream->source->timing;
	char words[sizeof stream->status.problem];
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	stream->wait_ms = stream->wait_ms == 0 ? timing->retry_least : 2 * stream->wait_ms;
	if (stream->wait_ms > timing->retry_most)
		stream->wait_ms = timing->retry_most;
	stream->retry_ms = now_ms + stream->wait_ms;
	pthread_mutex_lock(&stream->source->mutex);
	memcpy(stream->status.problem, words, sizeof words);
	stream->status.errors++;
	pthread_mutex_unlock(&stream->source->mutex);
}

void file_stream_well(struct file_stream *stream)
{
	if (stream->wait_ms == 0)
		return;
	stream->wait_ms = stream->retry_ms = 0;
	pthread_mutex_lock(&stream->source->mutex);
	stream->status.problem[0] = '\0';
	pthread_mutex_unlock(&stream->source->mutex);
}

void file_stream_lost(struct file_stream *stream, uint64_t bytes)
{
	pthread_mutex_lock(&stream->source->mutex);
	stream->status.lost_bytes += bytes;
	pthread_mutex_unlock(&stream->source->mutex);
}

void file_stream_note(struct file_stream *stream, const struct open_file *current, uint64_t position, bool at_end,
                      int64_t now_ms)
{
	struct input *input = input_lines_input(current->lines);
	const struct source_memory_file *file = current->file;
	struct file_place place = {.device = file->device, .inode = file->inode, .offset = stream->offset};
	uint64_t size = file->size, lag = size > stream->offset ? size - stream->offset : 0;
	if (input_compressed(input)) {
		place.inode = 0;
		size = (uint64_t)current->about.st_size;
		lag = input_ahead(input);
		lag = lag < size ? lag : 0;
	}
	pthread_mutex_lock(&stream->source->mutex);
	if (position != 0)
		stream->status.position = position;
	stream->status.size_bytes = size;
	stream->status.lag_bytes = at_end ? 0 : lag;
	stream->place = place;
	if (at_end)
		stream->caught_up_ms = now_ms;
	pthread_mutex_unlock(&stream->source->mutex);
}

void file_stream_end_part(struct file_stream *stream, uint64_t to, enum source_file_state state)
{
	struct source_memory_part *part = source_memory_part(stream->record, stream->incarnation);
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	part->to = to;
	part->change = ++stream->source->memory->changes;
	file->state = state;
	if (file->taken < to)
		file->taken = to;
}

bool file_stream_has_room(const struct file_stream *stream)
{
	return stream->record->part_count + PARTS_RESERVED <= SOURCE_MEMORY_PARTS_MAX;
}

/* ---- a new file ---- */

/* Where a followed file is gone on with when what it holds is not wanted: behind its last newline. */
static uint64_t last_line_end(const struct file_candidate *candidate)
{
	struct file_beginning beginning;
	char bytes[4096];
	uint64_t at = candidate->size;
	if (file_open(candidate->path, true, &beginning, NULL) != FILE_OPENING_DONE)
		return at;
	while (at > 0) {
		size_t length = at < sizeof bytes ? (size_t)at : sizeof bytes;
		ssize_t got = pread(input_fd(beginning.input), bytes, length, (off_t)(at - length));
		const char *newline = got > 0 ? memrchr(bytes, '\n', (size_t)got) : NULL;
		if (got <= 0 || newline != NULL) {
			at = newline != NULL ? at - length + (size_t)(newline - bytes) + 1 : candidate->size;
			break;
		}
		at -= length;
	}
	input_free(beginning.input);
	return at;
}

bool file_stream_begin(struct file_stream *stream, const struct file_candidate *candidate, bool from_end)
{
	struct source_memory *memory = stream->source->memory;
	struct source_memory_stream *record = stream->record;
	if (record->part_count >= SOURCE_MEMORY_PARTS_MAX)
		return false;
	/* What had this inode before has it no longer. */
	for (size_t i = 0; i < memory->stream_count; i++)
		for (size_t j = 0; j < memory->streams[i]->file_count; j++) {
			struct source_memory_file *other = memory->streams[i]->files[j];
			if (other->device == candidate->device && other->inode == candidate->inode)
				other->device = other->inode = 0;
		}
	struct source_memory_file *file = source_memory_file_add(memory, record);
	file_candidate_remember(candidate, file);
	uint64_t from = 0;
	if (from_end && candidate->compressed) {
		file->taken = SOURCE_OFFSET_END;
		file->state = SOURCE_FILE_SETTLED;
		return true;
	}
	if (from_end)
		from = last_line_end(candidate);
	file->taken = from;
	return file_stream_add_part(stream, file, from);
}

bool file_stream_add_part(struct file_stream *stream, struct source_memory_file *file, uint64_t from)
{
	bool reading = source_memory_part(stream->record, stream->incarnation) != NULL;
	struct source_memory_part *part =
		source_memory_part_add(stream->source->memory, stream->record, file->number, from);
	if (part == NULL)
		return false;
	file->state = SOURCE_FILE_READING;
	if (!reading) {
		stream->incarnation = part->incarnation;
		stream->offset = from;
	}
	stream->hot = true;
	return true;
}
