/* SPDX-License-Identifier: Apache-2.0 */
/* Loki's push in its JSON form: {"streams": [{"stream": {LABELS}, "values": [["NANOSECONDS", "LINE", {METADATA}]]}]}. */
#include "collector/source/push/decode/decode_tree.h"

static enum weir_status take_stream(json_t *stream, size_t most, struct weir_text *lines, struct weir_error *error)
{
	const json_t *labels = json_object_get(stream, "stream"), *values, *value;
	size_t place;
	enum weir_status status = decode_list(stream, "values", &values, error);
	if (status != WEIR_OK)
		return status;
	json_array_foreach(values, place, value)
	{
		const json_t *message = json_array_get(value, 1), *metadata = json_array_get(value, 2);
		if (!json_is_string(message))
			return weir_fail(error, WEIR_INVALID, "an element of \"values\" is no array of a time and a line");
		weir_text_append(lines, "{", 1);
		(void)decode_put_time(lines, json_array_get(value, 0));
		decode_put_name(lines, "message");
		weir_text_json(lines, (struct weir_span){json_string_value(message), (uint32_t)json_string_length(message)});
		if (json_object_size(labels) > 0) {
			decode_put_name(lines, "labels");
			decode_put_value(lines, labels);
		}
		if (json_object_size(metadata) > 0) {
			decode_put_name(lines, "metadata");
			decode_put_value(lines, metadata);
		}
		weir_text_puts(lines, "}\n");
		status = decode_fits(lines, most, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

enum weir_status decode_loki(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                             struct weir_error *error)
{
	(void)answer;
	json_t *tree, *stream;
	const json_t *streams = NULL;
	size_t place;
	enum weir_status status = decode_tree(body, "\"streams\"", &tree, error);
	if (status != WEIR_OK)
		return status;
	status = decode_list(tree, "streams", &streams, error);
	json_array_foreach(streams, place, stream)
	{
		if (status == WEIR_OK)
			status = take_stream(stream, most, lines, error);
	}
	json_decref(tree);
	return status;
}
