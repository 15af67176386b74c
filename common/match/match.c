/* SPDX-License-Identifier: Apache-2.0 */
/* "match": which records a filter is about. Values are checked here, so that matching never meets a bad one. */
#include "common/match/match.h"

#include "common/base/alloc.h"
#include "common/bytes/address.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <string.h>

void weir_match_free(struct weir_match *match)
{
	for (uint32_t i = 0; i < match->field_count; i++) {
		for (uint32_t k = 0; k < match->fields[i].value_count; k++)
			free(match->fields[i].values[k].text);
		free(match->fields[i].values);
		free(match->fields[i].field);
	}
	free(match->fields);
	*match = (struct weir_match){0};
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "404" or "4xx". */
static bool is_status(const char *text)
{
	return strlen(text) == 3 && is_digit(text[0]) &&
	       ((is_digit(text[1]) && is_digit(text[2])) || strcmp(text + 1, "xx") == 0);
}

/* A value as text: a whole number or a word of JSON stands for what a log line would say. */
static char *value_text(const struct weir_json *at)
{
	if (json_is_string(at->value))
		return weir_copy(json_string_value(at->value), json_string_length(at->value));
	if (json_is_integer(at->value) || json_is_boolean(at->value)) {
		char *dumped = json_dumps(at->value, JSON_ENCODE_ANY);
		char *text = weir_copy(dumped, strlen(dumped));
		free(dumped);
		return text;
	}
	return NULL;
}

/* An address or a network has one text, however it was written. */
static void set_network(struct weir_match_value *value, const struct weir_network *network)
{
	char text[WEIR_NETWORK_TEXT_BYTES];
	weir_network_format(network, text);
	free(value->text);
	value->text = weir_copy(text, strlen(text));
	value->length = (uint32_t)strlen(text);
}

/* What a value stands for in a field other than the status. */
static enum weir_status parse_kind(const struct weir_json *at, const char *name, struct weir_match_value *value,
                                   struct weir_error *error)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why = "";
	struct weir_error wrong;
	uint32_t count = weir_networks_parse(weir_span_of(value->text), networks, &why);
	value->wildcard = strchr(value->text, '*') != NULL;
	value->network = count > 0;
	if (count == 1 && strchr(value->text, '-') == NULL)
		set_network(value, &networks[0]);
	/* Fields that have something else may have "1.2.*", and "192.0.2.1/index.html". */
	bool other = strcmp(name, "ip") != 0 && (value->wildcard || !weir_network_meant(value->text));
	if (count > 0 || other || weir_network_check(value->text, why, &wrong) == WEIR_OK)
		return WEIR_OK;
	return weir_json_fail(at, error, "%s", wrong.text);
}

static enum weir_status parse_value(const struct weir_json *at, const char *name, struct weir_match_value *value,
                                    struct weir_error *error)
{
	value->text = value_text(at);
	if (value->text == NULL)
		return weir_json_fail(at, error, "must be a string, or for a status a number such as 404");
	size_t length = strlen(value->text);
	if (length == 0 || length > WEIR_MATCH_VALUE_MAX_BYTES)
		return weir_json_fail(at, error, "must have 1 to %d bytes (a field that is empty counts as absent)",
		                      WEIR_MATCH_VALUE_MAX_BYTES);
	value->length = (uint32_t)length;
	if (strcmp(name, "status") != 0)
		return parse_kind(at, name, value, error);
	if (!is_status(value->text))
		return weir_json_fail(at, error, "must be a status such as 404, or a class such as \"4xx\", not \"%s\"",
		                      value->text);
	return WEIR_OK;
}

static enum weir_status parse_values(const struct weir_json *at, const char *name, bool negated,
                                     struct weir_match *match, struct weir_error *error)
{
	struct weir_match_field *field = &match->fields[match->field_count++];
	field->field = weir_copy(name, strlen(name));
	field->negated = negated;
	size_t count;
	enum weir_status status = weir_json_one_or_more(at, WEIR_MATCH_VALUES_MAX, &count, error);
	if (status != WEIR_OK)
		return status;
	field->values = weir_alloc(count, sizeof *field->values);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_one_of(at, i);
		field->value_count++;
		status = parse_value(&element, name, &field->values[i], error);
	}
	return status;
}

static enum weir_status parse_field(const struct weir_json *at, const char *name, struct weir_match *match,
                                    struct weir_error *error)
{
	static const char *const names[] = {"is", "not", "ignore_case", NULL};
	bool any_case = false;
	if (*name == '\0' || strlen(name) > WEIR_FIELD_NAME_MAX_BYTES)
		return weir_json_fail(at, error, "a field's name must have 1 to %d bytes", WEIR_FIELD_NAME_MAX_BYTES);
	if (!json_is_object(at->value))
		return parse_values(at, name, false, match, error);
	enum weir_status status = weir_json_only(at, names, error);
	struct weir_json ignores = weir_json_member(at, "ignore_case");
	if (status == WEIR_OK && json_object_size(at->value) == weir_json_exists(&ignores))
		status = weir_json_fail(at, error, "needs \"is\" or \"not\", such as {\"not\": [\"10.0.0.0/8\"]}");
	if (status == WEIR_OK && weir_json_exists(&ignores))
		status = strcmp(name, "status") != 0
		             ? weir_json_bool(&ignores, &any_case, error)
		             : weir_json_fail(&ignores, error, "is not for a status, which has no letters");
	for (int i = 0; i < 2 && status == WEIR_OK; i++) {
		struct weir_json member = weir_json_member(at, names[i]);
		if (!weir_json_exists(&member))
			continue;
		match->fields[match->field_count].any_case = any_case;
		status = parse_values(&member, name, i == 1, match, error);
	}
	return status;
}

static int compare_fields(const void *a, const void *b)
{
	const struct weir_match_field *x = a, *y = b;
	int order = strcmp(x->field, y->field);
	return order != 0 ? order : x->negated - y->negated;
}

enum weir_status weir_match_parse(const struct weir_json *at, struct weir_match *match, struct weir_error *error)
{
	if (!weir_json_exists(at))
		return WEIR_OK;
	size_t count = json_object_size(at->value);
	if (!json_is_object(at->value) || count > WEIR_MATCH_FIELDS_MAX)
		return weir_json_fail(at, error,
		                      "must be an object of at most %d fields, such as {\"path\": [\"/login\", \"/api/*\"]}",
		                      WEIR_MATCH_FIELDS_MAX);
	match->fields = weir_alloc(2 * count, sizeof *match->fields);
	const char *name;
	json_t *value;
	json_object_foreach(at->value, name, value)
	{
		struct weir_json member = weir_json_member(at, name);
		enum weir_status status = parse_field(&member, name, match, error);
		if (status != WEIR_OK)
			return status;
	}
	qsort(match->fields, match->field_count, sizeof *match->fields, compare_fields);
	return WEIR_OK;
}

/* A field's values: alone, in a list, or by "is" and "not". @param value  taken @param has_letters  whether case may matter */
static json_t *field_shape(json_t *value, bool has_letters)
{
	json_t *values = weir_shape_some(WEIR_MATCH_VALUES_MAX, value), *both = json_object();
	json_t *properties = json_pack("{s:O, s:O}", "is", values, "not", values);
	if (has_letters)
		json_object_set_new(properties, "ignore_case", json_pack("{s:s}", "type", "boolean"));
	json_object_set_new(both, "type", json_string("object"));
	json_object_set_new(both, "properties", properties);
	json_object_set_new(both, "anyOf", json_pack("[{s:[s]}, {s:[s]}]", "required", "is", "required", "not"));
	json_object_set_new(both, "additionalProperties", json_false());
	return weir_shape_either(values, both);
}

json_t *weir_match_shape(void)
{
	json_t *shape = weir_shape_map(field_shape(weir_shape_either(weir_shape_name(WEIR_MATCH_VALUE_MAX_BYTES),
	                                                             json_pack("{s:[s, s]}", "type", "integer", "boolean")),
	                                           true));
	json_t *status = weir_shape_either(weir_shape_pattern("^[0-9]([0-9][0-9]|xx)$"), weir_shape_number(100, 999));
	json_object_set_new(shape, "properties", json_pack("{s:o}", "status", field_shape(status, false)));
	json_object_set_new(shape, "propertyNames", weir_shape_name(WEIR_FIELD_NAME_MAX_BYTES));
	json_object_set_new(shape, "maxProperties", json_integer(WEIR_MATCH_FIELDS_MAX));
	return shape;
}

static json_t *values_json(const struct weir_match_field *field)
{
	json_t *values = json_array();
	for (uint32_t k = 0; k < field->value_count; k++)
		json_array_append_new(values, json_string(field->values[k].text));
	return values;
}

json_t *weir_match_json(const struct weir_match *match)
{
	json_t *object = json_object();
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i];
		json_t *values = values_json(field), *before = json_object_get(object, field->field);
		if (!field->negated && !field->any_case) {
			json_object_set_new(object, field->field, values);
			continue;
		}
		json_t *both = json_is_object(before) ? json_incref(before) : json_object();
		if (json_is_array(before))
			json_object_set(both, "is", before);
		json_object_set_new(both, field->negated ? "not" : "is", values);
		if (field->any_case)
			json_object_set_new(both, "ignore_case", json_true());
		json_object_set_new(object, field->field, both);
	}
	return object;
}

/* "a", "a or b", "a, b or c in any case". */
static void put_values(struct weir_text *text, const struct weir_match_field *field, const char *quote)
{
	for (uint32_t i = 0; i < field->value_count; i++) {
		weir_text_puts(text, i == 0 ? "" : i + 1 == field->value_count ? " or " : ", ");
		weir_text_printf(text, "%s%s%s", quote, field->values[i].text, quote);
	}
	if (field->any_case)
		weir_text_puts(text, " in any case");
}

static const struct weir_match_field *find_field(const struct weir_match *match, const char *name)
{
	for (uint32_t i = 0; i < match->field_count; i++)
		if (strcmp(match->fields[i].field, name) == 0 && !match->fields[i].negated)
			return &match->fields[i];
	return NULL;
}

void weir_match_describe(struct weir_text *text, const struct weir_match *match)
{
	const struct weir_match_field *method = find_field(match, "method"), *path = find_field(match, "path");
	if (match->field_count == 0)
		weir_text_puts(text, "all ");
	if (method != NULL) {
		put_values(text, method, "");
		weir_text_puts(text, " ");
	}
	weir_text_puts(text, "requests");
	if (path != NULL) {
		weir_text_puts(text, " to ");
		put_values(text, path, "");
	}
	const char *before = " with ";
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i];
		if (field == method || field == path)
			continue;
		weir_text_printf(text, "%s%s %s", before, field->field, field->negated ? "other than " : "");
		put_values(text, field, strcmp(field->field, "status") == 0 ? "" : "\"");
		before = " and ";
	}
}
