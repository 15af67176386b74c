/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream, which can be read only once.
 *
 * A position of an earlier start would mean nothing, so the stream has another id at each start. An offset within a
 * position is bounded, so a stream that exceeds the bound continues in another incarnation.
 */
#include "collector/source/source_unreplayable.h"

#include "collector/source/source_memory.h"
#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct source_unreplayable *unreplayable_of(struct source *source)
{
	return (struct source_unreplayable *)(void *)source;
}

void source_unreplayable_init(struct source_unreplayable *source, const struct source_ops *ops, const char *name,
                              const char *what)
{
	*source = (struct source_unreplayable){
		.source = {.ops = ops}, .what = what, .position = source_position(1, 0), .bound = SOURCE_OFFSET_END / 2};
	source->stream.name = weir_copy(name, strlen(name));
	source->streams[0] = &source->stream;
	if (getrandom(source->stream.id, SOURCE_ID_BYTES, 0) != SOURCE_ID_BYTES)
		abort(); /* does not happen: 16 random bytes are always available */
	pthread_mutex_init(&source->mutex, NULL);
	source->status = (struct source_status){.name = source->stream.name, .position = source->position};
}

void source_unreplayable_deinit(struct source_unreplayable *source)
{
	pthread_mutex_destroy(&source->mutex);
	free(source->stream.name);
}

bool source_unreplayable_place(struct source_unreplayable *source, struct source_chunk *chunk)
{
	bool begins = source_position_offset(source->position) > source->bound;
	if (begins)
		source->position = source_position(source_position_incarnation(source->position) + 1, 0);
	chunk->stream = &source->stream;
	chunk->position = source->position;
	source->position += chunk->length + chunk->skipped;
	pthread_mutex_lock(&source->mutex);
	source->status.position = source->position;
	pthread_mutex_unlock(&source->mutex);
	return begins;
}

size_t source_unreplayable_streams(struct source *base, struct source_stream ***streams)
{
	*streams = unreplayable_of(base)->streams;
	return 1;
}

void source_unreplayable_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	(void)base, (void)stream, (void)position;
}

enum weir_status source_unreplayable_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                            struct weir_error *error)
{
	(void)stream;
	return position == 0 ? WEIR_OK
	                     : weir_fail(error, WEIR_INVALID, "%s cannot be read again", unreplayable_of(base)->what);
}

size_t source_unreplayable_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct source_unreplayable *source = unreplayable_of(base);
	if (count == 0)
		return 1;
	pthread_mutex_lock(&source->mutex);
	statuses[0] = source->status;
	pthread_mutex_unlock(&source->mutex);
	statuses[0].lines = atomic_load_explicit(&source->stream.lines, memory_order_relaxed);
	return 1;
}
