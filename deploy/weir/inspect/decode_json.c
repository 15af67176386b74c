/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame is an object with its events in a list; flat, each event is an
 * object that says what it needs of its frame, for tools that filter lines.
 *
 * What is no frame is a line of JSON itself (decisions, dead letters), and is
 * put in as it stands once it has been read as JSON.
 */
#include "deploy/weir/inspect/decode_json.h"

#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "common/policy/policy.h"

#include <stdlib.h>

struct decode_json {
	struct weir_frame_reader *reader;
	struct weir_text head;   /* of the frame, an object: flat, each event repeats its members */
	struct weir_text key;    /* a key as JSON */
	struct weir_text fields; /* an event's, likewise */
	bool flat;
};

struct decode_json *decode_json_new(bool flat)
{
	struct decode_json *decoder = weir_alloc(1, sizeof *decoder);
	decoder->reader = weir_frame_reader_new();
	decoder->flat = flat;
	return decoder;
}

void decode_json_free(struct decode_json *decoder)
{
	if (decoder == NULL)
		return;
	weir_frame_reader_free(decoder->reader);
	weir_text_deinit(&decoder->head);
	weir_text_deinit(&decoder->key);
	weir_text_deinit(&decoder->fields);
	free(decoder);
}

static struct weir_span span_of(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

static void put_place(struct weir_json_writer *json, const struct weir_message *message)
{
	weir_json_write_words(json, "topic", weir_topic_name(message->topic));
	weir_json_write_uint(json, "partition", message->partition);
	weir_json_write_uint(json, "offset", message->offset);
}

/* A joined key as it stands; in hexadecimal digits where JSON would change it, as it is not UTF-8. */
static void put_key(struct decode_json *decoder, struct weir_json_writer *json, struct weir_span key)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	struct weir_text *text = &decoder->key;
	weir_text_clear(text);
	weir_text_json(text, key);
	if (memmem(text->at, text->length, replacement, sizeof replacement - 1) != NULL)
		weir_json_write_hex(json, "key_hex", key.at, key.length);
	else
		weir_text_append(weir_json_write_value(json, "key"), text->at, text->length);
}

static void put_verdict(struct weir_json_writer *json, const struct weir_frame *frame, uint32_t pair)
{
	unsigned bits = weir_verdict_of(frame->verdicts, pair);
	const char *verdict = (bits & WEIR_VERDICT_NONE) != 0    ? "none"
	                      : (bits & WEIR_VERDICT_BLOCK) != 0 ? "block"
	                                                         : "pass";
	weir_json_write_words(json, "verdict", verdict);
	if ((bits & WEIR_VERDICT_LATE) != 0)
		weir_json_write_bool(json, "late", true);
	if ((bits & WEIR_VERDICT_DECIDED) != 0)
		weir_json_write_bool(json, "decided", true);
}

/* @param pair  number of the event's first (event, zone) pair */
static void put_event(struct decode_json *decoder, struct weir_json_writer *json, const struct weir_frame *frame,
                      const struct weir_frame_event *event, uint32_t pair, struct weir_span fields,
                      const struct weir_frame_reservation *reservation)
{
	const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
	weir_json_write_object(json, NULL);
	if (decoder->flat)
		weir_json_write_members(json, span_of(&decoder->head));
	put_key(decoder, json, frame->keys[event->key]);
	weir_json_write_int(json, "time", event->time_ms);
	weir_json_write_uint(json, "position", event->position);
	weir_json_write_int(json, "cost", event->cost);
	if (reservation != NULL && reservation->ttl_ms > 0)
		weir_json_write_int(json, "reserves_for", reservation->ttl_ms);
	else if (reservation != NULL)
		weir_json_write_hex(json, "settles", reservation->id, sizeof reservation->id);
	weir_json_write_array(json, "zones");
	for (uint32_t i = 0; i < set->count; i++) {
		weir_json_write_object(json, NULL);
		weir_json_write_uint(json, "id", set->zones[i].id);
		if (set->zones[i].done)
			weir_json_write_bool(json, "done", true);
		bool settles = frame->kind == WEIR_FRAME_CHECKS && set->zones[i].done; /* nothing was answered */
		if (frame->verdicts != NULL && !settles)
			put_verdict(json, frame, pair + i);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	if (fields.at != NULL) {
		weir_text_clear(&decoder->fields);
		if (weir_fields_json(&decoder->fields, fields, NULL, 0))
			weir_text_append(weir_json_write_value(json, "fields"), decoder->fields.at, decoder->fields.length);
	}
	weir_json_write_end(json);
}

static const char *kind_name(enum weir_frame_kind kind)
{
	switch (kind) {
	case WEIR_FRAME_EVENTS: return "events";
	case WEIR_FRAME_JUDGED: return "judged";
	case WEIR_FRAME_CHECKS: return "checks";
	case WEIR_FRAME_POLICY: return "policy";
	default: return "command";
	}
}

/* What a frame says of all that is in it. */
static void put_head(struct weir_json_writer *json, const struct weir_frame *frame)
{
	weir_json_write_words(json, "kind", kind_name(frame->kind));
	weir_json_write_int(json, "sent", frame->sending_time_ms);
	if (frame->kind == WEIR_FRAME_JUDGED)
		weir_json_write_uint(json, "judged_offset", frame->judged_offset);
	if (frame->kind == WEIR_FRAME_CHECKS)
		weir_json_write_uint(json, "epoch", frame->epoch);
	weir_json_write_uint(json, "policy", frame->policy_version);
	if (weir_frame_is_of_events(frame) || frame->kind == WEIR_FRAME_JUDGED)
		weir_json_write_hex(json, "source", frame->source, WEIR_SOURCE_ID_BYTES);
}

/* JSON on one line: a line break in it is white space, as strings have none as such. */
static void put_line(struct weir_text *text, struct weir_span json)
{
	char *line = weir_text_reserve(text, json.length);
	weir_text_append(text, json.at, json.length);
	for (uint32_t i = 0; i < json.length; i++)
		if (line[i] == '\n' || line[i] == '\r')
			line[i] = ' ';
}

/* Bytes that are JSON as they stand, others as a string; with a byte order mark they are none within a line. */
static void put_json(struct weir_json_writer *json, const char *name, struct weir_span value)
{
	struct weir_json_document *document;
	bool unmarked = value.length > 0 && value.at[0] != '\xef';
	if (unmarked && weir_json_parse_record(name, value.at, value.length, &document, NULL) == WEIR_OK) {
		weir_json_document_free(document);
		put_line(weir_json_write_value(json, name), value);
	} else {
		weir_json_write_string(json, name, value);
	}
}

/* A policy's text is an object: what it has, zones, becomes part of the frame's. A command stays an object. */
static void put_control(struct weir_json_writer *json, const struct weir_frame *frame)
{
	struct weir_span body = frame->body;
	struct weir_policy *policy;
	if (frame->kind == WEIR_FRAME_POLICY &&
	    weir_policy_decode(frame->policy_version, body.at, body.length, &policy, NULL) == WEIR_OK) {
		weir_json_write_members(json, weir_span_of(policy->text));
		weir_policy_free(policy);
		return;
	}
	put_json(json, kind_name(frame->kind), body);
}

/* The head as an object of its own. */
static void make_head(struct decode_json *decoder, const struct weir_message *message, bool placed,
                      const struct weir_frame *frame)
{
	struct weir_json_writer json = weir_json_writer(&decoder->head);
	weir_text_clear(&decoder->head);
	weir_json_write_object(&json, NULL);
	if (placed)
		put_place(&json, message);
	put_head(&json, frame);
	weir_json_write_end(&json);
}

static void put_events(struct decode_json *decoder, struct weir_json_writer *json, const struct weir_frame *frame)
{
	uint32_t pair = 0, run = 0, next = 0;
	if (!decoder->flat) {
		weir_json_write_object(json, NULL);
		weir_json_write_members(json, span_of(&decoder->head));
		weir_json_write_array(json, "events");
	}
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		put_event(decoder, json, frame, event, pair, weir_frame_fields(frame, i, &run),
		          weir_frame_reservation(frame, i, &next));
		if (decoder->flat)
			weir_json_write_newline(json);
		pair += frame->zone_sets[event->zone_set].count;
	}
	if (!decoder->flat) {
		weir_json_write_end(json);
		weir_json_write_end(json);
		weir_json_write_newline(json);
	}
}

static void put_plain(struct weir_json_writer *json, const struct weir_message *message)
{
	weir_json_write_object(json, NULL);
	put_place(json, message);
	if (message->key.at != NULL)
		weir_json_write_string(json, "key", message->key);
	put_json(json, message->topic == WEIR_TOPIC_DEADLETTER ? "letter" : "decision", message->payload);
	weir_json_write_end(json);
	weir_json_write_newline(json);
}

static bool is_frame(struct weir_span payload)
{
	return payload.length >= 2 && payload.at[0] == 'w' && payload.at[1] == 'F';
}

enum weir_status decode_json_put(struct decode_json *decoder, const struct weir_message *message, bool placed,
                                 struct weir_text *text, struct weir_error *error)
{
	struct weir_frame frame;
	struct weir_json_writer json = weir_json_writer(text);
	if (!is_frame(message->payload) && placed && message->topic > WEIR_TOPIC_JUDGED &&
	    message->topic != WEIR_TOPIC_POLICY) {
		put_plain(&json, message);
		return WEIR_OK;
	}
	enum weir_status status = weir_frame_decode(decoder->reader, message->payload, &frame, error);
	if (status != WEIR_OK)
		return status;
	make_head(decoder, message, placed, &frame);
	if (weir_frame_is_of_events(&frame) || frame.kind == WEIR_FRAME_JUDGED) {
		put_events(decoder, &json, &frame);
		return WEIR_OK;
	}
	weir_json_write_object(&json, NULL);
	weir_json_write_members(&json, span_of(&decoder->head));
	put_control(&json, &frame);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	return WEIR_OK;
}
