/* SPDX-License-Identifier: Apache-2.0 */
/* A reader has three positions of its stream: taken, marked, safe. */
#include "collector/follow/low_water.h"

typedef void reader_call(void *context, struct source *source, struct record_reader *reader);

static void each_reader_of(struct inputs *inputs, size_t place, reader_call *call, void *context)
{
	struct source_stream **streams;
	size_t count = inputs_streams(inputs, place, &streams);
	for (size_t i = 0; i < count; i++)
		if (streams[i]->context != NULL)
			call(context, inputs->sources[place], streams[i]->context);
}

static void each_reader(struct inputs *inputs, reader_call *call, void *context)
{
	for (size_t i = 0; i < inputs->source_count; i++)
		each_reader_of(inputs, i, call, context);
}

static void mark(void *context, struct source *source, struct record_reader *reader)
{
	(void)source;
	uint64_t position = reader->taken_position;
	if (reader->marked_position == position)
		return;
	uint64_t held = format_held(reader->format); /* from there the parts of a line are read again, all of them */
	if (held < position && held >= reader->begun_position)
		position = held;
	if (reader->marked_position == position)
		return;
	reader->marked_position = position;
	sender_mark(context, reader, position, reader->counts.lines);
}

void low_water_mark(struct inputs *inputs, struct sender *sender)
{
	/* If a frame could not be sent, no marks after it may be set. */
	if (sender_state(sender) == SENDER_WELL)
		each_reader(inputs, mark, sender);
}

bool low_water_take(struct sender *sender)
{
	bool any = false;
	for (struct in_flight_mark safe; sender_safe(sender, &safe); any = true) {
		struct record_reader *reader = safe.stream;
		reader->safe_position = safe.position;
		reader->safe_lines = safe.lines;
	}
	return any;
}

static void look_behind(void *context, struct source *source, struct record_reader *reader)
{
	(void)source;
	bool *behind = context;
	*behind = *behind || reader->taken_position < reader->counted_position;
}

bool low_water_is_behind(struct inputs *inputs)
{
	bool behind = false;
	each_reader(inputs, look_behind, &behind);
	return behind;
}

static void acknowledge(void *context, struct source *source, struct record_reader *reader)
{
	(void)context;
	if (reader->safe_position > 0)
		source->ops->acknowledge(source, reader->stream, reader->safe_position);
	reader->safe_position = 0;
}

void low_water_acknowledge(struct inputs *inputs)
{
	each_reader(inputs, acknowledge, NULL);
}

static void give_up(void *context, struct source *source, struct record_reader *reader)
{
	(void)source;
	uint64_t *lines = context;
	*lines += reader->counts.lines - reader->safe_lines;
	reader->safe_lines = reader->counts.lines;
	reader->marked_position = reader->taken_position;
}

uint64_t low_water_give_up(struct inputs *inputs, size_t place)
{
	uint64_t lines = 0;
	each_reader_of(inputs, place, give_up, &lines);
	return lines;
}

/* Readers count the lines; the sources show them in their statuses. */
static void publish_lines(void *context, struct source *source, struct record_reader *reader)
{
	(void)context, (void)source;
	atomic_store_explicit(&reader->stream->lines, reader->counts.lines, memory_order_relaxed);
}

void low_water_publish_lines(struct inputs *inputs)
{
	each_reader(inputs, publish_lines, NULL);
}
