/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of a source: what it holds of them, and in which order. */
#include "collector/source/file/file_source.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert(offsetof(struct file_log, rotation) == 0 && offsetof(struct file_rotation, stream) == 0 &&
                  offsetof(struct file_stream, handle) == 0,
              "a handle leads back to its log");

static void reserve(struct file_source *source)
{
	if (source->shared.stream_count < source->capacity)
		return;
	source->capacity = source->capacity != 0 ? 2 * source->capacity : 16;
	source->logs = weir_realloc(source->logs, source->capacity, sizeof(struct file_log *));
	source->handles = weir_realloc(source->handles, source->capacity, sizeof(struct source_stream *));
}

struct file_log *file_source_add(struct file_source *source, struct source_memory_stream *record, const char *path,
                                 uint32_t pattern)
{
	struct file_shared *shared = &source->shared;
	struct file_log *log = weir_alloc(1, sizeof *log);
	struct file_stream *stream = &log->rotation.stream;
	file_stream_init(stream, shared, record, path);
	log->rotation.incarnation = stream->incarnation;
	log->source = source;
	log->pattern = pattern;
	log->created_scan = source->scans;
	record->claimed = true;
	record->reader = log;
	file_index_add(&source->index, path, log);
	if (stream->real != NULL)
		file_index_add(&source->index, stream->real, log);
	pthread_mutex_lock(&shared->mutex);
	reserve(source);
	stream->handle.order = (uint32_t)shared->stream_count;
	source->logs[shared->stream_count] = log;
	source->handles[shared->stream_count++] = &stream->handle;
	pthread_mutex_unlock(&shared->mutex);
	file_stream_wake(stream);
	return log;
}

struct file_log *file_source_at(const struct file_source *source, const char *path)
{
	struct file_log *log;
	for (size_t turn = 0; (log = file_index_next(&source->index, path, &turn)) != NULL;)
		if (strcmp(log->rotation.stream.path, path) == 0)
			return log;
	return NULL;
}

void file_source_each_at(struct file_source *source, const char *path,
                         void (*call)(struct file_source *source, struct file_log *log))
{
	struct file_log *log;
	for (size_t turn = 0; (log = file_index_next(&source->index, path, &turn)) != NULL;) {
		const struct file_stream *stream = &log->rotation.stream;
		if (strcmp(stream->path, path) == 0 || (stream->real != NULL && strcmp(stream->real, path) == 0))
			call(source, log);
	}
}

void file_source_resolve(struct file_source *source, struct file_log *log)
{
	if (file_stream_resolve(&log->rotation.stream))
		file_index_add(&source->index, log->rotation.stream.real, log);
}

void file_source_note_away(struct file_source *source, struct file_log *log)
{
	if (log->rotation.away || !file_rotation_away(&log->rotation))
		return;
	if (source->away_count == source->away_capacity) {
		source->away_capacity = source->away_capacity != 0 ? 2 * source->away_capacity : 16;
		source->away = weir_realloc(source->away, source->away_capacity, sizeof(struct file_log *));
	}
	source->away[source->away_count++] = log;
	log->rotation.away = true;
}

void file_source_clear(struct file_source *source)
{
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_log *log = source->logs[i];
		struct source_memory_stream *record = log->rotation.stream.record;
		file_stream_deinit(&log->rotation.stream);
		record->claimed = false;
		record->reader = NULL;
		if (log->scratch)
			source_memory_scratch_free(record);
		free(log);
	}
	free(source->logs);
	free(source->handles);
	free(source->away);
	file_index_deinit(&source->index);
	file_queue_deinit(&source->shared.ready);
}

static int by_place(const void *a, const void *b)
{
	const struct file_log *x = *(struct file_log *const *)a, *y = *(struct file_log *const *)b;
	if (x->pattern != y->pattern)
		return x->pattern < y->pattern ? -1 : 1;
	return strcmp(x->rotation.stream.handle.name, y->rotation.stream.handle.name);
}

void file_source_put_in_order(struct file_source *source)
{
	if (source->shared.stream_count > 0)
		qsort(source->logs, source->shared.stream_count, sizeof(struct file_log *), by_place);
	while (source->shared.ready.count > 0)
		file_queue_pop(&source->shared.ready)->queued = false;
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_stream *stream = &source->logs[i]->rotation.stream;
		source->handles[i] = &stream->handle;
		stream->handle.order = (uint32_t)i;
		if (stream->state == FILE_STREAM_READY)
			file_stream_wake(stream);
	}
}
