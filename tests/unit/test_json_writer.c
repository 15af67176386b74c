/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's commas and brackets at every nesting, its escaping, and its numbers' ends; jansson reads all of it. */
#include "common/json/json.h"
#include "common/json/json_writer.c" /* with its assertions, which a release build leaves out */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Holds what was written against what is expected, and against a reader of JSON. */
static void expect(struct weir_text *text, const char *expected)
{
	assert_int_equal(text->length, strlen(expected));
	assert_memory_equal(text->at, expected, text->length);
	json_t *value = json_loadb(text->at, text->length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	assert_non_null(value);
	json_decref(value);
	weir_text_deinit(text);
	*text = (struct weir_text){0};
}

static void empty_containers(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_end(&json);
	expect(&text, "{}");
	json = weir_json_writer(&text);
	weir_json_write_array(&json, NULL);
	weir_json_write_end(&json);
	expect(&text, "[]");
	json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_array(&json, "a");
	weir_json_write_end(&json);
	weir_json_write_object(&json, "o");
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	expect(&text, "{\"a\":[],\"o\":{}}");
}

static void commas_at_every_nesting(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_array(&json, NULL);
	for (int i = 0; i < 2; i++) {
		weir_json_write_object(&json, NULL);
		weir_json_write_array(&json, "list");
		weir_json_write_int(&json, NULL, i);
		weir_json_write_array(&json, NULL);
		weir_json_write_bool(&json, NULL, true);
		weir_json_write_null(&json, NULL);
		weir_json_write_end(&json);
		weir_json_write_words(&json, NULL, "x");
		weir_json_write_end(&json);
		weir_json_write_bool(&json, "last", false);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	expect(&text, "[{\"list\":[0,[true,null],\"x\"],\"last\":false},{\"list\":[1,[true,null],\"x\"],\"last\":false}]");
}

static void the_deepest_nesting(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	for (int i = 0; i < WEIR_JSON_DEPTH_MAX; i++)
		weir_json_write_array(&json, NULL);
	for (int i = 0; i < WEIR_JSON_DEPTH_MAX; i++)
		weir_json_write_end(&json);
	expect(&text, "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]");
}

static void strings_and_names_are_escaped(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "a\"b", "q\"\\\n\x1f");
	weir_json_write_string(&json, "zero", (struct weir_span){.at = "x\0y", .length = 3});
	weir_json_write_string(&json, "bad", (struct weir_span){.at = "\xff", .length = 1});
	weir_json_write_string(&json, "none", (struct weir_span){.at = "", .length = 0});
	weir_json_write_words(&json, "null", NULL);
	weir_json_write_hex(&json, "hex", "\x00\xff\x7f", 3);
	weir_json_write_hex(&json, "no hex", "", 0);
	weir_json_write_end(&json);
	expect(&text, "{\"a\\\"b\":\"q\\\"\\\\\\n\\u001f\",\"zero\":\"x\\u0000y\",\"bad\":\"\xef\xbf\xbd\",\"none\":\"\","
	              "\"null\":null,\"hex\":\"00ff7f\",\"no hex\":\"\"}");
}

static void numbers_at_their_ends(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_array(&json, NULL);
	weir_json_write_int(&json, NULL, INT64_MIN);
	weir_json_write_int(&json, NULL, -1);
	weir_json_write_int(&json, NULL, 0);
	weir_json_write_int(&json, NULL, INT64_MAX);
	weir_json_write_fixed(&json, NULL, 0.0005, 3);
	weir_json_write_fixed(&json, NULL, 1234567.5, 0);
	weir_json_write_fixed(&json, NULL, -2, 1);
	weir_json_write_end(&json);
	expect(&text, "[-9223372036854775808,-1,0,9223372036854775807,0.001,1234568,-2.0]");
	json = weir_json_writer(&text);
	weir_json_write_uint(&json, NULL, UINT64_MAX);
	assert_memory_equal(text.at, "18446744073709551615", text.length); /* beyond what jansson reads */
	weir_text_deinit(&text);
}

static void values_and_members_from_elsewhere(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_members(&json, weir_span_of("{}"));
	weir_json_write_members(&json, weir_span_of("{\"a\":1}"));
	weir_text_puts(weir_json_write_value(&json, "b"), "[2]");
	weir_json_write_members(&json, weir_span_of("{\"c\":3,\"d\":4}"));
	weir_json_write_members(&json, weir_span_of("{}"));
	weir_json_write_int(&json, "e", 5);
	weir_json_write_end(&json);
	expect(&text, "{\"a\":1,\"b\":[2],\"c\":3,\"d\":4,\"e\":5}");
}

static void lines_behind_one_another(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	for (int i = 0; i < 2; i++) {
		weir_json_write_object(&json, NULL);
		weir_json_write_int(&json, "i", i);
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
	}
	assert_int_equal(text.length, 16);
	assert_memory_equal(text.at, "{\"i\":0}\n{\"i\":1}\n", 16);
	weir_text_deinit(&text);
}

static void name_in_array(struct weir_json_writer *json)
{
	weir_json_write_array(json, NULL);
	weir_json_write_int(json, "name", 1);
}

static void no_name_in_object(struct weir_json_writer *json)
{
	weir_json_write_object(json, NULL);
	weir_json_write_int(json, NULL, 1);
}

static void end_of_nothing(struct weir_json_writer *json)
{
	weir_json_write_end(json);
}

static void two_at_the_top(struct weir_json_writer *json)
{
	weir_json_write_int(json, NULL, 1);
	weir_json_write_int(json, NULL, 2);
}

static void line_within(struct weir_json_writer *json)
{
	weir_json_write_object(json, NULL);
	weir_json_write_newline(json);
}

static void too_deep(struct weir_json_writer *json)
{
	for (int i = 0; i <= WEIR_JSON_DEPTH_MAX; i++)
		weir_json_write_array(json, NULL);
}

static void wrong_nesting_is_a_bug(void **state)
{
	(void)state;
	void (*const bugs[])(struct weir_json_writer *) = {name_in_array,  no_name_in_object, end_of_nothing,
	                                                   two_at_the_top, line_within,       too_deep};
	for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct weir_text text = {0};
			struct weir_json_writer json = weir_json_writer(&text);
			setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
			signal(SIGABRT, SIG_DFL);
			(void)!freopen("/dev/null", "w", stderr);
			bugs[i](&json);
			_exit(0);
		}
		int status = 0;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_containers),         cmocka_unit_test(commas_at_every_nesting),
		cmocka_unit_test(the_deepest_nesting),      cmocka_unit_test(strings_and_names_are_escaped),
		cmocka_unit_test(numbers_at_their_ends),    cmocka_unit_test(values_and_members_from_elsewhere),
		cmocka_unit_test(lines_behind_one_another), cmocka_unit_test(wrong_nesting_is_a_bug),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
