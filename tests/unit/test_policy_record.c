/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as a record: written so that it is read as the same, by this weir and by others. */
#include "common/cluster/policy_log.h"
#include "common/frame/frame.h"
#include "tests/unit/policy_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* @param words  how they begin */
static void refuse_with(const char *zones, const char *words)
{
	struct weir_policy *policy = NULL;
	struct weir_error error = {.text = "accepted"};
	enum weir_status status = parse(zones, &policy, &error);
	error.text[strlen(words)] = '\0';
	assert_string_equal(error.text, words);
	assert_int_equal(status, WEIR_INVALID);
}

#define LIMITS "\"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"1m\"}]"
#define ZONE(members) "[{\"name\": \"site\", \"key\": [\"ip\"]," members "}]"
#define DECODE(exempt) "{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"exempt\":[" exempt "]," LIMITS "}]}"

/* What a configuration has is written so that it is read as the same; "verified" is no field of records there. */
static void what_is_exempt_is_read_as_it_was_written(void **state)
{
	(void)state;
	static const char *const entries[] = {
		"\"192.0.2.0/24\"",
		"\"bob\"",
		"{\"agent\": \"monitor*\"}",
		"{\"agent\": {\"is\": [\"a\"], \"not\": [\"b\"]}}",
		"{\"list\": [\"a\"]}",
		"{\"list\": {\"is\": \"a\"}}",
		"{\"list\": \"/a/list\"}",
		"{\"list\": \"https://example.org/list\"}",
		"{\"verified\": [\"googlebot\"]}",
		"{\"verified\": [{\"agent\": \"Ours\", \"hosts\": [\"bots.example.org\"]}, \"yandexbot\"]}",
	};
	static const char *const fields[] = {"\"yes\"",         "true", "404", "[]", "[\"a\"]", "{\"is\": [\"a\"]}",
	                                     "{\"not\": \"a\"}"};
	char text[512];
	struct weir_policy *policy, *again;
	struct weir_error error;
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		snprintf(text, sizeof text, ZONE(LIMITS ", \"exempt\": [%s]"), entries[i]);
		policy = accept(text);
		if (weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error) != WEIR_OK)
			fail_msg("%s: %s", entries[i], error.text);
		assert_string_equal(again->text, policy->text);
		assert_int_equal(again->zones[0].exempt_match_count, policy->zones[0].exempt_match_count);
		assert_int_equal(again->zones[0].exempt_verified_count, policy->zones[0].exempt_verified_count);
		weir_policy_free(again);
		weir_policy_free(policy);
	}
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		snprintf(text, sizeof text, ZONE(LIMITS ", \"exempt\": [{\"verified\": %s}]"), fields[i]);
		refuse_with(text, "weir.json:1: [0].exempt[0].verified");
	}
}

/* An older weir had no robots: what it wrote is a field of records. */
static void an_older_record_may_match_a_field_called_verified(void **state)
{
	(void)state;
	static const char *const entries[] = {DECODE("{\"verified\":[\"yes\"]}"), DECODE("{\"verified\":[\"googlebot\"]}"),
	                                      DECODE("{\"agent\":[\"a\"],\"verified\":{\"not\":[\"yes\"]}}")};
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		struct weir_policy *policy, *again;
		struct weir_error error;
		if (weir_policy_decode(1, entries[i], strlen(entries[i]), &policy, &error) != WEIR_OK)
			fail_msg("%s: %s", entries[i], error.text);
		const struct weir_zone *zone = &policy->zones[0];
		assert_int_equal(zone->exempt_match_count, 1);
		assert_int_equal(zone->exempt_verified_count, 0);
		assert_string_equal(zone->exempt_matches[0].fields[zone->exempt_matches[0].field_count - 1].field, "verified");
		assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
		assert_string_equal(again->text, policy->text);
		weir_policy_free(again);
		weir_policy_free(policy);
	}
}

static void what_could_not_be_read_again_is_not_stored(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(ZONE(LIMITS ", \"match\": {\"path\": [\"/\"]}"));
	struct weir_error error;
	assert_int_equal(weir_policy_follow(policy, NULL, 0, &error), WEIR_OK);
	policy->zones[0].match.fields[0].values[0].text[0] = '\0';
	assert_int_equal(weir_policy_follow(policy, NULL, 0, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "zones: would be stored as what no weir reads"));
	weir_policy_free(policy);
}

/* What a weir of frame version 1 would refuse, or take for something else, it must not take. */
static void only_a_policy_that_says_more_is_of_the_newer_version(void **state)
{
	(void)state;
	static const struct {
		const char *zones;
		char version;
	} cases[] = {
		{ZONE(LIMITS), 1},
		{ZONE(LIMITS ", \"history\": true, \"sources\": [\"a\"]"), 1},
		{ZONE(LIMITS ", \"exempt\": [\"10.0.0.0/8\", {\"agent\": \"a\"}, {\"list\": \"/a/list\"}]"), 1},
		{ZONE(LIMITS ", \"exempt\": {\"list\": \"https://example.org/list\"}"), 2},
		{ZONE(LIMITS ", \"exempt\": {\"verified\": [\"googlebot\"]}"), 2},
		{ZONE(LIMITS ", \"history\": {\"fields\": [\"path\"]}"), 2},
		{"[{\"name\": \"a\", \"key\": [\"ip\"]," LIMITS "}, {\"name\": \"b\", \"key\": [\"ip\"]," LIMITS
	     ", \"exempt\": {\"verified\": [\"bingbot\"]}}]",
	     2},
	};
	struct weir_frame_reader *reader = weir_frame_reader_new();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_policy *policy = accept(cases[i].zones);
		struct weir_frame frame;
		struct weir_error error;
		size_t length;
		char *message = weir_policy_message(policy, weir_span_of(policy->text), 5, &length);
		if (message[2] != cases[i].version)
			fail_msg("%s: %d", cases[i].zones, message[2]);
		assert_int_equal(weir_frame_decode(reader, (struct weir_span){message, (uint32_t)length}, &frame, &error),
		                 WEIR_OK);
		assert_true(weir_span_equal(frame.body, weir_span_of(policy->text)));
		free(message);
		weir_policy_free(policy);
	}
	weir_frame_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_exempt_is_read_as_it_was_written),
		cmocka_unit_test(an_older_record_may_match_a_field_called_verified),
		cmocka_unit_test(what_could_not_be_read_again_is_not_stored),
		cmocka_unit_test(only_a_policy_that_says_more_is_of_the_newer_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
