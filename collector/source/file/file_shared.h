/* SPDX-License-Identifier: Apache-2.0 */
/* What the streams of one source have in common. Owned by the source. */
#ifndef COLLECTOR_SOURCE_FILE_SHARED_H
#define COLLECTOR_SOURCE_FILE_SHARED_H

#include "collector/input/input_lines.h"
#include "collector/source/file/file_listing.h"
#include "collector/source/file/file_names.h"
#include "collector/source/source_memory.h"

#include <pthread.h>

struct file_stream;

/* Streams that are to be asked, in turn. */
struct file_queue {
	struct file_stream **ring;
	size_t capacity, first, count;
};

struct file_shared {
	struct file_settings settings;
	struct source_memory *memory;
	struct file_listing listing;
	struct file_names_cache names;
	struct input_lines_spare spare;
	struct file_queue ready;
	size_t stream_count;
	size_t open_count, open_most; /* files that are open, and may be: quiet ones are closed where they are many */
	source_tell *tell;            /* NULL: nobody listens */
	void *tell_context;
	char place[64];        /* of the source in the configuration: "sources[1]" */
	pthread_mutex_t mutex; /* guards what status() shows: any thread may ask */
};

/** Says what people should know, by printf. */
void file_shared_tell(const struct file_shared *shared, const char *format, ...) WEIR_PRINTF(2, 3);

/** What is to be asked is asked in the order in which it came. */
void file_queue_push(struct file_queue *queue, struct file_stream *stream);
/** NULL where there is none. */
struct file_stream *file_queue_pop(struct file_queue *queue);
void file_queue_deinit(struct file_queue *queue);

#endif
