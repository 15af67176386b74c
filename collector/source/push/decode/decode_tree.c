/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON documents: parsed by jansson, which bounds their depth, and written as lines.
 *
 * A tree needs many times the bytes of its document, above all where that has nothing but small parts. So these are
 * counted beforehand: a tree has 100 MB at most, or some eighteen times its document's bytes, up to 800 MB.
 */
#include "collector/source/push/decode/decode_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum {
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	NODES_LEAST = 1 << 18,  /* objects and arrays that any may have: an empty one of two bytes needs some two hundred */
	VALUES_LEAST = 1 << 19, /* that stand behind another in one: a text of two bytes needs some ninety */
	NODES_MOST = 1 << 21,
	VALUES_MOST = 1 << 22,
	PART_BYTES = 16, /* a long document may have one of each for so many bytes: OTLP's have one for twenty and more */
};

/* 2000 to 2100. */
static const int64_t LIKELY_FIRST_S = 946684800, LIKELY_END_S = 4102444800;

static uint32_t most_of(struct weir_span body, uint32_t least, uint32_t most)
{
	uint32_t by_length = body.length / PART_BYTES;
	return by_length < least ? least : by_length < most ? by_length : most;
}

/* Refuses a document that has more parts than it may have. */
static enum weir_status count_parts(struct weir_span body, struct weir_error *error)
{
	uint32_t nodes_most = most_of(body, NODES_LEAST, NODES_MOST),
			 values_most = most_of(body, VALUES_LEAST, VALUES_MOST);
	uint32_t nodes = 0, values = 0;
	bool in_string = false;
	for (uint32_t i = 0; i < body.length; i++) {
		char byte = body.at[i];
		if (byte == '"')
			in_string = !in_string;
		else if (in_string)
			i += byte == '\\'; /* what follows ends no string */
		else if (byte == ',')
			values++;
		else
			nodes += byte == '{' || byte == '[';
	}
	if (nodes <= nodes_most && values <= values_most)
		return WEIR_OK;
	return weir_fail(error, WEIR_FULL,
	                 "the body has more than %" PRIu32 " objects and arrays, or %" PRIu32
	                 " values: send fewer events at once",
	                 nodes_most, values_most);
}

enum weir_status decode_tree(struct weir_span body, const char *what, json_t **tree, struct weir_error *error)
{
	json_error_t why;
	*tree = NULL;
	enum weir_status status = count_parts(body, error);
	if (status != WEIR_OK)
		return status;
	*tree = json_loadb(body.at, body.length, JSON_ALLOW_NUL, &why);
	if (*tree == NULL)
		return weir_fail(error, WEIR_INVALID, "the body is no JSON at byte %d: %s", why.position, why.text);
	if (json_is_object(*tree))
		return WEIR_OK;
	json_decref(*tree);
	*tree = NULL;
	return weir_fail(error, WEIR_INVALID, "the body is JSON, but no object with %s", what);
}

enum weir_status decode_list(json_t *object, const char *name, const json_t **list, struct weir_error *error)
{
	const char *other;
	json_t *value;
	*list = json_object_get(object, name);
	if (!json_is_object(object))
		return weir_fail(error, WEIR_INVALID, "what should have \"%s\" is no object", name);
	if (json_is_array(*list))
		return WEIR_OK;
	if (*list != NULL && !json_is_null(*list))
		return weir_fail(error, WEIR_INVALID, "\"%s\" is no array", name);
	*list = NULL; /* of which json_array_size() is 0 */
	json_object_foreach(object, other, value)
	{
		if (json_array_size(value) > 0)
			return weir_fail(error, WEIR_INVALID, "there is no \"%s\", but \"%.80s\", which is not taken", name, other);
	}
	return WEIR_OK;
}

void decode_put_name(struct weir_text *line, const char *name)
{
	if (line->length > 0 && line->at[line->length - 1] != '{')
		weir_text_append(line, ",", 1);
	weir_text_printf(line, "\"%s\":", name);
}

static int put_part(const char *part, size_t length, void *line)
{
	weir_text_append(line, part, length);
	return 0;
}

void decode_put_value(struct weir_text *line, const json_t *value)
{
	if (value == NULL || json_dump_callback(value, put_part, line, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		weir_text_puts(line, "null");
}

void decode_put_text(struct weir_text *line, const char *name, const json_t *value)
{
	if (json_string_length(value) == 0)
		return;
	decode_put_name(line, name);
	weir_text_json(line, (struct weir_span){json_string_value(value), (uint32_t)json_string_length(value)});
}

/*
 * A number is read in the unit that the format names, and one of ms is no time to a format that names none. A date and
 * time of day is the same to both. What is no likely time of nanoseconds stays the number that it was: the format says so.
 */
bool decode_put_time(struct weir_text *line, const json_t *nanoseconds)
{
	int64_t ns = json_is_integer(nanoseconds) ? json_integer_value(nanoseconds) : 0;
	if (json_is_string(nanoseconds))
		ns = strtoll(json_string_value(nanoseconds), NULL, 10);
	if (ns <= 0)
		return false;
	time_t second = (time_t)(ns / NS_PER_S);
	struct tm parts;
	char stamp[32];
	decode_put_name(line, "time");
	if (second < LIKELY_FIRST_S || second >= LIKELY_END_S || gmtime_r(&second, &parts) == NULL ||
	    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
		weir_text_int(line, ns);
	else
		weir_text_printf(line, "\"%s.%03dZ\"", stamp, (int)(ns / NS_PER_MS % 1000));
	return true;
}
