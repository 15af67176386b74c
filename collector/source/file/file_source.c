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

struct file_log *file_source_add(struct file_source *source, struct source_memory_stream *record, const char *path,
                                 uint32_t pattern)
{
	struct file_shared *shared = &source->shared;
	struct file_log *log = weir_alloc(1, sizeof *log);
	struct source_stream *handle = &log->rotation.stream.handle;
	file_stream_init(&log->rotation.stream, shared, record, path);
	log->rotation.incarnation = log->rotation.stream.incarnation;
	log->pattern = pattern;
	log->created_scan = source->scans;
	record->claimed = true;
	pthread_mutex_lock(&shared->mutex);
	handle->order = (uint32_t)shared->stream_count;
	source->logs = weir_realloc(source->logs, shared->stream_count + 1, sizeof(struct file_log *));
	source->handles = weir_realloc(source->handles, shared->stream_count + 1, sizeof(struct source_stream *));
	source->logs[shared->stream_count] = log;
	source->handles[shared->stream_count++] = handle;
	pthread_mutex_unlock(&shared->mutex);
	return log;
}

void file_source_clear(struct file_source *source)
{
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		struct file_log *log = source->logs[i];
		struct source_memory_stream *record = log->rotation.stream.record;
		file_stream_deinit(&log->rotation.stream);
		record->claimed = false;
		if (log->scratch)
			source_memory_scratch_free(record);
		free(log);
	}
	free(source->logs);
	free(source->handles);
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
	for (size_t i = 0; i < source->shared.stream_count; i++) {
		source->handles[i] = &source->logs[i]->rotation.stream.handle;
		source->handles[i]->order = (uint32_t)i;
	}
}
