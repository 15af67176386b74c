/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `wrapped`: lines that stand within others, as container engines and message queues keep them.
 *
 *     {"log":"192.0.2.7 - - […\n","stream":"stdout","time":"2024-05-17T10:05:03.133721Z"}      in docker: json-file
 *     2024-05-17T10:05:03.133721Z stdout F 192.0.2.7 - - […                                    in cri: containerd, CRI-O
 *     {"message":"192.0.2.7 - - […","host":{"name":"web1"}}                                    in json: an envelope
 *
 * The format of the message reads the line; its time, where it has none, and its absent fields are the outer line's.
 * Docker and CRI cut long lines into parts, which are joined again (line_parts.c) for each of the two streams, up to the
 * longest line that there may be, of which a longer one gives its ends; those in an envelope for each stream of each
 * container (line_marks.c). Docker's last part has no mark that tells it. So parts are kept from file to file of a stream,
 * as engines rotate between them, and reading never goes on behind the first of them (held).
 */
#include "collector/cut/line_marks.h"
#include "collector/cut/line_parts.h"
#include "collector/format/format_slots.h"
#include "collector/format/line_text.h"
#include "collector/record/json_scan.h"
#include "common/base/alloc.h"
#include "common/json/json_shape.h"

#include <assert.h>
#include <stdlib.h>

enum outer { OUTER_DOCKER, OUTER_CRI, OUTER_JSON };

enum { LINES_MAX = 5, NO_NODE = 0 };

static_assert((int)LINE_PARTS_LINE_MAX_BYTES == (int)FORMAT_LINE_MAX_BYTES,
              "what is joined may be as long as any line");

struct format_wrapped {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	enum outer outer;
	struct format *body; /* owned */
	struct json_scan scan;
	uint32_t nodes[FORMAT_SLOTS_MAX];
	uint32_t line_nodes[LINES_MAX]; /* where the line is: in the first that is there */
	uint32_t stream_node;
	bool settles_path; /* what the format's own is where the line within has no path */
	int stream_slot;   /* of CRI's stream; -1: not wanted */
	struct line_parts parts;
	struct line_marks marks; /* of an envelope */
};

/* A line taken out of its outer one. */
struct unwrapped {
	struct weir_span line;
	struct weir_span values[FORMAT_SLOTS_MAX]; /* the outer line's */
	bool scanned;                              /* the outer line is an object */
	bool partial;                              /* more of it follows */
	bool error_stream;
};

static enum format_reason unwrap_cri(struct format_wrapped *wrapped, struct weir_span text, struct unwrapped *out)
{
	struct weir_span time = text_word(&text), stream = text_word(&text), tag = text_word(&text), first;
	out->error_stream = text_is(stream, "stderr");
	if (!out->error_stream && !text_is(stream, "stdout"))
		return wrapped->format.malformed;
	if (!text_until(&tag, ':', &first)) /* further tags may follow, behind colons */
		first = tag;
	out->partial = text_is(first, "P");
	if (!out->partial && !text_is(first, "F"))
		return wrapped->format.malformed;
	out->line = text;
	out->values[FORMAT_SLOT_TIME] = time;
	if (wrapped->stream_slot >= 0)
		out->values[wrapped->stream_slot] = stream;
	return FORMAT_OK;
}

/* The line in an object: of the members that may hold it the first that is there, and not empty if another is. */
static struct weir_span line_within(const struct format_wrapped *wrapped, bool *null)
{
	struct weir_span line = {0};
	for (int i = 0; i < LINES_MAX && line.length == 0 && wrapped->line_nodes[i] != NO_NODE; i++) {
		struct weir_span value = json_scan_value(&wrapped->scan, wrapped->line_nodes[i]);
		*null |= json_scan_is_null(&wrapped->scan, wrapped->line_nodes[i]);
		if (value.at != NULL)
			line = value;
	}
	return line;
}

/* @return FORMAT_OK; FORMAT_LEFT_OUT: the line is null; the format's own reason: it is no such object, or has no line */
static enum format_reason unwrap_json(struct format_wrapped *wrapped, struct weir_span text, struct unwrapped *out)
{
	bool null = false;
	if (!json_scan_line(&wrapped->scan, text.at, text.length))
		return wrapped->format.malformed;
	out->scanned = true;
	for (uint32_t slot = 0; slot < wrapped->slots.count; slot++)
		out->values[slot] = json_scan_value(&wrapped->scan, wrapped->nodes[slot]);
	out->line = line_within(wrapped, &null);
	out->error_stream = text_is(json_scan_value(&wrapped->scan, wrapped->stream_node), "stderr");
	out->partial = wrapped->outer == OUTER_DOCKER && out->line.length > 0 && !text_ends(out->line, "\n");
	if (out->line.at != NULL)
		return FORMAT_OK;
	return null ? FORMAT_LEFT_OUT : wrapped->format.malformed;
}

/* Joins a part to those before it; gives FORMAT_OK when the line is whole. */
static enum format_reason join(struct format_wrapped *wrapped, struct weir_span text, struct unwrapped *out)
{
	struct line_parts *parts = &wrapped->parts;
	bool in_json = wrapped->outer == OUTER_JSON;
	bool may_be_part = in_json ? line_marks_may_be_part(&wrapped->marks, &wrapped->scan, parts)
	                           : out->partial || line_parts_wait(parts);
	if (!may_be_part)
		return FORMAT_OK;
	struct line_part part = in_json
	                            ? line_marks_part(&wrapped->marks, &wrapped->scan, text)
	                            : (struct line_part){.key.low = out->error_stream, .named = true, .more = out->partial};
	part.lost = out->line.at == NULL;
	part.looks_back = wrapped->format.looks_back; /* no line of a header is as long as those that are cut */
	return line_parts_join(parts, &part, &out->line);
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_wrapped *wrapped = (struct format_wrapped *)format;
	struct weir_span text = {.at = line, .length = length};
	struct unwrapped out = {0};
	line_parts_next(&wrapped->parts, length);
	enum format_reason good =
		wrapped->outer == OUTER_CRI ? unwrap_cri(wrapped, text, &out) : unwrap_json(wrapped, text, &out);
	if (good != FORMAT_OK && !(out.scanned && wrapped->outer == OUTER_JSON))
		return good;
	enum format_reason reason = join(wrapped, text, &out); /* a line is not whole without any part */
	if (good != FORMAT_OK && reason != FORMAT_SKIP && reason != FORMAT_LINE_TOO_LONG)
		return good;
	if (reason != FORMAT_OK)
		return reason;
	if (wrapped->outer != OUTER_CRI)
		out.line = text_line(out.line);
	struct weir_span time = out.values[FORMAT_SLOT_TIME];
	if (wrapped->slots.time_second != 0)
		time = format_join_time(&wrapped->options, time, out.values[wrapped->slots.time_second]);
	int64_t time_ms;
	reason = time_read(&wrapped->options.time, time, &time_ms);
	wrapped->body->time->absent_ms = reason == FORMAT_OK ? time_ms : -1;
	/* What only the outer line may have is not written by the inner format. */
	for (uint32_t i = 0; i < wrapped->slots.move_count; i++)
		record->fields[wrapped->slots.moves[i].field] = (struct weir_span){0};
	wrapped->body->other_stream = out.error_stream;
	wrapped->body->looks_back = format->looks_back;
	wrapped->body->tail = text_line(wrapped->parts.tail);
	wrapped->body->cut = wrapped->body->tail.at != NULL;
	if (wrapped->body->cut && !wrapped->body->takes_cut)
		return FORMAT_LINE_TOO_LONG;
	enum format_reason body = format_parse(wrapped->body, out.line.at, out.line.length, record);
	if (body == FORMAT_NO_TIME && reason != FORMAT_OK) /* then the outer time would have served */
		return reason;
	if (body != FORMAT_OK)
		return body;
	record->settled = false; /* what the outer line has is not */
	/* The path of the line within is what was served already: decoded once more it would be another. */
	format->settles_path = wrapped->settles_path && record->fields[WEIR_FIELD_PATH].at == NULL;
	for (uint32_t i = 0; i < wrapped->slots.move_count; i++) {
		uint32_t field = wrapped->slots.moves[i].field;
		struct weir_span value = out.values[wrapped->slots.moves[i].slot];
		if (record->fields[field].at == NULL)
			record->fields[field] = format_value(value.at, value.length);
	}
	return FORMAT_OK;
}

static struct weir_span unfinished(struct format *format)
{
	struct format_wrapped *wrapped = (struct format_wrapped *)format;
	struct weir_span line = line_parts_unfinished(&wrapped->parts);
	return line.at != NULL ? line : format_unfinished(wrapped->body);
}

static void note_part(struct format *format, uint64_t before)
{
	struct format_wrapped *wrapped = (struct format_wrapped *)format;
	if (!line_parts_note(&wrapped->parts, before))
		format_note_part(wrapped->body, before);
}

static uint64_t held(const struct format *format)
{
	const struct format_wrapped *wrapped = (const struct format_wrapped *)format;
	uint64_t before = format_held(wrapped->body), own = line_parts_held(&wrapped->parts);
	return own < before ? own : before;
}

static void take_over(struct format *format, struct format *from)
{
	struct format_wrapped *wrapped = (struct format_wrapped *)format, *before = (struct format_wrapped *)from;
	line_parts_take_over(&wrapped->parts, &before->parts);
	format_take_over(wrapped->body, before->body);
}

/* ---- its life ---- */

static void begin(struct format *format, struct weir_span header)
{
	format_begin(((struct format_wrapped *)format)->body, header);
}

static struct weir_span header(const struct format *format)
{
	return format_header(((const struct format_wrapped *)format)->body);
}

static void wrapped_free(struct format *format)
{
	struct format_wrapped *wrapped = (struct format_wrapped *)format;
	format_free(wrapped->body);
	json_scan_deinit(&wrapped->scan);
	line_parts_deinit(&wrapped->parts);
	if (wrapped->outer == OUTER_JSON)
		line_marks_deinit(&wrapped->marks);
	format_options_deinit(&wrapped->options);
	free(wrapped);
}

/* Where the line is: what the option "line" says, or the names that are usual. */
static enum weir_status read_line_names(struct format_wrapped *wrapped, const struct weir_json *config,
                                        struct weir_error *error)
{
	static const char *const usual[LINES_MAX] = {"message", "log", "MESSAGE", "msg", "line"};
	struct weir_json at = weir_json_member(config, "line");
	const char *name = NULL;
	enum weir_status status = weir_json_string(&at, &name, error);
	if (status != WEIR_OK)
		return status;
	if (name != NULL && (*name == '\0' || strlen(name) > FORMAT_NAME_MAX_BYTES))
		return weir_json_fail(&at, error, "must be a name of 1 to %d bytes", FORMAT_NAME_MAX_BYTES);
	if (name != NULL && wrapped->outer == OUTER_CRI)
		return weir_json_fail(&at, error, "is not for \"cri\", whose lines stand at their end");
	if (name == NULL && wrapped->outer == OUTER_DOCKER)
		name = "log";
	for (int i = 0; i < (name != NULL ? 1 : LINES_MAX); i++) {
		const char *wanted = name != NULL ? name : usual[i];
		wrapped->line_nodes[i] = json_scan_want(&wrapped->scan, wanted);
		if (wanted[0] != '/')
			json_scan_take_bytes(&wrapped->scan, wrapped->line_nodes[i], false);
	}
	return WEIR_OK;
}

static enum weir_status refuse_inner_options(const struct weir_json *config, struct weir_error *error)
{
	static const char *const inner[] = {"cost", "client_ip", NULL};
	for (int i = 0; inner[i] != NULL; i++) {
		struct weir_json at = weir_json_member(config, inner[i]);
		if (weir_json_exists(&at))
			return weir_json_fail(&at, error, "belongs to the format of the message");
	}
	return WEIR_OK;
}

static const char *const outer_names[] = {[OUTER_DOCKER] = "docker", [OUTER_CRI] = "cri", [OUTER_JSON] = "json", NULL};

static json_t *in_shape(void)
{
	return weir_shape_words(outer_names);
}

#define IN_NEEDED "give \"docker\", \"cri\" or \"json\""
#define MESSAGE_NEEDED "give the format of the lines within, such as \"combined\""

static const struct weir_json_rule options[] = {
	{.name = "in", .needed = IN_NEEDED, .meaning = "what lines are within", .shape = in_shape},
	{.name = "line", .meaning = "the member that holds the line of another format", .shape = format_name_shape},
	{.name = "message",
     .needed = MESSAGE_NEEDED,
     .meaning = "the format of the lines within",
     .shape = format_message_shape},
	{.name = NULL},
};

static enum weir_status fill(struct format_wrapped *wrapped, const struct weir_json *config,
                             const struct format_kind *kind, const struct weir_field_table *fields,
                             struct weir_error *error)
{
	struct weir_json body = weir_json_member(config, "message");
	enum weir_status status = format_options_init(&wrapped->options, config, fields, kind, &wrapped->format, error);
	if (status == WEIR_OK)
		status = refuse_inner_options(config, error);
	if (status == WEIR_OK)
		status = weir_json_require(&body, MESSAGE_NEEDED, error);
	if (status == WEIR_OK)
		status = read_line_names(wrapped, config, error);
	if (status == WEIR_OK)
		status = format_new_inside(&body, fields, &wrapped->body, error);
	if (status != WEIR_OK)
		return status;
	wrapped->settles_path = wrapped->format.settles_path;
	wrapped->format.inner = wrapped->body;
	wrapped->body->lines = FORMAT_LINES_APART; /* but if it has a head that says otherwise: that is its inner one's */
	format_slots_init(&wrapped->slots, &wrapped->options);
	for (uint32_t slot = 0; slot < wrapped->slots.count; slot++)
		wrapped->nodes[slot] = json_scan_want(&wrapped->scan, wrapped->slots.names[slot].at);
	wrapped->stream_node = json_scan_want(&wrapped->scan, "stream");
	wrapped->stream_slot = format_slots_find(&wrapped->slots, "stream", 6);
	return WEIR_OK;
}

static enum weir_status make(const struct weir_json *config, const struct format_kind *kind, enum outer outer,
                             const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct format_wrapped *wrapped = weir_alloc(1, sizeof *wrapped);
	wrapped->format = (struct format){.parse = parse,
	                                  .free = wrapped_free,
	                                  .begin = begin,
	                                  .header = header,
	                                  .unfinished = unfinished,
	                                  .note_part = note_part,
	                                  .held = held,
	                                  .take_over = take_over};
	wrapped->outer = outer;
	line_parts_init(&wrapped->parts);
	json_scan_init(&wrapped->scan);
	if (outer == OUTER_JSON) /* first, so that each of the other names is found before them */
		line_marks_init(&wrapped->marks, &wrapped->scan, false);
	enum weir_status status = fill(wrapped, config, kind, fields, error);
	if (status != WEIR_OK) {
		format_free(&wrapped->format);
		return status;
	}
	if (wrapped->body->header == NULL)
		wrapped->format.header = NULL;
	*format = &wrapped->format;
	return WEIR_OK;
}

enum weir_status format_json_message_new(const struct weir_json *config, const struct format_kind *kind,
                                         const struct weir_field_table *fields, struct format **format,
                                         struct weir_error *error)
{
	return make(config, kind, OUTER_JSON, fields, format, error);
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "in");
	int outer = OUTER_DOCKER;
	enum weir_status status = weir_json_require(&at, IN_NEEDED, error);
	if (status == WEIR_OK)
		status = weir_json_word(&at, outer_names, &outer, error);
	return status == WEIR_OK ? make(config, kind, (enum outer)outer, fields, format, error) : status;
}

const struct format_kind format_wrapped = {
	.name = "wrapped",
	.meaning = "lines within others: Docker's json-file, CRI, a JSON envelope",
	.malformed = "not wrapped",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR,
	.options = options,
	.create = create,
};
