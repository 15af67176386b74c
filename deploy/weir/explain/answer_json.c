/* SPDX-License-Identifier: Apache-2.0 */
/* The decision stands there as it was published, so that its bytes can be compared. */
#include "deploy/weir/explain/answer.h"

#include "common/json/json_writer.h"

static struct weir_span span_of(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

/* A whole JSON value, or null. */
static void put_value(struct weir_json_writer *json, const char *name, const struct weir_text *value)
{
	if (value->length == 0) {
		weir_json_write_null(json, name);
		return;
	}
	struct weir_text *text = weir_json_write_value(json, name);
	weir_text_append(text, value->at, value->length);
}

/* Where the log has it from; nulls: it was found in a file alone. */
static void put_origin(struct weir_json_writer *json, const struct explained_event *event)
{
	if (event->policy_version == 0) {
		weir_json_write_null(json, "policy");
		weir_json_write_null(json, "source");
		weir_json_write_null(json, "position");
		return;
	}
	weir_json_write_uint(json, "policy", event->policy_version);
	weir_json_write_hex(json, "source", event->source, sizeof event->source);
	weir_json_write_uint(json, "position", event->position);
}

static void put_event(struct weir_json_writer *json, const struct explained_event *event)
{
	static const char *const found[] = {[LINE_SOUGHT] = NULL, [LINE_AT] = "position", [LINE_BY_TIME] = "time"};
	weir_json_write_object(json, NULL);
	weir_json_write_int(json, "at", event->time_ms);
	weir_json_write_int(json, "cost", event->cost);
	weir_json_write_bool(json, "decided", event->decided);
	put_origin(json, event);
	weir_json_write_words(json, "stream", event->stream);
	weir_json_write_words(json, "found", found[event->found]);
	weir_json_write_words(json, "file", event->file);
	if (event->line != NULL) {
		weir_json_write_uint(json, "offset", event->offset);
		weir_json_write_string(json, "line", (struct weir_span){.at = event->line, .length = event->line_length});
	} else {
		weir_json_write_null(json, "offset");
		weir_json_write_null(json, "line");
	}
	if (event->fields != NULL)
		weir_text_puts(weir_json_write_value(json, "fields"), event->fields);
	else
		weir_json_write_null(json, "fields");
	weir_json_write_end(json);
}

void answer_json(struct weir_text *text, const struct question *question)
{
	struct weir_json_writer json = weir_json_writer(text);
	struct weir_span missing = span_of(&question->missing);
	weir_json_write_object(&json, NULL);
	put_value(&json, "decision", &question->published);
	put_value(&json, "again", &question->again);
	put_value(&json, "order", &question->order);
	if (question->held.length > 0)
		weir_json_write_string(&json, "gateways_hold", span_of(&question->held));
	else
		weir_json_write_null(&json, "gateways_hold");
	weir_json_write_bool(&json, "equal", question_is_equal(question));
	weir_json_write_words(&json, "found_in", question->published_in);
	if (question->policy_version > 0)
		weir_json_write_uint(&json, "policy", question->policy_version);
	else
		weir_json_write_null(&json, "policy");
	weir_json_write_array(&json, "events");
	for (size_t i = 0; i < question->event_count; i++)
		put_event(&json, &question->events[i]);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "missing");
	while (missing.length > 0) {
		const char *newline = memchr(missing.at, '\n', missing.length);
		uint32_t length = (uint32_t)(newline - missing.at);
		weir_json_write_string(&json, NULL, (struct weir_span){.at = missing.at, .length = length});
		missing.at += length + 1;
		missing.length -= length + 1;
	}
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
