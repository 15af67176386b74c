/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a spool: batches in their order, a chunk of lines of one batch at a time, without copying them.
 *
 * The reading thread also tells the bus what may go, as the consumer is its own.
 */
#include "collector/source/push/internal.h"
#include "collector/source/source_message.h"
#include "common/base/wake.h"

#include <unistd.h>

enum { CHUNK_BYTES = 256 << 10 };

static uint64_t position_of(uint64_t offset, uint64_t line)
{
	return (offset + 1) << PUSH_POSITION_LINE_BITS | line;
}

static uint64_t offset_of(uint64_t position)
{
	return (position >> PUSH_POSITION_LINE_BITS) - 1;
}

void push_spool_resume(struct push_spool *spool, uint64_t position)
{
	spool->reading.begin = position;
}

void push_spool_resume_settled(struct push_spool *spool)
{
	push_spool_resume(spool, position_of(spool->settled_before, 0) - 1);
}

static enum weir_status assign(struct push_spool *spool, struct weir_error *error)
{
	struct push_reading *reading = &spool->reading;
	uint64_t first, next, offset = reading->begin >= position_of(0, 0) ? offset_of(reading->begin) : 0;
	enum weir_status status = spool->bus->ops->extent(spool->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, error);
	if (status == WEIR_OK)
		status = spool->bus->ops->assign(reading->consumer, 0, offset > first ? offset : first, error);
	reading->assigned = status == WEIR_OK;
	return status;
}

/* Tells the bus what may go. */
static void let_go(struct push_spool *spool)
{
	pthread_mutex_lock(&spool->mutex);
	uint64_t settled = spool->settled;
	if (spool->reading.count > spool->reading.taken)
		spool->handed = spool->reading.messages[spool->reading.taken].offset;
	else if (spool->reading.count > 0)
		spool->handed = spool->reading.messages[spool->reading.count - 1].offset + 1;
	pthread_mutex_unlock(&spool->mutex);
	if (settled > spool->reading.done) {
		spool->reading.done = settled;
		spool->bus->ops->consumed(spool->reading.consumer, 0, settled);
	}
}

/* Receives batches, where none is left. @return WEIR_AGAIN: there are none */
static enum weir_status receive(struct push_spool *spool, struct weir_error *error)
{
	struct push_reading *reading = &spool->reading;
	enum weir_status status = reading->assigned ? WEIR_OK : assign(spool, error);
	reading->count = reading->taken = reading->at = 0;
	reading->line = 0;
	if (status == WEIR_OK)
		status =
			spool->bus->ops->receive(reading->consumer, reading->messages, PUSH_MESSAGES, 0, &reading->count, error);
	if (status == WEIR_OK)
		return reading->count > 0 ? WEIR_OK : WEIR_AGAIN;
	reading->count = 0;
	return status;
}

/* The length of a line and its newline. */
static size_t line_length(const struct weir_message *message, size_t at)
{
	const char *begin = message->payload.at + at;
	size_t left = message->payload.length - at;
	const char *newline = memchr(begin, '\n', left);
	return newline != NULL ? (size_t)(newline - begin) + 1 : left;
}

/* Takes the next lines of a batch; none, where it has no more that are wanted. */
static void take_lines(struct push_reading *reading, size_t line_max, struct source_chunk *chunk)
{
	const struct weir_message *message = &reading->messages[reading->taken];
	size_t count = 0, begin = reading->at;
	while (reading->at < message->payload.length && count < PUSH_CHUNK_LINES && reading->at - begin < CHUNK_BYTES) {
		size_t length = line_length(message, reading->at);
		uint64_t position = position_of(message->offset, reading->line);
		bool read_before = position <= reading->begin, too_long = length > line_max + 1;
		if (too_long && !read_before && count > 0)
			break;
		reading->at += length;
		reading->line++;
		if (read_before) {
			begin = reading->at;
			continue;
		}
		reading->positions[count++] = position;
		if (too_long) {
			chunk->too_long = true;
			chunk->skipped = length - line_max;
			struct weir_span line = source_message_line(message->payload.at + begin, length);
			if (line.length > line_max)
				chunk->tail = source_message_tail(line, line_max);
			break;
		}
	}
	chunk->data = message->payload.at + begin;
	chunk->length = chunk->too_long ? line_max : reading->at - begin;
	chunk->positions = reading->positions;
	if (reading->at < message->payload.length)
		return;
	if (reading->line > 0)
		reading->end = position_of(message->offset, reading->line - 1);
	reading->taken++;
	reading->at = 0;
	reading->line = 0;
}

enum weir_status push_spool_read(struct push_spool *spool, size_t line_max, struct source_chunk *chunk,
                                 struct weir_error *error)
{
	struct push_reading *reading = &spool->reading;
	enum weir_status status = WEIR_OK;
	*chunk = (struct source_chunk){0};
	let_go(spool);
	while (chunk->length == 0) {
		if (reading->taken == reading->count) {
			uint64_t ignored;
			(void)!read(spool->event, &ignored, sizeof ignored);
			let_go(spool); /* also where nothing of them was wanted, as all was read before a restart */
			status = receive(spool, error);
		}
		if (status != WEIR_OK)
			return status;
		take_lines(reading, line_max, chunk);
	}
	return WEIR_OK;
}

int push_spool_fd(const struct push_spool *spool)
{
	return spool->event;
}

void push_spool_acknowledge(struct push_spool *spool, uint64_t position)
{
	if (position < position_of(0, 0))
		return;
	uint64_t done = offset_of(position) + (position == spool->reading.end);
	pthread_mutex_lock(&spool->mutex);
	bool first = spool->acknowledged <= spool->settled;
	if (done > spool->acknowledged) {
		spool->acknowledged = done;
		if (first) /* the thread knows otherwise when it is to settle */
			weir_wake_up(spool->work);
	}
	pthread_mutex_unlock(&spool->mutex);
	let_go(spool);
}
