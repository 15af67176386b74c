/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON by jansson: it is written once a checkpoint. Names and headers are bytes
 * of any kind, so they are written in hexadecimal.
 */
#include "deploy/weir/run/once_note.h"

#include "common/base/alloc.h"
#include "common/bytes/hex.h"
#include "common/json/json.h"

#include <stdlib.h>
#include <string.h>

enum { NOTE_VERSION = 1 };

static char *to_hex(const char *bytes, size_t length)
{
	char *hex = weir_alloc(2 * length + 1, 1);
	(void)weir_hex_put(hex, bytes, length);
	return hex;
}

/* NULL where it is no hexadecimal. */
static char *from_hex(const char *hex, size_t *length)
{
	size_t digits = strlen(hex);
	if (digits % 2 != 0)
		return NULL;
	char *bytes = weir_alloc(digits / 2 + 1, 1);
	for (size_t i = 0; i < digits / 2; i++) {
		int byte = weir_hex_byte(hex + 2 * i);
		if (byte < 0) {
			free(bytes);
			return NULL;
		}
		bytes[i] = (char)byte;
	}
	*length = digits / 2;
	return bytes;
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *mark_json(const struct weir_line_file_mark *mark)
{
	json_t *json = json_array();
	json_array_append_new(json, number(mark->device));
	json_array_append_new(json, number(mark->inode));
	json_array_append_new(json, number(mark->born_ns));
	json_array_append_new(json, number(mark->length));
	return json;
}

static json_t *counts_json(const struct record_counts *counts)
{
	json_t *json = json_object();
	json_object_set_new(json, "lines", number(counts->lines));
	json_object_set_new(json, "bytes", number(counts->bytes));
	json_object_set_new(json, "records", number(counts->records));
	json_object_set_new(json, "words", number(counts->words));
	json_t *malformed = json_object();
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		if (counts->malformed[i] > 0)
			json_object_set_new(malformed, format_reason_text((enum format_reason)i), number(counts->malformed[i]));
	json_object_set_new(json, "malformed", malformed);
	return json;
}

static json_t *stream_json(const struct once_stream *stream)
{
	json_t *json = json_object();
	char *name = to_hex(stream->name, strlen(stream->name));
	json_object_set_new(json, "name", json_string(name));
	free(name);
	json_object_set_new(json, "position", number(stream->position));
	json_object_set_new(json, "maximum", json_integer(stream->maximum_ms));
	if (stream->header != NULL) {
		char *header = to_hex(stream->header, stream->header_length);
		json_object_set_new(json, "header", json_string(header));
		free(header);
	}
	json_object_set_new(json, "counts", counts_json(&stream->counts));
	return json;
}

char *once_note_encode(const struct once_note *note)
{
	json_t *json = json_object();
	json_object_set_new(json, "version", number(NOTE_VERSION));
	json_object_set_new(json, "zones", number(note->zones));
	json_object_set_new(json, "sources", number(note->sources));
	json_object_set_new(json, "lists", number(note->lists));
	json_object_set_new(json, "partitions", number(note->partitions));
	json_object_set_new(json, "finished", json_boolean(note->finished));
	json_object_set_new(json, "records", number(note->records));
	json_object_set_new(json, "seconds", json_real(note->seconds));
	json_t *files = json_array();
	for (int i = 0; i < OUTPUT_COUNT; i++)
		json_array_append_new(files, mark_json(&note->files[i]));
	json_object_set_new(json, "files", files);
	json_object_set_new(json, "dead_letters", mark_json(&note->dead_letters));
	json_object_set_new(json, "dead_letters_written", number(note->dead_letters_written));
	json_object_set_new(json, "dead_letters_dropped", number(note->dead_letters_dropped));
	json_t *streams = json_array();
	for (size_t i = 0; i < note->stream_count; i++)
		json_array_append_new(streams, stream_json(&note->streams[i]));
	json_object_set_new(json, "streams", streams);
	if (note->memory != NULL) {
		char *memory = to_hex(note->memory, strlen(note->memory));
		json_object_set_new(json, "memory", json_string(memory));
		free(memory);
	}
	char *text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return text;
}

static uint64_t get(const json_t *json, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(json, name));
}

static struct weir_line_file_mark get_mark(const json_t *json)
{
	return (struct weir_line_file_mark){
		.device = (uint64_t)json_integer_value(json_array_get(json, 0)),
		.inode = (uint64_t)json_integer_value(json_array_get(json, 1)),
		.born_ns = (uint64_t)json_integer_value(json_array_get(json, 2)),
		.length = (uint64_t)json_integer_value(json_array_get(json, 3)),
	};
}

static bool get_stream(const json_t *json, struct once_stream *stream)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	size_t length;
	if (name == NULL || (stream->name = from_hex(name, &length)) == NULL)
		return false;
	stream->position = get(json, "position");
	stream->maximum_ms = (int64_t)get(json, "maximum");
	const char *header = json_string_value(json_object_get(json, "header"));
	if (header != NULL && (stream->header = from_hex(header, &stream->header_length)) == NULL)
		return false;
	const json_t *counts = json_object_get(json, "counts");
	stream->counts.lines = get(counts, "lines");
	stream->counts.bytes = get(counts, "bytes");
	stream->counts.records = get(counts, "records");
	stream->counts.words = get(counts, "words");
	for (int i = 0; i < FORMAT_REASON_COUNT; i++) {
		const char *reason = format_reason_text((enum format_reason)i);
		if (reason != NULL)
			stream->counts.malformed[i] = get(json_object_get(counts, "malformed"), reason);
	}
	return true;
}

static bool get_note(const json_t *json, struct once_note *note)
{
	note->zones = get(json, "zones");
	note->sources = get(json, "sources");
	note->lists = get(json, "lists");
	note->partitions = (uint32_t)get(json, "partitions");
	note->finished = json_is_true(json_object_get(json, "finished"));
	note->records = get(json, "records");
	note->seconds = json_real_value(json_object_get(json, "seconds"));
	for (int i = 0; i < OUTPUT_COUNT; i++)
		note->files[i] = get_mark(json_array_get(json_object_get(json, "files"), (size_t)i));
	note->dead_letters = get_mark(json_object_get(json, "dead_letters"));
	note->dead_letters_written = get(json, "dead_letters_written");
	note->dead_letters_dropped = get(json, "dead_letters_dropped");
	const json_t *streams = json_object_get(json, "streams");
	note->streams = weir_alloc(json_array_size(streams), sizeof *note->streams);
	for (size_t i = 0; i < json_array_size(streams); i++)
		if (!get_stream(json_array_get(streams, i), &note->streams[note->stream_count++]))
			return false;
	const char *memory = json_string_value(json_object_get(json, "memory"));
	size_t length;
	return memory == NULL || (note->memory = from_hex(memory, &length)) != NULL;
}

enum weir_status once_note_decode(const char *text, size_t length, struct once_note *note, struct weir_error *error)
{
	*note = (struct once_note){0};
	json_t *json = json_loadb(text, length, 0, NULL);
	uint64_t version = get(json, "version");
	bool newer = version > NOTE_VERSION;
	bool good = json_is_object(json) && version == NOTE_VERSION && get_note(json, note);
	json_decref(json);
	if (newer)
		return weir_fail(error, WEIR_NEWER, "the state was written by a newer version of weir");
	if (!good) {
		once_note_deinit(note);
		return weir_fail(error, WEIR_INVALID, "the state's record of the run is damaged");
	}
	return WEIR_OK;
}

void once_note_deinit(struct once_note *note)
{
	for (size_t i = 0; i < note->stream_count; i++) {
		free(note->streams[i].name);
		free(note->streams[i].header);
	}
	free(note->streams);
	free(note->memory);
	*note = (struct once_note){0};
}

const struct once_stream *once_note_stream(const struct once_note *note, const char *name)
{
	for (size_t i = 0; i < note->stream_count; i++)
		if (strcmp(note->streams[i].name, name) == 0)
			return &note->streams[i];
	return NULL;
}
