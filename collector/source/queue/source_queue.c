/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's thread: batches as chunks, and the source's thread begun and ended. */
#include "collector/source/queue/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { FIND_MS = 15000, STEP_MS = 100 }; /* with `once`: how long the thread may take to find its stream */

static struct queue_source *queue_of(struct source *source)
{
	return (struct queue_source *)(void *)source;
}

/* ---- batches as chunks ---- */

/* Gives the oldest batch back to the thread. */
static void give_back(struct queue_source *source)
{
	pthread_mutex_lock(&source->mutex);
	source->taken++;
	pthread_cond_broadcast(&source->changed);
	pthread_mutex_unlock(&source->mutex);
}

/* Keeps numbers until their position is safe. The newest is coarser than it could be where there are too many, and no less true. */
static void mark_numbers(struct queue_stream *stream, const struct queue_batch *batch)
{
	bool any = false;
	for (int i = 0; i < QUEUE_NUMBERS; i++)
		any = any || batch->numbers[i] != 0;
	if (!any)
		return;
	stream->mark_count -= stream->mark_count == QUEUE_MARKS;
	struct queue_mark *mark = &stream->marks[stream->mark_count++];
	mark->position = batch->through;
	memcpy(mark->numbers, batch->numbers, sizeof mark->numbers);
}

/* What has no line needs no acknowledgement: it is behind the low-water mark once all before it is safe. */
static void remember_passed(struct queue_source *source, struct queue_stream *stream, uint64_t through)
{
	if (queue_safe(stream) >= stream->handed)
		queue_acknowledge(&source->source, &stream->stream, through);
}

static void show(struct queue_source *source, const struct queue_batch *batch)
{
	pthread_mutex_lock(&source->mutex);
	batch->stream->shown = batch->through;
	batch->stream->shown_ms = batch->put_ms;
	batch->stream->skipped += batch->blank;
	pthread_mutex_unlock(&source->mutex);
}

/* @return whether there is a chunk */
static bool take_batch(struct queue_source *source, struct source_chunk *chunk)
{
	for (;;) {
		pthread_mutex_lock(&source->mutex);
		bool any = source->filled > source->taken;
		pthread_mutex_unlock(&source->mutex);
		if (!any)
			return false;
		struct queue_batch *batch = &source->batches[source->taken % QUEUE_BATCHES];
		show(source, batch);
		mark_numbers(batch->stream, batch);
		if (batch->count == 0) {
			remember_passed(source, batch->stream, batch->through);
			give_back(source);
			continue;
		}
		batch->stream->handed = batch->positions[batch->count - 1];
		*chunk = (struct source_chunk){
			.stream = &batch->stream->stream,
			.data = batch->lines.at,
			.length = batch->lines.length - batch->tail,
			.position = batch->positions[0],
			.positions = batch->positions,
			.too_long = batch->skipped > 0,
			.skipped = batch->skipped,
			.tail = {.at = batch->lines.at + batch->lines.length - batch->tail, .length = batch->tail},
			.written_ms = weir_wall_ms(),
		};
		return source->lent = true;
	}
}

/* ---- where a stream begins ---- */

static const struct queue_found *asked_for(struct queue_source *source)
{
	pthread_mutex_lock(&source->mutex);
	const struct queue_found *found = source->asked;
	pthread_mutex_unlock(&source->mutex);
	return found;
}

/* Answers the thread, which waits for it: also that a stream is refused, as the others are to be read. */
static void answer(struct queue_source *source)
{
	const struct queue_found *found = asked_for(source);
	struct weir_error refusal = {.status = WEIR_OK};
	if (found == NULL)
		return;
	struct queue_stream *stream = queue_open_stream(source, found, &refusal);
	if (stream != NULL && !queue_save_stream(source))
		return;
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; stream != NULL && i < source->stream_count; i++)
		if (strcmp(source->streams[i]->label, stream->label) == 0)
			source->streams[i]->answered = false;
	if (stream != NULL)
		stream->answered = true;
	if (source->asked == found) {
		source->answer = stream;
		source->refusal = refusal;
		source->asked = NULL;
	}
	pthread_cond_broadcast(&source->changed);
	pthread_mutex_unlock(&source->mutex);
}

/* ---- the interface ---- */

/* With `once`: waits a moment for a batch. @return WEIR_AGAIN; WEIR_END; WEIR_IO: it failed for good */
static enum weir_status wait_once(struct queue_source *source, struct weir_error *error)
{
	enum weir_status status = WEIR_AGAIN;
	struct weir_deadline deadline = weir_deadline_in_ms(STEP_MS);
	pthread_mutex_lock(&source->mutex);
	if (source->filled == source->taken && source->ended) {
		status = source->failure.status == WEIR_OK ? WEIR_END : WEIR_IO;
		if (status == WEIR_IO)
			*error = source->failure;
		source->failure.status = WEIR_OK; /* said once */
	} else if (source->filled == source->taken) {
		(void)weir_condition_wait(&source->changed, &source->mutex, &deadline);
	}
	pthread_mutex_unlock(&source->mutex);
	return status;
}

enum weir_status queue_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                               struct weir_error *error)
{
	struct queue_source *source = queue_of(base);
	uint64_t ignored;
	*chunk = (struct source_chunk){.stream = asked};
	/* Reset the eventfd before the batches are looked at: what comes later sets it again. */
	(void)!read(source->fd, &ignored, sizeof ignored);
	if (source->lent)
		give_back(source);
	source->lent = false;
	answer(source);
	if (take_batch(source, chunk))
		return WEIR_OK;
	return source->once ? wait_once(source, error) : WEIR_AGAIN;
}

int queue_fd(const struct source *base)
{
	return ((const struct queue_source *)(const void *)base)->fd;
}

/* ---- beginning and end ---- */

enum weir_status queue_init(struct queue_source *source, const struct source_ops *ops,
                            const struct queue_reader *reader, const char *prefix, const char *label,
                            const struct source_context *context, struct weir_error *error)
{
	struct weir_text name = {0};
	weir_text_printf(&name, "%s%s", prefix, label);
	weir_text_append(&name, "", 1);
	source->source.ops = ops;
	source->reader = reader;
	source->memory = context->memory;
	source->prefix = prefix;
	source->label = name.at;
	source->once |= context->once;
	source->looks = context->looks;
	pthread_mutex_init(&source->mutex, NULL);
	weir_condition_init(&source->changed);
	for (size_t i = 0; i < QUEUE_BATCHES; i++)
		source->batches[i].positions = weir_alloc(QUEUE_BATCH_LINES, sizeof(uint64_t));
	source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return source->fd >= 0 ? WEIR_OK
	                       : weir_fail(error, WEIR_IO, "cannot create a file descriptor: %s", weir_errno_words(errno));
}

/* With `once`: waits for the stream's name, as what is read is settled before the first line. */
static void wait_for_stream(struct queue_source *source)
{
	int64_t end_ms = weir_monotonic_ms() + FIND_MS;
	const struct queue_found *found = NULL;
	bool ended = false;
	while (found == NULL && !ended && weir_monotonic_ms() < end_ms) {
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		pthread_mutex_lock(&source->mutex);
		found = source->asked;
		ended = source->ended;
		pthread_mutex_unlock(&source->mutex);
	}
	struct weir_error refusal; /* said again when the thread is answered */
	if (found == NULL || queue_open_stream(source, found, &refusal) == NULL)
		queue_open_none(source);
}

enum weir_status queue_start(struct queue_source *source, struct weir_error *error)
{
	if (source->looks) {
		queue_open_none(source);
		return WEIR_OK;
	}
	if (pthread_create(&source->thread, NULL, queue_read, source) != 0)
		return weir_fail(error, WEIR_IO, "cannot start a thread");
	source->running = true;
	if (source->once)
		wait_for_stream(source);
	return WEIR_OK;
}

void queue_stop(struct queue_source *source)
{
	if (!source->running)
		return;
	pthread_mutex_lock(&source->mutex);
	atomic_store(&source->ending, true);
	pthread_cond_broadcast(&source->changed);
	pthread_mutex_unlock(&source->mutex);
	pthread_join(source->thread, NULL);
	source->running = false;
}

void queue_deinit(struct queue_source *source)
{
	for (size_t i = 0; i < QUEUE_BATCHES; i++) {
		weir_text_deinit(&source->batches[i].lines);
		free(source->batches[i].positions);
	}
	queue_free_streams(source);
	if (source->fd >= 0)
		close(source->fd);
	pthread_cond_destroy(&source->changed);
	pthread_mutex_destroy(&source->mutex);
	free(source->label);
}
