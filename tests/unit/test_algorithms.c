/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of algorithms: every descriptor is under its name, and says what weir asks of all. */
#include "limit_case.h"

static void every_algorithm_is_under_its_name(void **state)
{
	(void)state;
	const char *const *names = weir_algorithm_names();
	const struct weir_algorithm *algorithm;
	size_t i = 0;
	for (; (algorithm = weir_algorithm_at(i)) != NULL; i++) {
		assert_string_equal(names[i], algorithm->name);
		assert_ptr_equal(weir_algorithm_named(algorithm->name), algorithm);
	}
	assert_null(names[i]);
	assert_null(weir_algorithm_at(i + 1));
	assert_null(weir_algorithm_named("sliding"));
	assert_null(weir_algorithm_named(NULL));
}

/* The longest names that a column of the stores takes, and a list that ends. */
static void every_descriptor_is_whole(void **state)
{
	(void)state;
	const struct weir_algorithm *algorithm;
	for (size_t i = 0; (algorithm = weir_algorithm_at(i)) != NULL; i++) {
		assert_true(strlen(algorithm->name) <= 32);
		assert_null(algorithm->members[WEIR_LIMIT_MEMBERS_MAX - 1].name);
		assert_non_null(algorithm->describe);
		assert_non_null(algorithm->shape);
		assert_non_null(algorithm->shown);
	}
}

/* By the same two numbers each can be asked for on a command line, and says them again. */
static void every_shorthand_is_a_limit(void **state)
{
	(void)state;
	const struct weir_algorithm *algorithm;
	for (size_t i = 0; (algorithm = weir_algorithm_at(i)) != NULL; i++) {
		const char *wrong;
		struct weir_limit given = {.algorithm = algorithm, .rate = 1, .window_ms = 60000};
		json_t *object = weir_limit_shorthand(&given, "60s", &wrong);
		assert_non_null(object);
		char *text = json_dumps(object, JSON_COMPACT);
		struct limit_case *one = case_open(text, false);
		assert_int_equal(one->limit.rate, 1);
		assert_int_equal(one->limit.window_ms, 60000);
		assert_true(weir_limit_memory_ms(&one->limit) > 0);
		EXPECT_PASS(one, 1000, 1);
		assert_false(one->shape.ops->is_empty(&one->view));
		case_close(one);
		free(text);
		json_decref(object);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm_is_under_its_name),
		cmocka_unit_test(every_descriptor_is_whole),
		cmocka_unit_test(every_shorthand_is_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
