/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source's thread: what it reads, and the batches that it fills.
 *
 * A batch is filled without the lock: it belongs to the thread until it counts as filled, and to the collector's thread
 * until it counts as taken.
 */
#include "collector/source/queue/internal.h"

#include "collector/source/source_message.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 200, RETRY_LEAST_MS = 250, RETRY_MOST_MS = 5000, LOSS_SHOWN_MS = 60000, INVALID_MS = 30000 };

static const uint64_t one = 1; /* what is written to an eventfd */

bool queue_ending(const struct queue_source *source)
{
	return atomic_load_explicit(&source->ending, memory_order_relaxed);
}

uint64_t queue_place(const struct queue_stream *stream)
{
	return stream->place;
}

uint64_t queue_safe(const struct queue_stream *stream)
{
	return atomic_load(&stream->safe);
}

void queue_set_number(struct queue_stream *stream, enum queue_number which, uint64_t number)
{
	stream->numbers[which] = number;
}

uint64_t queue_remembered(const struct queue_stream *stream, enum queue_number which)
{
	return stream->remembered[which];
}

/* Under the lock: waits for the other side, for a moment at most. */
static void wait_for_other(struct queue_source *source)
{
	struct weir_deadline deadline = weir_deadline_in_ms(WAIT_MS);
	(void)weir_condition_wait(&source->changed, &source->mutex, &deadline);
}

enum weir_status queue_find(struct queue_source *source, const struct queue_found *found, struct queue_stream **stream,
                            struct weir_error *error)
{
	pthread_mutex_lock(&source->mutex);
	source->asked = found;
	source->answer = NULL;
	source->refusal.status = WEIR_OK;
	pthread_cond_broadcast(&source->changed);
	(void)!write(source->fd, &one, sizeof one);
	while (!queue_ending(source) && source->answer == NULL && source->refusal.status == WEIR_OK)
		wait_for_other(source);
	source->asked = NULL;
	*stream = source->answer;
	bool refused = source->refusal.status != WEIR_OK;
	if (refused)
		*error = source->refusal;
	pthread_mutex_unlock(&source->mutex);
	return queue_ending(source) ? WEIR_END : refused ? WEIR_INVALID : WEIR_OK;
}

/* ---- batches ---- */

static struct queue_batch *open_batch(struct queue_source *source)
{
	return &source->batches[source->filled % QUEUE_BATCHES];
}

bool queue_has_room(struct queue_source *source)
{
	pthread_mutex_lock(&source->mutex);
	bool room = source->filled - source->taken < QUEUE_BATCHES - 1; /* one may be filled, and another begun */
	pthread_mutex_unlock(&source->mutex);
	return room;
}

void queue_flush(struct queue_source *source)
{
	if (!source->filling)
		return;
	source->filling = false;
	pthread_mutex_lock(&source->mutex);
	source->filled++;
	pthread_cond_broadcast(&source->changed);
	pthread_mutex_unlock(&source->mutex);
	(void)!write(source->fd, &one, sizeof one);
}

/* Waits for a batch that the collector's thread has given back. */
static bool take_empty(struct queue_source *source)
{
	pthread_mutex_lock(&source->mutex);
	while (!queue_ending(source) && source->filled - source->taken >= QUEUE_BATCHES)
		wait_for_other(source);
	pthread_mutex_unlock(&source->mutex);
	struct queue_batch *batch = open_batch(source);
	if (queue_ending(source))
		return false;
	batch->count = 0;
	batch->skipped = batch->blank = batch->tail = 0;
	weir_text_clear(&batch->lines);
	return source->filling = true;
}

/* A batch with room for one more line of the stream. @param alone  it must be the only one @return NULL: the end */
static struct queue_batch *batch_for(struct queue_source *source, struct queue_stream *stream, bool alone)
{
	struct queue_batch *batch = open_batch(source);
	if (source->filling && (batch->stream != stream || batch->skipped > 0 || (alone && batch->count > 0) ||
	                        batch->count == QUEUE_BATCH_LINES || batch->lines.length >= QUEUE_BATCH_BYTES))
		queue_flush(source);
	if (!source->filling && !take_empty(source))
		return NULL;
	batch = open_batch(source);
	batch->stream = stream;
	return batch;
}

static void move_on(struct queue_stream *stream, struct queue_batch *batch, uint64_t position, int64_t put_ms)
{
	stream->place = batch->through = position;
	memcpy(batch->numbers, stream->numbers, sizeof batch->numbers);
	stream->put_ms = batch->put_ms = put_ms;
}

bool queue_pass(struct queue_source *source, struct queue_stream *stream, uint64_t position)
{
	struct queue_batch *batch = batch_for(source, stream, false);
	if (batch == NULL)
		return false;
	move_on(stream, batch, position, stream->put_ms);
	return true;
}

bool queue_put(struct queue_source *source, struct queue_stream *stream, const void *bytes, size_t length,
               uint64_t position, int64_t put_ms)
{
	struct weir_span line = source_message_line(bytes, length);
	bool too_long = line.length > source->line_max;
	struct queue_batch *batch = batch_for(source, stream, too_long);
	if (batch == NULL)
		return false;
	move_on(stream, batch, position, put_ms);
	if (line.length == 0) {
		batch->blank++;
		return true;
	}
	if (too_long) {
		batch->tail = source_message_put_long(&batch->lines, line, source->line_max);
		batch->skipped = line.length - source->line_max + 1; /* its newline counts, too */
	} else {
		source_message_put(&batch->lines, line);
	}
	batch->positions[batch->count++] = position;
	return true;
}

/* ---- what is told ---- */

void queue_problem(struct queue_source *source, const char *words)
{
	pthread_mutex_lock(&source->mutex);
	source->errors += *words != '\0' && strcmp(source->problem, words) != 0;
	snprintf(source->problem, sizeof source->problem, "%s", words);
	pthread_mutex_unlock(&source->mutex);
}

void queue_note_end(struct queue_source *source, struct queue_stream *stream, uint64_t newest)
{
	pthread_mutex_lock(&source->mutex);
	stream->newest = newest;
	pthread_mutex_unlock(&source->mutex);
}

void queue_succeeded(struct queue_source *source)
{
	pthread_mutex_lock(&source->mutex);
	source->problem[0] = '\0';
	source->reads = true;
	pthread_mutex_unlock(&source->mutex);
}

void queue_note_left(struct queue_source *source, struct queue_stream *stream, uint64_t left)
{
	pthread_mutex_lock(&source->mutex);
	stream->counts_left = true;
	stream->left = left;
	stream->left_at = stream->place;
	pthread_mutex_unlock(&source->mutex);
}

void queue_note_unknown(struct queue_source *source, struct queue_stream *stream)
{
	pthread_mutex_lock(&source->mutex);
	stream->unknown++;
	pthread_mutex_unlock(&source->mutex);
}

/* Under the lock: the trouble of a name, a new one where there is none. */
static struct queue_trouble *trouble_of(struct queue_source *source, const char *label)
{
	struct weir_text name = {0};
	weir_text_printf(&name, "%s%s", source->prefix, label);
	weir_text_append(&name, "", 1);
	for (size_t i = 0; i < source->trouble_count; i++)
		if (strcmp(source->troubles[i].name, name.at) == 0) {
			weir_text_deinit(&name);
			return &source->troubles[i];
		}
	source->troubles = weir_realloc(source->troubles, source->trouble_count + 1, sizeof *source->troubles);
	struct queue_trouble *made = &source->troubles[source->trouble_count++];
	*made = (struct queue_trouble){.name = name.at};
	return made;
}

void queue_stopped(struct queue_source *source, const char *label, bool absent, const char *words)
{
	pthread_mutex_lock(&source->mutex);
	struct queue_trouble *trouble = trouble_of(source, label);
	source->errors += words != NULL && strcmp(trouble->words, words) != 0;
	trouble->absent = absent;
	snprintf(trouble->words, sizeof trouble->words, "%s", words != NULL ? words : "");
	pthread_mutex_unlock(&source->mutex);
}

void queue_note_lost(struct queue_source *source, struct queue_stream *stream, uint64_t count, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	pthread_mutex_lock(&source->mutex);
	stream->lost += count;
	vsnprintf(stream->problem, sizeof stream->problem, format, arguments);
	stream->problem_until_ms = weir_monotonic_ms() + LOSS_SHOWN_MS;
	pthread_mutex_unlock(&source->mutex);
	va_end(arguments);
}

void queue_note_again(struct queue_source *source, struct queue_stream *stream)
{
	pthread_mutex_lock(&source->mutex);
	stream->again++;
	pthread_mutex_unlock(&source->mutex);
}

/* ---- the thread ---- */

/* @return false: it is to end */
static bool pause_for(struct queue_source *source, int64_t pause_ms)
{
	int64_t end_ms = weir_monotonic_ms() + pause_ms;
	pthread_mutex_lock(&source->mutex);
	while (!queue_ending(source) && weir_monotonic_ms() < end_ms)
		wait_for_other(source);
	bool ending = queue_ending(source);
	pthread_mutex_unlock(&source->mutex);
	return !ending;
}

void *queue_read(void *context)
{
	struct queue_source *source = context;
	struct weir_error error;
	int64_t pause_ms = RETRY_LEAST_MS;
	enum weir_status status;
	while ((status = source->reader->run(source, &error)) != WEIR_END && !source->once) {
		queue_flush(source);
		queue_problem(source, error.text);
		pause_ms = source->reads ? RETRY_LEAST_MS : 2 * pause_ms < RETRY_MOST_MS ? 2 * pause_ms : RETRY_MOST_MS;
		source->reads = false;
		if (!pause_for(source, status == WEIR_INVALID ? INVALID_MS : pause_ms)) {
			status = WEIR_END;
			break;
		}
	}
	queue_flush(source);
	if (status != WEIR_END)
		queue_problem(source, error.text);
	pthread_mutex_lock(&source->mutex);
	source->ended = true;
	source->failure = (struct weir_error){.status = WEIR_OK};
	if (status != WEIR_END)
		source->failure = error;
	pthread_cond_broadcast(&source->changed);
	pthread_mutex_unlock(&source->mutex);
	(void)!write(source->fd, &one, sizeof one);
	return NULL;
}
