/* SPDX-License-Identifier: Apache-2.0 */
/* A case that nothing could make fail is refused: it would say that all is well whatever the policy does. */
#include "deploy/weir/test/test_file.h"

#include "archiver/api/api_time.h"
#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/json/units.h"

#include <stdlib.h>
#include <string.h>

#define START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define LAST_MS (WEIR_TIME_END_MS - 1)
#define TIME_FORMS "must be a time: since the case's start as \"10s\", Unix ms, or ISO 8601 as \"2026-01-01T10:00:00Z\""

const char *const test_actions[] = {"block", "lift", NULL}, *const test_modes[] = {"enforce", "shadow", NULL};
static const char *const commands[] = {"block", "lift", "allow", "override", NULL};

/* ---- values ---- */

static bool is_number(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* @param most_ms  events are before WEIR_TIME_END_MS, but a block may end behind it */
static enum weir_status read_time(const struct weir_json *at, int64_t start_ms, int64_t most_ms, int64_t *time_ms,
                                  struct weir_error *error)
{
	const char *text = json_string_value(at->value);
	int64_t ms = -1;
	if (!weir_json_exists(at))
		return WEIR_OK;
	if (json_is_integer(at->value))
		ms = json_integer_value(at->value);
	else if (text != NULL && !is_number(text) && weir_parse_duration(text, &ms))
		ms = ms >= 0 && ms < WEIR_TIME_END_MS ? start_ms + ms : -1;
	else if (text == NULL || !api_time_read(weir_span_of(text), &ms))
		return weir_json_fail(at, error, TIME_FORMS);
	if (ms < 0 || ms > most_ms)
		return weir_json_fail(at, error, "must be from 1970 to 9999");
	*time_ms = ms;
	return WEIR_OK;
}

static enum weir_status read_key(const struct weir_json *at, struct test_key *key, bool *given,
                                 struct weir_error *error)
{
	size_t count = 0;
	key->at = *at;
	if (!weir_json_exists(at))
		return WEIR_OK;
	enum weir_status status = weir_json_one_or_more(at, WEIR_ZONE_KEY_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json value = weir_json_one_of(at, i);
		status = weir_json_string(&value, &key->values[i], error);
	}
	key->count = (uint32_t)count;
	*given = true;
	return status;
}

/* ---- what they may be: shapes say no more than the readers do ---- */

static json_t *moment_shape(int64_t most_ms)
{
	return weir_shape_either(weir_shape_text(), weir_shape_number(0, most_ms));
}

static json_t *time_shape(void)
{
	return moment_shape(LAST_MS);
}

static json_t *end_shape(void)
{
	return moment_shape(INT64_MAX);
}

static json_t *key_shape(void)
{
	return weir_shape_some(WEIR_ZONE_KEY_MAX, weir_shape_text());
}

static json_t *lines_shape(void)
{
	return weir_shape_some(TEST_LINES_MAX, weir_shape_text());
}

static json_t *fields_shape(void)
{
	return weir_shape_map(weir_shape_either(
		weir_shape_text(), weir_shape_either(weir_shape_number(INT64_MIN, INT64_MAX), weir_shape_flag())));
}

static json_t *source_shape(void)
{
	return weir_shape_either(weir_shape_text(), weir_shape_number(INT64_MIN, INT64_MAX));
}

static json_t *format_shape(void)
{
	return weir_shape_named("format");
}

static json_t *counted_shape(void)
{
	return weir_shape_list(1, TEST_EXPECTED_MAX, weir_shape_number(1, TEST_LINES_MAX));
}

static json_t *says_shape(void)
{
	return weir_shape_some(TEST_EXPECTED_MAX, weir_shape_name(0));
}

static json_t *action_shape(void)
{
	return weir_shape_words(test_actions);
}

static json_t *mode_shape(void)
{
	return weir_shape_words(test_modes);
}

/* ---- given ---- */

/* clang-format off */
#define GIVEN(member, what, says, ...) \
	{.name = #member, .kind = what, .offset = offsetof(struct test_given, member), .meaning = says, __VA_ARGS__}
#define SPAN(word, member, from, says) \
	{.name = (word), .kind = WEIR_JSON_TIME, .offset = offsetof(struct test_given, member), .least = (from), \
	 .most = WEIR_TIME_END_MS, .meaning = (says)}
#define REPETITION \
	{.name = "at", .meaning = "the time of the first", .shape = time_shape}, \
	SPAN("every", every_ms, 0, "the time from one to the next"), \
	GIVEN(repeat, WEIR_JSON_NUMBER, "how many times", .least = 1, .most = TEST_LINES_MAX)
#define SOURCE {.name = "source", .meaning = "the source that they come from: its name, or its place in \"sources\"", .shape = source_shape}
#define FORMAT {.name = "format", .meaning = "their format, instead of that of a source", .shape = format_shape}

static const struct weir_json_rule lines_rules[] = {
	{.name = "lines", .meaning = "raw lines of the log", .shape = lines_shape}, REPETITION, SOURCE, FORMAT, {.name = NULL}};
static const struct weir_json_rule file_rules[] = {
	GIVEN(path, WEIR_JSON_TEXT, "a file of raw lines, relative to this file"), SOURCE, FORMAT, {.name = NULL}};
static const struct weir_json_rule fields_rules[] = {
	{.name = "fields", .meaning = "a record without a line: the fields that the zones ask for", .shape = fields_shape},
	REPETITION, SOURCE, GIVEN(cost, WEIR_JSON_NUMBER, "the cost; 1 by default", .most = WEIR_COST_MAX), {.name = NULL}};
static const struct weir_json_rule command_rules[] = {
	GIVEN(command, WEIR_JSON_WORD, "what an operator types", .words = commands),
	{.name = "at", .meaning = "when it is given", .shape = time_shape},
	GIVEN(zone, WEIR_JSON_TEXT, "the zone's name", .needed = "name the zone"),
	{.name = "key", .needed = "say whose: a value, or a list of them", .meaning = "whose", .shape = key_shape},
	SPAN("for", for_ms, 1, "how long"), {.name = "until", .meaning = "until when", .shape = end_shape},
	GIVEN(rate, WEIR_JSON_TEXT, "of an override: what every limit is multiplied by"),
	GIVEN(by, WEIR_JSON_TEXT, "who types it"), GIVEN(reason, WEIR_JSON_TEXT, "why"), {.name = NULL}};
/* clang-format on */

/* By the member that an entry of the kind has. */
static const struct {
	const char *member;
	const struct weir_json_rule *rules;
} given_kinds[] = {
	[TEST_GIVES_LINES] = {"lines", lines_rules},
	[TEST_GIVES_FILE] = {"path", file_rules},
	[TEST_GIVES_FIELDS] = {"fields", fields_rules},
	[TEST_GIVES_COMMAND] = {"command", command_rules},
};

enum { GIVEN_KINDS = sizeof given_kinds / sizeof *given_kinds };

/* A line, or an object of one of the kinds; records and commands need their time. */
static json_t *given_shape(void)
{
	json_t *kinds = json_array();
	json_array_append_new(kinds, weir_shape_text());
	for (int kind = 0; kind < GIVEN_KINDS; kind++) {
		json_t *object = weir_shape_needs(weir_shape_object(given_kinds[kind].rules), given_kinds[kind].member);
		if (kind == TEST_GIVES_FIELDS || kind == TEST_GIVES_COMMAND)
			(void)weir_shape_needs(object, "at");
		json_array_append_new(kinds, object);
	}
	return weir_shape_one_of(kinds);
}

static json_t *all_given_shape(void)
{
	return weir_shape_some(TEST_GIVEN_MAX, weir_shape_named("given"));
}

static enum weir_status find_kind(struct test_given *given, struct weir_error *error)
{
	for (int kind = 0; kind < GIVEN_KINDS; kind++) {
		struct weir_json member = weir_json_member(&given->at, given_kinds[kind].member);
		if (!weir_json_exists(&member))
			continue;
		given->kind = (enum test_given_kind)kind;
		given->what = member;
		return weir_json_known(&given->at, given_kinds[kind].rules, error);
	}
	/* A word that was meant for one of them is the likelier mistake. */
	static const char *const members[] = {"lines",  "path",   "fields", "command", "at",     "every",
	                                      "repeat", "source", "format", "cost",    "zone",   "key",
	                                      "for",    "until",  "rate",   "by",      "reason", NULL};
	enum weir_status status = weir_json_only(&given->at, members, error);
	return status != WEIR_OK
	           ? status
	           : weir_json_fail(&given->at, error,
	                            "gives nothing: it must have \"lines\", \"path\", \"fields\" or \"command\"");
}

static enum weir_status check_fields(const struct test_given *given, struct weir_error *error)
{
	const char *name;
	json_t *value;
	if (!json_is_object(given->what.value))
		return weir_json_fail(&given->what, error, "must be an object, as {\"ip\": \"203.0.113.9\"}");
	json_object_foreach(given->what.value, name, value)
	{
		struct weir_json at = weir_json_member(&given->what, name);
		if (!json_is_string(value) && !json_is_integer(value) && !json_is_boolean(value))
			return weir_json_fail(&at, error, "must be a string, a whole number, true or false");
	}
	return given->at_ms == TEST_UNSAID
	           ? weir_json_fail(&given->at, error, "must have \"at\": when the record is of, as \"10s\"")
	           : WEIR_OK;
}

static enum weir_status check_lines(struct test_given *given, struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status = weir_json_one_or_more(&given->what, TEST_LINES_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json line = weir_json_one_of(&given->what, i);
		const char *text;
		status = weir_json_string(&line, &text, error);
	}
	given->lines = count;
	return status;
}

static enum weir_status check_command(const struct test_given *given, struct weir_error *error)
{
	bool ends = given->for_ms != TEST_UNSAID || given->until_ms != TEST_UNSAID;
	if (given->at_ms == TEST_UNSAID)
		return weir_json_fail(&given->at, error, "must have \"at\": when the command is given, as \"10s\"");
	if (given->for_ms != TEST_UNSAID && given->until_ms != TEST_UNSAID)
		return weir_json_fail(&given->at, error, "has both \"for\" and \"until\": one of them");
	if (ends && given->command == OVERRIDE_LIFT)
		return weir_json_fail(&given->at, error, "lifts: it has no \"for\" or \"until\"");
	if ((given->rate != NULL) != (given->command == OVERRIDE_RATE))
		return weir_json_fail(&given->at, error,
		                      given->rate != NULL ? "has a \"rate\", which is of \"override\" alone"
		                                          : "must have a \"rate\", as \"0.5\"");
	return WEIR_OK;
}

static enum weir_status read_given(const struct weir_json *at, int64_t start_ms, struct test_given *given,
                                   struct weir_error *error)
{
	bool key_given;
	*given = (struct test_given){.at = *at,
	                             .what = *at,
	                             .at_ms = TEST_UNSAID,
	                             .every_ms = TEST_UNSAID,
	                             .repeat = TEST_UNSAID,
	                             .lines = 1,
	                             .cost = 1,
	                             .for_ms = TEST_UNSAID,
	                             .until_ms = TEST_UNSAID};
	if (json_is_string(at->value))
		return WEIR_OK; /* a line */
	enum weir_status status = find_kind(given, error);
	if (status == WEIR_OK)
		status = weir_json_read(at, given_kinds[given->kind].rules, given, error);
	struct weir_json when = weir_json_member(at, "at"), until = weir_json_member(at, "until"),
					 key = weir_json_member(at, "key");
	given->source = weir_json_member(at, "source");
	given->format = weir_json_member(at, "format");
	if (status == WEIR_OK)
		status = read_time(&when, start_ms, LAST_MS, &given->at_ms, error);
	if (status == WEIR_OK)
		status = read_time(&until, start_ms, WEIR_TIME_END_MS, &given->until_ms, error);
	if (status == WEIR_OK)
		status = read_key(&key, &given->key, &key_given, error);
	if (status == WEIR_OK && weir_json_exists(&given->source) && !json_is_string(given->source.value) &&
	    !json_is_integer(given->source.value))
		status = weir_json_fail(&given->source, error, "must be a source's name, or its place from 0 on");
	if (status == WEIR_OK && given->repeat > 1 && given->at_ms != TEST_UNSAID && given->every_ms == TEST_UNSAID)
		status = weir_json_fail(at, error, "must have \"every\": the time from one to the next, as \"1s\", or \"0ms\"");
	if (status == WEIR_OK && given->every_ms != TEST_UNSAID &&
	    (given->at_ms == TEST_UNSAID || given->repeat == TEST_UNSAID))
		status = weir_json_fail(at, error, "has \"every\", which needs \"at\" and \"repeat\"");
	if (status == WEIR_OK && given->every_ms > 0 && given->every_ms > (WEIR_TIME_END_MS - given->at_ms) / given->repeat)
		status = weir_json_fail(at, error, "goes beyond the year 9999");
	if (status != WEIR_OK)
		return status;
	switch (given->kind) {
	case TEST_GIVES_LINES: return check_lines(given, error);
	case TEST_GIVES_FIELDS: return check_fields(given, error);
	case TEST_GIVES_COMMAND: return check_command(given, error);
	default: return WEIR_OK;
	}
}

/* ---- expected ---- */

/* clang-format off */
#define DECISION(member, what, says, ...) \
	{.name = #member, .kind = what, .offset = offsetof(struct test_decision, member), .meaning = says, __VA_ARGS__}

static const struct weir_json_rule decision_rules[] = {
	DECISION(zone, WEIR_JSON_TEXT, "the zone's name"),
	{.name = "key", .meaning = "whose it is", .shape = key_shape},
	{.name = "action", .meaning = "block or lift", .shape = action_shape},
	{.name = "mode", .meaning = "whether the zone enforces", .shape = mode_shape},
	DECISION(line, WEIR_JSON_NUMBER, "the line that made it, from 1 on", .least = 0, .most = TEST_LINES_MAX),
	{.name = "at", .meaning = "from when", .shape = time_shape},
	{.name = "until", .meaning = "until when", .shape = end_shape},
	{.name = "for", .kind = WEIR_JSON_TIME, .offset = offsetof(struct test_decision, for_ms), .most = WEIR_TIME_END_MS,
	 .meaning = "how long"},
	DECISION(count, WEIR_JSON_NUMBER, "how many the limit held", .most = INT64_MAX),
	{.name = "counted", .meaning = "the lines that the limit counted, last the one that made it", .shape = counted_shape},
	{.name = "says", .meaning = "texts that its explanation has", .shape = says_shape},
	{.name = NULL}};
/* clang-format on */

static enum weir_status read_word(const struct weir_json *object, const char *member, const char *const *words,
                                  int64_t *place, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, member);
	int word = 0;
	enum weir_status status = weir_json_word(&at, words, &word, error);
	if (status == WEIR_OK && weir_json_exists(&at))
		*place = word;
	return status;
}

static enum weir_status check_explanation(const struct test_decision *decision, struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status = WEIR_OK;
	if (weir_json_exists(&decision->counted))
		status = weir_json_list(&decision->counted, 1, TEST_EXPECTED_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = weir_json_element(&decision->counted, i);
		int64_t line;
		status = weir_json_int(&element, 1, TEST_LINES_MAX, &line, error);
	}
	count = 0;
	if (status == WEIR_OK && weir_json_exists(&decision->says))
		status = weir_json_one_or_more(&decision->says, TEST_EXPECTED_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = weir_json_one_of(&decision->says, i);
		const char *text;
		status = weir_json_string(&element, &text, error);
		if (status == WEIR_OK && text[0] == '\0')
			status = weir_json_fail(&element, error, "must have a byte: every explanation says \"\"");
	}
	return status;
}

static enum weir_status read_decision(const struct weir_json *at, int64_t start_ms, struct test_decision *decision,
                                      struct weir_error *error)
{
	*decision = (struct test_decision){.at = *at,
	                                   .action = TEST_UNSAID,
	                                   .mode = TEST_UNSAID,
	                                   .line = TEST_UNSAID,
	                                   .at_ms = TEST_UNSAID,
	                                   .until_ms = TEST_UNSAID,
	                                   .for_ms = TEST_UNSAID,
	                                   .count = TEST_UNSAID};
	struct weir_json when = weir_json_member(at, "at"), until = weir_json_member(at, "until"),
					 key = weir_json_member(at, "key");
	decision->counted = weir_json_member(at, "counted");
	decision->says = weir_json_member(at, "says");
	enum weir_status status = weir_json_known(at, decision_rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(at, decision_rules, decision, error);
	if (status == WEIR_OK)
		status = read_word(at, "action", test_actions, &decision->action, error);
	if (status == WEIR_OK)
		status = read_word(at, "mode", test_modes, &decision->mode, error);
	if (status == WEIR_OK)
		status = read_time(&when, start_ms, LAST_MS, &decision->at_ms, error);
	if (status == WEIR_OK)
		status = read_time(&until, start_ms, INT64_MAX, &decision->until_ms, error);
	if (status == WEIR_OK)
		status = read_key(&key, &decision->key, &decision->key_given, error);
	if (status == WEIR_OK && decision->key_given && decision->zone == NULL)
		status = weir_json_fail(at, error, "has a \"key\", so it must have the \"zone\" that this is a key of");
	return status == WEIR_OK ? check_explanation(decision, error) : status;
}

/* clang-format off */
#define COUNT(member, what, says, ...) \
	{.name = #member, .kind = what, .offset = offsetof(struct test_count, member), .meaning = says, __VA_ARGS__}

static const struct weir_json_rule count_rules[] = {
	COUNT(zone, WEIR_JSON_TEXT, "the zone's name", .needed = "name the zone"),
	{.name = "key", .meaning = "of this key alone", .shape = key_shape},
	COUNT(passed, WEIR_JSON_NUMBER, "how many events passed", .most = INT64_MAX),
	COUNT(blocked, WEIR_JSON_NUMBER, "how many were blocked", .most = INT64_MAX),
	COUNT(decisions, WEIR_JSON_NUMBER, "how many decisions were made", .most = INT64_MAX), {.name = NULL}};
/* clang-format on */

static enum weir_status read_count(const struct weir_json *at, struct test_count *count, struct weir_error *error)
{
	*count = (struct test_count){.at = *at, .passed = TEST_UNSAID, .blocked = TEST_UNSAID, .decisions = TEST_UNSAID};
	struct weir_json key = weir_json_member(at, "key");
	enum weir_status status = weir_json_known(at, count_rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(at, count_rules, count, error);
	if (status == WEIR_OK)
		status = read_key(&key, &count->key, &count->key_given, error);
	if (status == WEIR_OK && count->passed == TEST_UNSAID && count->blocked == TEST_UNSAID &&
	    count->decisions == TEST_UNSAID)
		status = weir_json_fail(at, error, "counts nothing: it must have \"passed\", \"blocked\" or \"decisions\"");
	return status;
}

static json_t *decisions_shape(void)
{
	return weir_shape_list(0, TEST_EXPECTED_MAX, weir_shape_object(decision_rules));
}

static json_t *counts_shape(void)
{
	return weir_shape_list(1, TEST_EXPECTED_MAX, weir_shape_object(count_rules));
}

/* clang-format off */
#define CASE(member, what, says, ...) \
	{.name = #member, .kind = what, .offset = offsetof(struct test_case, member), .meaning = says, __VA_ARGS__}

static const struct weir_json_rule expect_rules[] = {
	{.name = "decisions", .meaning = "all decisions, in the order in which they are made; []: nobody is blocked",
	 .shape = decisions_shape},
	{.name = "counts", .meaning = "how many events passed or were blocked", .shape = counts_shape},
	CASE(malformed, WEIR_JSON_NUMBER, "how many lines are malformed: not of their format", .most = TEST_LINES_MAX),
	CASE(skipped, WEIR_JSON_NUMBER, "how many the format was told to skip", .most = TEST_LINES_MAX),
	{.name = NULL}};
/* clang-format on */

/* One of them is there, as each of them can fail. */
static json_t *expect_shape(void)
{
	json_t *shape = weir_shape_object(expect_rules);
	json_object_set_new(shape, "minProperties", json_integer(1));
	return shape;
}

static enum weir_status read_expected(struct test_case *one, struct weir_error *error)
{
	struct weir_json expect = weir_json_member(&one->at, "expect");
	struct weir_json decisions = weir_json_member(&expect, "decisions"), counts = weir_json_member(&expect, "counts"),
					 malformed = weir_json_member(&expect, "malformed"), skipped = weir_json_member(&expect, "skipped");
	enum weir_status status = weir_json_require(&expect, "say what the policy must do, as {\"decisions\": []}", error);
	if (status == WEIR_OK)
		status = weir_json_known(&expect, expect_rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(&expect, expect_rules, one, error);
	one->decisions_given = weir_json_exists(&decisions);
	if (status == WEIR_OK && one->decisions_given)
		status = weir_json_list(&decisions, 0, TEST_EXPECTED_MAX, &one->decision_count, error);
	if (status == WEIR_OK && weir_json_exists(&counts))
		status = weir_json_list(&counts, 1, TEST_EXPECTED_MAX, &one->count_count, error);
	if (status == WEIR_OK && !one->decisions_given && one->count_count == 0 && !weir_json_exists(&malformed) &&
	    !weir_json_exists(&skipped))
		status = weir_json_fail(&expect, error,
		                        "expects nothing, so the case cannot fail: say the \"decisions\", which "
		                        "may be [], or \"counts\"");
	if (status != WEIR_OK)
		return status;
	one->decisions = weir_alloc(one->decision_count + 1, sizeof *one->decisions);
	one->counts = weir_alloc(one->count_count + 1, sizeof *one->counts);
	for (size_t i = 0; status == WEIR_OK && i < one->decision_count; i++) {
		struct weir_json at = weir_json_element(&decisions, i);
		status = read_decision(&at, one->start_ms, &one->decisions[i], error);
	}
	for (size_t i = 0; status == WEIR_OK && i < one->count_count; i++) {
		struct weir_json at = weir_json_element(&counts, i);
		status = read_count(&at, &one->counts[i], error);
	}
	return status;
}

/* ---- cases ---- */

static json_t *name_shape(void)
{
	return weir_shape_name(TEST_NAME_MAX_BYTES);
}

/* clang-format off */
static const struct weir_json_rule case_rules[] = {
	CASE(name, WEIR_JSON_TEXT, "what it shows, unlike that of any other case of the file",
	     .needed = "say what the case shows, in a few words", .shape = name_shape),
	{.name = "start", .meaning = "what times such as \"10s\" count from, in this case", .shape = time_shape},
	{.name = "given", .needed = "list what the policy is given", .meaning = "what comes, in this order", .shape = all_given_shape},
	{.name = "expect", .meaning = "what the policy must do", .shape = expect_shape},
	{.name = NULL}};
/* clang-format on */

static json_t *cases_shape(void)
{
	return weir_shape_list(1, TEST_CASES_MAX, weir_shape_needs(weir_shape_object(case_rules), "expect"));
}

/* clang-format off */
#define OF_FILE(word, member, says) \
	{.name = (word), .kind = WEIR_JSON_TEXT, .offset = offsetof(struct test_file, member), .meaning = (says)}

static const struct weir_json_rule file_members[] = {
	OF_FILE("$schema", schema, "where an editor finds this schema; weir does not look at it"),
	OF_FILE("config", config, "the configuration with the policy, relative to this file"),
	{.name = "start", .meaning = "what times such as \"10s\" count from", .shape = time_shape},
	{.name = "cases", .needed = "list the cases", .meaning = "each with an empty state", .shape = cases_shape},
	{.name = NULL}};
/* clang-format on */

json_t *test_file_schema(json_t *format)
{
	json_t *schema = json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
	                           "tests of a policy of weir"),
		   *object = weir_shape_object(file_members);
	json_object_update_new(schema, object);
	json_object_set_new(schema, "$defs", json_pack("{s:o, s:o}", "given", given_shape(), "format", format));
	return schema;
}

static enum weir_status read_name(const struct test_file *file, const struct test_case *one, struct weir_error *error)
{
	struct weir_json at = weir_json_member(&one->at, "name");
	size_t length = strlen(one->name);
	if (length == 0 || length > TEST_NAME_MAX_BYTES)
		return weir_json_fail(&at, error, "must have from 1 to %d bytes", TEST_NAME_MAX_BYTES);
	for (const struct test_case *other = file->cases; other < one; other++)
		if (strcmp(other->name, one->name) == 0)
			return weir_json_fail(&at, error, "is the name of cases[%zu], too: reports tell cases apart by it",
			                      (size_t)(other - file->cases));
	return WEIR_OK;
}

static enum weir_status read_case(struct test_file *file, struct test_case *one, struct weir_error *error)
{
	struct weir_json start = weir_json_member(&one->at, "start"), given = weir_json_member(&one->at, "given");
	int64_t lines = 0;
	enum weir_status status = weir_json_known(&one->at, case_rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(&one->at, case_rules, one, error);
	if (status == WEIR_OK)
		status = read_name(file, one, error);
	if (status == WEIR_OK)
		status = read_time(&start, one->start_ms, LAST_MS, &one->start_ms, error);
	if (status == WEIR_OK)
		status = weir_json_one_or_more(&given, TEST_GIVEN_MAX, &one->given_count, error);
	if (status != WEIR_OK)
		return status;
	one->given = weir_alloc(one->given_count + 1, sizeof *one->given);
	for (size_t i = 0; status == WEIR_OK && i < one->given_count; i++) {
		struct weir_json at = weir_json_one_of(&given, i);
		status = read_given(&at, one->start_ms, &one->given[i], error);
		lines += (int64_t)one->given[i].lines * (one->given[i].repeat > 1 ? one->given[i].repeat : 1);
		if (status == WEIR_OK && lines > TEST_LINES_MAX)
			status = weir_json_fail(&at, error, "brings the lines of the case above %d", TEST_LINES_MAX);
	}
	return status == WEIR_OK ? read_expected(one, error) : status;
}

static enum weir_status read_cases(struct test_file *file, struct weir_error *error)
{
	struct weir_json root = weir_json_root(file->document), start = weir_json_member(&root, "start"),
					 cases = weir_json_member(&root, "cases");
	int64_t start_ms = START_MS;
	size_t count = 0;
	enum weir_status status = weir_json_known(&root, file_members, error);
	if (status == WEIR_OK)
		status = weir_json_read(&root, file_members, file, error);
	if (status == WEIR_OK)
		status = read_time(&start, 0, LAST_MS, &start_ms, error);
	if (status == WEIR_OK)
		status = weir_json_list(&cases, 1, TEST_CASES_MAX, &count, error);
	if (status != WEIR_OK)
		return status;
	file->cases = weir_alloc(count + 1, sizeof *file->cases);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct test_case *one = &file->cases[file->case_count++];
		*one = (struct test_case){.at = weir_json_element(&cases, i), .start_ms = start_ms};
		status = read_case(file, one, error);
	}
	return status;
}

enum weir_status test_file_read(struct weir_json_document *document, struct test_file **out, struct weir_error *error)
{
	struct test_file *file = weir_alloc(1, sizeof *file);
	file->document = document;
	enum weir_status status = read_cases(file, error);
	if (status == WEIR_OK)
		*out = file;
	else
		test_file_free(file);
	return status;
}

void test_file_free(struct test_file *file)
{
	if (file == NULL)
		return;
	for (size_t i = 0; i < file->case_count; i++) {
		free(file->cases[i].given);
		free(file->cases[i].decisions);
		free(file->cases[i].counts);
	}
	free(file->cases);
	weir_json_document_free(file->document);
	free(file);
}
