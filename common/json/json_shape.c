/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, as JSON Schema writes them. */
#include "common/json/json_shape.h"

static json_t *typed(const char *type)
{
	json_t *shape = json_object();
	json_object_set_new(shape, "type", json_string(type));
	return shape;
}

json_t *weir_shape_text(void)
{
	return typed("string");
}

/* The schema counts characters, of which there are never more than bytes. */
json_t *weir_shape_name(size_t most_bytes)
{
	json_t *shape = typed("string");
	json_object_set_new(shape, "minLength", json_integer(1));
	if (most_bytes > 0)
		json_object_set_new(shape, "maxLength", json_integer((json_int_t)most_bytes));
	return shape;
}

json_t *weir_shape_pattern(const char *regex)
{
	json_t *shape = typed("string");
	json_object_set_new(shape, "pattern", json_string(regex));
	return shape;
}

json_t *weir_shape_flag(void)
{
	return typed("boolean");
}

json_t *weir_shape_number(int64_t least, int64_t most)
{
	json_t *shape = typed("integer");
	json_object_set_new(shape, "minimum", json_integer(least));
	json_object_set_new(shape, "maximum", json_integer(most));
	return shape;
}

json_t *weir_shape_time(void)
{
	return weir_shape_pattern("^[0-9]+(ms|s|m|h|d)$");
}

json_t *weir_shape_size(int64_t least, int64_t most)
{
	return weir_shape_either(weir_shape_pattern("^[0-9]+([KMGT]iB)?$"), weir_shape_number(least, most));
}

json_t *weir_shape_words(const char *const *words)
{
	json_t *shape = json_object(), *list = json_array();
	for (; *words != NULL; words++)
		json_array_append_new(list, json_string(*words));
	json_object_set_new(shape, "enum", list);
	return shape;
}

json_t *weir_shape_secret(void)
{
	static const struct weir_json_rule file[] = {
		{.name = "file", .kind = WEIR_JSON_TEXT, .needed = "", .meaning = "a file, of which the first line is taken"},
		{.name = NULL}};
	static const struct weir_json_rule env[] = {
		{.name = "env", .kind = WEIR_JSON_TEXT, .needed = "", .meaning = "a variable of the environment"},
		{.name = NULL}};
	return weir_shape_either(weir_shape_text(), weir_shape_either(weir_shape_object(file), weir_shape_object(env)));
}

json_t *weir_shape_list(size_t least, size_t most, json_t *element)
{
	json_t *shape = typed("array");
	if (least > 0)
		json_object_set_new(shape, "minItems", json_integer((json_int_t)least));
	json_object_set_new(shape, "maxItems", json_integer((json_int_t)most));
	json_object_set_new(shape, "items", element);
	return shape;
}

json_t *weir_shape_some(size_t most, json_t *element)
{
	return weir_shape_either(json_deep_copy(element), weir_shape_list(1, most, element));
}

json_t *weir_shape_either(json_t *one, json_t *other)
{
	json_t *shape = json_object(), *list = json_array();
	json_array_append_new(list, one);
	json_array_append_new(list, other);
	json_object_set_new(shape, "anyOf", list);
	return shape;
}

json_t *weir_shape_map(json_t *value)
{
	json_t *shape = typed("object");
	json_object_set_new(shape, "additionalProperties", value);
	return shape;
}

json_t *weir_shape_properties(void)
{
	json_t *plain = json_object();
	json_object_set_new(plain, "type", json_pack("[s, s]", "integer", "boolean"));
	return weir_shape_map(weir_shape_either(plain, weir_shape_secret()));
}

json_t *weir_shape_named(const char *name)
{
	json_t *shape = json_object();
	json_object_set_new(shape, "$ref", json_sprintf("#/$defs/%s", name));
	return shape;
}

json_t *weir_shape_needs(json_t *object, const char *member)
{
	json_t *needed = json_object_get(object, "required");
	if (needed == NULL) {
		needed = json_array();
		json_object_set_new(object, "required", needed);
	}
	json_array_append_new(needed, json_string(member));
	return object;
}

json_t *weir_shape_tagged(json_t *object, const char *member, const char *kind)
{
	json_t *tag = json_object_get(json_object_get(object, "properties"), member);
	json_object_clear(tag);
	json_object_set_new(tag, "const", json_string(kind));
	return weir_shape_needs(object, member);
}

json_t *weir_shape_one_of(json_t *kinds)
{
	json_t *shape = json_object();
	json_object_set_new(shape, "oneOf", kinds);
	return shape;
}

json_t *weir_shape_explained(json_t *shape, const char *meaning)
{
	if (meaning != NULL)
		json_object_set_new(shape, "description", json_string(meaning));
	return shape;
}

static json_t *shape_of(const struct weir_json_rule *rule)
{
	if (rule->shape != NULL)
		return rule->shape();
	switch (rule->kind) {
	case WEIR_JSON_READ_ELSEWHERE: return json_object();
	case WEIR_JSON_FLAG: return weir_shape_flag();
	case WEIR_JSON_TEXT: return weir_shape_text();
	case WEIR_JSON_WORD: return weir_shape_words(rule->words);
	case WEIR_JSON_NUMBER: return weir_shape_number(rule->least, rule->most);
	case WEIR_JSON_SIZE: return weir_shape_size(rule->least, rule->most);
	case WEIR_JSON_TIME: return weir_shape_time();
	}
	return NULL;
}

json_t *weir_shape_object(const struct weir_json_rule *rules)
{
	json_t *shape = typed("object"), *members = json_object(), *needed = json_array();
	for (; rules->name != NULL; rules++) {
		json_object_set_new(members, rules->name, weir_shape_explained(shape_of(rules), rules->meaning));
		if (rules->needed != NULL)
			json_array_append_new(needed, json_string(rules->name));
	}
	json_object_set_new(shape, "properties", members);
	if (json_array_size(needed) > 0)
		json_object_set(shape, "required", needed);
	json_decref(needed);
	json_object_set_new(shape, "additionalProperties", json_false());
	return shape;
}
