/* SPDX-License-Identifier: Apache-2.0 */
/* A decision as a line: what the format json reads of it is what was decided, to the byte. */
#include "collector/format/format.h"
#include "collector/source/decisions/decision_line.h"
#include "common/json/json.h"
#include "common/record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct weir_policy *policy_of(const char *key)
{
	struct weir_policy *policy;
	struct weir_error error;
	char text[512];
	snprintf(
		text, sizeof text,
		"{\"zones\":[{\"id\":1,\"name\":\"z\",\"key\":%s,\"limits\":[{\"algorithm\":\"uniform\",\"interval\":\"1s\"}]}]}",
		key);
	if (weir_policy_decode(1, text, strlen(text), &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return policy;
}

static struct weir_span span_of(const char *text, size_t length)
{
	return (struct weir_span){.at = text, .length = (uint32_t)length};
}

/* Reads the line by the format json. @param fields  names and what they must be, NULL: absent; ends with a NULL name */
static void assert_read(const struct weir_text *line, int64_t time_ms, const char *const (*fields)[2])
{
	struct weir_field_table table;
	struct weir_error error;
	struct format *format;
	struct weir_record record = {0};
	weir_field_table_init(&table);
	for (size_t i = 0; fields[i][0] != NULL; i++)
		weir_field_table_want(&table, fields[i][0]);
	json_t *json = json_pack("{s:s, s:s}", "type", "json", "unit", "ms"); /* as inputs_format() does */
	json_object_set_new(json, "fields", decision_line_fields(&table));
	struct weir_json config = {.value = json};
	assert_int_equal(format_new(&config, &table, &format, &error), WEIR_OK);
	json_decref(json);
	assert_int_equal(format->parse(format, line->at, (uint32_t)line->length - 1, &record), FORMAT_OK);
	assert_int_equal(format_settle(format, &record), FORMAT_OK);
	assert_int_equal(record.time_ms, time_ms);
	for (size_t i = 0; fields[i][0] != NULL; i++) {
		struct weir_span value = record.fields[weir_field_table_find(&table, weir_span_of(fields[i][0]))];
		if (fields[i][1] == NULL) {
			assert_null(value.at);
			continue;
		}
		assert_int_equal(value.length, strlen(fields[i][1]));
		assert_memory_equal(value.at, fields[i][1], value.length);
	}
	format_free(format);
	weir_field_table_deinit(&table);
}

static void a_decision_has_its_fields(void **state)
{
	(void)state;
	static const char json[] =
		"{\"id\":\"3-1841-17\",\"zone\":\"z\",\"key\":[\"203.0.113.9\",\"a\"],\"action\":\"block\","
		"\"at\":1732173600123,\"until\":1732173655007,\"count\":10,\"mode\":\"enforce\"}";
	static const char key[] = "z|203.0.113.9|a\\|b\\\\\"\xff\x01";
	struct weir_message message = {.key = span_of(key, sizeof key - 1), .payload = weir_span_of(json)};
	struct weir_policy *policy = policy_of("[\"ip\",\"user\"]");
	struct weir_text line = {0};
	uint64_t position;
	assert_true(decision_line_put(&line, &message, policy, &position));
	assert_int_equal(position, (UINT64_C(1841) << 18) + 17 + 1);
	assert_int_equal(line.at[line.length - 1], '\n');
	assert_null(memchr(line.at, '\n', line.length - 1));
	const char *const fields[][2] = {{"zone", "z"},
	                                 {"ip", "203.0.113.9"},
	                                 {"user", "a|b\\\"\xff\x01"},
	                                 {"key", "203.0.113.9|a\\|b\\\\\"\xff\x01"},
	                                 {"action", "block"},
	                                 {"mode", "enforce"},
	                                 {"by", NULL},
	                                 {NULL, NULL}};
	assert_read(&line, INT64_C(1732173600123), fields);
	weir_text_clear(&line);
	assert_true(decision_line_put(&line, &message, NULL, &position)); /* nobody knows the zone */
	const char *const without[][2] = {{"zone", "z"}, {"ip", NULL}, {"user", NULL}, {NULL, NULL}};
	assert_read(&line, INT64_C(1732173600123), without);
	weir_text_deinit(&line);
	weir_policy_free(policy);
}

/* What was served is not decoded a second time; and a key's field cannot pass itself off as the decision's. */
static void a_path_stays_as_it_was_and_own_names_are_kept(void **state)
{
	(void)state;
	static const char json[] =
		"{\"id\":\"0-0-0\",\"zone\":\"z\",\"key\":[\"\",\"\"],\"action\":\"lift\",\"at\":5,\"until\":5,"
		"\"by\":\"ann\",\"reason\":\"\",\"mode\":\"shadow\"}";
	static const char key[] = "z|/a%2f?b#c|block";
	struct weir_message message = {.key = span_of(key, sizeof key - 1), .payload = weir_span_of(json)};
	struct weir_policy *policy = policy_of("[\"path\",\"action\"]");
	struct weir_text line = {0};
	uint64_t position;
	assert_true(decision_line_put(&line, &message, policy, &position));
	assert_int_equal(position, 1);
	const char *const fields[][2] = {
		{"path", "/a%2f?b#c"}, {"action", "lift"}, {"mode", "shadow"}, {"by", "ann"}, {NULL, NULL}};
	assert_read(&line, 5, fields);
	weir_text_deinit(&line);
	weir_policy_free(policy);
}

/* A block that only ends sooner was an event when it began; a lift by a queue is one. */
static void a_block_that_ends_sooner_is_no_event(void **state)
{
	(void)state;
	static const char sooner[] =
		"{\"id\":\"0-1-0\",\"zone\":\"z\",\"key\":[\"a\"],\"action\":\"block\",\"at\":5,\"until\":9,"
		"\"count\":1,\"freed\":true,\"mode\":\"enforce\"}",
					  lift[] =
						  "{\"id\":\"0-2-0\",\"zone\":\"z\",\"key\":[\"a\"],\"action\":\"lift\",\"at\":6,\"until\":6,"
						  "\"count\":0,\"freed\":true,\"mode\":\"enforce\"}";
	struct weir_message message = {.key = weir_span_of("z|a"), .payload = weir_span_of(sooner)};
	struct weir_policy *policy = policy_of("[\"user\"]");
	struct weir_text line = {0};
	uint64_t position;
	assert_false(decision_line_put(&line, &message, policy, &position));
	assert_int_equal(line.length, 0);
	message.payload = weir_span_of(lift);
	assert_true(decision_line_put(&line, &message, policy, &position));
	const char *const fields[][2] = {{"action", "lift"}, {"user", "a"}, {NULL, NULL}};
	assert_read(&line, 6, fields);
	weir_text_deinit(&line);
	weir_policy_free(policy);
}

/* Two within one object, and one whose name has what pointers escape. */
static void fields_that_are_pointers_are_found(void **state)
{
	(void)state;
	static const char json[] =
		"{\"id\":\"0-0-0\",\"zone\":\"z\",\"key\":[\"\",\"\",\"\"],\"action\":\"block\",\"at\":5,"
		"\"until\":5,\"mode\":\"enforce\"}";
	struct weir_message message = {.key = weir_span_of("z|ann|192.0.2.1|c"), .payload = weir_span_of(json)};
	struct weir_policy *policy = policy_of("[\"/request/user\",\"/request/ip\",\"/a~1b/0\"]");
	struct weir_text line = {0};
	uint64_t position;
	assert_true(decision_line_put(&line, &message, policy, &position));
	const char *const fields[][2] = {{"/request/user", "ann"},
	                                 {"/request/ip", "192.0.2.1"},
	                                 {"/a~1b/0", "c"},
	                                 {"/request", NULL},
	                                 {"zone", "z"},
	                                 {NULL, NULL}};
	assert_read(&line, 5, fields);
	weir_text_deinit(&line);
	weir_policy_free(policy);
}

static void what_is_no_decision_gives_no_line(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
	                                  "{",
	                                  "[]",
	                                  "null",
	                                  "{\"zone\":\"z\",\"at\":5}",
	                                  "{\"id\":\"1-2\",\"zone\":\"z\",\"at\":5}",
	                                  "{\"id\":\"1-2-3x\",\"zone\":\"z\",\"at\":5}",
	                                  "{\"id\":\"1-2-262144\",\"zone\":\"z\",\"at\":5}",
	                                  "{\"id\":\"1-2-3\",\"zone\":\"z\"}",
	                                  "{\"id\":\"1-2-3\",\"zone\":\"z\",\"at\":-1}",
	                                  "{\"id\":\"1-2-3\",\"zone\":\"other\",\"at\":5}",
	                                  "{\"id\":\"1-99999999999999999-3\",\"zone\":\"z\",\"at\":5}"};
	struct weir_text line = {0};
	uint64_t position;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct weir_message message = {.key = weir_span_of("z|a"), .payload = weir_span_of(bad[i])};
		assert_false(decision_line_put(&line, &message, NULL, &position));
	}
	assert_int_equal(line.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decision_has_its_fields),
		cmocka_unit_test(a_path_stays_as_it_was_and_own_names_are_kept),
		cmocka_unit_test(a_block_that_ends_sooner_is_no_event),
		cmocka_unit_test(fields_that_are_pointers_are_found),
		cmocka_unit_test(what_is_no_decision_gives_no_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
