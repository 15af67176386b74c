/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What streams of one source share: whose turn it is, and a way to tell people.
 *
 * The queue is a ring. Of many streams few have lines at a time, and asking the
 * others in turn would cost more than reading.
 */
#include "collector/source/file/file_shared.h"

#include "common/base/alloc.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST_BYTES = 1024, QUEUE_LEAST = 64 };

void file_shared_tell(const struct file_shared *shared, const char *format, ...)
{
	char words[WORDS_MOST_BYTES];
	if (shared->tell == NULL)
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	shared->tell(shared->tell_context, shared->place, words);
}

void file_queue_push(struct file_queue *queue, struct file_stream *stream)
{
	if (queue->count == queue->capacity) {
		size_t capacity = queue->capacity != 0 ? 2 * queue->capacity : QUEUE_LEAST;
		struct file_stream **ring = weir_alloc(capacity, sizeof(struct file_stream *));
		for (size_t i = 0; i < queue->count; i++)
			ring[i] = queue->ring[(queue->first + i) % queue->capacity];
		free(queue->ring);
		queue->ring = ring;
		queue->capacity = capacity;
		queue->first = 0;
	}
	queue->ring[(queue->first + queue->count++) % queue->capacity] = stream;
}

struct file_stream *file_queue_pop(struct file_queue *queue)
{
	if (queue->count == 0)
		return NULL;
	struct file_stream *stream = queue->ring[queue->first];
	queue->first = (queue->first + 1) % queue->capacity;
	queue->count--;
	return stream;
}

void file_queue_deinit(struct file_queue *queue)
{
	free(queue->ring);
	*queue = (struct file_queue){.ring = NULL};
}
