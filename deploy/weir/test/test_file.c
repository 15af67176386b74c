/* SPDX-License-Identifier: Apache-2.0 */
/* A case that nothing could make fail is refused: it would say that all is well whatever the policy does. */
#include "deploy/weir/test/test_file.h"

#include "archiver/api/api_time.h"
#include "common/base/alloc.h"
#include "common/json/json_rules.h"
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

/* ---- given ---- */

/* clang-format off */
#define GIVEN(member, what, ...) \
	{.name = #member, .kind = what, .offset = offsetof(struct test_given, member), __VA_ARGS__}
#define SPAN(word, member, from) \
	{.name = (word), .kind = WEIR_JSON_TIME, .offset = offsetof(struct test_given, member), .least = (from), \
	 .most = WEIR_TIME_END_MS}
#define REPETITION \
	{.name = "at"}, SPAN("every", every_ms, 0), \
	GIVEN(repeat, WEIR_JSON_NUMBER, .least = 1, .most = TEST_LINES_MAX)

static const struct weir_json_rule lines_rules[] = {
	{.name = "lines"}, REPETITION, {.name = "source"}, {.name = "format"}, {.name = NULL}};
static const struct weir_json_rule file_rules[] = {
	GIVEN(path, WEIR_JSON_TEXT), {.name = "source"}, {.name = "format"}, {.name = NULL}};
static const struct weir_json_rule fields_rules[] = {
	{.name = "fields"}, REPETITION, {.name = "source"}, GIVEN(cost, WEIR_JSON_NUMBER, .most = WEIR_COST_MAX),
	{.name = NULL}};
static const struct weir_json_rule command_rules[] = {
	GIVEN(command, WEIR_JSON_WORD, .words = commands), {.name = "at"},
	GIVEN(zone, WEIR_JSON_TEXT, .needed = "name the zone"),
	{.name = "key", .needed = "say whose: a value, or a list of them"}, SPAN("for", for_ms, 1), {.name = "until"},
	GIVEN(rate, WEIR_JSON_TEXT), GIVEN(by, WEIR_JSON_TEXT), GIVEN(reason, WEIR_JSON_TEXT), {.name = NULL}};
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

#define DECISION(member, what, ...)                                                                  \
	{                                                                                                \
		.name = #member, .kind = what, .offset = offsetof(struct test_decision, member), __VA_ARGS__ \
	}

static const struct weir_json_rule decision_rules[] = {
	DECISION(zone, WEIR_JSON_TEXT),
	{.name = "key"},
	{.name = "action"},
	{.name = "mode"},
	DECISION(line, WEIR_JSON_NUMBER, .least = 0, .most = TEST_LINES_MAX),
	{.name = "at"},
	{.name = "until"},
	{.name = "for", .kind = WEIR_JSON_TIME, .offset = offsetof(struct test_decision, for_ms), .most = WEIR_TIME_END_MS},
	DECISION(count, WEIR_JSON_NUMBER, .most = INT64_MAX),
	{.name = "counted"},
	{.name = "says"},
	{.name = NULL}};

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

#define COUNT(member, what, ...)                                                                  \
	{                                                                                             \
		.name = #member, .kind = what, .offset = offsetof(struct test_count, member), __VA_ARGS__ \
	}

static const struct weir_json_rule count_rules[] = {
	COUNT(zone, WEIR_JSON_TEXT, .needed = "name the zone"), {.name = "key"},
	COUNT(passed, WEIR_JSON_NUMBER, .most = INT64_MAX),     COUNT(blocked, WEIR_JSON_NUMBER, .most = INT64_MAX),
	COUNT(decisions, WEIR_JSON_NUMBER, .most = INT64_MAX),  {.name = NULL}};

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

static const struct weir_json_rule expect_rules[] = {{.name = "decisions"},
                                                     {.name = "counts"},
                                                     {.name = "malformed",
                                                      .kind = WEIR_JSON_NUMBER,
                                                      .offset = offsetof(struct test_case, malformed),
                                                      .most = TEST_LINES_MAX},
                                                     {.name = "skipped",
                                                      .kind = WEIR_JSON_NUMBER,
                                                      .offset = offsetof(struct test_case, skipped),
                                                      .most = TEST_LINES_MAX},
                                                     {.name = NULL}};

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

static const struct weir_json_rule case_rules[] = {{.name = "name",
                                                    .kind = WEIR_JSON_TEXT,
                                                    .offset = offsetof(struct test_case, name),
                                                    .needed = "say what the case shows, in a few words"},
                                                   {.name = "start"},
                                                   {.name = "given", .needed = "list what the policy is given"},
                                                   {.name = "expect"},
                                                   {.name = NULL}};

static const struct weir_json_rule file_members[] = {
	{.name = "config", .kind = WEIR_JSON_TEXT, .offset = offsetof(struct test_file, config)},
	{.name = "start"},
	{.name = "cases", .needed = "list the cases"},
	{.name = NULL}};

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
