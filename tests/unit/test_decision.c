/* SPDX-License-Identifier: Apache-2.0 */
/* The published form of decisions, byte for byte: readers and replays depend on it. */
#include "limiter/lane/decision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <jansson.h>
#include <cmocka.h>

static void expect(const struct weir_text *text, const char *expected)
{
	assert_int_equal(text->length, strlen(expected));
	assert_memory_equal(text->at, expected, text->length);
}

static void a_block_is_one_line_of_json(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 7, .name = (char *)"site", .key_count = 1, .limit_count = 1};
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("sliding_window"), .rate = 10, .window_ms = 60000};
	struct compiled_zone compiled = {.zone = &zone};
	struct shard_decision decision = {.id_offset = 1841,
	                                  .id_index = 17,
	                                  .zone = &compiled,
	                                  .rule = &zone.limits[0],
	                                  .key = weir_span_of("203.0.113.9"),
	                                  .at_ms = 1732173600123,
	                                  .until_ms = 1732173655007,
	                                  .count = 10};
	struct weir_text text = {0};
	decision_json(&text, 3, &decision);
	expect(&text,
	       "{\"id\":\"3-1841-17\",\"zone\":\"site\",\"key\":[\"203.0.113.9\"],\"action\":\"block\","
	       "\"at\":1732173600123,\"until\":1732173655007,\"limit\":{\"algorithm\":\"sliding_window\",\"rate\":10,"
	       "\"window\":60000},\"count\":10,\"mode\":\"enforce\"}");
	weir_text_deinit(&text);
}

/* What a done record decides has the form of a limit's decision, and says that a place was freed. */
static void a_freed_place_is_said(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 7, .name = (char *)"jobs", .key_count = 1, .limit_count = 1};
	zone.limits[0] = (struct weir_limit){.algorithm = weir_algorithm_named("queue"), .rate = 2, .window_ms = 600000};
	struct compiled_zone compiled = {.zone = &zone};
	struct shard_decision decision = {.id_offset = 9,
	                                  .id_index = 1,
	                                  .kind = BUCKET_LIFTS,
	                                  .zone = &compiled,
	                                  .rule = &zone.limits[0],
	                                  .key = weir_span_of("ann"),
	                                  .at_ms = 5000,
	                                  .until_ms = 5000,
	                                  .count = 1};
	struct weir_text text = {0};
	decision_json(&text, 3, &decision);
	expect(&text,
	       "{\"id\":\"3-9-1\",\"zone\":\"jobs\",\"key\":[\"ann\"],\"action\":\"lift\",\"at\":5000,\"until\":5000,"
	       "\"limit\":{\"algorithm\":\"queue\",\"length\":2,\"hold\":600000},\"count\":1,\"freed\":true,"
	       "\"mode\":\"enforce\"}");
	decision.kind = BUCKET_SHORTENS;
	decision.until_ms = 6000;
	weir_text_clear(&text);
	decision_json(&text, 3, &decision);
	expect(&text,
	       "{\"id\":\"3-9-1\",\"zone\":\"jobs\",\"key\":[\"ann\"],\"action\":\"block\",\"at\":5000,\"until\":6000,"
	       "\"limit\":{\"algorithm\":\"queue\",\"length\":2,\"hold\":600000},\"count\":1,\"freed\":true,"
	       "\"mode\":\"enforce\"}");
	weir_text_deinit(&text);
}

static void a_lift_names_no_key(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 7, .name = (char *)"site", .mode = WEIR_SHADOW};
	struct weir_text text = {0};
	decision_lift_json(&text, 3, 9, 1, &zone, 5000);
	expect(&text, "{\"id\":\"3-9-1\",\"zone\":\"site\",\"key\":null,\"action\":\"lift\",\"at\":5000,\"until\":5000,"
	              "\"mode\":\"shadow\"}");
	weir_text_deinit(&text);
}

static void a_command_says_by_whom_and_why(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 7, .name = (char *)"site", .key_count = 1};
	struct shard_override_decision decision = {.zone = &zone,
	                                           .key = weir_span_of("a\\|b"),
	                                           .at_ms = 5000,
	                                           .until_ms = OVERRIDE_NO_END,
	                                           .by = "ann",
	                                           .reason = "\"too\" much"};
	struct weir_text text = {0};
	decision_override_json(&text, 3, 9, 0, &decision);
	expect(&text, "{\"id\":\"3-9-0\",\"zone\":\"site\",\"key\":[\"a|b\"],\"action\":\"block\",\"at\":5000,"
	              "\"until\":253402300800000,\"by\":\"ann\",\"reason\":\"\\\"too\\\" much\",\"mode\":\"enforce\"}");
	weir_text_clear(&text);
	decision.lift = true;
	decision.until_ms = 5000;
	decision_override_json(&text, 3, 9, 0, &decision);
	expect(&text,
	       "{\"id\":\"3-9-0\",\"zone\":\"site\",\"key\":[\"a|b\"],\"action\":\"lift\",\"at\":5000,\"until\":5000,"
	       "\"by\":\"ann\",\"reason\":\"\\\"too\\\" much\",\"mode\":\"enforce\"}");
	weir_text_deinit(&text);
}

static void expect_key(uint32_t count, const char *joined, const char *expected)
{
	struct weir_zone zone = {.key_count = count};
	struct weir_text text = {0};
	decision_key_json(&text, &zone, weir_span_of(joined));
	expect(&text, expected);
	weir_text_deinit(&text);
}

static void a_joined_key_comes_apart_where_it_was_joined(void **state)
{
	(void)state;
	expect_key(0, "", "[]");
	expect_key(1, "a", "[\"a\"]");
	expect_key(2, "a|b", "[\"a\",\"b\"]");
	expect_key(2, "a\\|b|c\\\\", "[\"a|b\",\"c\\\\\"]");
	expect_key(3, "||", "[\"\",\"\",\"\"]");
}

static void expect_limit(struct weir_limit limit, const char *expected)
{
	struct weir_text text = {0};
	weir_limit_decided(&text, &limit);
	expect(&text, expected);
	json_t *json = json_loadb(text.at, text.length, 0, NULL);
	assert_non_null(json);
	json_decref(json);
	weir_text_deinit(&text);
}

static void each_algorithm_shows_its_own_parameters(void **state)
{
	(void)state;
	expect_limit(
		(struct weir_limit){
			.algorithm = weir_algorithm_named("sliding_window"), .rate = 5, .window_ms = 1000, .own = {100}},
		"{\"algorithm\":\"sliding_window\",\"rate\":5,\"window\":1000,\"precision\":100}");
	expect_limit(
		(struct weir_limit){
			.algorithm = weir_algorithm_named("fixed_window"), .rate = 5, .window_ms = 1000, .own = {250}},
		"{\"algorithm\":\"fixed_window\",\"rate\":5,\"window\":1000,\"offset\":250}");
	expect_limit((struct weir_limit){.algorithm = weir_algorithm_named("uniform"), .rate = 1, .window_ms = 2000},
	             "{\"algorithm\":\"uniform\",\"interval\":2000}");
	expect_limit(
		(struct weir_limit){
			.algorithm = weir_algorithm_named("token_bucket"), .rate = 5, .window_ms = 1000, .burst = 9, .own = {true}},
		"{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":1000,\"burst\":9,\"penalize\":true}");
	expect_limit(
		(struct weir_limit){.algorithm = weir_algorithm_named("gcra"), .rate = 5, .window_ms = 1000, .burst = 0},
		"{\"algorithm\":\"gcra\",\"burst\":0,\"rate\":5,\"window\":1000}");
	expect_limit((struct weir_limit){.algorithm = weir_algorithm_named("queue"), .rate = 3, .window_ms = 700},
	             "{\"algorithm\":\"queue\",\"length\":3,\"hold\":700}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_is_one_line_of_json),
		cmocka_unit_test(a_freed_place_is_said),
		cmocka_unit_test(a_lift_names_no_key),
		cmocka_unit_test(a_command_says_by_whom_and_why),
		cmocka_unit_test(a_joined_key_comes_apart_where_it_was_joined),
		cmocka_unit_test(each_algorithm_shows_its_own_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
