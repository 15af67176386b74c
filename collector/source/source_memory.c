/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory as data: streams, their files and parts. Streams are found by path
 * and files by inode through an index; a stream's own lists are small, and
 * searched from end to end.
 */
#include "collector/source/source_memory_index.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FORGET_AFTER_S = 7 * 86400 };

struct source_memory *source_memory_new(const uint8_t *collector_id)
{
	struct source_memory *memory = weir_alloc(1, sizeof *memory);
	if (collector_id != NULL)
		memcpy(memory->collector_id, collector_id, SOURCE_ID_BYTES);
	else if (getrandom(memory->collector_id, SOURCE_ID_BYTES, 0) != SOURCE_ID_BYTES)
		abort(); /* does not happen: 16 random bytes are always available */
	memory->changes = memory->first_incarnation = 1;
	memory->index = source_memory_index_new();
	return memory;
}

static void file_free(struct source_memory_file *file)
{
	free(file->home);
	free(file->where);
	free(file);
}

void source_memory_scratch_free(struct source_memory_stream *stream)
{
	for (size_t i = 0; i < stream->file_count; i++)
		file_free(stream->files[i]);
	free(stream->files);
	free(stream->parts);
	free(stream->text);
	free(stream->notes);
	free(stream->path);
	free(stream);
}

void source_memory_free(struct source_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; i < memory->stream_count; i++)
		source_memory_scratch_free(memory->streams[i]);
	source_memory_writer_free(memory->writer);
	source_memory_index_free(memory->index);
	free(memory->streams);
	free(memory->path);
	free(memory);
}

void source_memory_changed(struct source_memory *memory)
{
	memory->changes++;
}

/* ---- streams ---- */

struct source_memory_stream *source_memory_scratch(const char *path)
{
	struct source_memory_stream *stream = weir_alloc(1, sizeof *stream);
	stream->path = weir_copy(path, strlen(path));
	stream->next_file = stream->next_incarnation = 1;
	return stream;
}

const char *source_memory_prefix(const char *path)
{
	static const char *const prefixes[] = {SOURCE_JOURNAL_PREFIX, SOURCE_DECISIONS_PREFIX, SOURCE_KAFKA_PREFIX,
	                                       SOURCE_NATS_PREFIX,    SOURCE_AMQP_PREFIX,      SOURCE_REDIS_PREFIX,
	                                       SOURCE_REMOTE_PREFIX,  SOURCE_PUSH_PREFIX};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
			return prefixes[i];
	return NULL;
}

struct source_memory_stream *source_memory_add(struct source_memory *memory, const char *path)
{
	if (memory->stream_count == SOURCE_MEMORY_STREAMS_MAX)
		return NULL;
	struct source_memory_stream *stream = source_memory_scratch(path);
	stream->next_incarnation = memory->first_incarnation;
	memory->streams = weir_realloc(memory->streams, memory->stream_count + 1, sizeof *memory->streams);
	memory->streams[memory->stream_count++] = stream;
	source_memory_index_add_stream(memory->index, stream);
	memory->changes++;
	return stream;
}

void source_memory_remove(struct source_memory *memory, size_t index)
{
	if (memory->first_incarnation < memory->streams[index]->next_incarnation)
		memory->first_incarnation = memory->streams[index]->next_incarnation;
	for (size_t i = 0; i < memory->streams[index]->file_count; i++)
		source_memory_file_place(memory, memory->streams[index]->files[i], 0, 0);
	source_memory_index_remove_stream(memory->index, memory->streams[index]);
	source_memory_scratch_free(memory->streams[index]);
	memory->stream_count--;
	memmove(&memory->streams[index], &memory->streams[index + 1],
	        (memory->stream_count - index) * sizeof *memory->streams);
	memory->changes++;
}

void source_memory_stream_id(const struct source_memory *memory, const char *path, uint8_t id[SOURCE_ID_BYTES])
{
	size_t length = strlen(path);
	char *named = weir_alloc(SOURCE_ID_BYTES + length, 1);
	memcpy(named, memory->collector_id, SOURCE_ID_BYTES);
	memcpy(named + SOURCE_ID_BYTES, path, length);
	weir_hash128(named, SOURCE_ID_BYTES + length, id);
	free(named);
}

/* ---- files ---- */

struct source_memory_file *source_memory_file(const struct source_memory_stream *stream, uint32_t number)
{
	for (size_t i = stream->file_count; i-- > 0;)
		if (stream->files[i]->number == number)
			return stream->files[i];
	return NULL;
}

struct source_memory_file *source_memory_file_add(struct source_memory *memory, struct source_memory_stream *stream)
{
	struct source_memory_file *file = weir_alloc(1, sizeof *file);
	file->number = stream->next_file++;
	file->stream = stream;
	stream->files = weir_realloc(stream->files, stream->file_count + 1, sizeof *stream->files);
	stream->files[stream->file_count++] = file;
	memory->changes++;
	return file;
}

void source_memory_file_place(struct source_memory *memory, struct source_memory_file *file, uint64_t device,
                              uint64_t inode)
{
	source_memory_index_remove_file(memory->index, file);
	file->device = device;
	file->inode = inode;
	source_memory_index_add_file(memory->index, file);
}

void source_memory_file_drop(struct source_memory *memory, struct source_memory_file *file)
{
	struct source_memory_stream *stream = file->stream;
	size_t place = 0;
	while (stream->files[place] != file)
		place++;
	source_memory_file_place(memory, file, 0, 0);
	file_free(file);
	stream->file_count--;
	memmove(&stream->files[place], &stream->files[place + 1], (stream->file_count - place) * sizeof *stream->files);
	memory->changes++;
}

static bool is_needed(const struct source_memory_stream *stream, const struct source_memory_file *file)
{
	if (file->state != SOURCE_FILE_SETTLED)
		return true;
	for (size_t i = 0; i < stream->part_count; i++)
		if (stream->parts[i].file == file->number)
			return true;
	return false;
}

static void forget_file(struct source_memory *memory, struct source_memory_stream *stream, size_t index)
{
	struct source_memory_file *file = stream->files[index];
	if (file->modified_ns > stream->forgotten_ns)
		stream->forgotten_ns = file->modified_ns;
	source_memory_file_place(memory, file, 0, 0);
	file_free(file);
	stream->file_count--;
	memmove(&stream->files[index], &stream->files[index + 1], (stream->file_count - index) * sizeof *stream->files);
	memory->changes++;
}

/* How many files a stream may have. The memory must stay small, as each save writes all of it. */
static size_t files_most(const struct source_memory *memory)
{
	size_t share = SOURCE_MEMORY_FILES_ALL / (memory->stream_count > 0 ? memory->stream_count : 1);
	return share < SOURCE_MEMORY_FILES_MAX ? share : SOURCE_MEMORY_FILES_MAX;
}

void source_memory_forget(struct source_memory *memory, struct source_memory_stream *stream, int64_t now_s)
{
	size_t left = stream->file_count, most = files_most(memory);
	/* Files are in the order in which they were found: the oldest go first. */
	for (size_t i = 0; i < stream->file_count;) {
		struct source_memory_file *file = stream->files[i];
		bool old = now_s - file->seen_s > FORGET_AFTER_S || left > most;
		if (old && !is_needed(stream, file)) {
			forget_file(memory, stream, i);
			left--;
		} else {
			i++;
		}
	}
}

/* ---- parts ---- */

struct source_memory_part *source_memory_part(const struct source_memory_stream *stream, uint32_t incarnation)
{
	if (stream->part_count == 0 || incarnation < stream->parts[0].incarnation)
		return NULL;
	size_t index = incarnation - stream->parts[0].incarnation;
	return index < stream->part_count ? &stream->parts[index] : NULL;
}

struct source_memory_part *source_memory_last_part(const struct source_memory_stream *stream)
{
	return stream->part_count > 0 ? &stream->parts[stream->part_count - 1] : NULL;
}

struct source_memory_part *source_memory_part_add(struct source_memory *memory, struct source_memory_stream *stream,
                                                  uint32_t file, uint64_t from)
{
	if (stream->part_count >= SOURCE_MEMORY_PARTS_MAX || stream->next_incarnation > SOURCE_INCARNATION_MAX)
		return NULL;
	stream->parts = weir_realloc(stream->parts, stream->part_count + 1, sizeof *stream->parts);
	struct source_memory_part *part = &stream->parts[stream->part_count++];
	*part = (struct source_memory_part){.incarnation = stream->next_incarnation++,
	                                    .file = file,
	                                    .from = from,
	                                    .to = SOURCE_PART_OPEN,
	                                    .change = ++memory->changes};
	return part;
}

bool source_memory_part_saved(const struct source_memory *memory, const struct source_memory_part *part)
{
	return memory->path == NULL || part->change <= memory->saved;
}

void source_memory_acknowledge(struct source_memory *memory, struct source_memory_stream *stream, uint64_t position)
{
	if (position <= stream->low_water)
		return;
	stream->low_water = position;
	memory->changes++;
	uint32_t incarnation = source_position_incarnation(position);
	size_t done = 0;
	while (done + 1 < stream->part_count && stream->parts[done].incarnation < incarnation)
		done++;
	if (done == 0)
		return;
	stream->part_count -= done;
	memmove(stream->parts, stream->parts + done, stream->part_count * sizeof *stream->parts);
}

void source_memory_note(struct source_memory *memory, struct source_memory_stream *stream, struct weir_text *notes)
{
	free(stream->notes);
	stream->notes = notes->at;
	stream->notes_length = (uint32_t)notes->length;
	*notes = (struct weir_text){0};
	memory->changes++;
}

/* ---- what sources name ---- */

void source_memory_names_add(struct source_memory *memory, struct source_memory_names *names)
{
	names->next = memory->names;
	memory->names = names;
}

void source_memory_names_remove(struct source_memory *memory, const struct source_memory_names *names)
{
	struct source_memory_names **at = &memory->names;
	while (*at != NULL && *at != names)
		at = &(*at)->next;
	if (*at != NULL)
		*at = names->next;
}

bool source_memory_named(const struct source_memory *memory, const char *path)
{
	for (const struct source_memory_names *names = memory->names; names != NULL; names = names->next)
		if (names->names(names->context, path))
			return true;
	return false;
}
