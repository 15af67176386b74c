/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message after a head: two formats, one after the other.
 *
 * The head's format gives the message as a field, and a time; the message's format is told that time, for messages
 * that have none, and reads the rest. What fields it leaves absent are the head's: so a zone can match on the program
 * that wrote the line beside what the line says. The head says how often the message came. A message
 * whose end is missing is given only to a format that takes such lines. What the journal has in parts is joined first. An
 * entry without a message is told: nothing in it says that it is not the one that would have blocked somebody.
 */
#include "collector/cut/line_marks.h"
#include "collector/format/format_options.h"
#include "collector/format/line_text.h"
#include "common/base/alloc.h"

#include <stdlib.h>

struct format_message {
	struct format format;
	struct format *head, *body; /* owned */
	uint32_t message;           /* the field that the head gives it as */
	uint32_t wanted_count;
	uint8_t wanted[WEIR_FIELD_MAX]; /* the zones' fields */
	struct json_scan *scan;         /* the head's, where messages may be parts; NULL: they are whole */
	struct line_marks marks;        /* where they may */
	struct line_parts parts;
};

static enum format_reason join(struct format_message *both, struct weir_span line, bool lost, struct weir_span *message)
{
	if (!line_marks_may_be_part(&both->marks, both->scan, &both->parts))
		return FORMAT_OK;
	struct line_part part = line_marks_part(&both->marks, both->scan, line);
	part.lost = lost;
	part.looks_back = both->format.looks_back;
	return line_parts_join(&both->parts, &part, message);
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_message *both = (struct format_message *)format;
	struct weir_record head;
	line_parts_next(&both->parts, length);
	both->head->cut = format->cut;
	enum format_reason reason = format_parse(both->head, line, length, &head);
	if (reason != FORMAT_OK)
		return reason;
	struct weir_span message = head.fields[both->message];
	if (both->scan != NULL) {
		enum format_reason missing = message.at == NULL ? format_json_missing(both->head, both->message) : FORMAT_OK;
		bool lost = missing == FORMAT_NO_MESSAGE || missing == FORMAT_LEFT_OUT;
		reason = join(both, (struct weir_span){.at = line, .length = length}, lost, &message);
		if (lost && reason != FORMAT_SKIP && reason != FORMAT_LINE_TOO_LONG)
			return missing;
		if (reason != FORMAT_OK)
			return reason;
	}
	if (message.at == NULL)
		return FORMAT_SKIP;
	/* A message ends where its line does, unless it is a member of an object. */
	both->body->tail = text_line(both->scan == NULL ? format->tail : both->parts.tail);
	both->body->cut = head.cut || both->body->tail.at != NULL;
	if (both->body->cut && !both->body->takes_cut)
		return FORMAT_LINE_TOO_LONG;
	both->body->looks_back = both->format.looks_back;
	both->body->time->absent_ms = head.time_ms;
	message = text_line(message);
	reason = format_parse(both->body, message.at, message.length, record);
	if (reason != FORMAT_OK)
		return reason;
	record->times = weir_record_times(head.times, record->times);
	for (uint32_t i = 0; i < both->wanted_count; i++) {
		uint32_t field = both->wanted[i];
		if (record->fields[field].at != NULL)
			continue;
		record->fields[field] = head.fields[field];
		if (field == WEIR_FIELD_IP)
			record->ip = head.ip;
	}
	return FORMAT_OK;
}

static void begin(struct format *format, struct weir_span header)
{
	format_begin(((struct format_message *)format)->body, header);
}

static struct weir_span header(const struct format *format)
{
	return format_header(((const struct format_message *)format)->body);
}

static struct weir_span unfinished(struct format *format)
{
	struct format_message *both = (struct format_message *)format;
	struct weir_span line = line_parts_unfinished(&both->parts);
	return line.at != NULL ? line : format_unfinished(both->body);
}

static void note_part(struct format *format, uint64_t before)
{
	struct format_message *both = (struct format_message *)format;
	if (!line_parts_note(&both->parts, before))
		format_note_part(both->body, before);
}

static uint64_t held(const struct format *format)
{
	const struct format_message *both = (const struct format_message *)format;
	uint64_t before = format_held(both->body), own = line_parts_held(&both->parts);
	return own < before ? own : before;
}

static void take_over(struct format *format, struct format *from)
{
	struct format_message *both = (struct format_message *)format, *before = (struct format_message *)from;
	line_parts_take_over(&both->parts, &before->parts);
	format_take_over(both->body, before->body);
}

static void message_free(struct format *format)
{
	struct format_message *both = (struct format_message *)format;
	format_free(both->head);
	format_free(both->body);
	if (both->scan != NULL)
		line_marks_deinit(&both->marks);
	line_parts_deinit(&both->parts);
	free(both);
}

/* The head's format, with the message among its fields. */
static enum weir_status make_head(struct format_message *both, const struct format_kind *kind,
                                  const struct weir_json *config, const struct weir_field_table *fields,
                                  struct weir_error *error)
{
	static const char *const messages_own[] = {"cost", "client_ip", NULL};
	for (int i = 0; messages_own[i] != NULL; i++) {
		struct weir_json at = weir_json_member(config, messages_own[i]);
		if (weir_json_exists(&at))
			return weir_json_fail(&at, error, "belongs to the format of the message");
	}
	struct weir_field_table wanted = {.count = fields->count, .wanted = fields->wanted};
	for (uint32_t i = 0; i < fields->count; i++)
		wanted.names[i] = weir_copy(fields->names[i], strlen(fields->names[i]));
	int message = weir_field_table_want(&wanted, kind->message);
	enum weir_status status = WEIR_OK;
	if (message < 0)
		status = weir_json_fail(config, error, "needs too many fields: zones and formats can use %d", WEIR_FIELD_MAX);
	else
		status = kind->create(config, kind, &wanted, &both->head, error);
	both->message = (uint32_t)message;
	weir_field_table_deinit(&wanted);
	return status;
}

enum weir_status format_message_new(const struct format_kind *kind, const struct weir_json *config,
                                    const struct weir_json *body, const struct weir_field_table *fields,
                                    struct format **format, struct weir_error *error)
{
	struct format_message *both = weir_alloc(1, sizeof *both);
	both->format.parse = parse;
	both->format.free = message_free;
	line_parts_init(&both->parts);
	enum weir_status status = format_new_inside(body, fields, &both->body, error);
	if (status == WEIR_OK)
		status = make_head(both, kind, config, fields, error);
	if (status != WEIR_OK) {
		format_free(&both->format);
		return status;
	}
	for (uint32_t i = 0; i < fields->count; i++)
		if ((fields->wanted >> i & 1) != 0)
			both->wanted[both->wanted_count++] = (uint8_t)i;
	both->format.time = both->head->time;
	both->format.target = -1;
	both->format.takes_cut = both->head->takes_cut && both->body->takes_cut;
	both->format.inner = both->body;
	both->format.begin = both->body->begin != NULL ? begin : NULL;
	both->format.header = both->body->header != NULL ? header : NULL;
	/* A message of syslog is all that was written; the journal makes an entry of each line. */
	both->body->lines = kind->message_is_whole ? FORMAT_LINES_WHOLE : FORMAT_LINES_APART;
	if (kind->message_is_cut) {
		both->scan = format_json_scan(both->head);
		line_marks_init(&both->marks, both->scan, true);
	}
	if (both->body->unfinished != NULL || both->scan != NULL) {
		both->format.unfinished = unfinished;
		both->format.note_part = note_part;
		both->format.held = held;
	}
	both->format.malformed = both->head->malformed;
	both->format.take_over = both->body->take_over != NULL || both->scan != NULL ? take_over : NULL;
	*format = &both->format;
	return WEIR_OK;
}

enum weir_status format_message_split(const struct format_kind *kind, const struct weir_json *config,
                                      const struct weir_field_table *fields, struct format **format,
                                      struct weir_error *error)
{
	struct weir_json body = weir_json_member(config, "message"), head = *config;
	head.value = json_copy(config->value);
	json_object_del(head.value, "message");
	enum weir_status status = format_message_new(kind, &head, &body, fields, format, error);
	json_decref(head.value);
	return status;
}
