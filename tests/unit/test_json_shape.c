/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes say what readers take: each kind of rule, what is needed, and the kinds that an object may be of. */
#include "common/json/json_shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"one", "two", NULL};

static json_t *names_shape(void)
{
	return weir_shape_some(3, weir_shape_name(8));
}

static const struct weir_json_rule rules[] = {
	{.name = "flag", .kind = WEIR_JSON_FLAG, .meaning = "a flag"},
	{.name = "word", .kind = WEIR_JSON_WORD, .words = words},
	{.name = "number", .kind = WEIR_JSON_NUMBER, .least = 1, .most = 9, .needed = "a number"},
	{.name = "names", .shape = names_shape},
	{.name = "any"},
	{.name = NULL},
};

/* Takes the shape. */
static void assert_shape(json_t *shape, const char *expected)
{
	char *dumped = json_dumps(shape, JSON_COMPACT);
	assert_string_equal(dumped, expected);
	free(dumped);
	json_decref(shape);
}

static void an_object_is_of_its_rules(void **state)
{
	(void)state;
	assert_shape(weir_shape_object(rules),
	             "{\"type\":\"object\",\"properties\":{\"flag\":{\"type\":\"boolean\",\"description\":\"a flag\"},"
	             "\"word\":{\"enum\":[\"one\",\"two\"]},\"number\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9},"
	             "\"names\":{\"anyOf\":[{\"type\":\"string\",\"minLength\":1,\"maxLength\":8},{\"type\":\"array\","
	             "\"minItems\":1,\"maxItems\":3,\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8}}]},"
	             "\"any\":{}},\"required\":[\"number\"],\"additionalProperties\":false}");
}

static void a_kind_is_told_by_its_tag(void **state)
{
	(void)state;
	static const struct weir_json_rule tagged[] = {{.name = "type"}, {.name = NULL}};
	json_t *shape = weir_shape_tagged(weir_shape_object(tagged), "type", "file");
	assert_shape(weir_shape_needs(shape, "format"),
	             "{\"type\":\"object\",\"properties\":{\"type\":{\"const\":\"file\"}},\"additionalProperties\":false,"
	             "\"required\":[\"type\",\"format\"]}");
}

static void shapes_are_named_and_joined(void **state)
{
	(void)state;
	assert_shape(weir_shape_either(weir_shape_named("zone"), weir_shape_flag()),
	             "{\"anyOf\":[{\"$ref\":\"#/$defs/zone\"},{\"type\":\"boolean\"}]}");
	assert_shape(weir_shape_list(0, 2, weir_shape_text()),
	             "{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"string\"}}");
	assert_shape(weir_shape_map(weir_shape_text()),
	             "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_of_its_rules),
		cmocka_unit_test(a_kind_is_told_by_its_tag),
		cmocka_unit_test(shapes_are_named_and_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
