/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's logs in OTLP's JSON form: resourceLogs, scopeLogs, logRecords; attributes are lists of key and value. */
#include "collector/source/push/decode/decode_tree.h"

#include <stdlib.h>

enum { VALUE_DEPTH_MOST = 32 };

/* What lies around a record. */
struct around {
	const json_t *resource, *scope;
};

static void put_value(struct weir_text *line, const json_t *any, int depth);

/* [{"key": "a", "value": {"stringValue": "b"}}] as {"a": "b"}. */
static void put_attributes(struct weir_text *line, const json_t *list, int depth)
{
	size_t place;
	const json_t *entry;
	bool some = false;
	weir_text_append(line, "{", 1);
	json_array_foreach(list, place, entry)
	{
		const json_t *key = json_object_get(entry, "key");
		if (!json_is_string(key))
			continue;
		if (some)
			weir_text_append(line, ",", 1);
		some = true;
		weir_text_json(line, (struct weir_span){json_string_value(key), (uint32_t)json_string_length(key)});
		weir_text_append(line, ":", 1);
		put_value(line, json_object_get(entry, "value"), depth + 1);
	}
	weir_text_append(line, "}", 1);
}

static void put_array(struct weir_text *line, const json_t *list, int depth)
{
	size_t place;
	const json_t *element;
	weir_text_append(line, "[", 1);
	json_array_foreach(list, place, element)
	{
		if (place > 0)
			weir_text_append(line, ",", 1);
		put_value(line, element, depth + 1);
	}
	weir_text_append(line, "]", 1);
}

/* The bytes that a text stands for; what is no base64 stays as it is. */
static void put_bytes(struct weir_text *line, const json_t *value)
{
	struct weir_text bytes = {0};
	struct weir_span text = {.at = json_string_value(value), .length = (uint32_t)json_string_length(value)};
	if (text.at != NULL && decode_base64(text, &bytes))
		weir_text_json_bytes(line, weir_text_span(&bytes));
	else
		decode_put_value(line, value);
	weir_text_deinit(&bytes);
}

/* An AnyValue: an object with one member that says of which type it is. 64-bit integers are texts, and bytes in base64. */
static void put_value(struct weir_text *line, const json_t *any, int depth)
{
	static const char *const plain[] = {"stringValue", "boolValue", "doubleValue", NULL};
	const json_t *value = json_object_get(any, "kvlistValue");
	if (depth > VALUE_DEPTH_MOST) {
		weir_text_puts(line, "null");
	} else if (value != NULL) {
		put_attributes(line, json_object_get(value, "values"), depth);
	} else if ((value = json_object_get(any, "arrayValue")) != NULL) {
		put_array(line, json_object_get(value, "values"), depth);
	} else if ((value = json_object_get(any, "bytesValue")) != NULL) {
		put_bytes(line, value);
	} else if ((value = json_object_get(any, "intValue")) != NULL) {
		const char *digits = json_string_value(value);
		char *end = NULL;
		if (digits == NULL)
			decode_put_value(line, value);
		else
			weir_text_int(line, strtoll(digits, &end, 10));
	} else {
		for (int i = 0; plain[i] != NULL && value == NULL; i++)
			value = json_object_get(any, plain[i]);
		decode_put_value(line, value);
	}
}

static void put_group(struct weir_text *line, const char *name, const json_t *attributes)
{
	if (json_array_size(attributes) == 0)
		return;
	decode_put_name(line, name);
	put_attributes(line, attributes, 0);
}

static void put_record(struct weir_text *line, const json_t *record, const struct around *around)
{
	weir_text_append(line, "{", 1);
	if (!decode_put_time(line, json_object_get(record, "timeUnixNano")))
		(void)decode_put_time(line, json_object_get(record, "observedTimeUnixNano"));
	decode_put_text(line, "severity", json_object_get(record, "severityText"));
	const json_t *body = json_object_get(record, "body");
	if (body != NULL) {
		decode_put_name(line, "message");
		put_value(line, body, 0);
	}
	put_group(line, "attributes", json_object_get(record, "attributes"));
	put_group(line, "resource", json_object_get(around->resource, "attributes"));
	decode_put_text(line, "scope", json_object_get(around->scope, "name"));
	decode_put_text(line, "trace_id", json_object_get(record, "traceId"));
	decode_put_text(line, "span_id", json_object_get(record, "spanId"));
	weir_text_puts(line, "}\n");
}

static enum weir_status take_scopes(json_t *resource_logs, size_t most, struct weir_text *lines,
                                    struct weir_error *error)
{
	const json_t *scopes, *records, *record;
	json_t *scope;
	struct around around = {.resource = json_object_get(resource_logs, "resource")};
	size_t i, k;
	enum weir_status status = decode_list(resource_logs, "scopeLogs", &scopes, error);
	if (status != WEIR_OK)
		return status;
	json_array_foreach(scopes, i, scope)
	{
		around.scope = json_object_get(scope, "scope");
		status = decode_list(scope, "logRecords", &records, error);
		if (status != WEIR_OK)
			return status;
		json_array_foreach(records, k, record)
		{
			if (!json_is_object(record))
				return weir_fail(error, WEIR_INVALID, "an element of \"logRecords\" is no object");
			put_record(lines, record, &around);
			status = decode_fits(lines, most, error);
			if (status != WEIR_OK)
				return status;
		}
	}
	return WEIR_OK;
}

enum weir_status decode_otlp(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                             struct weir_error *error)
{
	(void)answer;
	json_t *tree, *resource;
	const json_t *resources = NULL;
	size_t place;
	enum weir_status status = decode_tree(body, "\"resourceLogs\"", &tree, error);
	if (status != WEIR_OK)
		return status;
	status = decode_list(tree, "resourceLogs", &resources, error);
	json_array_foreach(resources, place, resource)
	{
		if (status == WEIR_OK)
			status = take_scopes(resource, most, lines, error);
	}
	json_decref(tree);
	return status;
}
