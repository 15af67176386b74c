/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrides: what a command's bytes may be, what holds until when, what a full
 * table refuses, and what a checkpoint keeps. Judging by overrides is compared with
 * the obvious model elsewhere (test_shard.c, test_shard_store.c).
 */
#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { AT = 1000000, LATENESS = 600 };

static struct override_command parse(const char *body)
{
	struct override_command command;
	struct weir_error error;
	enum weir_status status = override_command_parse(weir_span_of(body), &command, &error);
	if (status != WEIR_OK)
		print_message("%s\n", error.text);
	assert_int_equal(status, WEIR_OK);
	return command;
}

static void apply(struct overrides *overrides, const char *body)
{
	struct override_command command = parse(body);
	struct weir_error error;
	assert_int_equal(overrides_apply(overrides, 1, &command, AT, &error), WEIR_OK);
}

/* ---- the body ---- */

static void a_body_says_what_is_commanded(void **state)
{
	(void)state;
	struct override_command command = parse("{\"command\":\"override\",\"zone\":\"site\",\"key\":[\"a|b\",\"\\\\\"],"
	                                        "\"until\":5,\"rate\":\"0.5\",\"prefix\":true,\"by\":\"ann\","
	                                        "\"reason\":\"why\",\"id\":\"5f\"}");
	assert_int_equal(command.kind, OVERRIDE_RATE);
	assert_string_equal(command.zone, "site");
	assert_true(weir_span_equal(override_key(&command), weir_span_of("a\\|b|\\\\")));
	assert_int_equal(command.value_count, 2);
	assert_int_equal(command.until_ms, 5);
	assert_int_equal(command.thousandths, 500);
	assert_int_equal(command.scope, OVERRIDE_OF_PREFIX);
	assert_string_equal(command.by, "ann");
	assert_string_equal(command.reason, "why");
	struct weir_text text = {0};
	override_command_json(&text, &command);
	weir_text_append(&text, "", 1);
	assert_string_equal(text.at, "{\"command\":\"override\",\"zone\":\"site\",\"key\":[\"a|b\",\"\\\\\"],\"until\":5,"
	                             "\"rate\":\"0.5\",\"prefix\":true,\"by\":\"ann\",\"reason\":\"why\",\"id\":\"5f\"}");
	weir_text_deinit(&text);
	command = parse("{\"command\":\"lift\",\"zone\":\"site\",\"key_hex\":\"ff7c\",\"by\":\"ann\"}");
	assert_true(weir_span_equal(override_key(&command), weir_span_of("\xff|")));
	assert_int_equal(command.value_count, 2);
	assert_int_equal(command.until_ms, OVERRIDE_NO_END);
	assert_string_equal(command.reason, "");
	override_command_json(&text, &command);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at, "\"key_hex\":\"ff7c\""));
	weir_text_deinit(&text);

	/* Bytes that no values join to, as a stranger's frame may have them: a backslash before nothing to escape. */
	command = parse("{\"command\":\"lift\",\"zone\":\"site\",\"key_hex\":\"615c\",\"by\":\"ann\"}");
	override_command_json(&text, &command);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at, "\"key_hex\":\"615c\""));
	weir_text_deinit(&text);
	command = parse("{\"command\":\"lift\",\"zone\":\"site\",\"key_hex\":\"5c61\",\"by\":\"ann\"}");
	override_command_json(&text, &command);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at, "\"key_hex\":\"5c61\""));
	weir_text_deinit(&text);
}

static void a_body_that_is_not_understood_whole_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *body, *words;
	} cases[] = {
		{"", "command"},
		{"[]", "object"},
		{"{\"command\":\"bloc\",\"zone\":\"z\",\"key\":[],\"by\":\"a\"}", "block"},
		{"{\"zone\":\"z\",\"key\":[],\"by\":\"a\"}", "command"},
		{"{\"command\":\"block\",\"key\":[],\"by\":\"a\"}", "zone"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"by\":\"a\"}", "key"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[1],\"by\":\"a\"}", "string"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"\",\"\",\"\",\"\",\"\"],\"by\":\"a\"}", "4"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"key_hex\":\"00\",\"by\":\"a\"}", "combined"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key_hex\":\"0\",\"by\":\"a\"}", "two digits"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key_hex\":\"0g\",\"by\":\"a\"}", "hexadecimal"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[]}", "by"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"until\":-1}", "until"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"until\":\"1h\"}", "until"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"rate\":\"1\"}", "only for override"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"prefix\":true}", "only for override"},
		{"{\"command\":\"lift\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"until\":5}", "lift"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[],\"by\":\"a\"}", "rate"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"rate\":\"0\"}", "0.001"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"rate\":\"100.001\"}", "100"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"rate\":\"0.0001\"}",
	     "three decimal places"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"rate\":2}", "string"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[],\"by\":\"a\",\"unti\":5}", "until"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"10.0.0.0/8\"],\"by\":\"a\",\"network\":1}", "network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"10.0.0.1/8\"],\"by\":\"a\",\"network\":true}",
	     "one network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"10.0.0.1\"],\"by\":\"a\",\"network\":true}", "one network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"10.0.0.1/32\"],\"by\":\"a\",\"network\":true}",
	     "one network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"0.0.0.0/0\"],\"by\":\"a\",\"network\":true}", "one network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"::/0\"],\"by\":\"a\",\"network\":true}", "one network"},
		{"{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"2001:DB8::/32\"],\"by\":\"a\",\"network\":true}",
	     "one network"},
		{"{\"command\":\"lift\",\"zone\":\"z\",\"key\":[\"10.0.0.0/8\",\"a\"],\"by\":\"a\",\"network\":true}",
	     "one network"},
		{"{\"command\":\"override\",\"zone\":\"z\",\"key\":[\"10.0.0.0/8\"],\"by\":\"a\",\"rate\":\"2\",\"network\":true}",
	     "not for override"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct override_command command;
		struct weir_error error;
		assert_int_equal(override_command_parse(weir_span_of(cases[i].body), &command, &error), WEIR_INVALID);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("%s: %s", cases[i].body, error.text);
	}
}

static void rates_are_thousandths(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t thousandths;
	} cases[] = {{"0.001", 1}, {"0.5", 500}, {"1", 1000}, {"1.25", 1250}, {"10", 10000}, {"100", 100000}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t thousandths;
		char text[12];
		assert_true(override_rate_parse(cases[i].text, &thousandths));
		assert_int_equal(thousandths, cases[i].thousandths);
		override_rate_format(thousandths, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void a_key_has_a_bound(void **state)
{
	(void)state;
	struct override_command command = {0};
	char bytes[WEIR_KEY_MAX_BYTES];
	memset(bytes, 'a', sizeof bytes);
	assert_true(override_key_add(&command, (struct weir_span){bytes, sizeof bytes}));
	assert_false(override_key_add(&command, weir_span_of("")));
	command = (struct override_command){0};
	bytes[0] = '|';
	assert_false(override_key_add(&command, (struct weir_span){bytes, sizeof bytes}));
}

/* ---- what holds ---- */

#define BLOCK "{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\",\"until\":1001000}"
#define BLOCK_FOR_EVER "{\"command\":\"block\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\"}"
#define ALLOW "{\"command\":\"allow\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\",\"until\":1001000}"
#define ALLOW_ENDS "{\"command\":\"allow\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\",\"until\":1000000}"
#define LIFT "{\"command\":\"lift\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\"}"
#define TWICE "{\"command\":\"override\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\",\"rate\":\"2\",\"until\":1001000}"
#define ONCE "{\"command\":\"override\",\"zone\":\"z\",\"key\":[\"k\"],\"by\":\"a\",\"rate\":\"1\"}"
#define PREFIX "{\"command\":\"override\",\"zone\":\"z\",\"key\":[\"\"],\"by\":\"a\",\"rate\":\"3\",\"prefix\":true}"
#define OTHERS "{\"command\":\"override\",\"zone\":\"z\",\"key\":[\"kk\"],\"by\":\"a\",\"rate\":\"4\",\"prefix\":true}"

static void overrides_hold_from_command_to_end(void **state)
{
	(void)state;
	static const struct {
		const char *commands[4];
		int64_t clock_ms, t;
		bool blocked, allowed;
		uint32_t thousandths;
	} cases[] = {
		/* A block is for events before its end, whenever they come while it is remembered. */
		{{BLOCK}, AT, 0, true, false, 1000},
		{{BLOCK}, AT, AT + 999, true, false, 1000},
		{{BLOCK}, AT, AT + 1000, false, false, 1000},
		{{BLOCK}, AT + 1000 + LATENESS, AT + 999, true, false, 1000},
		{{BLOCK}, AT + 1000 + LATENESS + 1, AT + 999, false, false, 1000},
		{{BLOCK_FOR_EVER}, INT64_C(200000000000000), INT64_C(200000000000000), true, false, 1000},
		{{ALLOW}, AT, AT + 999, false, true, 1000},
		{{ALLOW}, AT, AT + 1000, false, false, 1000},
		{{ALLOW}, AT + 1000 + LATENESS + 1, AT + 999, false, false, 1000},
		/* The later of block and allow counts. */
		{{ALLOW, BLOCK}, AT, AT, true, false, 1000},
		{{BLOCK, ALLOW}, AT, AT, false, true, 1000},
		{{BLOCK, LIFT}, AT, AT, false, false, 1000},
		{{ALLOW, LIFT}, AT, AT, false, true, 1000},
		{{ALLOW, ALLOW_ENDS}, AT, AT, false, false, 1000},
		{{BLOCK, ALLOW_ENDS}, AT, AT, true, false, 1000},
		/* An override is for what is judged before its end by the clock. */
		{{TWICE}, AT + 999, AT + 5000, false, false, 2000},
		{{TWICE}, AT + 1000, AT, false, false, 1000},
		{{TWICE, ONCE}, AT, AT, false, false, 1000},
		{{TWICE, BLOCK}, AT, AT, true, false, 2000},
		{{BLOCK, TWICE, LIFT}, AT, AT, false, false, 2000},
		/* An exact key beats a prefix; the longest prefix wins. */
		{{PREFIX, TWICE}, AT, AT, false, false, 2000},
		{{TWICE, PREFIX}, AT + 1000, AT, false, false, 3000},
		{{PREFIX, OTHERS}, AT, AT, false, false, 3000},
		{{PREFIX, BLOCK}, AT, AT, true, false, 3000},
		{{LIFT, ONCE, ALLOW_ENDS}, AT, AT, false, false, 1000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct overrides overrides;
		overrides_init(&overrides, LATENESS, 0, 1);
		for (size_t j = 0; j < 4 && cases[i].commands[j] != NULL; j++)
			apply(&overrides, cases[i].commands[j]);
		overrides_advance(&overrides, cases[i].clock_ms);
		struct override_effect effect = overrides_effect(&overrides, 1, weir_span_of("k"), cases[i].t, 0);
		if (effect.blocked != cases[i].blocked || effect.allowed != cases[i].allowed ||
		    effect.thousandths != cases[i].thousandths)
			fail_msg("case %zu: blocked %d allowed %d times %u", i, effect.blocked, effect.allowed, effect.thousandths);
		bool touches = effect.blocked || effect.allowed || effect.thousandths != 1000;
		assert_true(overrides_touch(&overrides, 1, weir_span_of("k")) || !touches);
		assert_false(overrides_effect(&overrides, 2, weir_span_of("k"), cases[i].t, 0).blocked);
		overrides_deinit(&overrides);
	}
}

static void the_longest_prefix_wins(void **state)
{
	(void)state;
	struct overrides overrides;
	overrides_init(&overrides, LATENESS, 0, 1);
	for (int length = 0; length <= 9; length += 3) {
		struct override_command command = {.kind = OVERRIDE_RATE,
		                                   .scope = OVERRIDE_OF_PREFIX,
		                                   .until_ms = OVERRIDE_NO_END,
		                                   .thousandths = 2000 + (uint32_t)length};
		struct weir_error error;
		override_key_add(&command, (struct weir_span){"aaaaaaaaa", (uint32_t)length});
		assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_OK);
	}
	static const uint32_t longest[] = {0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9};
	for (uint32_t length = 0; length <= 10; length++)
		assert_int_equal(overrides_effect(&overrides, 1, (struct weir_span){"aaaaaaaaaa", length}, AT, 0).thousandths,
		                 2000 + longest[length]);
	assert_int_equal(overrides_effect(&overrides, 1, weir_span_of("b"), AT, 0).thousandths, 2000);
	assert_int_equal(overrides_effect(&overrides, 2, weir_span_of("aaa"), AT, 0).thousandths, 1000);
	overrides_deinit(&overrides);
}

#define NET(COMMAND, NETWORK, REST) \
	"{\"command\":\"" COMMAND "\",\"zone\":\"z\",\"key\":[\"" NETWORK "\"],\"by\":\"a\"" REST ",\"network\":true}"

/* A limiter that does not know networks would put the command aside, and go on without it. */
static void only_a_command_for_a_network_is_of_the_newer_version(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		char version;
	} cases[] = {
		{BLOCK, 1}, {PREFIX, 1}, {TWICE, 1}, {NET("block", "10.0.0.0/8", ""), 2}, {NET("lift", "::/3", ""), 2}};
	struct weir_frame_reader *reader = weir_frame_reader_new();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct override_command command = parse(cases[i].body), again;
		struct weir_frame frame;
		struct weir_error error;
		size_t length;
		char *message = override_command_message(&command, 7, AT, &length);
		assert_int_equal(message[2], cases[i].version);
		assert_int_equal(weir_frame_decode(reader, (struct weir_span){message, (uint32_t)length}, &frame, &error),
		                 WEIR_OK);
		assert_int_equal(frame.kind, WEIR_FRAME_COMMAND);
		assert_int_equal(frame.policy_version, 7);
		assert_int_equal(override_command_parse(frame.body, &again, &error), WEIR_OK);
		assert_int_equal(again.scope, command.scope);
		free(message);
	}
	weir_frame_reader_free(reader);
}

static void the_narrowest_network_that_holds_wins(void **state)
{
	(void)state;
	struct overrides overrides;
	overrides_init(&overrides, LATENESS, 0, 1);
	apply(&overrides, NET("block", "10.0.0.0/8", ""));
	apply(&overrides, NET("allow", "10.1.0.0/16", ",\"until\":1001000"));
	apply(&overrides, NET("block", "10.1.2.0/23", ",\"until\":1000500"));
	apply(&overrides, NET("block", "2001:db8::/32", ""));
	apply(&overrides, NET("block", "::/8", ""));
	apply(&overrides, "{\"command\":\"allow\",\"zone\":\"z\",\"key\":[\"10.1.3.9\"],\"by\":\"a\",\"until\":1000200}");
	static const struct {
		const char *key;
		int64_t t;
		char verdict; /* b: blocked, a: allowed, -: judged */
	} cases[] = {
		{"10.200.0.1", AT, 'b'},
		{"11.0.0.1", AT, '-'},
		{"10.1.9.9", AT, 'a'},
		{"10.1.9.9", 1001000, 'b'},
		{"10.1.2.9", AT, 'b'},
		{"10.1.2.9", 1000500, 'a'}, /* the narrow one ended, the one around it holds */
		{"10.1.2.9", 1001000, 'b'},
		{"10.1.3.9", AT, 'a'}, /* an address is the narrowest of all */
		{"10.1.3.9", 1000200, 'b'},
		{"10.1.2.0/24", AT, 'b'}, /* as zones that group have keys */
		{"10.1.0.0/16", AT, 'a'},
		{"10.0.0.0/7", AT, '-'},
		{"2001:db8:ffff::1", AT, 'b'},
		{"2001:db9::1", AT, '-'},
		{"2001:db8:1::/48", AT, 'b'},
		{"::1", AT, 'b'},
		{"ann", AT, '-'},
		{"", AT, '-'},
		{"10.1.2", AT, '-'},
		{"10.1.2.9|ann", AT, '-'},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_span key = weir_span_of(cases[i].key);
		struct override_effect effect = overrides_effect(&overrides, 1, key, cases[i].t, 0);
		char verdict = effect.blocked ? 'b' : effect.allowed ? 'a' : '-';
		if (verdict != cases[i].verdict || (effect.blocked && effect.allowed))
			fail_msg("%s at %lld: %c", cases[i].key, (long long)cases[i].t, verdict);
		assert_true(verdict == '-' || overrides_touch(&overrides, 1, key));
		assert_false(overrides_touch(&overrides, 2, key));
	}
	/* All that holds for a key, from the narrowest on: the first is what counts. */
	static const char *const around[] = {"10.1.3.9", "10.1.2.0/23", "10.1.0.0/16", "10.0.0.0/8"};
	static const int64_t ends[] = {1000200, 1000500, 1001000, OVERRIDE_NO_END};
	for (int64_t t = AT; t <= 1001000; t += 100) {
		struct overrides_walk walk = {0};
		const struct override *override;
		for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
			if (ends[i] <= t)
				continue;
			override = overrides_next(&overrides, 1, weir_span_of("10.1.3.9"), t, &walk);
			assert_non_null(override);
			assert_true(weir_span_equal(override->key, weir_span_of(around[i])));
		}
		assert_null(overrides_next(&overrides, 1, weir_span_of("10.1.3.9"), t, &walk));
		assert_null(overrides_next(&overrides, 1, weir_span_of("10.1.3.9"), t, &walk));
	}
	/* The later command about one network counts. */
	apply(&overrides, NET("allow", "10.0.0.0/8", ""));
	assert_true(overrides_effect(&overrides, 1, weir_span_of("10.200.0.1"), AT, 0).allowed);
	assert_null(overrides_block_after(&overrides, 1, OVERRIDE_OF_NETWORK, weir_span_of("10.0.0.0/8"), AT));
	apply(&overrides, NET("allow", "10.0.0.0/8", ",\"until\":1"));
	apply(&overrides, NET("lift", "2001:db8::/32", ""));
	apply(&overrides, NET("lift", "::/8", ""));
	overrides_advance(&overrides, 2000000);
	assert_int_equal(overrides.count, 0);
	assert_int_equal(overrides.networks.count, 0);
	assert_int_equal(overrides.bytes, 0);
	overrides_deinit(&overrides);
}

static void one_partition_publishes_for_a_network(void **state)
{
	(void)state;
	enum { PARTITIONS = 7 };
	static const char *const networks[] = {"10.0.0.0/8", "2001:db8::/32", "192.0.2.0/24"};
	for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
		struct weir_span key = weir_span_of(networks[i]);
		uint32_t count = 0;
		for (uint32_t partition = 0; partition < PARTITIONS; partition++) {
			struct overrides overrides;
			overrides_init(&overrides, LATENESS, partition, PARTITIONS);
			count += overrides_publish(&overrides, OVERRIDE_OF_NETWORK, key);
			assert_true(overrides_publish(&overrides, OVERRIDE_OF_KEY, key));
			overrides_deinit(&overrides);
		}
		assert_int_equal(count, 1);
	}
}

static void a_zone_takes_networks_wider_than_its_own(void **state)
{
	(void)state;
	static char ip[] = "ip", peer[] = "peer", user[] = "user";
	struct weir_zone single = {.name = (char *)"z", .key = {{.field = ip}}, .key_count = 1}, grouped = single;
	struct weir_zone word = single, pair = single;
	grouped.key[0] = (struct weir_key_field){.field = peer, .grouped = true, .prefix4 = 24, .prefix6 = 64};
	word.key[0].field = user;
	pair.key[1].field = ip;
	pair.key_count = 2;
	const struct {
		const struct weir_zone *zone;
		const char *body, *refused;
	} cases[] = {
		{&single, NET("block", "10.0.0.0/31", ""), NULL},       {&grouped, NET("block", "10.0.0.0/23", ""), NULL},
		{&grouped, NET("block", "10.0.0.0/24", ""), "wider"},   {&grouped, NET("lift", "10.0.0.0/25", ""), "wider"},
		{&grouped, NET("block", "2001:db8::/63", ""), NULL},    {&grouped, NET("block", "2001:db8::/64", ""), "wider"},
		{&word, NET("block", "10.0.0.0/8", ""), "one address"}, {&pair, NET("block", "10.0.0.0/8", ""), "one address"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct override_command command = parse(cases[i].body);
		struct weir_error error;
		enum weir_status status = override_command_check(&command, cases[i].zone, &error);
		assert_int_equal(status, cases[i].refused == NULL ? WEIR_OK : WEIR_INVALID);
		if (status != WEIR_OK && strstr(error.text, cases[i].refused) == NULL)
			fail_msg("%s: %s", cases[i].body, error.text);
	}
}

static void make_key(struct override_command *command, int number)
{
	char key[24];
	snprintf(key, sizeof key, "k%d", number);
	command->key_length = command->value_count = 0;
	override_key_add(command, weir_span_of(key));
}

static void a_full_table_refuses_what_is_new(void **state)
{
	(void)state;
	struct overrides overrides;
	struct weir_error error;
	struct override_command command = {.kind = OVERRIDE_BLOCK, .until_ms = AT + 5};
	overrides_init(&overrides, LATENESS, 0, 1);
	for (int i = 0; i < OVERRIDES_MAX; i++) {
		make_key(&command, i);
		assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_OK);
	}
	make_key(&command, OVERRIDES_MAX);
	assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_FULL);
	assert_non_null(strstr(error.text, "lift some"));
	make_key(&command, 7); /* of a key that there is, in its place */
	assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_OK);
	command.kind = OVERRIDE_LIFT;
	assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_OK);
	assert_int_equal(overrides.count, OVERRIDES_MAX - 1);
	command.kind = OVERRIDE_BLOCK;
	make_key(&command, OVERRIDES_MAX);
	assert_int_equal(overrides_apply(&overrides, 1, &command, AT, &error), WEIR_OK);
	for (int i = 0; i < OVERRIDES_MAX; i += 997) {
		char key[24];
		snprintf(key, sizeof key, "k%d", i);
		assert_true(i == 7 || overrides_effect(&overrides, 1, weir_span_of(key), AT, 0).blocked);
	}
	overrides_advance(&overrides, AT + 5 + LATENESS + 1);
	assert_int_equal(overrides.count, 0);
	assert_int_equal(overrides.bytes, 0);
	overrides_deinit(&overrides);
}

static void words_have_a_bound_too(void **state)
{
	(void)state;
	struct overrides overrides;
	struct weir_error error;
	struct override_command command = {.kind = OVERRIDE_BLOCK, .until_ms = OVERRIDE_NO_END};
	char long_key[900];
	memset(command.reason, 'r', OVERRIDE_REASON_MAX_BYTES);
	memset(long_key, 'k', sizeof long_key);
	overrides_init(&overrides, LATENESS, 0, 1);
	enum weir_status status = WEIR_OK;
	int count = 0;
	for (; status == WEIR_OK && count < OVERRIDES_MAX; count++) {
		make_key(&command, count);
		command.key_length = command.value_count = 0;
		snprintf(long_key, 24, "%d", count);
		override_key_add(&command, (struct weir_span){long_key, sizeof long_key});
		status = overrides_apply(&overrides, 1, &command, AT, &error);
	}
	assert_int_equal(status, WEIR_FULL);
	assert_in_range(overrides.bytes, OVERRIDES_BYTES_MAX - 2000, OVERRIDES_BYTES_MAX);
	overrides_deinit(&overrides);
}

/* ---- in a checkpoint ---- */

static void overrides_are_what_they_were_after_a_checkpoint(void **state)
{
	(void)state;
	struct overrides overrides, again;
	struct weir_text bytes = {0}, twice = {0};
	overrides_init(&overrides, LATENESS, 0, 1);
	overrides_init(&again, LATENESS, 0, 1);
	apply(&overrides, BLOCK);
	apply(&overrides, TWICE);
	apply(&overrides, PREFIX);
	apply(&overrides, OTHERS);
	apply(&overrides, NET("block", "10.0.0.0/8", ""));
	overrides_export(&overrides, &bytes);
	struct weir_span span = {bytes.at, (uint32_t)bytes.length};
	assert_true(overrides_import(&again, span));
	overrides_export(&again, &twice);
	assert_int_equal(bytes.length, twice.length);
	assert_memory_equal(bytes.at, twice.at, bytes.length);
	assert_int_equal(again.bytes, overrides.bytes);
	assert_int_equal(again.next_end_ms, overrides.next_end_ms);
	struct override_effect effect = overrides_effect(&again, 1, weir_span_of("k"), AT, 0);
	assert_true(effect.blocked && effect.thousandths == 2000);
	assert_true(overrides_effect(&again, 1, weir_span_of("10.9.9.9"), AT, 0).blocked);
	assert_int_equal(overrides_effect(&again, 1, weir_span_of("kk7"), AT, 0).thousandths, 4000);
	for (uint32_t length = 0; length < span.length; length++) {
		struct weir_span cut = {weir_copy(span.at, length), length};
		assert_false(overrides_import(&again, cut));
		assert_int_equal(again.count, 0);
		free((char *)cut.at);
	}
	weir_text_deinit(&bytes);
	weir_text_deinit(&twice);
	overrides_deinit(&overrides);
	overrides_deinit(&again);
}

static void bytes_that_are_no_overrides_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		uint32_t length;
	} cases[] = {
		{"\x01\x01\x00\x00", 4},                                                      /* nothing holds */
		{"\x01\x01\x06\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00", 14},             /* both a block and an allow */
		{"\x01\x01\x03\x00\x00\x01\x00\x00\x00", 9},                                  /* a block of a prefix */
		{"\x01\x01\x12\x01k\x00\x01\x00\x00\x00", 10},                                /* a network that is none */
		{"\x01\x01\x19\x04::/8\x00\x01\x00\x00\x00\x02", 13},                         /* of a network and a prefix */
		{"\x01\x01\x08\x00\x00\x01\x00\x00\x00\x00", 10},                             /* multiplied by nothing */
		{"\x01\x01\x02\x00\x00\x01\x00\x00\x00\x00", 10},                             /* bytes behind */
		{"\x02\x01\x02\x00\x00\x01\x00\x00\x00\x01\x02\x00\x00\x01\x00\x00\x00", 17}, /* the same one twice */
	};
	/* What they would be without their faults. */
	static const char good[] = {1, 1, 2, 0, 0, 1, 0, 0, 0};
	struct overrides read;
	overrides_init(&read, LATENESS, 0, 1);
	assert_true(overrides_import(&read, (struct weir_span){good, sizeof good}));
	assert_int_equal(read.count, 1);
	overrides_deinit(&read);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct overrides overrides;
		overrides_init(&overrides, LATENESS, 0, 1);
		assert_false(overrides_import(&overrides, (struct weir_span){cases[i].bytes, cases[i].length}));
		overrides_deinit(&overrides);
	}
}

/* ---- beside the rest of a shard's state ---- */

/* Of a key at a time, whatever a shard's clock is. */
static struct override_effect effect_in(const struct shard *shard, const char *key, int64_t t)
{
	const struct overrides *overrides = shard_overrides(shard);
	return overrides_effect(overrides, 1, weir_span_of(key), t, overrides->clock_ms);
}

static void what_is_commanded_after_a_clock_was_ahead_holds_until_its_end(void **state)
{
	enum { AHEAD = 10 * 1000 + LATENESS };
	(void)state;
	struct weir_zone zone = {.id = 1, .name = (char *)"z", .key_count = 1, .limit_count = 1};
	zone.key[0].field = (char *)"ip";
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 1, .window_ms = 1000};
	struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&policy};
	struct compiled_policy *compiled = compiled_policy_new(policies, 1);
	struct shard_options options = {.seed = 1, .lateness_ms = LATENESS};
	struct shard *shard = shard_new(&options, compiled);
	const char *const bodies[] = {BLOCK, TWICE, NET("block", "10.0.0.0/8", ",\"until\":1001000")};
	const struct shard_override_decision *decision;
	struct weir_error error;
	shard_advance_clock(shard, AT + AHEAD);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct override_command command = parse(bodies[i]);
		assert_int_equal(shard_command_begin(shard, &command, AT, &error), WEIR_OK);
		assert_int_equal(shard_command_apply(shard, &decision, &error), WEIR_OK);
	}
	assert_int_equal(shard_clock_ms(shard), AT + AHEAD);
	for (int restarted = 0; restarted < 2; restarted++) {
		shard_advance_clock(shard, AT + 999);
		assert_true(effect_in(shard, "k", AT + 999).blocked);
		assert_false(effect_in(shard, "k", AT + 1000).blocked);
		assert_int_equal(effect_in(shard, "k", AT).thousandths, 2000);
		assert_true(effect_in(shard, "10.1.2.3", AT + 999).blocked);
		size_t length;
		char *saved = shard_export_extra(shard, &length);
		assert_int_equal(saved[0], 4);
		shard_free(shard);
		shard = shard_new(&options, compiled);
		assert_int_equal(shard_import_extra(shard, (struct weir_span){saved, (uint32_t)length}, &error), WEIR_OK);
		free(saved);
	}
	shard_advance_clock(shard, AT + 1000);
	assert_int_equal(effect_in(shard, "k", AT).thousandths, 1000);
	assert_true(effect_in(shard, "k", AT + 999).blocked);
	shard_advance_clock(shard, AT + 1000 + LATENESS + 1);
	assert_int_equal(shard_overrides(shard)->count, 0);
	shard_free(shard);
	compiled_policy_free(compiled);
}

static void they_are_a_part_of_a_shards_state(void **state)
{
	(void)state;
	struct weir_zone zone = {.id = 1, .name = (char *)"z", .key_count = 1, .limit_count = 1};
	zone.key[0].field = (char *)"ip";
	zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 1, .window_ms = 1000};
	struct weir_policy policy = {.version = 1, .zones = &zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&policy};
	struct compiled_policy *compiled = compiled_policy_new(policies, 1);
	struct shard_options options = {.seed = 1, .lateness_ms = LATENESS};
	struct shard *shard = shard_new(&options, compiled), *restarted = shard_new(&options, compiled);
	struct weir_error error;
	struct override_command command = parse(BLOCK);
	const struct shard_override_decision *decision;
	assert_int_equal(shard_command_begin(shard, &command, AT, &error), WEIR_OK);
	assert_int_equal(shard_command_apply(shard, &decision, &error), WEIR_OK);
	assert_non_null(decision);
	size_t length;
	char *saved = shard_export_extra(shard, &length);
	struct weir_span span = {saved, (uint32_t)length};
	assert_int_equal(saved[0], 1);
	assert_int_equal(shard_import_extra(restarted, span, &error), WEIR_OK);
	assert_true(overrides_effect(shard_overrides(restarted), 1, weir_span_of("k"), AT, 0).blocked);
	saved[0] = 5;
	assert_int_equal(shard_import_extra(restarted, span, &error), WEIR_NEWER);
	assert_non_null(strstr(error.text, "partition state version 5 is newer than this program, which reads up to 4"));
	saved[0] = 0;
	assert_int_equal(shard_import_extra(restarted, span, &error), WEIR_INVALID);
	free(saved);
	/* A program that knows no networks says so, not that the state is damaged; once there are none, it reads it. */
	for (int lifted = 0; lifted < 2; lifted++) {
		command = lifted ? parse(NET("lift", "10.0.0.0/8", "")) : parse(NET("block", "10.0.0.0/8", ""));
		assert_int_equal(shard_command_begin(shard, &command, AT, &error), WEIR_OK);
		assert_int_equal(shard_command_apply(shard, &decision, &error), WEIR_OK);
		saved = shard_export_extra(shard, &length);
		assert_int_equal(saved[0], lifted ? 1 : 2);
		assert_int_equal(shard_import_extra(restarted, (struct weir_span){saved, (uint32_t)length}, &error), WEIR_OK);
		assert_int_equal(overrides_effect(shard_overrides(restarted), 1, weir_span_of("10.1.2.3"), AT, 0).blocked,
		                 !lifted);
		free(saved);
	}
	shard_free(restarted);
	shard_free(shard);
	compiled_policy_free(compiled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_says_what_is_commanded),
		cmocka_unit_test(a_body_that_is_not_understood_whole_is_refused),
		cmocka_unit_test(rates_are_thousandths),
		cmocka_unit_test(a_key_has_a_bound),
		cmocka_unit_test(overrides_hold_from_command_to_end),
		cmocka_unit_test(the_longest_prefix_wins),
		cmocka_unit_test(only_a_command_for_a_network_is_of_the_newer_version),
		cmocka_unit_test(the_narrowest_network_that_holds_wins),
		cmocka_unit_test(one_partition_publishes_for_a_network),
		cmocka_unit_test(a_zone_takes_networks_wider_than_its_own),
		cmocka_unit_test(a_full_table_refuses_what_is_new),
		cmocka_unit_test(words_have_a_bound_too),
		cmocka_unit_test(overrides_are_what_they_were_after_a_checkpoint),
		cmocka_unit_test(bytes_that_are_no_overrides_are_refused),
		cmocka_unit_test(what_is_commanded_after_a_clock_was_ahead_holds_until_its_end),
		cmocka_unit_test(they_are_a_part_of_a_shards_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
