/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions as the limiter writes them are read as they were meant; anything else on the topic is refused in words. */
#include "deploy/gateways/table/decision_record.h"
#include "limiter/lane/decision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define BLOCK                                                                                                         \
	"{\"id\":\"3-1841-17\",\"zone\":\"site\",\"key\":[\"203.0.113.9\"],\"action\":\"block\",\"at\":1732173600123,"    \
	"\"until\":1732173655007,\"limit\":{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":60000},\"count\":10," \
	"\"mode\":\"enforce\"}"

static enum weir_status parse(const char *key, const char *json, struct decision_record *record,
                              struct weir_error *error)
{
	struct weir_message message = {.topic = WEIR_TOPIC_DECISIONS,
	                               .partition = 3,
	                               .key = key != NULL ? weir_span_of(key) : (struct weir_span){0},
	                               .payload = weir_span_of(json)};
	return decision_record_parse(&message, record, error);
}

static void test_a_block(void **state)
{
	(void)state;
	struct decision_record record;
	assert_int_equal(WEIR_OK, parse("site|203.0.113.9", BLOCK, &record, NULL));
	assert_int_equal(3, record.partition);
	assert_int_equal(1841, record.version.offset);
	assert_int_equal(17, record.version.index);
	assert_false(record.lift || record.whole_zone || record.shadow);
	assert_int_equal(1732173600123, record.at_ms);
	assert_int_equal(1732173655007, record.until_ms);
	assert_true(weir_span_equal(record.zone, weir_span_of("site")));
	assert_true(weir_span_equal(record.key, weir_span_of("203.0.113.9")));
	assert_true(weir_span_equal(record.json, weir_span_of(BLOCK)));
}

static void test_lifts(void **state)
{
	(void)state;
	struct decision_record record;
	assert_int_equal(WEIR_OK, parse("site|a\\|b|c",
	                                "{\"id\":\"3-5-0\",\"zone\":\"site\",\"key\":[\"a|b\",\"c\"],\"action\":\"lift\","
	                                "\"at\":7,\"until\":7}",
	                                &record, NULL));
	assert_true(record.lift && !record.whole_zone);
	assert_true(weir_span_equal(record.key, weir_span_of("a\\|b|c")));
	assert_int_equal(WEIR_OK,
	                 parse("site|", "{\"id\":\"3-5-1\",\"zone\":\"site\",\"key\":null,\"action\":\"lift\",\"at\":7}",
	                       &record, NULL));
	assert_true(record.lift && record.whole_zone);
	assert_int_equal(
		WEIR_OK,
		parse("site|", "{\"id\":\"3-5-1\",\"zone\":\"site\",\"key\":[],\"action\":\"lift\",\"at\":7}", &record, NULL));
	assert_true(record.lift && !record.whole_zone);
}

static void test_what_the_limiter_writes(void **state)
{
	(void)state;
	struct weir_zone zone = {.name = (char *)(uintptr_t) "removed", .key_count = 1};
	struct weir_text text = {0}, key = {0};
	decision_lift_json(&text, 3, 99, 4, &zone, 1000);
	decision_message_key(&key, &zone, (struct weir_span){.at = "", .length = 0});
	struct weir_message message = {.partition = 3,
	                               .key = {.at = key.at, .length = (uint32_t)key.length},
	                               .payload = {.at = text.at, .length = (uint32_t)text.length}};
	struct decision_record record;
	struct weir_error error = {.text = ""};
	if (decision_record_parse(&message, &record, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_true(record.whole_zone);
	assert_int_equal(99, record.version.offset);
	assert_int_equal(4, record.version.index);
	weir_text_deinit(&text);
	weir_text_deinit(&key);
}

static void test_a_block_without_end(void **state)
{
	(void)state;
	static const char *const ends[] = {"", ",\"until\":null", ",\"until\":9223372036854775807",
	                                   ",\"until\":253402300800000"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct decision_record record;
		char json[256];
		snprintf(json, sizeof json, "{\"id\":\"3-1-0\",\"zone\":\"z\",\"key\":[\"\"],\"action\":\"block\",\"at\":1%s}",
		         ends[i]);
		assert_int_equal(WEIR_OK, parse("z|", json, &record, NULL));
		assert_true(record.until_ms == DECISION_NO_END);
	}
}

static void test_bytes_that_json_cannot_hold(void **state)
{
	(void)state;
	struct decision_record record;
	assert_int_equal(WEIR_OK, parse("z|\xff\x01",
	                                "{\"id\":\"3-1-0\",\"zone\":\"z\",\"key\":[\"\xef\xbf\xbd\\u0001\\u0000\"],"
	                                "\"action\":\"block\",\"at\":1,\"until\":2,\"mode\":\"shadow\"}",
	                                &record, NULL));
	assert_true(weir_span_equal(record.key, weir_span_of("\xff\x01")));
	assert_true(record.shadow);
}

static void test_what_is_none_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *key, *json, *words;
	} cases[] = {
		{NULL, BLOCK, "message key"},
		{"", BLOCK, "message key"},
		{"site", BLOCK, "message key"},
		{"|a", BLOCK, "message key"},
		{"si te|a", BLOCK, "message key"},
		{"shop|203.0.113.9", BLOCK, "\"zone\""},
		{"z|a", "", "not a JSON object"},
		{"z|a", "[]", "not a JSON object"},
		{"z|a", "null", "not a JSON object"},
		{"z|a", "{\"id\":\"3-1-0\"", "not a JSON object"},
		{"z|a", "{}", "\"id\""},
		{"z|a", "{\"id\":3}", "\"id\""},
		{"z|a", "{\"id\":\"4-1-0\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-1\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-1-0x\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-1-\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-99999999999999999999-0\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-1-0\\u0000\"}", "\"id\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"kick\"}", "\"action\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"block\",\"at\":1.5}", "\"at\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"block\",\"at\":-1}", "\"at\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"block\",\"at\":1,\"until\":\"x\"}", "\"until\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"block\",\"at\":1,\"until\":2}", "\"key\""},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"block\",\"at\":1,\"until\":2,\"key\":null}", "no key"},
		{"z|a", "{\"id\":\"3-1-0\",\"zone\":\"z\",\"action\":\"lift\",\"at\":1,\"key\":null}", "no key"},
		{"z|a", "{\"id\":\"3-1-0\",\"id\":\"3-2-0\",\"zone\":\"z\",\"action\":\"lift\",\"at\":1,\"key\":[]}", "JSON"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct decision_record record;
		struct weir_error error = {.text = ""};
		if (parse(cases[i].key, cases[i].json, &record, &error) != WEIR_INVALID)
			fail_msg("case %zu is taken", i);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("case %zu: \"%s\" has no \"%s\"", i, error.text, cases[i].words);
	}
}

static void test_what_is_too_long_is_refused(void **state)
{
	(void)state;
	char key[2000];
	memset(key, 'a', sizeof key - 1);
	key[sizeof key - 1] = '\0';
	key[1] = '|';
	struct decision_record record;
	assert_int_equal(WEIR_INVALID, parse(key, BLOCK, &record, NULL));
	char *json = calloc(DECISION_RECORD_MAX_BYTES + 2, 1);
	memset(json, ' ', DECISION_RECORD_MAX_BYTES + 1);
	assert_int_equal(WEIR_INVALID, parse("z|a", json, &record, NULL));
	free(json);
}

static void test_the_news_that_it_is_over(void **state)
{
	(void)state;
	struct weir_text text = {0};
	decision_record_end_json(&text, weir_span_of(BLOCK), 3, (struct decision_version){.offset = 9, .index = 1}, "end",
	                         1732173655007);
	static const char expected[] = "{\"id\":\"3-9-1\",\"zone\":\"site\",\"key\":[\"203.0.113.9\"],\"action\":\"end\","
								   "\"at\":1732173655007,\"until\":1732173655007}";
	assert_int_equal(strlen(expected), text.length);
	assert_memory_equal(expected, text.at, text.length);
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_block),
		cmocka_unit_test(test_lifts),
		cmocka_unit_test(test_what_the_limiter_writes),
		cmocka_unit_test(test_a_block_without_end),
		cmocka_unit_test(test_bytes_that_json_cannot_hold),
		cmocka_unit_test(test_what_is_none_is_refused),
		cmocka_unit_test(test_what_is_too_long_is_refused),
		cmocka_unit_test(test_the_news_that_it_is_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
