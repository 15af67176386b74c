/* SPDX-License-Identifier: Apache-2.0 */
/* One place for what stands between values: every writer of JSON on a cold path is a list of its members. */
#include "common/json/json_writer.h"

#include "common/bytes/hex.h"

#include <assert.h>
#include <math.h>

struct weir_text *weir_json_write_value(struct weir_json_writer *json, const char *name)
{
	assert((json->depth > 0 && !json->open[json->depth].array) == (name != NULL));
	assert(json->depth > 0 || !json->open[0].any); /* a top value is one */
	if (json->open[json->depth].any)
		weir_text_append(json->text, ",", 1);
	json->open[json->depth].any = true;
	if (name != NULL) {
		weir_text_json(json->text, weir_span_of(name));
		weir_text_append(json->text, ":", 1);
	}
	return json->text;
}

static void open_value(struct weir_json_writer *json, const char *name, bool array)
{
	weir_text_append(weir_json_write_value(json, name), array ? "[" : "{", 1);
	assert(json->depth < WEIR_JSON_DEPTH_MAX);
	json->depth++;
	json->open[json->depth].array = array;
	json->open[json->depth].any = false;
}

void weir_json_write_object(struct weir_json_writer *json, const char *name)
{
	open_value(json, name, false);
}

void weir_json_write_array(struct weir_json_writer *json, const char *name)
{
	open_value(json, name, true);
}

void weir_json_write_end(struct weir_json_writer *json)
{
	assert(json->depth > 0);
	weir_text_append(json->text, json->open[json->depth].array ? "]" : "}", 1);
	json->depth--;
}

void weir_json_write_newline(struct weir_json_writer *json)
{
	assert(json->depth == 0 && json->open[0].any);
	weir_text_append(json->text, "\n", 1);
	json->open[0].any = false;
}

void weir_json_write_string(struct weir_json_writer *json, const char *name, struct weir_span bytes)
{
	weir_text_json(weir_json_write_value(json, name), bytes);
}

void weir_json_write_words(struct weir_json_writer *json, const char *name, const char *words)
{
	if (words != NULL)
		weir_json_write_string(json, name, weir_span_of(words));
	else
		weir_json_write_null(json, name);
}

void weir_json_write_hex(struct weir_json_writer *json, const char *name, const void *bytes, size_t length)
{
	struct weir_text *text = weir_json_write_value(json, name);
	char *at = weir_text_reserve(text, 2 * length + 2);
	*at++ = '"';
	*weir_hex_put(at, bytes, length) = '"';
	text->length += 2 * length + 2;
}

void weir_json_write_int(struct weir_json_writer *json, const char *name, int64_t number)
{
	weir_text_int(weir_json_write_value(json, name), number);
}

void weir_json_write_uint(struct weir_json_writer *json, const char *name, uint64_t number)
{
	weir_text_uint(weir_json_write_value(json, name), number);
}

void weir_json_write_fixed(struct weir_json_writer *json, const char *name, double number, int digits)
{
	assert(isfinite(number));
	weir_text_printf(weir_json_write_value(json, name), "%.*f", digits, number);
}

void weir_json_write_bool(struct weir_json_writer *json, const char *name, bool value)
{
	weir_text_puts(weir_json_write_value(json, name), value ? "true" : "false");
}

void weir_json_write_null(struct weir_json_writer *json, const char *name)
{
	weir_text_append(weir_json_write_value(json, name), "null", 4);
}

void weir_json_write_members(struct weir_json_writer *json, struct weir_span object)
{
	assert(json->depth > 0 && !json->open[json->depth].array);
	assert(object.length >= 2 && object.at[0] == '{' && object.at[object.length - 1] == '}');
	if (object.length == 2)
		return;
	if (json->open[json->depth].any)
		weir_text_append(json->text, ",", 1);
	json->open[json->depth].any = true;
	weir_text_append(json->text, object.at + 1, object.length - 2);
}
