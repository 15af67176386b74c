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
#include "common/policy/policy.h"

#include <stdlib.h>

struct decode_json {
	struct weir_frame_reader *reader;
	struct weir_text head; /* of the frame: flat, each event repeats it */
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
	free(decoder);
}

static void put_int(struct weir_text *text, const char *name, int64_t value)
{
	weir_text_printf(text, "\"%s\":", name);
	weir_text_int(text, value);
	weir_text_puts(text, ",");
}

static void put_uint(struct weir_text *text, const char *name, uint64_t value)
{
	weir_text_printf(text, "\"%s\":", name);
	weir_text_uint(text, value);
	weir_text_puts(text, ",");
}

static void put_place(struct weir_text *text, const struct weir_message *message)
{
	weir_text_printf(text, "\"topic\":\"%s\",", weir_topic_name(message->topic));
	put_uint(text, "partition", message->partition);
	put_uint(text, "offset", message->offset);
}

/* A joined key as it stands; in hexadecimal digits where JSON would change it, as it is not UTF-8. */
static void put_key(struct weir_text *text, struct weir_span key)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	size_t before = text->length;
	weir_text_puts(text, "\"key\":");
	weir_text_json(text, key);
	if (memmem(text->at + before, text->length - before, replacement, sizeof replacement - 1) != NULL) {
		text->length = before;
		weir_text_puts(text, "\"key_hex\":\"");
		for (uint32_t i = 0; i < key.length; i++)
			weir_text_printf(text, "%02x", (unsigned char)key.at[i]);
		weir_text_puts(text, "\"");
	}
	weir_text_puts(text, ",");
}

static void put_verdict(struct weir_text *text, const struct weir_frame *frame, uint32_t pair)
{
	unsigned bits = frame->verdicts[pair / 2] >> (pair % 2 * 4) & 15;
	const char *verdict = (bits & WEIR_VERDICT_NONE) != 0    ? "none"
	                      : (bits & WEIR_VERDICT_BLOCK) != 0 ? "block"
	                                                         : "pass";
	weir_text_printf(text, ",\"verdict\":\"%s\"", verdict);
	if ((bits & WEIR_VERDICT_LATE) != 0)
		weir_text_puts(text, ",\"late\":true");
	if ((bits & WEIR_VERDICT_DECIDED) != 0)
		weir_text_puts(text, ",\"decided\":true");
}

/* @param pair  number of the event's first (event, zone) pair */
static void put_event(struct weir_text *text, const struct weir_frame *frame, const struct weir_frame_event *event,
                      uint32_t pair)
{
	const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
	put_key(text, frame->keys[event->key]);
	put_int(text, "time", event->time_ms);
	put_uint(text, "position", event->position);
	put_int(text, "cost", event->cost);
	weir_text_puts(text, "\"zones\":[");
	for (uint32_t i = 0; i < set->count; i++) {
		weir_text_printf(text, "%s{\"id\":%u", i > 0 ? "," : "", set->zones[i].id);
		if (set->zones[i].done)
			weir_text_puts(text, ",\"done\":true");
		if (frame->kind == WEIR_FRAME_JUDGED)
			put_verdict(text, frame, pair + i);
		weir_text_puts(text, "}");
	}
	weir_text_puts(text, "]");
}

static const char *kind_name(enum weir_frame_kind kind)
{
	switch (kind) {
	case WEIR_FRAME_EVENTS: return "events";
	case WEIR_FRAME_JUDGED: return "judged";
	case WEIR_FRAME_POLICY: return "policy";
	default: return "command";
	}
}

/* What a frame says of all that is in it, each with a comma behind. */
static void put_head(struct weir_text *text, const struct weir_frame *frame)
{
	weir_text_printf(text, "\"kind\":\"%s\",", kind_name(frame->kind));
	put_int(text, "sent", frame->sending_time_ms);
	if (frame->kind == WEIR_FRAME_JUDGED)
		put_uint(text, "judged_offset", frame->judged_offset);
	put_uint(text, "policy", frame->policy_version);
	if (frame->kind != WEIR_FRAME_EVENTS && frame->kind != WEIR_FRAME_JUDGED)
		return;
	weir_text_puts(text, "\"source\":\"");
	for (int i = 0; i < WEIR_SOURCE_ID_BYTES; i++)
		weir_text_printf(text, "%02x", frame->source[i]);
	weir_text_puts(text, "\",");
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
static void put_json(struct weir_text *text, const char *name, struct weir_span json)
{
	struct weir_json_document *document;
	weir_text_printf(text, "\"%s\":", name);
	bool unmarked = json.length > 0 && json.at[0] != '\xef';
	if (unmarked && weir_json_parse(name, json.at, json.length, &document, NULL) == WEIR_OK) {
		weir_json_document_free(document);
		put_line(text, json);
	} else {
		weir_text_json(text, json);
	}
}

/* A policy's text is an object: what it has, zones, becomes part of the frame's. A command stays an object. */
static void put_control(struct weir_text *text, const struct weir_frame *frame)
{
	struct weir_span body = frame->body;
	struct weir_policy *policy;
	if (frame->kind == WEIR_FRAME_POLICY &&
	    weir_policy_decode(frame->policy_version, body.at, body.length, &policy, NULL) == WEIR_OK) {
		weir_text_append(text, policy->text + 1, strlen(policy->text) - 2);
		weir_policy_free(policy);
		return;
	}
	put_json(text, kind_name(frame->kind), body);
}

static void put_events(struct decode_json *decoder, struct weir_text *text, const struct weir_message *message,
                       bool placed, const struct weir_frame *frame)
{
	uint32_t pair = 0;
	struct weir_text *head = &decoder->head;
	weir_text_clear(head);
	weir_text_puts(head, "{");
	if (placed)
		put_place(head, message);
	put_head(head, frame);
	if (!decoder->flat) {
		weir_text_append(text, head->at, head->length);
		weir_text_puts(text, "\"events\":[");
	}
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		if (decoder->flat)
			weir_text_append(text, head->at, head->length);
		else
			weir_text_puts(text, i == 0 ? "{" : ",{");
		put_event(text, frame, event, pair);
		weir_text_puts(text, decoder->flat ? "}\n" : "}");
		pair += frame->zone_sets[event->zone_set].count;
	}
	if (!decoder->flat)
		weir_text_puts(text, "]}\n");
}

static bool is_frame(struct weir_span payload)
{
	return payload.length >= 2 && payload.at[0] == 'w' && payload.at[1] == 'F';
}

enum weir_status decode_json_put(struct decode_json *decoder, const struct weir_message *message, bool placed,
                                 struct weir_text *text, struct weir_error *error)
{
	struct weir_frame frame;
	if (is_frame(message->payload) || !placed || message->topic <= WEIR_TOPIC_JUDGED ||
	    message->topic == WEIR_TOPIC_POLICY) {
		enum weir_status status = weir_frame_decode(decoder->reader, message->payload, &frame, error);
		if (status != WEIR_OK)
			return status;
		if (frame.kind == WEIR_FRAME_EVENTS || frame.kind == WEIR_FRAME_JUDGED) {
			put_events(decoder, text, message, placed, &frame);
			return WEIR_OK;
		}
		weir_text_puts(text, "{");
		if (placed)
			put_place(text, message);
		put_head(text, &frame);
		put_control(text, &frame);
	} else {
		weir_text_puts(text, "{");
		put_place(text, message);
		if (message->key.at != NULL) {
			weir_text_puts(text, "\"key\":");
			weir_text_json(text, message->key);
			weir_text_puts(text, ",");
		}
		put_json(text, message->topic == WEIR_TOPIC_DEADLETTER ? "letter" : "decision", message->payload);
	}
	weir_text_puts(text, "}\n");
	return WEIR_OK;
}
