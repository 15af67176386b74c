/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all ready formats share: options, and from a reader's parts to a record.
 *
 * Which part serves which field is found once, when the configuration is read; a line then costs its reader and a copy
 * of the parts that are wanted.
 */
#include "collector/format/format_ready.h"

#include "collector/format/format_slots.h"
#include "common/base/alloc.h"

#include <stdlib.h>

enum { NO_PART = READY_PARTS_MAX };

struct format_ready {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	const struct ready_reader *reader;
	enum ready_outcome (*read)(struct weir_span line, struct ready_line *ready);
	struct unescape_scratch escape_room;
	struct ready_stream stream;
	int unmatched;    /* its index in `outcomes` */
	uint32_t left[2]; /* of each of two streams: so many bytes of an open record may come still */
	uint8_t parts[FORMAT_SLOTS_MAX];
};

/* No part stands in two slots. */
static void unescape_values(struct format_ready *ready, uint32_t length, struct weir_span *values)
{
	unescape_scratch_clear(&ready->escape_room);
	for (uint32_t slot = 0; slot < ready->slots.count; slot++)
		values[slot] = unescape_log(&ready->escape_room, values[slot], length);
}

/* From what was read of a line to a record, or the reason why there is none. */
static inline enum format_reason finish(struct format_ready *ready, struct weir_span text, enum ready_outcome outcome,
                                        const struct ready_line *line, struct weir_record *record)
{
	switch (outcome) {
	case READY_OK:
		if (line->cut)
			return FORMAT_LINE_TOO_LONG;
		break;
	case READY_NO_MATCH:
		ready->format.unmatched += ready->unmatched != 0;
		return ready->unmatched == 0 ? ready->format.malformed : FORMAT_SKIP;
	case READY_AMBIGUOUS: return FORMAT_AMBIGUOUS;
	}
	struct weir_span values[FORMAT_SLOTS_MAX];
	for (uint32_t slot = 0; slot < ready->slots.count; slot++)
		values[slot] = ready->parts[slot] == NO_PART ? (struct weir_span){0} : line->parts[ready->parts[slot]];
	if (ready->reader->escapes && memchr(text.at, '\\', text.length) != NULL)
		unescape_values(ready, text.length, values);
	enum format_reason reason = format_slots_finish(&ready->slots, &ready->options, values, record);
	record->times = line->times;
	record->cut |= line->ends_early;
	return reason;
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_ready *ready = (struct format_ready *)format;
	struct ready_line read = {.times = 1};
	const struct weir_span text = {.at = line, .length = length};
	enum ready_outcome outcome = ready->read(text, &read);
	return finish(ready, text, outcome, &read, record);
}

/*
 * The same where records may have several lines. What is open is not known after a restart: of lines that are written one
 * by one, such as those of containers, and read to the middle of a record by then, one that was forged may count.
 */
static enum format_reason parse_in_records(struct format *format, const char *line, uint32_t length,
                                           struct weir_record *record)
{
	struct format_ready *ready = (struct format_ready *)format;
	struct ready_line read = {.times = 1, .lines = format->lines, .stream = &ready->stream};
	const struct weir_span text = {.at = line, .length = length};
	enum ready_outcome outcome = ready->read(text, &read);
	uint32_t *left = &ready->left[format->other_stream], bytes = length + 1;
	bool within = *left > 0;
	*left = *left > bytes ? *left - bytes : 0;
	if (read.opens && ready->reader->record_bytes > bytes)
		*left = ready->reader->record_bytes - bytes;
	return finish(ready, text, within && outcome == READY_OK ? READY_AMBIGUOUS : outcome, &read, record);
}

static void begin_records(struct format *format, struct weir_span header)
{
	(void)header;
	memset(((struct format_ready *)format)->left, 0, sizeof(uint32_t[2]));
}

static void look_behind(struct format *format, const char *end, bool more)
{
	struct ready_stream *stream = &((struct format_ready *)format)->stream;
	stream->end = end;
	stream->more = more;
	stream->looked_to = NULL;
}

static void take_over(struct format *format, struct format *from)
{
	memcpy(((struct format_ready *)format)->left, ((const struct format_ready *)from)->left, sizeof(uint32_t[2]));
}

static bool lacks(const struct format *format, uint32_t field)
{
	const struct format_ready *ready = (const struct format_ready *)format;
	int slot = format_slots_of_field(&ready->slots, field);
	return slot < 0 || ready->parts[slot] == NO_PART;
}

static const char *const *values(const struct format *format, uint32_t field)
{
	const struct format_ready *ready = (const struct format_ready *)format;
	bool event = !lacks(format, field) &&
	             strcmp(ready->reader->parts[ready->parts[format_slots_of_field(&ready->slots, field)]], "event") == 0;
	return event ? ready->reader->events : NULL;
}

static void ready_free(struct format *format)
{
	struct format_ready *ready = (struct format_ready *)format;
	unescape_scratch_deinit(&ready->escape_room);
	format_options_deinit(&ready->options);
	free(ready);
}

static uint8_t part_of(const struct ready_reader *reader, struct weir_span name)
{
	uint8_t part = 0;
	while (reader->parts[part] != NULL && !weir_span_equal(weir_span_of(reader->parts[part]), name))
		part++;
	return reader->parts[part] != NULL ? part : NO_PART;
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields,
                               enum ready_outcome (*read)(struct weir_span line, struct ready_line *ready),
                               struct format **format, struct weir_error *error)
{
	struct format_ready *ready = weir_alloc(1, sizeof *ready);
	bool records = kind->reader->record_bytes > 0;
	ready->format = (struct format){.parse = records ? parse_in_records : parse,
	                                .begin = records ? begin_records : NULL,
	                                .take_over = records ? take_over : NULL,
	                                .behind = records ? look_behind : NULL,
	                                .free = ready_free,
	                                .lacks = lacks,
	                                .values = values,
	                                .dash_is_absent = kind->reader->dash_is_absent,
	                                .names = kind->reader->parts + 1};
	ready->reader = kind->reader;
	ready->read = read;
	enum weir_status status = format_options_init(&ready->options, config, fields, kind, &ready->format, error);
	if (status != WEIR_OK) {
		format_free(&ready->format);
		return status;
	}
	format_slots_init(&ready->slots, &ready->options);
	for (uint32_t slot = 0; slot < ready->slots.count; slot++)
		ready->parts[slot] = part_of(kind->reader, ready->slots.names[slot]);
	*format = &ready->format;
	return WEIR_OK;
}

enum weir_status format_ready_create(const struct weir_json *config, const struct format_kind *kind,
                                     const struct weir_field_table *fields, struct format **format,
                                     struct weir_error *error)
{
	return create(config, kind, fields, kind->reader->read, format, error);
}

enum weir_status format_ready_create_inside(const struct weir_json *config, const struct format_kind *kind,
                                            const struct weir_field_table *fields, struct format **format,
                                            struct weir_error *error)
{
	return create(config, kind, fields, kind->reader->read_message, format, error);
}

static const char *const outcomes[] = {"malformed", "skip", NULL};

const struct weir_json_rule format_ready_options[] = {
	{.name = "unmatched",
     .kind = WEIR_JSON_WORD,
     .offset = offsetof(struct format_ready, unmatched),
     .words = outcomes,
     .meaning = "whether a line that is not of the format is \"malformed\" (the default), or \"skip\": not counted"},
	{.name = NULL},
};
