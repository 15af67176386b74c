/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions are expected in order. Those that fit whole are paired first; of what is left, an expected one and one that
 * was made of the same zone and key are taken for each other, so that the words are about what differs.
 *
 * An explanation takes a second pass over the case, in which the few decisions that are asked about are judged again
 * beside a list of the events that count. Most cases pass and need none.
 */
#include "deploy/weir/test/expectations.h"

#include "common/algorithm/algorithm.h"
#include "common/base/alloc.h"
#include "common/json/units.h"
#include "deploy/weir/explain/answer.h"
#include "deploy/weir/terminal/readable.h"
#include "deploy/weir/test/pass.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY SIZE_MAX

enum { EXPLAINED_MAX = 3 }; /* of a case, beside those whose explanation is expected */

struct check {
	const struct test_case *of;
	struct pass pass;
	struct test_result *result;
	size_t *made_of;     /* by expected decision: the one that was made for it; NOBODY */
	size_t *expected_of; /* by decision made, the other way */
	struct question *questions;
	size_t question_count;
	size_t *asked_of; /* by decision made: its question; NOBODY */
};

/* ---- words ---- */

static struct test_failure *fail(struct check *check, const struct weir_json *at, const char *format, ...)
	WEIR_PRINTF(3, 4);

static struct test_failure *fail(struct check *check, const struct weir_json *at, const char *format, ...)
{
	struct test_failure *failure = test_result_fail(check->result);
	char words[WEIR_ERROR_TEXT_BYTES];
	struct weir_error error;
	va_list arguments;
	if (failure == NULL)
		return NULL;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	(void)weir_json_fail(at, &error, "%s", words);
	memcpy(failure->words, error.text, sizeof failure->words);
	return failure;
}

static const char *duration(int64_t ms, char buffer[24])
{
	return weir_format_duration(ms, buffer, 24);
}

/* "2026-01-01T00:00:06.000Z (6s)": with the time since the case's start, where it is not before that. */
static void put_time(struct weir_text *text, const struct test_case *of, int64_t time_ms)
{
	char buffer[24];
	words_time_ms(text, time_ms);
	if (time_ms >= of->start_ms)
		weir_text_printf(text, " (%s)", duration(time_ms - of->start_ms, buffer));
}

static void put_line_number(struct weir_text *text, const struct pass *pass, uint32_t line)
{
	if (line == 0)
		weir_text_puts(text, "before the first line");
	else if (pass->lines[line - 1].file != NULL)
		weir_text_printf(text, "line %u (%s:%llu)", line, pass->lines[line - 1].file,
		                 (unsigned long long)pass->lines[line - 1].number);
	else
		weir_text_printf(text, "line %u", line);
}

/* The terminated text of a buffer, for formats. */
static const char *terminated(struct weir_text *text)
{
	weir_text_append(text, "", 1);
	text->length--;
	return text->at;
}

/* ---- what differs ---- */

/* A member of a decision that is not what was expected. */
typedef void differ(void *context, const struct weir_json *at, const char *expected, const char *got);

struct comparison {
	const struct check *check;
	const struct test_decision *expected;
	const struct pass_decision *made;
	differ *differ; /* NULL: only whether it differs is asked */
	void *context;
	size_t differences;
};

static void differs(struct comparison *one, const char *member, const char *expected, const char *got)
{
	struct weir_json at = weir_json_member(&one->expected->at, member);
	one->differences++;
	if (one->differ != NULL)
		one->differ(one->context, &at, expected, got);
}

static void compare_number(struct comparison *one, const char *member, int64_t expected, int64_t got)
{
	char words[24], others[24];
	if (expected == TEST_UNSAID || expected == got)
		return;
	snprintf(words, sizeof words, "%lld", (long long)expected);
	snprintf(others, sizeof others, "%lld", (long long)got);
	differs(one, member, words, others);
}

static void compare_time(struct comparison *one, const char *member, int64_t expected, int64_t got)
{
	struct weir_text words = {0}, others = {0};
	if (expected == TEST_UNSAID || expected == got)
		return;
	put_time(&words, one->check->of, expected);
	put_time(&others, one->check->of, got);
	differs(one, member, terminated(&words), terminated(&others));
	weir_text_deinit(&words);
	weir_text_deinit(&others);
}

static void compare_word(struct comparison *one, const char *member, const char *const *words, int64_t expected,
                         int64_t got)
{
	if (expected != TEST_UNSAID && expected != got)
		differs(one, member, words[expected], words[got]);
}

static void compare_key(struct comparison *one)
{
	struct weir_text expected = {0}, got = {0};
	const struct subject_key *wanted = &one->check->pass.decision_keys[one->expected - one->check->of->decisions];
	if (wanted->zone != NULL && wanted->zone != one->made->zone)
		differs(one, "zone", wanted->zone->name, one->made->zone->name);
	else if (!subject_is_key(wanted, one->made->zone->id, weir_text_span(&one->made->key))) {
		words_key(&expected, override_key(&wanted->key));
		words_key(&got, weir_text_span(&one->made->key));
		differs(one, "key", terminated(&expected), terminated(&got));
	}
	weir_text_deinit(&expected);
	weir_text_deinit(&got);
}

/* @return how many members differ */
static size_t compare(const struct check *check, const struct test_decision *expected, const struct pass_decision *made,
                      differ *call, void *context)
{
	struct comparison one = {.check = check, .expected = expected, .made = made, .differ = call, .context = context};
	char words[24], others[24];
	int64_t lasts_ms = made->until_ms - made->at_ms;
	compare_key(&one);
	compare_word(&one, "action", test_actions, expected->action, made->block ? 0 : 1);
	compare_word(&one, "mode", test_modes, expected->mode, made->zone->mode == WEIR_SHADOW ? 1 : 0);
	compare_number(&one, "line", expected->line, made->line);
	compare_time(&one, "at", expected->at_ms, made->at_ms);
	compare_time(&one, "until", expected->until_ms, made->until_ms);
	if (expected->for_ms != TEST_UNSAID && expected->for_ms != lasts_ms)
		differs(&one, "for", duration(expected->for_ms, words), duration(lasts_ms, others));
	compare_number(&one, "count", expected->count, made->count);
	return one.differences;
}

/* ---- which is which ---- */

static void pair(struct check *check, size_t expected, size_t made)
{
	check->made_of[expected] = made;
	check->expected_of[made] = expected;
}

static void pair_equal(struct check *check)
{
	size_t from = 0;
	for (size_t i = 0; i < check->of->decision_count; i++)
		for (size_t j = from; j < check->pass.decision_count; j++)
			if (compare(check, &check->of->decisions[i], &check->pass.decisions[j], NULL, NULL) == 0) {
				pair(check, i, j);
				from = j + 1;
				break;
			}
}

static void pair_similar(struct check *check)
{
	for (size_t i = 0; i < check->of->decision_count; i++)
		for (size_t j = 0; check->made_of[i] == NOBODY && j < check->pass.decision_count; j++) {
			const struct pass_decision *made = &check->pass.decisions[j];
			if (check->expected_of[j] == NOBODY &&
			    subject_is_key(&check->pass.decision_keys[i], made->zone->id, weir_text_span(&made->key)))
				pair(check, i, j);
		}
}

/* ---- explanations ---- */

static bool wants_explanation(const struct test_decision *expected)
{
	return weir_json_exists(&expected->counted) || weir_json_exists(&expected->says);
}

static void ask(struct check *check, size_t made)
{
	const struct pass_decision *decision = &check->pass.decisions[made];
	struct question *question = &check->questions[check->question_count];
	check->asked_of[made] = check->question_count++;
	question->by_id = true;
	question->partition = decision->partition;
	question->offset = decision->offset;
	question->index = decision->index;
	question->zone_id = decision->zone->id;
	weir_text_append(&question->key, decision->key.at, decision->key.length);
	question->key_known = true;
}

/* Which decisions need one: those that are not as expected, and those whose explanation is expected. */
static void ask_all(struct check *check)
{
	size_t failing = 0;
	check->questions = weir_alloc(check->of->decision_count + EXPLAINED_MAX + 1, sizeof *check->questions);
	check->asked_of = weir_alloc(check->pass.decision_count + 1, sizeof *check->asked_of);
	for (size_t j = 0; j < check->pass.decision_count; j++) {
		const struct pass_decision *made = &check->pass.decisions[j];
		const struct test_decision *expected =
			check->expected_of[j] != NOBODY ? &check->of->decisions[check->expected_of[j]] : NULL;
		bool right = expected != NULL && compare(check, expected, made, NULL, NULL) == 0;
		bool asked = made->by_limit && expected != NULL && wants_explanation(expected);
		bool why = made->by_limit && check->of->decisions_given && !right && failing < EXPLAINED_MAX;
		check->asked_of[j] = NOBODY;
		failing += why && !asked;
		if (asked || why)
			ask(check, j);
	}
}

/* An event's position is its line's number. */
static void put_lines(const struct pass *pass, struct question *question)
{
	for (size_t i = 0; i < question->event_count; i++) {
		struct explained_event *event = &question->events[i];
		struct weir_span text = pass_line_text(pass, event->position);
		const struct pass_line *line = &pass->lines[event->position - 1];
		const char *file = line->file != NULL ? line->file : "line";
		event->file = weir_copy(file, strlen(file));
		event->offset = line->file != NULL ? line->number : event->position;
		event->found = LINE_AT;
		if (text.at == NULL)
			continue;
		event->line = weir_copy(text.at, text.length);
		event->line_length = text.length;
	}
}

static void explain(struct check *check, const char *folder)
{
	struct pass again;
	struct weir_error error;
	if (check->question_count == 0)
		return;
	if (pass_run(check->pass.subject, check->of, folder, check->questions, check->question_count, &again, &error) !=
	    WEIR_OK)
		snprintf(check->result->unusable, sizeof check->result->unusable, "%s", error.text);
	for (size_t i = 0; i < check->question_count; i++)
		put_lines(&check->pass, &check->questions[i]);
	pass_deinit(&again);
}

static void put_explanation(const struct check *check, size_t made, struct test_failure *failure)
{
	if (failure != NULL && check->asked_of[made] != NOBODY)
		answer_words(&failure->why, &check->questions[check->asked_of[made]], 0);
}

/* ---- failures ---- */

static void put_decision(const struct check *check, struct weir_text *text, size_t made)
{
	const struct pass_decision *decision = &check->pass.decisions[made];
	(void)words_decision_json(text, weir_text_span(&decision->text), false);
	weir_text_puts(text, decision->line > 0 ? ", at " : ", ");
	put_line_number(text, &check->pass, decision->line);
}

/* What the newest event of the zone and key came to. */
static void put_event(const struct check *check, const struct pass_event *seen, struct weir_text *text)
{
	weir_text_puts(text, "At ");
	put_line_number(text, &check->pass, seen->line);
	if (seen->done)
		weir_text_puts(text, " an entry was taken out of the queue");
	else if ((seen->verdict & WEIR_VERDICT_NONE) != 0)
		weir_text_puts(text, " the event was not judged");
	else if ((seen->verdict & WEIR_VERDICT_BLOCK) != 0)
		weir_text_puts(text, " the event was blocked; a breach is decided once, and this one was before");
	else
		weir_text_puts(text, " the event passed");
	for (uint32_t i = 0; i < seen->held_count && i < seen->zone->limit_count; i++) {
		weir_text_puts(text, "; the limit of ");
		weir_limit_brief(text, &seen->zone->limits[i]);
		weir_text_printf(text, " holds %lld", (long long)seen->held[i].held);
	}
	weir_text_puts(text, ".\n");
}

/* What was there instead of a decision. */
static void put_why_not(const struct check *check, size_t expected, struct weir_text *text)
{
	const struct pass_event *seen = &check->pass.events[expected];
	int64_t line = check->of->decisions[expected].line;
	if (seen->line > 0)
		put_event(check, seen, text);
	else if (line > (int64_t)check->pass.line_count)
		weir_text_printf(text, "The case has only %zu lines.\n", check->pass.line_count);
	else
		weir_text_printf(text,
		                 "%s such event: it is malformed, does not match the zone, lacks a field of its key, is "
		                 "exempt, or has another key.\n",
		                 line > 0 ? "The line makes no" : "No line makes a");
	struct weir_span shown = pass_line_text(&check->pass, seen->line > 0 ? seen->line : line > 0 ? (uint64_t)line : 0);
	if (shown.at != NULL) {
		weir_text_puts(text, "  ");
		words_bytes(text, shown, 0);
		weir_text_puts(text, "\n");
	}
}

static void fail_missing(struct check *check, size_t expected)
{
	const struct test_decision *one = &check->of->decisions[expected];
	const struct subject_key *wanted = &check->pass.decision_keys[expected];
	struct weir_text words = {0};
	weir_text_puts(&words, one->action == 1 ? "expected a lift" : "expected a block");
	if (wanted->zone != NULL && !wanted->any) {
		weir_text_puts(&words, " of ");
		words_key(&words, override_key(&wanted->key));
	}
	if (wanted->zone != NULL)
		weir_text_printf(&words, " in zone %s", wanted->zone->name);
	if (one->line > 0)
		weir_text_printf(&words, " at line %lld", (long long)one->line);
	struct test_failure *failure = fail(check, &one->at, "%s, but none was decided", terminated(&words));
	if (failure != NULL)
		put_why_not(check, expected, &failure->why);
	weir_text_deinit(&words);
}

static void fail_unexpected(struct check *check, size_t made)
{
	struct weir_json expect = weir_json_member(&check->of->at, "expect"), at = weir_json_member(&expect, "decisions");
	struct weir_text words = {0};
	put_decision(check, &words, made);
	put_explanation(check, made,
	                fail(check, &at, "expected %s, but this was decided: %s",
	                     check->of->decision_count == 0 ? "no decision" : "no other decision", terminated(&words)));
	weir_text_deinit(&words);
}

/* A differ. */
static void fail_member(void *context, const struct weir_json *at, const char *expected, const char *got)
{
	(void)fail(context, at, "expected %s, got %s", expected, got);
}

static void put_numbers(struct weir_text *text, const int64_t *numbers, size_t count)
{
	weir_text_puts(text, "[");
	for (size_t i = 0; i < count; i++)
		weir_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)numbers[i]);
	weir_text_puts(text, "]");
}

static void check_counted(struct check *check, const struct test_decision *expected, const struct question *question)
{
	size_t count = json_array_size(expected->counted.value);
	int64_t *wanted = weir_alloc(count + 1, sizeof *wanted), *got = weir_alloc(question->event_count + 1, sizeof *got);
	struct weir_text words = {0}, others = {0};
	for (size_t i = 0; i < count; i++)
		wanted[i] = json_integer_value(json_array_get(expected->counted.value, i));
	for (size_t i = 0; i < question->event_count; i++)
		got[i] = (int64_t)question->events[i].position;
	if (count != question->event_count || memcmp(wanted, got, count * sizeof *wanted) != 0) {
		put_numbers(&words, wanted, count);
		put_numbers(&others, got, question->event_count);
		(void)fail(check, &expected->counted, "expected %s, got %s", terminated(&words), terminated(&others));
	}
	weir_text_deinit(&words);
	weir_text_deinit(&others);
	free(wanted);
	free(got);
}

static void check_says(struct check *check, const struct test_decision *expected, const struct question *question)
{
	struct weir_text words = {0};
	size_t count = json_is_array(expected->says.value) ? json_array_size(expected->says.value) : 1;
	answer_words(&words, question, 0);
	for (size_t i = 0; i < count; i++) {
		struct weir_json at = weir_json_one_of(&expected->says, i);
		const char *wanted = json_string_value(at.value);
		if (memmem(words.at, words.length, wanted, strlen(wanted)) == NULL)
			(void)fail(check, &at, "the explanation does not say \"%s\"", wanted);
	}
	weir_text_deinit(&words);
}

static void check_explanation(struct check *check, const struct test_decision *expected, size_t made)
{
	size_t asked = check->asked_of[made];
	if (!wants_explanation(expected))
		return;
	if (asked == NOBODY) {
		(void)fail(check, &expected->at,
		           "expects an explanation, but an operator's command decided it: leave out \"counted\" and \"says\"");
		return;
	}
	if (weir_json_exists(&expected->counted))
		check_counted(check, expected, &check->questions[asked]);
	if (weir_json_exists(&expected->says))
		check_says(check, expected, &check->questions[asked]);
}

static void check_decision(struct check *check, size_t expected)
{
	const struct test_decision *one = &check->of->decisions[expected];
	size_t made = check->made_of[expected], before = check->result->failure_count;
	if (made == NOBODY) {
		fail_missing(check, expected);
		return;
	}
	(void)compare(check, one, &check->pass.decisions[made], fail_member, check);
	check_explanation(check, one, made);
	/* Whatever differs has one explanation, behind the last of it. */
	if (check->result->failure_count > before)
		put_explanation(check, made, &check->result->failures[check->result->failure_count - 1]);
}

/* Each of those that are as expected was made behind the one before it. */
static void check_order(struct check *check)
{
	size_t last = 0;
	for (size_t i = 0; i < check->of->decision_count; i++) {
		const struct test_decision *one = &check->of->decisions[i];
		size_t made = check->made_of[i];
		if (made == NOBODY)
			continue;
		if (made < last && compare(check, one, &check->pass.decisions[made], NULL, NULL) == 0)
			(void)fail(check, &one->at, "was decided, but before one that is expected before it: change their order");
		else if (made > last)
			last = made;
	}
}

static void check_decisions(struct check *check)
{
	for (size_t i = 0; i < check->of->decision_count; i++)
		check_decision(check, i);
	check_order(check);
	for (size_t j = 0; check->of->decisions_given && j < check->pass.decision_count; j++)
		if (check->expected_of[j] == NOBODY)
			fail_unexpected(check, j);
}

static void check_count(struct check *check, const struct test_count *expected, const char *member, int64_t wanted,
                        int64_t got)
{
	const struct pass_counts *counts = &check->pass.counts[expected - check->of->counts];
	struct weir_json at = weir_json_member(&expected->at, member);
	if (wanted == TEST_UNSAID || wanted == got)
		return;
	(void)fail(check, &at, "expected %lld, got %lld (passed %lld, blocked %lld, decisions %lld)", (long long)wanted,
	           (long long)got, (long long)counts->passed, (long long)counts->blocked, (long long)counts->decisions);
}

static void check_counts(struct check *check)
{
	for (size_t i = 0; i < check->of->count_count; i++) {
		const struct test_count *one = &check->of->counts[i];
		const struct pass_counts *got = &check->pass.counts[i];
		check_count(check, one, "passed", one->passed, got->passed);
		check_count(check, one, "blocked", one->blocked, got->blocked);
		check_count(check, one, "decisions", one->decisions, got->decisions);
	}
}

static void put_bytes(struct test_failure *failure, struct weir_span text)
{
	if (failure == NULL || text.at == NULL)
		return;
	words_bytes(&failure->why, text, 0);
	weir_text_puts(&failure->why, "\n");
}

static void check_malformed(struct check *check)
{
	const struct pass *pass = &check->pass;
	if (pass->malformed == check->of->malformed)
		return;
	struct weir_json expect = weir_json_member(&check->of->at, "expect"), at = weir_json_member(&expect, "malformed");
	if (pass->malformed < check->of->malformed || pass->malformed_given == NULL) {
		(void)fail(check, &at, "expected %lld malformed lines, got %lld", (long long)check->of->malformed,
		           (long long)pass->malformed);
		return;
	}
	struct weir_text line = {0};
	put_line_number(&line, pass, pass->malformed_line);
	struct test_failure *failure =
		fail(check, &pass->malformed_given->at, "%s is malformed: %s; expected %lld malformed lines, got %lld",
	         terminated(&line), pass->malformed_words, (long long)check->of->malformed, (long long)pass->malformed);
	put_bytes(failure, pass_line_text(pass, pass->malformed_line));
	weir_text_deinit(&line);
}

/* A format that skips what it does not know hides a line that is written wrongly: nobody would be blocked by it. */
static void check_skipped(struct check *check)
{
	const struct pass *pass = &check->pass;
	if (pass->skipped == check->of->skipped)
		return;
	struct weir_json expect = weir_json_member(&check->of->at, "expect"), at = weir_json_member(&expect, "skipped");
	if (pass->skipped < check->of->skipped || pass->skipped_given == NULL) {
		(void)fail(check, &at, "expected %lld skipped lines, got %lld", (long long)check->of->skipped,
		           (long long)pass->skipped);
		return;
	}
	struct weir_text line = {0};
	put_line_number(&line, pass, pass->skipped_line);
	struct test_failure *failure =
		fail(check, &pass->skipped_given->at,
	         "%s is malformed, and its format skips such lines (\"unmatched\"); expected %lld skipped lines, got %lld",
	         terminated(&line), (long long)check->of->skipped, (long long)pass->skipped);
	put_bytes(failure, pass_line_text(pass, pass->skipped_line));
	weir_text_deinit(&line);
}

/* ---- all of it ---- */

static size_t *nobodies(size_t count)
{
	size_t *list = weir_alloc(count + 1, sizeof *list);
	for (size_t i = 0; i < count; i++)
		list[i] = NOBODY;
	return list;
}

static void check_all(struct check *check, const char *folder)
{
	check->made_of = nobodies(check->of->decision_count);
	check->expected_of = nobodies(check->pass.decision_count);
	pair_equal(check);
	pair_similar(check);
	ask_all(check);
	explain(check, folder);
	check_malformed(check);
	check_skipped(check);
	check_decisions(check);
	check_counts(check);
	for (size_t i = 0; i < check->question_count; i++)
		question_deinit(&check->questions[i]);
	free(check->questions);
	free(check->asked_of);
	free(check->made_of);
	free(check->expected_of);
}

void expectations_check(const struct subject *subject, const struct test_case *of, const char *folder,
                        struct test_result *result)
{
	struct check check = {.of = of, .result = result};
	struct weir_error error;
	result->name = of->name;
	if (pass_run(subject, of, folder, NULL, 0, &check.pass, &error) == WEIR_OK)
		check_all(&check, folder);
	else
		memcpy(result->unusable, error.text, sizeof result->unusable);
	result->lines = check.pass.line_count;
	pass_deinit(&check.pass);
}
