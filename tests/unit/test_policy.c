/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: what is accepted, what is refused and how, the canonical text, and the sentences. */
#include "common/policy/policy.h"

#include "common/base/suggest.h"
#include "tests/unit/policy_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void refuse(const char *zones, const char *words)
{
	struct weir_policy *policy = NULL;
	struct weir_error error = {.text = "accepted"};
	enum weir_status status = parse(zones, &policy, &error);
	assert_string_equal(error.text, words);
	assert_int_equal(status, WEIR_INVALID);
}

/* The same by how the words begin. */
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
#define LIMIT(members) ZONE("\"limits\": [{" members "}]")

static const char full[] =
	"[ {\"id\": 1, \"name\": \"site\", \"description\": \"requests per client\", \"key\": [\"ip\"],"
	"\"match\":  { \"method\": [\"POST\"], \"path\": [\"/login\", \"/api/*\"], \"status\": [\"4xx\", 200] },"
	"\"exempt\": [\"192.0.2.7\", \"10.0.0.0/8\", \"alice\", \"10.0.0.0/8\", \"::ffff:10.0.0.0/104\"],"
	"\"limits\": ["
	"{ \"algorithm\": \"sliding_window\", \"rate\": 10,   \"window\": \"1m\" },"
	"{ \"algorithm\": \"fixed_window\",   \"rate\": 100,  \"window\": \"1h\", \"offset\": \"10m\" },"
	"{ \"algorithm\": \"fixed_window\",   \"rate\": 1000, \"window\": \"1d\" },"
	"{ \"algorithm\": \"uniform\", \"interval\": \"250ms\" },"
	"{ \"algorithm\": \"token_bucket\", \"rate\": 5, \"window\": \"60s\", \"penalize\": true },"
	"{ \"algorithm\": \"gcra\", \"burst\": 0, \"rate\": 3, \"window\": \"1s\" },"
	"{ \"algorithm\": \"queue\", \"length\": 2, \"hold\": \"90s\", \"done\": {\"path\": \"/out\"} } ],"
	"\"count\": \"passed\", \"block_for\": \"0s\", \"mode\": \"enforce\", \"history\": false },"
	"{\"id\": 7, \"name\": \"net\", \"key\": [{\"field\": \"ip\", \"prefix6\": 64}, \"user\"],"
	"\"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1h\", \"precision\": \"1m\"}],"
	"\"count\": \"all\", \"block_for\": \"10m\", \"mode\": \"shadow\", \"history\": true } ]";

static const char full_text[] =
	"{\"zones\":[{\"block_for\":\"0s\",\"count\":\"passed\",\"description\":\"requests per client\","
	"\"exempt\":[\"10.0.0.0/8\",\"192.0.2.7\",\"alice\"],\"history\":false,\"id\":1,\"key\":[\"ip\"],\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"precision\":\"1ms\",\"rate\":10,\"window\":\"1m\"},"
	"{\"algorithm\":\"fixed_window\",\"offset\":\"10m\",\"rate\":100,\"window\":\"1h\"},"
	"{\"algorithm\":\"fixed_window\",\"offset\":\"0s\",\"rate\":1000,\"window\":\"1d\"},"
	"{\"algorithm\":\"uniform\",\"interval\":\"250ms\"},"
	"{\"algorithm\":\"token_bucket\",\"burst\":5,\"penalize\":true,\"rate\":5,\"window\":\"1m\"},"
	"{\"algorithm\":\"gcra\",\"burst\":0,\"rate\":3,\"window\":\"1s\"},"
	"{\"algorithm\":\"queue\",\"done\":{\"path\":[\"/out\"]},\"hold\":\"90s\",\"length\":2}],"
	"\"match\":{\"method\":[\"POST\"],\"path\":[\"/login\",\"/api/*\"],\"status\":[\"4xx\",\"200\"]},"
	"\"mode\":\"enforce\",\"name\":\"site\"},"
	"{\"block_for\":\"10m\",\"count\":\"all\",\"description\":\"\",\"exempt\":[],\"history\":true,\"id\":7,"
	"\"key\":[{\"field\":\"ip\",\"prefix4\":32,\"prefix6\":64},\"user\"],\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"precision\":\"1m\",\"rate\":1,\"window\":\"1h\"}],"
	"\"match\":{},\"mode\":\"shadow\",\"name\":\"net\"}]}";

static void reads_every_part_of_a_zone(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(full);
	assert_int_equal(policy->zone_count, 2);
	const struct weir_zone *zone = weir_policy_zone(policy, 1);
	assert_string_equal(zone->name, "site");
	assert_string_equal(zone->description, "requests per client");
	assert_int_equal(zone->key_count, 1);
	assert_string_equal(zone->key[0].field, "ip");
	assert_false(zone->key[0].grouped);
	assert_int_equal(zone->match.field_count, 3);
	assert_string_equal(zone->match.fields[1].field, "path");
	assert_false(zone->match.fields[1].values[0].wildcard);
	assert_true(zone->match.fields[1].values[1].wildcard);
	assert_string_equal(zone->match.fields[2].values[1].text, "200");
	assert_int_equal(zone->exempt_network_count, 2);
	assert_int_equal(zone->exempt_word_count, 1);
	assert_int_equal(zone->limit_count, 7);
	assert_int_equal(zone->limits[1].own[0], 600000);
	assert_int_equal(zone->limits[3].rate, 1);
	assert_int_equal(zone->limits[3].window_ms, 250);
	assert_int_equal(zone->limits[4].burst, 5);
	assert_int_equal(zone->limits[4].own[0], 1);
	assert_int_equal(zone->limits[5].burst, 0);
	assert_int_equal(zone->limits[6].window_ms, 90000);
	assert_string_equal(zone->limits[6].done.fields[0].values[0].text, "/out");
	assert_false(zone->count_all);
	assert_int_equal(zone->mode, WEIR_ENFORCE);
	zone = weir_policy_zone(policy, 7);
	assert_string_equal(zone->name, "net");
	assert_true(zone->key[0].grouped);
	assert_int_equal(zone->key[0].prefix4, 32);
	assert_int_equal(zone->key[0].prefix6, 64);
	assert_true(zone->count_all);
	assert_int_equal(zone->block_for_ms, 600000);
	assert_int_equal(zone->mode, WEIR_SHADOW);
	assert_true(zone->history);
	assert_null(weir_policy_zone(policy, 2));
	assert_null(weir_policy_zone(policy, 0));
	weir_policy_free(policy);
}

static void history_may_name_fields(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(ZONE(LIMITS ", \"history\": {\"fields\": [\"path\", \"tls\", \"agent\"]}")),
					   *again = NULL;
	struct weir_error error;
	assert_true(policy->zones[0].history);
	assert_non_null(strstr(policy->text, "\"history\":{\"fields\":[\"path\",\"tls\",\"agent\"]}"));
	assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_string_equal(again->text, policy->text);
	assert_true(again->zones[0].history && again->zones[0].history_field_count == 3);
	char *words = weir_zone_describe(&again->zones[0]);
	assert_non_null(strstr(words, "; every event is kept as history, with path, tls and agent"));
	free(words);
	weir_policy_free(policy);
	weir_policy_free(again);
}

/* Where both count nothing is said, so that a weir that does not know it reads the policy. */
static void a_zone_may_count_lines_or_checks_alone(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(ZONE(LIMITS ", \"feed\": \"check\"")), *again = NULL;
	struct weir_error error;
	assert_int_equal(policy->zones[0].feed, WEIR_FEED_CHECK);
	assert_true(weir_policy_is_extended(policy));
	assert_non_null(strstr(policy->text, "\"feed\":\"check\""));
	assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_int_equal(again->zones[0].feed, WEIR_FEED_CHECK);
	assert_int_equal(weir_zone_takes_checks(&again->zones[0], &error), WEIR_OK);
	weir_policy_free(policy);
	weir_policy_free(again);
	policy = accept(ZONE(LIMITS ", \"feed\": \"log\""));
	assert_int_equal(weir_zone_takes_checks(&policy->zones[0], &error), WEIR_INVALID);
	char *words = weir_zone_describe(&policy->zones[0]);
	assert_non_null(strstr(words, "; log lines alone count"));
	free(words);
	weir_policy_free(policy);
	policy = accept(ZONE(LIMITS ", \"feed\": \"both\""));
	assert_null(strstr(policy->text, "feed"));
	assert_false(weir_policy_is_extended(policy));
	weir_policy_free(policy);
	refuse(ZONE(LIMITS ", \"feed\": \"lines\""),
	       "weir.json:1: [0].feed: must be one of \"both\", \"log\", \"check\", not \"lines\"");
}

/* Where they are not it is not written, so that a weir that does not know it reads the policy. */
static void a_zones_checks_may_be_durable(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(ZONE(LIMITS ", \"durable\": true")), *again = NULL;
	struct weir_error error;
	assert_true(policy->zones[0].durable && weir_policy_is_extended(policy));
	assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_true(again->zones[0].durable);
	assert_string_equal(again->text, policy->text);
	char *words = weir_zone_describe(&policy->zones[0]);
	assert_non_null(strstr(words, "; checks are answered once the log has them"));
	free(words);
	weir_policy_free(again);
	again = accept(ZONE(LIMITS ", \"durable\": false"));
	assert_null(strstr(again->text, "durable"));
	assert_false(weir_policy_is_extended(again));
	char *settings = weir_zone_settings(&policy->zones[0]), *plain = weir_zone_settings(&again->zones[0]);
	assert_string_equal(settings, plain); /* nobody else is blocked for it */
	free(settings);
	free(plain);
	weir_policy_free(policy);
	weir_policy_free(again);
	refuse(ZONE(LIMITS ", \"durable\": true, \"feed\": \"log\""),
	       "weir.json:1: [0].durable: is about checks, and with the feed \"log\" the zone takes none");
}

static void the_canonical_text_is_the_policy(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(full), *again = NULL;
	assert_string_equal(policy->text, full_text);
	struct weir_error error;
	assert_int_equal(weir_policy_decode(12, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_string_equal(again->text, policy->text);
	assert_int_equal(again->version, 12);
	assert_int_equal(policy->version, 0);
	for (uint32_t i = 0; i < policy->zones[0].limit_count; i++)
		assert_true(weir_limit_equal(&policy->zones[0].limits[i], &again->zones[0].limits[i]));
	assert_int_equal(weir_policy_decode(12, "{\"zone\":[]}", 11, &again, &error), WEIR_INVALID);
	weir_policy_free(policy);
	weir_policy_free(again);
}

static void ids_are_given_by_place_where_there_are_none(void **state)
{
	(void)state;
	struct weir_policy *policy =
		accept("[{\"name\": \"a\", \"key\": []," LIMITS "}, {\"name\": \"b\", \"key\": []," LIMITS "}]");
	assert_int_equal(policy->zones[0].id, 1);
	assert_int_equal(policy->zones[1].id, 2);
	weir_policy_free(policy);
	policy =
		accept("[{\"name\": \"a\", \"key\": []," LIMITS "},\n {\"id\": 7, \"name\": \"b\", \"key\": []," LIMITS "}]");
	assert_int_equal(policy->zones[0].id, 8);
	assert_int_equal(policy->zones[1].id, 7);
	weir_policy_free(policy);
	refuse("[{\"id\": 3, \"name\": \"a\", \"key\": []," LIMITS "},\n {\"id\": 3, \"name\": \"b\", \"key\": []," LIMITS
	       "}]",
	       "weir.json:2: [1].id: zone \"a\" already has this id");
	refuse("[{\"name\": \"a\", \"key\": []," LIMITS "},\n {\"name\": \"a\", \"key\": []," LIMITS "}]",
	       "weir.json:2: [1].name: zone \"a\" already has this name");
	refuse("[{\"id\": 65536, \"name\": \"a\", \"key\": []," LIMITS "}]",
	       "weir.json:1: [0].id: must be a whole number from 1 to 65535, not 65536");
}

#define NAMED(name) "{\"name\": \"" name "\", \"key\": [\"ip\"]," LIMITS "}"

/* However the zones of a configuration are ordered, inserted and deleted, a name keeps its id, and none gets another's. */
static void a_name_keeps_its_id(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"[" NAMED("a") ", " NAMED("b") ", " NAMED("c") "]",
		"[" NAMED("c") ", " NAMED("a") "]",
		"[" NAMED("new") ", " NAMED("c") "]",
		"[" NAMED("b") ", {\"id\": 9, \"name\": \"nine\", \"key\": []," LIMITS
					   "}, " NAMED("other") ", " NAMED("new") "]",
	};
	static const uint32_t ids[][4] = {{1, 2, 3}, {3, 1}, {4, 3}, {2, 9, 10, 4}};
	struct weir_policy *history[4];
	struct weir_error error;
	for (size_t i = 0; i < 4; i++) {
		history[i] = accept(texts[i]);
		for (int again = 0; again < 2; again++) /* twice gives the same */
			assert_int_equal(weir_policy_give_ids(history[i], (const struct weir_policy *const *)history, i, &error),
			                 WEIR_OK);
		for (uint32_t k = 0; k < history[i]->zone_count; k++)
			assert_int_equal(history[i]->zones[k].id, ids[i][k]);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(weir_policy_check_successor(history[k], history[i], &error), WEIR_OK);
		struct weir_policy *record;
		assert_int_equal(weir_policy_decode(i + 1, history[i]->text, strlen(history[i]->text), &record, &error),
		                 WEIR_OK);
		assert_int_equal(record->zones[0].id, ids[i][0]);
		weir_policy_free(record);
	}
	for (size_t i = 0; i < 4; i++)
		weir_policy_free(history[i]);
}

static void ids_run_out(void **state)
{
	(void)state;
	struct weir_policy *last =
		accept("[{\"id\": 65535, \"name\": \"last\", \"key\": []," LIMITS "}, " NAMED("low") "]");
	assert_int_equal(last->zones[1].id, 1); /* there is none above: the lowest that is free */
	weir_policy_free(last);
}

static void refuses_zones_in_words(void **state)
{
	(void)state;
	refuse("{}", "weir.json:1: must be a list, [...], not an object");
	refuse("[]", "weir.json:1: must be a list of 1 to 1024 elements, not of 0");
	refuse("[{}]", "weir.json:1: [0].name: is missing; a short name for people and decisions, such as \"site\"");
	refuse("[{\"name\": \"a b\"}]",
	       "weir.json:1: [0].name: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -, not \"a b\"");
	refuse("[{\"name\": \"a\"}]",
	       "weir.json:1: [0].key: is missing; the fields to count by, such as [\"ip\"], or [] to "
	       "count all together");
	refuse("[{\"name\": \"a\", \"key\": \"ip\"}]", "weir.json:1: [0].key: must be a list, [...], not \"ip\"");
	refuse("[{\"name\": \"a\", \"key\": [\"ip\", \"ip\"]}]", "weir.json:1: [0].key[1]: \"ip\" is in the key twice");
	refuse("[{\"name\": \"a\", \"key\": [\"\"]}]", "weir.json:1: [0].key[0]: a field's name must have 1 to 256 bytes");
	refuse("[{\"name\": \"a\", \"key\": [{\"field\": \"ip\", \"prefix4\": 33}]}]",
	       "weir.json:1: [0].key[0].prefix4: must be a whole number from 0 to 32, not 33");
	refuse("[{\"name\": \"a\", \"key\": [{\"prefix4\": 3}]}]",
	       "weir.json:1: [0].key[0].field: is missing; the name of a field, such as \"ip\"");
	refuse(
		"[{\"name\": \"a\", \"keys\": []}]",
		"weir.json:1: [0]: unknown key \"keys\"; did you mean \"key\"? (known: id, name, description, key, match, exempt, "
		"limits, count, block_for, forgive_after, mode, history, feed, durable, sources)");
	refuse(
		"[{\"name\": \"a\", \"key\": []}]",
		"weir.json:1: [0].limits: is missing; for example [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": "
		"\"1m\"}]");
	refuse(ZONE(LIMITS ", \"history\": {}"),
	       "weir.json:1: [0].history.fields: is missing; names of fields, such as [\"path\", \"status\"]");
	refuse(ZONE(LIMITS ", \"history\": {\"fields\": []}"),
	       "weir.json:1: [0].history.fields: must be a list of 1 to 16 elements, not of 0");
	refuse(ZONE(LIMITS ", \"history\": {\"field\": [\"path\"]}"),
	       "weir.json:1: [0].history: unknown key \"field\"; did you mean \"fields\"? (known: fields)");
	refuse(ZONE(LIMITS ", \"history\": {\"fields\": [\"path\", \"path\"]}"),
	       "weir.json:1: [0].history.fields[1]: \"path\" is named twice");
	refuse(ZONE(LIMITS ", \"history\": {\"fields\": [\"\"]}"),
	       "weir.json:1: [0].history.fields[0]: a field's name must have 1 to 256 bytes");
	refuse(ZONE(LIMITS ", \"history\": {\"fields\": [7]}"),
	       "weir.json:1: [0].history.fields[0]: must be a string, not 7");
	refuse(ZONE("\"limits\": []"), "weir.json:1: [0].limits: must be a list of 1 to 8 elements, not of 0");
	refuse(
		ZONE(LIMITS ", \"mode\": \"enforced\""),
		"weir.json:1: [0].mode: must be one of \"enforce\", \"shadow\", not \"enforced\"; did you mean \"enforce\"?");
	refuse(ZONE(LIMITS ", \"count\": 1"), "weir.json:1: [0].count: must be one of \"passed\", \"all\", not 1");
	refuse(
		ZONE(LIMITS ", \"block_for\": \"400d\""),
		"weir.json:1: [0].block_for: must be a time from \"0s\" to \"366d\", a whole number of ms, s, m, h or d such as "
		"\"10s\", not \"400d\"");
}

#define COUNTS(name, zone) \
	"{\"name\": \"" name "\", \"key\": [], \"sources\": [\"decisions\"], \"match\": {\"zone\": " zone "}," LIMITS "}"

/* A policy in which some zone counts its own decisions is refused, with the circle in words. */
static void no_zone_counts_its_own_decisions(void **state)
{
	(void)state;
	static const char *const good[] = {
		COUNTS("a", "\"b\""),
		COUNTS("a", "{\"not\": [\"a\"]}"),
		COUNTS("aa", "\"b*\"") "," COUNTS("ab", "\"aa\"") "," COUNTS("ac", "[\"aa\", \"ab\"]"),
		COUNTS("a", "{\"is\": \"*\", \"not\": [\"a\"]}"),
		COUNTS("10.0.0.1", "{\"not\": [\"10.0.0.1\"]}"),
		"{\"name\": \"a\", \"key\": [], \"match\": {\"zone\": \"a\"}," LIMITS "}", /* of lines that have such a field */
	};
	static const struct {
		const char *zones, *words;
	} bad[] = {
		{COUNTS("a", "\"a\""),
	     "[0].match: this zone would count its own decisions: \"a\" counts \"a\"; name the zones"},
		{"{\"name\": \"a\", \"key\": [], \"sources\": [\"x\", \"decisions\"]," LIMITS "}", "\"a\" counts \"a\""},
		{COUNTS("abc", "\"a*c\""), "\"abc\" counts \"abc\""},
		{COUNTS("a", "{\"not\": [\"b\"]}"), "\"a\" counts \"a\""},
		{COUNTS("a", "{\"not\": [\"10.0.0.0/8\", \"10.0.0.1\"]}"), "\"a\" counts \"a\""},
		{COUNTS("z", "\"a\"") "," COUNTS("a", "[\"x\", \"b\"]") "," COUNTS("b", "\"c\"") "," COUNTS("c", "\"a\""),
	     "[1].match: this zone would count its own decisions: \"a\" counts \"b\" counts \"c\" counts \"a\""},
	};
	char text[4096];
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(text, sizeof text, "[%s]", good[i]);
		weir_policy_free(accept(text));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct weir_json_document *document;
		struct weir_policy *policy;
		struct weir_error error;
		snprintf(text, sizeof text, "[%s]", bad[i].zones);
		assert_int_equal(weir_json_parse("weir.json", text, strlen(text), &document, &error), WEIR_OK);
		struct weir_json root = weir_json_root(document);
		assert_int_equal(weir_policy_parse(&root, NULL, &policy, &error), WEIR_INVALID);
		if (strstr(error.text, bad[i].words) == NULL)
			fail_msg("\"%s\" is not in \"%s\"", bad[i].words, error.text);
		weir_json_document_free(document);
	}
}

static void a_list_of_blocks_gets_longer(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(ZONE(LIMITS ", \"block_for\": [\"10m\", \"1h\", \"60m\", \"1d\"]"));
	const struct weir_zone *zone = &policy->zones[0];
	assert_int_equal(zone->block_for_ms, 600000);
	assert_int_equal(zone->forgive_after_ms, 86400000);
	assert_int_equal(weir_zone_block_ms(zone, 1), 600000);
	assert_int_equal(weir_zone_block_ms(zone, 3), 3600000);
	assert_int_equal(weir_zone_block_ms(zone, 4), 86400000);
	assert_int_equal(weir_zone_block_ms(zone, 65535), 86400000);
	assert_non_null(strstr(policy->text, "\"block_for\":[\"10m\",\"1h\",\"1h\",\"1d\"]"));
	assert_non_null(strstr(policy->text, "\"forgive_after\":\"1d\""));
	char *words = weir_zone_describe(zone);
	assert_non_null(strstr(words, "; a breach blocks until the limit would pass again, for at least 10m, the next time "
	                              "1h, then 1h, then 1d, and is forgiven 1d after its end"));
	free(words);
	weir_policy_free(policy);
	policy = accept(ZONE(LIMITS ", \"block_for\": [\"1m\"], \"forgive_after\": \"7d\""));
	assert_int_equal(policy->zones[0].forgive_after_ms, 7 * 86400000);
	assert_int_equal(policy->zones[0].block_list_count, 1);
	weir_policy_free(policy);
	policy = accept(ZONE(LIMITS ", \"block_for\": \"1m\""));
	assert_int_equal(policy->zones[0].block_list_count, 0);
	assert_int_equal(weir_zone_block_ms(&policy->zones[0], 7), 60000);
	assert_null(strstr(policy->text, "forgive_after"));
	weir_policy_free(policy);
	refuse(ZONE(LIMITS ", \"block_for\": []"),
	       "weir.json:1: [0].block_for: must be a list of 1 to 16 elements, not of 0");
	refuse(ZONE(LIMITS ", \"block_for\": [\"0s\"]"),
	       "weir.json:1: [0].block_for[0]: must be a time from \"1ms\" to \"366d\", a whole number of ms, s, m, h or d "
	       "such as \"10s\", not \"0s\"");
	refuse(ZONE(LIMITS ", \"block_for\": [\"1h\", \"59m\"]"),
	       "weir.json:1: [0].block_for[1]: is shorter than the block before it");
	refuse(
		ZONE(LIMITS ", \"block_for\": \"1h\", \"forgive_after\": \"1d\""),
		"weir.json:1: [0].forgive_after: needs a list in \"block_for\", such as [\"10m\", \"1h\", \"1d\"]: without one, "
		"every block lasts as long as the first");
}

static void refuses_limits_in_words(void **state)
{
	(void)state;
	char known[256], words[512];
	weir_list_names(weir_algorithm_names(), "", known, sizeof known);
	snprintf(words, sizeof words, "weir.json:1: [0].limits[0].algorithm: is missing; one of %s", known);
	refuse(LIMIT("\"rate\": 1"), words);
	weir_list_names(weir_algorithm_names(), "\"", known, sizeof known);
	snprintf(words, sizeof words, "weir.json:1: [0].limits[0].algorithm: must be one of %s, not \"sliding\"", known);
	refuse(LIMIT("\"algorithm\": \"sliding\""), words);
	refuse_with(
		LIMIT("\"algoritm\": \"gcra\""),
		"weir.json:1: [0].limits[0]: unknown key \"algoritm\"; did you mean \"algorithm\"? (known: algorithm, rate, "
		"window, precision, lateness, offset, interval, burst, penalize, length, hold, done");
	refuse(
		LIMIT("\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\",\n\"burst\": 2"),
		"weir.json:2: [0].limits[0].burst: is not a setting of sliding_window, which has rate, window, precision, lateness");
	refuse(LIMIT("\"algorithm\": \"sliding_window\", \"window\": \"1s\""),
	       "weir.json:1: [0].limits[0].rate: is missing; how many events a window may hold, such as 10");
	refuse(LIMIT("\"algorithm\": \"sliding_window\", \"rate\": 0, \"window\": \"1s\""),
	       "weir.json:1: [0].limits[0].rate: must be a whole number from 1 to 1000000000, not 0");
	refuse(
		LIMIT("\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1s\", \"precision\": \"2s\""),
		"weir.json:1: [0].limits[0].precision: must be a time from \"1ms\" to \"1s\", a whole number of ms, s, m, h or d "
		"such as \"10s\", not \"2s\"");
	refuse(
		LIMIT("\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"1s\", \"offset\": \"1s\""),
		"weir.json:1: [0].limits[0].offset: must be a time from \"0s\" to \"999ms\", a whole number of ms, s, m, h or d "
		"such as \"10s\", not \"1s\"");
	refuse(LIMIT("\"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": \"366d\", \"burst\": 1000000000"),
	       "weir.json:1: [0].limits[0]: burst times window, in ms, must be at most 4000000000000000000");
	refuse(
		LIMIT("\"algorithm\": \"gcra\", \"rate\": 1, \"window\": \"1s\""),
		"weir.json:1: [0].limits[0].burst: is missing; how many events may come at once beyond the first, such as 5, or "
		"0");
	refuse(LIMIT("\"algorithm\": \"queue\", \"length\": 1, \"hold\": \"1s\", \"done\": {}"),
	       "weir.json:1: [0].limits[0].done: must name at least one field: it would match every record");
	refuse(LIMIT("\"algorithm\": \"uniform\""),
	       "weir.json:1: [0].limits[0].interval: is missing; the least time between two events, such as \"500ms\"");
}

static void refuses_matches_in_words(void **state)
{
	(void)state;
	refuse(ZONE(LIMITS ", \"match\": [1]"), "weir.json:1: [0].match: must be an object of at most 16 fields, such as "
	                                        "{\"path\": [\"/login\", \"/api/*\"]}");
	refuse(ZONE(LIMITS ", \"match\": {\"status\": [\"2*\"]}"),
	       "weir.json:1: [0].match.status[0]: must be a status such as 404, or a class such as \"4xx\", not \"2*\"");
	refuse(ZONE(LIMITS ", \"match\": {\"status\": 20}"),
	       "weir.json:1: [0].match.status: must be a status such as 404, or a class such as \"4xx\", not \"20\"");
	refuse(ZONE(LIMITS ", \"match\": {\"path\": []}"),
	       "weir.json:1: [0].match.path: must be a list of 1 to 4096 elements, not of 0");
	refuse(ZONE(LIMITS ", \"match\": {\"path\": [{}]}"),
	       "weir.json:1: [0].match.path[0]: must be a string, or for a status a number such as 404");
	refuse(ZONE(LIMITS ", \"match\": {\"path\": \"\"}"),
	       "weir.json:1: [0].match.path: must have 1 to 4096 bytes (a field that is empty counts as absent)");
}

static void a_single_value_stands_for_a_list_of_one(void **state)
{
	(void)state;
	struct weir_policy *policy =
		accept(ZONE(LIMITS ", \"match\": {\"path\": \"/a\", \"status\": 404, \"port\": [443, true]}"));
	assert_non_null(
		strstr(policy->text, "\"match\":{\"path\":[\"/a\"],\"port\":[\"443\",\"true\"],\"status\":[\"404\"]}"));
	weir_policy_free(policy);
}

/* An address has one spelling, in "match" as in "exempt"; and what only looks like one is refused in both. */
static void an_address_is_itself_however_it_is_written(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(
		ZONE(LIMITS ", \"match\": {\"ip\": [\"[2001:DB8::1]\", \"::FFFF:10.0.0.1\", \"2001:DB8:0::/48\"], \"build\": "
	                "[\"1.2.*\", \"192.0.2.1/index.html\"]}, \"exempt\": [\"[2001:DB8::2]\", \"fe80::1%eth0\"]"));
	assert_non_null(strstr(policy->text, "\"ip\":[\"2001:db8::1\",\"10.0.0.1\",\"2001:db8::/48\"]"));
	assert_non_null(strstr(policy->text, "\"build\":[\"1.2.*\",\"192.0.2.1/index.html\"]"));
	assert_non_null(strstr(policy->text, "\"exempt\":[\"2001:db8::2\",\"fe80::1\"]"));
	weir_policy_free(policy);
	refuse(
		ZONE(LIMITS ", \"match\": {\"ip\": \"192.0.2.*\"}"),
		"weir.json:1: [0].match.ip: \"192.0.2.*\" is a wildcard in an address; give a network such as 192.0.2.0/24, or a "
		"range such as 192.0.2.1-192.0.2.9");
	refuse(ZONE(LIMITS ", \"match\": {\"ip\": \"192.0.2.1/x\"}"),
	       "weir.json:1: [0].match.ip: \"192.0.2.1/x\" is not a network: the part after \"/\" is not a prefix length");
}

/* What all zones have is in each of them as if it stood there, whichever way it is given; words are refused. */
static void what_all_zones_exempt_stands_in_each(void **state)
{
	(void)state;
	static const char
		text[] =
			"{\"exempt\": [\"192.0.2.0/24\", {\"agent\": [\"monitor*\"]}, {\"list\": \"/a/list\"}],"
			" \"zones\": [{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"10.0.0.0/8\", {\"list\": \"/a/list\"}]," LIMITS
			"}, {\"name\": \"b\", \"key\": [\"user\"]," LIMITS "}]}",
		own[] = "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"192.0.2.0/24\", \"10.0.0.0/8\", {\"agent\": "
				"[\"monitor*\"]}, {\"list\": \"/a/list\"}]," LIMITS
				"}, {\"name\": \"b\", \"key\": [\"user\"], \"exempt\": [\"192.0.2.0/24\", {\"agent\": "
				"[\"monitor*\"]}, {\"list\": \"/a/list\"}]," LIMITS "}]",
		word[] = "{\"exempt\": [\"10.0.0.0/8\", \"alice\"], \"zones\": " ZONE(LIMITS) "}";
	struct weir_policy *policy = NULL, *same = accept(own);
	struct weir_json_document *document = NULL;
	struct weir_error error;
	assert_int_equal(weir_json_parse("weir.json", text, strlen(text), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document), zones = weir_json_member(&root, "zones"),
					 exempt = weir_json_member(&root, "exempt");
	assert_int_equal(weir_policy_parse(&zones, &exempt, &policy, &error), WEIR_OK);
	assert_string_equal(policy->text, same->text);
	assert_string_equal(weir_exempt_place(&root, 0, "/a/list").path, "zones[0].exempt[1].list");
	assert_string_equal(weir_exempt_place(&root, 1, "/a/list").path, "exempt[2].list");
	weir_policy_free(policy);
	weir_policy_free(same);
	weir_json_document_free(document);
	assert_int_equal(weir_json_parse("weir.json", word, strlen(word), &document, &error), WEIR_OK);
	root = weir_json_root(document), zones = weir_json_member(&root, "zones"),
	exempt = weir_json_member(&root, "exempt");
	assert_int_equal(weir_policy_parse(&zones, &exempt, &policy, &error), WEIR_INVALID);
	assert_string_equal(error.text,
	                    "weir.json:1: exempt[1]: \"alice\" is no address: a word is compared with the key of a "
	                    "zone, so give it to that zone's \"exempt\", or name its field, as in {\"user\": "
	                    "[\"...\"]}");
	weir_json_document_free(document);
}

static void robots_are_named_or_described(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(
		ZONE(LIMITS
	         ", \"exempt\": {\"verified\": [\"bingbot\", {\"agent\": \"Ours\", \"hosts\": [\"bots.example.org\"]}]}"));
	assert_non_null(strstr(policy->text, ",{\"agent\":\"Ours\",\"hosts\":[\"bots.example.org\"]}]}"));
	const struct weir_verified *bing = &policy->zones[0].exempt_verified[0], *ours = bing + 1;
	assert_true(weir_verified_claims(bing, weir_span_of("Mozilla/5.0 (compatible; BINGbot/2.0)")));
	assert_false(weir_verified_claims(bing, weir_span_of("bin")));
	assert_true(weir_verified_is_host(bing, "msnbot-1.search.MSN.com") &&
	            weir_verified_is_host(bing, "search.msn.com"));
	assert_false(weir_verified_is_host(bing, "evilsearch.msn.com") || weir_verified_is_host(bing, "msn.com") ||
	             weir_verified_is_host(bing, "search.msn.com.evil.example"));
	assert_true(weir_verified_is_host(ours, "a.bots.example.org"));
	struct weir_policy *again = NULL;
	struct weir_error error;
	assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_string_equal(again->text, policy->text);
	assert_string_equal(again->zones[0].exempt_verified[0].name, "bingbot");
	assert_null(again->zones[0].exempt_verified[1].name);
	weir_policy_free(again);
	weir_policy_free(policy);
	refuse_with(ZONE(LIMITS ", \"exempt\": {\"verified\": [\"googelbot\"]}"),
	            "weir.json:1: [0].exempt.verified[0]: must be one of \"googlebot\", \"bingbot\"");
	refuse(ZONE(LIMITS ", \"exempt\": {\"verified\": [{\"agent\": \"x\", \"hosts\": [\"com\"]}]}"),
	       "weir.json:1: [0].exempt.verified[0].hosts[0]: must be a domain such as \"crawl.example.org\", not \"com\"");
	static const char *const no_domains[] = {"*.example.org", "x*.com", "crawl*example.org", "a.b*.example.org",
	                                         "a..b"};
	for (size_t i = 0; i < sizeof no_domains / sizeof *no_domains; i++) {
		char text[512];
		snprintf(text, sizeof text,
		         ZONE(LIMITS ", \"exempt\": {\"verified\": [{\"agent\": \"x\", \"hosts\": [\"%s\"]}]}"), no_domains[i]);
		refuse_with(text, "weir.json:1: [0].exempt.verified[0].hosts[0]: must be a domain such as");
	}
	refuse(ZONE(LIMITS ", \"exempt\": {\"verified\": [{\"agent\": \"\", \"hosts\": [\"a.b\"]}]}"),
	       "weir.json:1: [0].exempt.verified[0].agent: must not be empty: every client would be asked for by name");
	refuse(
		ZONE(LIMITS ", \"exempt\": {\"list\": \"http://192.0.2.1/x\"}"),
		"weir.json:1: [0].exempt.list: must be https://HOST/..., or http:// on this machine: who is between could exempt "
		"anybody");
	refuse(ZONE(LIMITS ", \"exempt\": {\"file\": \"https://example.org/x\"}"),
	       "weir.json:1: [0].exempt.file: is the address of a server: lists that are fetched are {\"list\": ADDRESS}");
}

static void a_list_s_address_is_shown_without_its_secret(void **state)
{
	(void)state;
	struct weir_policy *policy =
		accept(ZONE(LIMITS ", \"exempt\": {\"list\": \"https://lists.example/bots?token=secret\"}"));
	char *words = weir_zone_describe(&policy->zones[0]);
	assert_non_null(strstr(words, "the entries of https://lists.example/bots"));
	assert_null(strstr(words, "secret"));
	assert_non_null(strstr(policy->text, "secret")); /* whoever fetches it needs it */
	free(words);
	weir_policy_free(policy);
}

static void exempt_entries_are_networks_or_words(void **state)
{
	(void)state;
	struct weir_policy *policy =
		accept(ZONE(LIMITS ", \"exempt\": [\"/health\", \"1/2\", \"a:b\", \"::1\", \"10.0.0.256\"]"));
	assert_int_equal(policy->zones[0].exempt_network_count, 1);
	assert_int_equal(policy->zones[0].exempt_word_count, 4);
	weir_policy_free(policy);
	refuse(ZONE(LIMITS ", \"exempt\": [\"10.0.0.1/8\"]"),
	       "weir.json:1: [0].exempt[0]: \"10.0.0.1/8\" is not a network: host bits are set");
	refuse(ZONE(LIMITS ", \"exempt\": [\"10.0.0/8\"]"),
	       "weir.json:1: [0].exempt[0]: \"10.0.0/8\" is not a network: not an address");
	refuse(ZONE(LIMITS ", \"exempt\": [\"2001:db8:::/32\"]"),
	       "weir.json:1: [0].exempt[0]: \"2001:db8:::/32\" is not a network: not an address");
	refuse(ZONE(LIMITS ", \"exempt\": [\"10.0.0.0/40\"]"),
	       "weir.json:1: [0].exempt[0]: \"10.0.0.0/40\" is not a network: prefix above 32");
	refuse(
		"[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"192.0.2.9-192.0.2.1\"]," LIMITS "}]",
		"weir.json:1: [0].exempt[0]: \"192.0.2.9-192.0.2.1\" is not a network: a range's first address must not be above "
		"its last");
	refuse(
		"[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"192.0.2.1-2001:db8::1\"]," LIMITS "}]",
		"weir.json:1: [0].exempt[0]: \"192.0.2.1-2001:db8::1\" is not a network: a range's ends must both be IPv4 or both "
		"IPv6");
	refuse(
		"[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"192.0.2.*\"]," LIMITS "}]",
		"weir.json:1: [0].exempt[0]: \"192.0.2.*\" is a wildcard in an address; give a network such as 192.0.2.0/24, or a "
		"range such as 192.0.2.1-192.0.2.9");
	refuse(
		"[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{}]," LIMITS "}]",
		"weir.json:1: [0].exempt[0]: must be {\"file\": PATH}, {\"list\": PATH}, or fields such as {\"agent\": [\"monitor/*\"]}");
	refuse("[{\"name\": \"a\", \"key\": [\"ip\"], \"match\": {\"ip\": [\"10.0.0.1/8\"]}," LIMITS "}]",
	       "weir.json:1: [0].match.ip[0]: \"10.0.0.1/8\" is not a network: host bits are set");
	refuse("[{\"name\": \"a\", \"key\": [\"ip\"], \"match\": {\"ip\": {\"nott\": [\"a\"]}}," LIMITS "}]",
	       "weir.json:1: [0].match.ip: unknown key \"nott\"; did you mean \"not\"? (known: is, not, ignore_case)");
	refuse_with("[{\"name\": \"a\", \"key\": [\"ip\"], \"sources\": []," LIMITS "}]",
	            "weir.json:1: [0].sources: must be a list of 1 to ");
	refuse("[{\"name\": \"a\", \"key\": [\"ip\"], \"sources\": [\"\"]," LIMITS "}]",
	       "weir.json:1: [0].sources[0]: must be the \"name\" of a source");
	refuse(ZONE(LIMITS ", \"exempt\": [\"\"]"), "weir.json:1: [0].exempt[0]: must not be empty");
	refuse(ZONE(LIMITS ", \"exempt\": {\"file\": \"/dev/zero\"}"),
	       "weir.json:1: [0].exempt.file: /dev/zero is not a regular file");
	refuse(ZONE(LIMITS ", \"exempt\": {\"file\": \"/nonexistent/list\"}"),
	       "weir.json:1: [0].exempt.file: cannot open /nonexistent/list: No such file or directory");
}

static void exempt_lists_are_read_from_files(void **state)
{
	(void)state;
	char path[] = "/tmp/weir-exempt-XXXXXX", zones[512], words[256];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *file = fdopen(fd, "w");
	fputs("# our own\n\n 10.0.0.0/8 \r\nmonitor\n2001:db8::/32", file);
	fclose(file);
	snprintf(zones, sizeof zones, ZONE(LIMITS ", \"exempt\": [\"bob\", {\"file\": \"%s\"}]"), path);
	struct weir_policy *policy = accept(zones);
	/* The canonical text is complete: the file is not needed again. */
	assert_non_null(strstr(policy->text, "\"exempt\":[\"10.0.0.0/8\",\"2001:db8::/32\",\"bob\",\"monitor\"]"));
	weir_policy_free(policy);
	file = fopen(path, "w");
	fputs("ok\n10.0.0.1/8\n", file);
	fclose(file);
	snprintf(words, sizeof words,
	         "weir.json:1: [0].exempt[1].file: %s:2: \"10.0.0.1/8\" is not a network: host bits are set", path);
	refuse(zones, words);
	file = fopen(path, "w");
	fputs("ok\nb\xff"
	      "d\n",
	      file);
	fclose(file);
	snprintf(words, sizeof words, "weir.json:1: [0].exempt[1].file: %s:2: is not UTF-8 text", path);
	refuse(zones, words);
	unlink(path);
}

static void a_policy_must_fit_into_one_record(void **state)
{
	(void)state;
	enum { FILES = 9 };
	char paths[FILES][32], zones[1024];
	int length = snprintf(zones, sizeof zones, "%s", ZONE(LIMITS ", \"exempt\": ["));
	length = (int)(strstr(zones, "\"exempt\": [") - zones) + 11;
	for (int k = 0; k < FILES; k++) {
		snprintf(paths[k], sizeof paths[k], "/tmp/weir-exempt-XXXXXX");
		FILE *file = fdopen(mkstemp(paths[k]), "w");
		for (int i = 0; i < 10000; i++)
			fprintf(file, "10.%d.%d.%d\n", 100 + k, 100 + (i >> 8), i & 255);
		fclose(file);
		length += snprintf(zones + length, sizeof zones - (size_t)length, "%s{\"file\": \"%s\"}", k == 0 ? "" : ", ",
		                   paths[k]);
	}
	snprintf(zones + length, sizeof zones - (size_t)length, "]}]");
	struct weir_policy *policy = NULL;
	struct weir_error error;
	assert_int_equal(parse(zones, &policy, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "at most 1000000 fit in a record"));
	for (int k = 0; k < FILES; k++)
		unlink(paths[k]);
}

static void successors_keep_ids_names_and_keys(void **state)
{
	(void)state;
	static const char now[] =
		"[{\"id\": 1, \"name\": \"a\", \"key\": [\"ip\"]," LIMITS "},"
		"{\"id\": 2, \"name\": \"b\", \"key\": [{\"field\": \"ip\", \"prefix6\": 64}]," LIMITS "}]";
	static const struct {
		const char *next, *words;
	} cases[] = {
		{now, NULL},
		{"[{\"id\": 2, \"name\": \"b\", \"key\": [{\"field\": \"ip\", \"prefix6\": 64}]," LIMITS "}]", NULL},
		{"[{\"id\": 3, \"name\": \"c\", \"key\": []," LIMITS "}]", NULL},
		{"[{\"id\": 1, \"name\": \"a\", \"key\": [\"user\"]," LIMITS "}]",
	     "zone 1 \"a\" has another key in policy 0, and a zone's key cannot change; give this zone a new name and "
	     "no id"},
		{"[{\"id\": 2, \"name\": \"b\", \"key\": [{\"field\": \"ip\", \"prefix6\": 56}]," LIMITS "}]",
	     "zone 2 \"b\" has another key in policy 0, and a zone's key cannot change; give this zone a new name and "
	     "no id"},
		{"[{\"id\": 1, \"name\": \"c\", \"key\": [\"ip\"]," LIMITS "}]",
	     "zone 1 is \"a\" in policy 0 and cannot become \"c\"; leave out the id of \"c\""},
		{"[{\"id\": 3, \"name\": \"a\", \"key\": [\"ip\"]," LIMITS "}]",
	     "zone \"a\" has id 1 in policy 0: it cannot become 3; give it \"id\": 1, or no id, or another name"}};
	struct weir_policy *previous = accept(now);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_policy *next = accept(cases[i].next);
		struct weir_error error = {.text = ""};
		enum weir_status status = weir_policy_check_successor(previous, next, &error);
		assert_int_equal(status, cases[i].words == NULL ? WEIR_OK : WEIR_INVALID);
		assert_string_equal(error.text, cases[i].words == NULL ? "" : cases[i].words);
		weir_policy_free(next);
	}
	weir_policy_free(previous);
}

static void limits_know_how_far_back_they_look(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(full);
	const struct weir_limit *limits = policy->zones[0].limits;
	static const int64_t memories[] = {60000, 3600000, 86400000, 250, 60000, 334, 90000};
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(weir_limit_memory_ms(&limits[i]), memories[i]);
	assert_int_equal(weir_limit_memory_ms(&policy->zones[1].limits[0]), 3660000);
	assert_false(weir_limit_equal(&limits[0], &limits[1]));
	weir_policy_free(policy);
}

static void zones_are_described_in_a_sentence(void **state)
{
	(void)state;
	struct weir_policy *policy = accept(full);
	char *words = weir_zone_describe(&policy->zones[0]);
	assert_string_equal(
		words,
		"zone \"site\" (1): POST requests to /login or /api/* with status 4xx or 200, counted by ip; exempt: "
		"10.0.0.0/8, 192.0.2.7, alice; at most 10 in any 1m [sliding_window], 100 in each hour (begun 10m early) "
		"[fixed_window], 1000 in each day [fixed_window], 1 in any 250ms [uniform], 5 at once, with 5 more each minute "
		"(blocked requests delay the refill) [token_bucket], 3 each second evenly spaced, with 0 ahead of time [gcra], "
		"2 waiting, each for up to 90s or until requests to /out [queue]; only passed "
		"requests count; a breach blocks until the limit would pass again");
	free(words);
	words = weir_zone_describe(&policy->zones[1]);
	assert_string_equal(
		words, "zone \"net\" (7): all requests, counted by ip (IPv6 in networks of /64, in canonical form) "
			   "and user; at most 1 in any 1h (times rounded up to 1m) [sliding_window]; blocked requests count too; a "
			   "breach blocks until the limit would pass again, for at least 10m; in shadow mode: decisions "
			   "go only to the shadow stream; every event is kept as history");
	free(words);
	weir_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_part_of_a_zone),
		cmocka_unit_test(history_may_name_fields),
		cmocka_unit_test(a_zone_may_count_lines_or_checks_alone),
		cmocka_unit_test(a_zones_checks_may_be_durable),
		cmocka_unit_test(the_canonical_text_is_the_policy),
		cmocka_unit_test(ids_are_given_by_place_where_there_are_none),
		cmocka_unit_test(a_name_keeps_its_id),
		cmocka_unit_test(ids_run_out),
		cmocka_unit_test(refuses_zones_in_words),
		cmocka_unit_test(refuses_limits_in_words),
		cmocka_unit_test(refuses_matches_in_words),
		cmocka_unit_test(a_single_value_stands_for_a_list_of_one),
		cmocka_unit_test(an_address_is_itself_however_it_is_written),
		cmocka_unit_test(what_all_zones_exempt_stands_in_each),
		cmocka_unit_test(robots_are_named_or_described),
		cmocka_unit_test(a_list_s_address_is_shown_without_its_secret),
		cmocka_unit_test(exempt_entries_are_networks_or_words),
		cmocka_unit_test(exempt_lists_are_read_from_files),
		cmocka_unit_test(a_policy_must_fit_into_one_record),
		cmocka_unit_test(successors_keep_ids_names_and_keys),
		cmocka_unit_test(limits_know_how_far_back_they_look),
		cmocka_unit_test(zones_are_described_in_a_sentence),
		cmocka_unit_test(a_list_of_blocks_gets_longer),
		cmocka_unit_test(no_zone_counts_its_own_decisions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
