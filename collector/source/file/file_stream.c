/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's state: where it stands, which files it has open, and what is stated about it. */
#include "collector/source/file/file_stream.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_MOST_BYTES = 256 << 10, READ_LEAST_BYTES = 16 << 10, BUFFERS_BYTES = 256 << 20 };

/* Parts are added by up to three at a time. */
enum { PARTS_RESERVED = 4 };

void file_stream_init(struct file_stream *stream, struct file_shared *shared, struct source_memory_stream *record,
                      const char *path)
{
	*stream = (struct file_stream){.shared = shared, .record = record, .path = weir_copy(path, strlen(path))};
	stream->handle.name = record->path;
	source_memory_stream_id(shared->memory, record->path, stream->handle.id);
	file_stream_resolve(stream);
	stream->status = (struct source_status){.name = record->path, .position = record->low_water};
	stream->caught_up_ms = weir_monotonic_ms();
	stream->incarnation = record->next_incarnation;
	if (record->part_count == 0)
		return;
	uint32_t incarnation = source_position_incarnation(record->low_water);
	uint64_t offset = source_position_offset(record->low_water);
	const struct source_memory_part *part = source_memory_part(record, incarnation);
	part = part != NULL ? part : &record->parts[0];
	stream->incarnation = part->incarnation;
	stream->offset = part->incarnation == incarnation && offset > part->from ? offset : part->from;
}

void file_stream_deinit(struct file_stream *stream)
{
	while (stream->open_count > 0)
		file_stream_close(stream, stream->open[0]);
	weir_text_deinit(&stream->before);
	free(stream->open);
	free(stream->real);
	free(stream->path);
}

/* Where a link leads at whose end no file lies just now: the directory is there. */
static char *dangling(const char *path)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length <= 0)
		return NULL;
	target[length] = '\0';
	int directory = target[0] == '/' ? 0 : (int)(file_identity_base(path) - path);
	int used = snprintf(joined, sizeof joined, "%.*s%s", directory, path, target);
	if (used < 0 || used >= (int)sizeof joined)
		return NULL;
	char *name = strrchr(joined, '/'), *real = NULL;
	if (name != NULL)
		*name++ = '\0';
	char *place = realpath(name == NULL ? "." : joined[0] == '\0' ? "/" : joined, NULL);
	if (place != NULL) {
		size_t room = strlen(place) + strlen(target) + 2;
		real = weir_alloc(room, 1);
		snprintf(real, room, "%s/%s", place, name != NULL ? name : target);
	}
	free(place);
	return real;
}

bool file_stream_resolve(struct file_stream *stream)
{
	char *real = file_identity_real(stream->path);
	/* A link whose target is missing leads where it led: a rotation may be on the way. */
	if (real == NULL && stream->real == NULL)
		real = dangling(stream->path);
	if (real == NULL || (stream->real != NULL && strcmp(real, stream->real) == 0)) {
		free(real);
		return false;
	}
	free(stream->real);
	stream->real = real;
	return true;
}

enum weir_status file_stream_resume(struct file_stream *stream, uint64_t position, struct weir_error *error)
{
	uint32_t incarnation = source_position_incarnation(position);
	uint64_t offset = source_position_offset(position);
	const struct source_memory_part *part = source_memory_part(stream->record, incarnation);
	if (position == 0 && stream->record->part_count > 0)
		part = &stream->record->parts[0], offset = part->from;
	else if (position == 0)
		return WEIR_OK;
	if (part == NULL || offset < part->from || (part->to != SOURCE_PART_OPEN && offset > part->to))
		return weir_fail(error, WEIR_INVALID, "%s: unknown position %u:%llu", stream->handle.name, incarnation,
		                 (unsigned long long)offset);
	stream->incarnation = part->incarnation;
	stream->offset = offset;
	stream->repeats = true;
	return WEIR_OK;
}

/* ---- whether it is to be asked ---- */

/* A followed stream is never done, and one that is read once is never idle. */
static void change_state(struct file_stream *stream, enum file_stream_state state)
{
	bool follow = stream->shared->settings.follow;
	assert(stream->state != FILE_STREAM_DONE || state == FILE_STREAM_DONE);
	assert(state == FILE_STREAM_READY || follow == (state == FILE_STREAM_IDLE));
	(void)follow;
	stream->state = state;
}

void file_stream_wake(struct file_stream *stream)
{
	change_state(stream, FILE_STREAM_READY);
	if (!stream->queued)
		file_queue_push(&stream->shared->ready, stream);
	stream->queued = true;
}

void file_stream_idle(struct file_stream *stream)
{
	change_state(stream, FILE_STREAM_IDLE);
}

void file_stream_finish(struct file_stream *stream)
{
	change_state(stream, FILE_STREAM_DONE);
	while (stream->open_count > 0)
		file_stream_close(stream, stream->open[0]);
}

/* ---- open files ---- */

/* With very many streams (a merge holds a chunk of each) each reads less at a time. */
static size_t read_bytes(const struct file_shared *shared)
{
	size_t share = shared->stream_count > 0 ? BUFFERS_BYTES / shared->stream_count : BUFFERS_BYTES;
	return share > READ_MOST_BYTES ? READ_MOST_BYTES : share < READ_LEAST_BYTES ? READ_LEAST_BYTES : share;
}

/* Where a file lies; its directory is remembered where it is not the stream's own, as behind a link. */
static void note_where(const struct file_stream *stream, struct source_memory_file *file, const char *path)
{
	char *real = file_identity_real(path);
	const char *place = real != NULL ? real : path;
	size_t length = (size_t)(file_identity_base(place) - place);
	size_t own = (size_t)(file_identity_base(stream->path) - stream->path);
	free(file->home);
	file->home = NULL;
	if (length > 0 && (length != own || memcmp(place, stream->path, own) != 0))
		file->home = weir_copy(place, length);
	free(file->where);
	file->where = weir_copy(place, strlen(place));
	free(real);
}

/* Whether two paths lie in one directory, however that is written. */
static bool lie_together(const char *path, const char *other)
{
	struct stat about[2];
	const char *paths[2] = {path, other};
	for (int i = 0; i < 2; i++) {
		char directory[PATH_MAX];
		int length = (int)(file_identity_base(paths[i]) - paths[i]);
		int used = snprintf(directory, sizeof directory, "%.*s", length, paths[i]);
		if (used < 0 || used >= (int)sizeof directory || stat(length > 0 ? directory : ".", &about[i]) != 0)
			return false;
	}
	return about[0].st_dev == about[1].st_dev && about[0].st_ino == about[1].st_ino;
}

void file_stream_trace(const struct file_stream *stream, const struct open_file *opened)
{
	char link[64], path[PATH_MAX];
	struct stat about;
	snprintf(link, sizeof link, "/proc/self/fd/%d", input_fd(input_lines_input(opened->lines)));
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length <= 0)
		return;
	path[length] = '\0';
	if (lie_together(path, stream->path))
		return;
	if (stat(path, &about) == 0 && file_identity_has_inode(opened->file, &about)) {
		note_where(stream, opened->file, path);
	} else if (opened->file->home == NULL) { /* it was removed there, packed perhaps */
		struct source_memory_file *file = opened->file;
		file->home = weir_copy(path, (size_t)(file_identity_base(path) - path));
	}
}

struct open_file *file_stream_opened(const struct file_stream *stream, const struct source_memory_file *file)
{
	for (size_t i = 0; i < stream->open_count; i++)
		if (stream->open[i]->file == file)
			return stream->open[i];
	return NULL;
}

struct open_file *file_stream_open(struct file_stream *stream, struct source_memory_file *file,
                                   struct file_beginning *beginning, const char *path, int64_t now_ms)
{
	const struct file_shared *shared = stream->shared;
	struct open_file *opened = open_file_new(file, beginning, path, shared->settings.line_max, read_bytes(shared));
	beginning->input = NULL;
	input_lines_share(opened->lines, &stream->shared->spare);
	stream->shared->open_count++;
	fingerprint_head(&file->fingerprint, opened->head, opened->head_bytes); /* it may have grown since it was judged */
	stream->open = weir_realloc(stream->open, stream->open_count + 1, sizeof(struct open_file *));
	stream->open[stream->open_count++] = opened;
	/* From a copy on, it is the copy that is meant. */
	source_memory_file_place(shared->memory, file, opened->about.st_dev, opened->about.st_ino);
	file->modified_ns = file_identity_modified_ns(&opened->about);
	file->seen_s = weir_wall_ms() / 1000;
	file->absences = 0;
	file->open = true;
	note_where(stream, file, opened->path);
	if (open_file_plain(opened) && file->size < (uint64_t)opened->about.st_size)
		file->size = (uint64_t)opened->about.st_size;
	int64_t age_ms = weir_wall_ms() - file->modified_ns / 1000000;
	opened->grown_ms = now_ms - (age_ms > 0 ? age_ms : 0);
	return opened;
}

void file_stream_close(struct file_stream *stream, struct open_file *opened)
{
	for (size_t i = 0; i < stream->open_count; i++)
		if (stream->open[i] == opened) {
			opened->file->open = false;
			stream->open[i] = stream->open[--stream->open_count];
			stream->shared->open_count--;
			open_file_free(opened);
			return;
		}
}

/* ---- parts ---- */

struct source_memory_part *file_stream_part(const struct file_stream *stream)
{
	return source_memory_part(stream->record, stream->incarnation);
}

struct source_memory_file *file_stream_file(const struct file_stream *stream)
{
	const struct source_memory_part *part = file_stream_part(stream);
	return part != NULL ? source_memory_file(stream->record, part->file) : NULL;
}

struct open_file *file_stream_current(const struct file_stream *stream)
{
	const struct source_memory_file *file = file_stream_file(stream);
	return file != NULL ? file_stream_opened(stream, file) : NULL;
}

void file_stream_advance(struct file_stream *stream)
{
	const struct source_memory_part *part = file_stream_part(stream);
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	uint32_t next = part->incarnation + 1;
	bool again = false;
	for (uint32_t i = next; !again && i < stream->record->next_incarnation; i++) {
		const struct source_memory_part *other = source_memory_part(stream->record, i);
		again = other != NULL && other->file == part->file;
	}
	if (!again && file->state == SOURCE_FILE_SETTLED)
		file_stream_close(stream, file_stream_opened(stream, file));
	const struct source_memory_part *following = source_memory_part(stream->record, next);
	stream->incarnation = next;
	stream->offset = following != NULL ? following->from : 0;
}

void file_stream_give_up_part(struct file_stream *stream, const char *why)
{
	struct source_memory_part *part = file_stream_part(stream);
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	file_stream_lost(stream, file, stream->offset, part->to != SOURCE_PART_OPEN ? part->to : file->size, why);
	if (part->to == SOURCE_PART_OPEN) {
		part->to = stream->offset;
		part->change = ++stream->shared->memory->changes;
	}
	file->state = SOURCE_FILE_SETTLED;
	file_stream_close(stream, file_stream_opened(stream, file));
	file_stream_advance(stream);
}

void file_stream_end_part(struct file_stream *stream, uint64_t to, enum source_file_state state)
{
	struct source_memory_part *part = file_stream_part(stream);
	struct source_memory_file *file = source_memory_file(stream->record, part->file);
	part->to = to;
	part->change = ++stream->shared->memory->changes;
	file->state = state;
	if (file->taken < to)
		file->taken = to;
}

bool file_stream_has_room(const struct file_stream *stream)
{
	return stream->record->part_count + PARTS_RESERVED <= SOURCE_MEMORY_PARTS_MAX;
}

bool file_stream_add_part(struct file_stream *stream, struct source_memory_file *file, uint64_t from)
{
	bool reading = file_stream_part(stream) != NULL;
	struct source_memory_part *part =
		source_memory_part_add(stream->shared->memory, stream->record, file->number, from);
	if (part == NULL)
		return false;
	file->state = SOURCE_FILE_READING;
	if (!reading) {
		stream->incarnation = part->incarnation;
		stream->offset = from;
	}
	file_stream_wake(stream);
	return true;
}

/* Where a followed file is gone on with when what it holds is not wanted: behind its last newline. */
static uint64_t last_line_end(const struct file_candidate *candidate)
{
	struct file_beginning beginning;
	char bytes[4096];
	uint64_t at = candidate->size;
	if (file_identity_open(candidate->path, true, &beginning, NULL) != FILE_OPENING_DONE)
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
	struct source_memory *memory = stream->shared->memory;
	struct source_memory_stream *record = stream->record;
	if (record->part_count >= SOURCE_MEMORY_PARTS_MAX)
		return false;
	/* What had this inode before has it no longer. */
	for (struct source_memory_file *other;
	     (other = source_memory_file_with(memory, candidate->device, candidate->inode)) != NULL;)
		source_memory_file_place(memory, other, 0, 0);
	struct source_memory_file *file = source_memory_file_add(memory, record);
	file_candidate_remember(candidate, memory, file);
	note_where(stream, file, candidate->path);
	uint64_t from = candidate->from;
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

/* ---- what is stated ---- */

void file_stream_fail(struct file_stream *stream, int64_t now_ms, const struct weir_error *error)
{
	const struct file_timing *timing = &stream->shared->settings.timing;
	stream->wait_ms = stream->wait_ms == 0 ? timing->retry_least : 2 * stream->wait_ms;
	if (stream->wait_ms > timing->retry_most)
		stream->wait_ms = timing->retry_most;
	stream->retry_ms = now_ms + stream->wait_ms;
	pthread_mutex_lock(&stream->shared->mutex);
	snprintf(stream->status.problem, sizeof stream->status.problem, "%.255s", error->text);
	stream->status.absent = error->status == WEIR_END;
	stream->status.errors++;
	pthread_mutex_unlock(&stream->shared->mutex);
}

void file_stream_well(struct file_stream *stream)
{
	if (stream->wait_ms == 0)
		return;
	stream->wait_ms = stream->retry_ms = 0;
	pthread_mutex_lock(&stream->shared->mutex);
	stream->status.problem[0] = '\0';
	stream->status.absent = false;
	pthread_mutex_unlock(&stream->shared->mutex);
}

void file_stream_count_lost(struct file_stream *stream, uint64_t bytes)
{
	pthread_mutex_lock(&stream->shared->mutex);
	stream->status.lost_bytes += bytes;
	pthread_mutex_unlock(&stream->shared->mutex);
}

static void count_unknown_loss(struct file_stream *stream)
{
	pthread_mutex_lock(&stream->shared->mutex);
	stream->status.unknown_losses++;
	pthread_mutex_unlock(&stream->shared->mutex);
}

void file_stream_lost(struct file_stream *stream, const struct source_memory_file *file, uint64_t from, uint64_t end,
                      const char *why)
{
	uint64_t bytes = end > from && end != SOURCE_OFFSET_END ? end - from : 0;
	const char *where = file->where != NULL ? file->where : stream->path;
	if (bytes > 0)
		file_stream_count_lost(stream, bytes);
	else
		count_unknown_loss(stream);
	if (bytes > 0)
		file_shared_tell(
			stream->shared,
			"%s: the file read at %s %s: %llu bytes from position %llu on are lost, and were not judged (runbook: lines-lost)",
			stream->path, where, why, (unsigned long long)bytes, (unsigned long long)from);
	else
		file_shared_tell(
			stream->shared,
			"%s: the file read at %s %s: what was written to it behind position %llu is lost, if anything was (runbook: lines-lost)",
			stream->path, where, why, (unsigned long long)from);
}

void file_stream_tell_zeros(struct file_stream *stream)
{
	uint64_t zeros = atomic_load_explicit(&stream->handle.zeros, memory_order_relaxed);
	if (zeros > stream->zeros_told)
		file_shared_tell(
			stream->shared, "%s: %llu bytes of 0 at the beginning of lines were passed over, up to position %llu",
			stream->path, (unsigned long long)(zeros - stream->zeros_told), (unsigned long long)stream->offset);
	stream->zeros_told = zeros;
}

void file_stream_note(struct file_stream *stream, const struct open_file *current, uint64_t position, bool at_end,
                      int64_t now_ms)
{
	const struct source_memory_file *file = current->file;
	struct file_place place = {.device = file->device, .inode = file->inode, .offset = stream->offset};
	uint64_t size = file->size, lag = size > stream->offset ? size - stream->offset : 0;
	if (!open_file_plain(current)) {
		place.inode = 0;
		size = (uint64_t)current->about.st_size;
		lag = input_ahead(input_lines_input(current->lines));
		lag = lag < size ? lag : 0;
	}
	pthread_mutex_lock(&stream->shared->mutex);
	if (position != 0)
		stream->status.position = position;
	stream->status.size_bytes = size;
	stream->status.lag_bytes = at_end ? 0 : lag;
	stream->place = place;
	if (at_end)
		stream->caught_up_ms = now_ms;
	pthread_mutex_unlock(&stream->shared->mutex);
}

void file_stream_note_size(struct file_stream *stream, uint64_t bytes)
{
	pthread_mutex_lock(&stream->shared->mutex);
	stream->status.size_bytes = stream->status.lag_bytes = bytes;
	pthread_mutex_unlock(&stream->shared->mutex);
}

/* What has come since the stream was asked last, while the bus was down perhaps. */
static void add_waiting(struct source_status *status, const char *path, const struct file_place *place)
{
	struct stat about;
	if (place->inode == 0 || stat(path, &about) != 0 || about.st_ino != place->inode || about.st_dev != place->device ||
	    (uint64_t)about.st_size <= place->offset)
		return;
	status->size_bytes = (uint64_t)about.st_size;
	status->lag_bytes = status->size_bytes - place->offset;
}

void file_stream_status(const struct file_stream *stream, int64_t now_ms, struct source_status *status)
{
	*status = stream->status;
	status->lines = atomic_load_explicit(&stream->handle.lines, memory_order_relaxed);
	add_waiting(status, stream->path, &stream->place);
	status->lag_ms = status->lag_bytes > 0 ? now_ms - stream->caught_up_ms : 0;
}
